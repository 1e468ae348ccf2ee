"""The README and docs/: links lead somewhere, and Python blocks name what exists."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import pathlib
import re

import pytest
from conftest import REPOSITORY

import jaxevo

_TOP = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "benchmarks/README.md")
PAGES = [*(REPOSITORY / name for name in _TOP), *sorted((REPOSITORY / "docs").glob("**/*.md"))]
PAGES = [page for page in PAGES if "_build" not in page.parts]
_FENCED = re.compile(r"^```(\S*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def page_name(page: pathlib.Path) -> str:
    return str(page.relative_to(REPOSITORY))


def blocks(page: pathlib.Path, language: str) -> list[str]:
    """The code of a page's fenced blocks in one language."""
    return [code for name, code in _FENCED.findall(page.read_text()) if name == language]


def anchors(page: pathlib.Path) -> set[str]:
    """The headings of a page, as links name them."""
    headings = re.findall(r"^#+ (.+)$", _FENCED.sub("", page.read_text()), re.MULTILINE)
    kept = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {heading.replace(" ", "-") for heading in kept}


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_relative_links(page):
    text = _FENCED.sub("", page.read_text())
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        linked = page.parent / path if path else page
        assert linked.exists(), f"{page_name(page)} links to {target}"
        if anchor:
            assert anchor in anchors(linked), f"{page_name(page)} links to {target}"


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_python_names_what_exists(page):
    for code in blocks(page, "python") + blocks(page, "{code-cell}"):
        tree = ast.parse(code)
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                module = importlib.import_module(str(node.module))
                for name in node.names:
                    # A module of a package is its attribute only once it was imported.
                    known = hasattr(module, name.name) or importlib.util.find_spec(
                        f"{node.module}.{name.name}"
                    )
                    assert known, f"{node.module} has no {name.name}"
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                if node.value.id == "jaxevo":
                    assert hasattr(jaxevo, node.attr), f"jaxevo has no {node.attr}"


def test_the_readme_is_short():
    assert len((REPOSITORY / "README.md").read_text().splitlines()) <= 160


def test_every_page_of_docs_is_in_the_site():
    folder = REPOSITORY / "docs"
    toctrees = [folder / "index.md", folder / "api" / "index.md"]
    listed = {toctrees[0].resolve()}
    for index in toctrees:
        for tree in blocks(index, "{toctree}"):
            names = (line for line in tree.splitlines() if line and not line.startswith(":"))
            listed |= {(index.parent / f"{name}.md").resolve() for name in names}
    pages = {page.resolve() for page in PAGES if page.is_relative_to(folder)}
    assert listed == pages
