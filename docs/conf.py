"""Settings of the site: `python -m sphinx -W -b html docs docs/_build/html`."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import inspect
import os
import re
from typing import Any

from sphinx.application import Sphinx

os.environ.setdefault("JAX_PLATFORMS", "cpu")  # the notebooks run where the site is built

project = "jaxevo"
author = "the jaxevo authors"
copyright = "the jaxevo authors, MIT licence"
release = version = importlib.metadata.version("jaxevo")

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
exclude_patterns = ["_build", "**.ipynb_checkpoints"]
highlight_language = "none"  # of blocks that name none: commands and what they print
default_role = "literal"  # docstrings write code in single backticks
myst_heading_anchors = 3

# Notebooks are executed when they have changed; one that raises ends the build.
nb_execution_mode = "cache"
nb_execution_raise_on_error = True
nb_execution_timeout = 600  # seconds a cell, for a machine that is busy
nb_merge_streams = True

# Reference.
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_type_aliases = {"ArrayLike": "ArrayLike"}
napoleon_numpy_docstring = False
napoleon_use_ivar = True

html_theme = "sphinx_book_theme"
html_title = "jaxevo"
html_show_sourcelink = False
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_theme_options = {"use_download_button": False, "navbar_persistent": []}


def escape_marks(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    """Keeps the star of a shape such as [M, *image_shape] from being read as emphasis, and the
    end of an attribute such as classes_ from being read as a link.
    """
    for number, line in enumerate(lines):
        line = re.sub(r"(?<=[ \[(])\*(?=\w)", r"\\*", line)
        lines[number] = re.sub(r"^(\s+\w*[a-z])_(?=:)", r"\1\\_", line)


def describe_fields(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    """Lists the fields of a dataclass, each with the help or the comment that stands beside it."""
    if what != "class" or not dataclasses.is_dataclass(obj) or "Attributes:" in lines:
        return
    source = inspect.getsource(obj)
    comments = dict(re.findall(r"^    (\w+): [^#\n]*# (.+)$", source, re.MULTILINE))
    own = [field for field in dataclasses.fields(obj) if not field.name.startswith("_")]
    texts = {field.name: field.metadata.get("help", comments.get(field.name, "")) for field in own}
    if any(texts.values()):
        lines += ["", "Attributes:"]
        for field in own:
            kind = str(field.type).replace("*", r"\*")
            default = f" Default: `{field.default!r}`." if "help" in field.metadata else ""
            separator = "." if default and not texts[field.name].endswith(".") else ""
            lines.append(f"    {field.name} ({kind}): {texts[field.name]}{separator}{default}")


def shorten_signature(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, signature: str, returned: str
) -> tuple[str, str] | None:
    """Leaves the constructor of a dataclass out, since its fields are listed."""
    return ("", "") if what == "class" and dataclasses.is_dataclass(obj) else None


def setup(app: Sphinx) -> None:
    """Registers the functions; 400 is before Google's form of docstrings is read."""
    app.connect("autodoc-process-docstring", escape_marks, priority=400)
    app.connect("autodoc-process-docstring", describe_fields, priority=400)
    app.connect("autodoc-process-signature", shorten_signature)
