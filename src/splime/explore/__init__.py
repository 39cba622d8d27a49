"""A page in the browser where a person asks runs and looks at them; also without a server."""

from splime.explore.looking import Explorer
from splime.explore.page import write_explorer
from splime.explore.server import Server

__all__ = ["Explorer", "Server", "write_explorer"]
