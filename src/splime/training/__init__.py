"""Training: the loop, and the engines that train models on static graphs.

Nothing is imported here: the command line uses the registry before it loads PyTorch.
"""
