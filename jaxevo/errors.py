"""The error of everything that comes from outside: files, flags, data."""

_MAX_CHARACTERS = 1000
_ENDING = 200  # of them, for the remedy


def printable(text: str) -> str:
    """The text with its control characters, which a terminal obeys, escaped."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


class InputError(ValueError):
    """Something from outside cannot be used; one sentence names it, its value and the remedy."""

    def __init__(self, message: str) -> None:
        # Names of files, values in them and messages of libraries come from outside: of any length,
        # over several lines.
        text = printable(" ".join(message.split()))
        if len(text) > _MAX_CHARACTERS:
            text = f"{text[: _MAX_CHARACTERS - _ENDING]} ... {text[-_ENDING:]}"
        super().__init__(text)
