"""Tables, pictures and the page of what is in graphs and runs."""

import sys
from importlib import import_module
from types import ModuleType
from typing import Any

from splime.errors import not_installed


class _Report(ModuleType):
    """This package. It has the name of a public function, `splime.report`, and is called as it."""

    def __call__(self, *args: Any, **options: Any) -> Any:
        try:
            plans = import_module("splime.plans")
        except ImportError as error:
            raise not_installed("splime.report", error) from None
        return plans.report(*args, **options)


sys.modules[__name__].__class__ = _Report
