"""Settings of the site: `python -m sphinx -W -b html docs docs/_build/html`."""

import importlib.metadata
import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")  # the notebooks run where the site is built

project = "jaxevo"
author = "the jaxevo authors"
copyright = "the jaxevo authors, MIT licence"
release = version = importlib.metadata.version("jaxevo")

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
exclude_patterns = ["_build", ".jupyter_cache", "**.ipynb_checkpoints"]

# Pages.
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3

# Notebooks are executed when they have changed; one that raises ends the build.
nb_execution_mode = "cache"
nb_execution_raise_on_error = True
nb_execution_timeout = 600  # seconds a cell, for a machine that is busy
nb_merge_streams = True

# Reference.
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
napoleon_google_docstring = True
napoleon_numpy_docstring = False

html_theme = "sphinx_book_theme"
html_title = "jaxevo"
html_show_sourcelink = False
html_theme_options = {"show_navbar_depth": 1, "use_download_button": False}
