"""Readers and writers, a file per format. One line in `READERS` makes a format known everywhere."""

from splime.io.readers import READERS as READERS, Reader as Reader
from splime.io.saved import save as save
from splime.io.segmentations import (
    load_segmentation as load_segmentation,
    save_segmentation as save_segmentation,
)
from splime.io.sources import read as read
from splime.io.writing import to_table as to_table, write_text as write_text
