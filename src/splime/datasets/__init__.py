"""The named datasets and their download; `inspect` and `transform`."""

from splime.datasets.loading import DATASETS, Dataset, fetch_dataset, load
from splime.datasets.preparing import Inspection, Transformed, inspect, transform

__all__ = [
    "DATASETS",
    "Dataset",
    "Inspection",
    "Transformed",
    "fetch_dataset",
    "inspect",
    "load",
    "transform",
]
