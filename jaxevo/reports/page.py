"""Pages for a browser: one file each, which loads nothing and sends nothing.

Whatever is put into a template is escaped. A Content-Security-Policy allows pictures within the
page, its one style and its one script, by their hashes: text that became code nevertheless would
not run. JAX is not imported.
"""

from __future__ import annotations

import base64
import dataclasses
import functools
import hashlib
import importlib.resources
import io
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import jinja2
from markupsafe import Markup
from PIL import Image

from jaxevo.reports.table import Table
from jaxevo.run.words import percent
from jaxevo.versions import versions

if TYPE_CHECKING:  # drawing takes a second to import, and a page may have no picture
    from matplotlib.figure import Figure

_MAX_SVG = 90_000  # bytes; of a thousand points a PNG is smaller
_COLORS = 64  # of a PNG: lines and text need no more
_DPI = 90


def render(template: str, **content: Any) -> str:
    """The page that a template of `templates/` makes of this content."""
    environment, policy = _environment()
    return environment.get_template(template).render(content, policy=policy)


def render_tables(
    title: str,
    caption: str,
    tables: Sequence[Table],
    *,
    remarks: Iterable[str] = (),
    pictures: Sequence[Picture] = (),
) -> str:
    """The page of these tables, with remarks and pictures below."""
    return render(
        "tables.html",
        title=title,
        caption=caption,
        tables=tables,
        remarks=list(remarks),
        pictures=pictures,
    )


@dataclasses.dataclass(frozen=True)
class Picture:
    """A picture within a page."""

    source: str  # a data URI
    caption: str
    description: str  # what it shows, for those who do not see it

    @classmethod
    def of(cls, figure: Figure, caption: str, description: str) -> Picture:
        """A figure as SVG, or as PNG where the SVG is large.

        It becomes an image, of which a browser runs no script.
        """
        from jaxevo.reports.cell_pictures import rendered

        svg = rendered(figure, "svg")
        if len(svg) <= _MAX_SVG:
            return cls(_data_uri("svg+xml", svg), caption, description)
        pixels = Image.open(io.BytesIO(rendered(figure, "png", dpi=_DPI))).convert("RGB")
        file = io.BytesIO()
        pixels.quantize(_COLORS).save(file, "PNG", optimize=True)
        return cls(_data_uri("png", file.getvalue()), caption, description)


def _data_uri(kind: str, content: bytes) -> str:
    """The address that holds an image itself; `kind` is its type after `image/`."""
    return f"data:image/{kind};base64,{base64.b64encode(content).decode()}"


@functools.cache
def _environment() -> tuple[jinja2.Environment, str]:
    """The templates, and the policy of every page."""
    files = importlib.resources.files("jaxevo.reports") / "templates"
    style, script = ((files / name).read_text("utf-8") for name in ("page.css", "page.js"))
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("jaxevo.reports"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals |= {"version": versions()["jaxevo"]}
    environment.globals |= {"style": Markup(style), "script": Markup(script)}
    environment.filters |= {
        "percent": percent,
        "thousands": "{:,}".format,
        "png": lambda content: _data_uri("png", content),
    }
    policy = (
        f"default-src 'none'; img-src data:; style-src '{_hash(style)}'; "
        f"script-src '{_hash(script)}'; base-uri 'none'; form-action 'none'"
    )
    return environment, policy


def _hash(text: str) -> str:
    """The source expression of a policy that allows exactly this text."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
