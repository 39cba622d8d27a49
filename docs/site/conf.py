"""The documentation site: python -m sphinx -WEa -c docs/site . build/site

Its source is the repository, so that a link from one document to another works in both. `-Ea` makes
every page anew: Sphinx does not see what of the code a page is made of.
"""

import sys
from pathlib import Path

import splime

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

project = "splime"
author = "The splime developers"
copyright = author
release = version = splime.__version__
extensions = ["sphinx.ext.autodoc", "myst_parser", "sphinx_copybutton", "made"]

root_doc = "docs/index"
_pages = {"docs", "benchmarks", "experiments"}
_documents = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "benchmarks/README.md"]
include_patterns = ["docs/*.md", "docs/notebooks/*.ipynb", *_documents]
include_patterns += ["docs/commands/*.md", "docs/python/*.md"]  # written by `made`
# Folders that need not be searched for pages: .venv has a hundred thousand files.
exclude_patterns = [
    path.name for path in HERE.parents[1].iterdir() if path.is_dir() and path.name not in _pages
]

myst_enable_extensions = ["deflist"]
myst_heading_anchors = 4
default_role = "literal"  # a name between single backticks, in docstrings
smartquotes = False  # it would make dashes of --options
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
maximum_signature_line_length = 80

# Several results have a field called `object`, as the type is.
suppress_warnings = ["ref.python"]
copybutton_prompt_text = r"\$ |>>> |\.\.\. "  # what is printed is not copied
copybutton_prompt_is_regexp = True
copybutton_line_continuation_character = "\\"
copybutton_selector = "div:not(.output) > div.highlight > pre"
html_theme = "furo"
html_title = f"splime {release}"
html_extra_path = ["index.html"]
html_static_path = ["site.css"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_search_summary = False  # a page that is opened from a disk cannot fetch the others
html_show_copyright = False
