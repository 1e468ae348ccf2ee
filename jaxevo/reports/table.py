"""A table in words, which becomes Markdown or a part of a page."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence


@dataclasses.dataclass(frozen=True)
class Table:
    """Rows of words; each has as many as there are columns."""

    caption: str  # not in Markdown, which has none
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    # In which columns of a page words stand, and no figures: "words" all, "remarks" the last.
    kind: str = ""

    def markdown(self) -> list[str]:
        """Its lines."""
        return [
            f"| {' | '.join(self.columns)} |",
            "|---" * len(self.columns) + "|",
            *(f"| {' | '.join(row)} |" for row in self.rows),
        ]
