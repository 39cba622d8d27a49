"""Embeddings: static models, and the engine that trains them.

Nothing is imported here: `settings` is needed by the command line, which must not load PyTorch.
"""
