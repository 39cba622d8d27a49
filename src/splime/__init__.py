"""splime: link prediction at a time, with any static embedding model.

The public names are those of `__init__.pyi`. They are imported on first use, so that `import
splime` costs nothing. Without PyTorch, using a name that needs it is an error with what to install.
"""

import lazy_loader

from splime import shown

__version__ = "1.0.0"
_public, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> object:
    try:
        return _public(name)
    except ImportError as error:
        from splime.errors import not_installed

        raise not_installed(f"splime.{name}", error) from None


def _to_html(result: shown.Shown) -> str:
    from splime.reporting.notebook import html_of  # not before a result is shown: it needs rich

    return html_of(result)


shown.to_html = _to_html
