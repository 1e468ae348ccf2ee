"""Lines on a terminal. Names of files and classes come from anyone: nothing in them is markup."""

from __future__ import annotations

from rich.console import Console


def say(console: Console, text: str) -> None:
    """Prints words as they are, in a line of their own."""
    console.print(text, highlight=False, markup=False, emoji=False, soft_wrap=True)
