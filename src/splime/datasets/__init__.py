"""The named datasets, their download, and the synthetic world."""

from splime.datasets.loading import DATASETS, Dataset, fetch_dataset, load
from splime.datasets.world import World, make_world

__all__ = ["DATASETS", "Dataset", "World", "fetch_dataset", "load", "make_world"]
