"""Readers and writers, a file per format."""

from splime.io.saved import save
from splime.io.segmentations import load_segmentation, save_segmentation
from splime.io.sources import read
from splime.io.tables import to_table
from splime.io.write import write_text

__all__ = [
    "load_segmentation",
    "read",
    "save",
    "save_segmentation",
    "to_table",
    "write_text",
]
