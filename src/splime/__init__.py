"""splime: link prediction at a time, with any static embedding model.

The public names are those of `__init__.pyi`. They are imported when they are asked for, so that
`import splime` costs nothing. Without PyTorch those that need it say so when they are used.
"""

from importlib import import_module

import lazy_loader

__version__ = "0.2.0"
_public, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> object:
    try:
        if name in ("report", "explore"):  # also packages, which are called as these functions
            return import_module(f"splime.{name}")
        return _public(name)
    except ImportError as error:
        from splime.errors import Missing

        return Missing(f"splime.{name}", error)
