"""splime: link prediction at a time, with any static embedding model."""

from splime.io import read, save, to_table, write_text

__version__ = "0.1.0.dev0"

__all__ = ["read", "save", "to_table", "write_text"]
