"""Readers and writers, a file per format."""

from splime.io.delimited import write_text
from splime.io.saved import save
from splime.io.segmentations import load_segmentation, save_segmentation
from splime.io.sources import read
from splime.io.tables import to_table

__all__ = ["load_segmentation", "read", "save", "save_segmentation", "to_table", "write_text"]
