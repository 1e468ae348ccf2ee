"""Pages for a browser, read as one reads them: tags that close, texts, and what they may load."""

from __future__ import annotations

import base64
import hashlib
import html.parser
import re

VOID = {"meta", "link", "img", "br"}
EMPTY_SVG = {"path", "rect"}


class Page(html.parser.HTMLParser):
    """A page whose tags are closed in their order, whose ids differ, and which loads nothing.

    Attributes:
        tags: Names and attributes of all elements, in their order.
        texts: Text by the element that holds it, joined.
    """

    def __init__(self, text: str):
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, str] = {}
        self._open: list[str] = []
        assert text.startswith("<!DOCTYPE html>")
        self.feed(text)
        self.close()
        assert self._open == []
        self._check()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len(dict(attrs)) == len(attrs), "an attribute stands twice"
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in EMPTY_SVG
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        inner = self._open[-1] if self._open else ""
        self.texts[inner] = self.texts.get(inner, "") + data

    def of(self, tag: str) -> list[dict[str, str | None]]:
        """The attributes of each element of a name."""
        return [attributes for name, attributes in self.tags if name == tag]

    def _check(self) -> None:
        ids = [attributes["id"] for _, attributes in self.tags if "id" in attributes]
        assert len(set(ids)) == len(ids)
        policy = next(a["content"] for a in self.of("meta") if "http-equiv" in a)
        assert policy is not None and policy.startswith("default-src 'none'; img-src data:;")
        # The one style and the one script are those that the policy allows.
        for tag in ("style", "script"):
            digest = base64.b64encode(hashlib.sha256(self.texts[tag].encode()).digest()).decode()
            assert len(self.of(tag)) == 1 and f"{tag}-src 'sha256-{digest}'" in policy
        for _, attributes in self.tags:
            assert not any(name == "style" or name.startswith("on") for name in attributes)
            for name in ("src", "href"):
                place = attributes.get(name)
                assert place is None or re.match("data:|#", place), place
        # Links lead to places of the page, pictures and headings say what they are.
        links = {str(a["href"])[1:] for a in self.of("a")}
        assert links <= set(ids)
        assert all(attributes.get("alt") for attributes in self.of("img"))
        assert all(attributes.get("scope") for attributes in self.of("th"))
        assert len(self.of("caption")) == len(self.of("table"))
