"""The named datasets, their download, and the synthetic world."""

from splime.datasets.loading import DATASETS, Dataset, fetch_dataset, load
from splime.datasets.preparing import Inspection, Transformed, inspect, transform
from splime.datasets.world import World, make_world

__all__ = [
    "DATASETS",
    "Dataset",
    "Inspection",
    "Transformed",
    "World",
    "fetch_dataset",
    "inspect",
    "load",
    "make_world",
    "transform",
]
