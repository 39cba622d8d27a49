"""splime: link prediction at a time, with any static embedding model."""

__version__ = "0.1.0.dev0"
