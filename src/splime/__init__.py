"""splime: link prediction at a time, with any static embedding model.

The public names are those of `__init__.pyi`. They are imported when they are asked for, so that
`import splime` costs nothing.
"""

import lazy_loader

__version__ = "0.2.0"
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
