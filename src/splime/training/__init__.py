"""Training: the loop, and the engines that train models on static graphs.

Nothing is imported here: the command line asks for engines before it loads PyTorch.
"""
