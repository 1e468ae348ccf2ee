"""The error of everything that comes from outside: files, flags, data."""

import errno

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


_REMEDIES = {
    errno.ENOENT: "check the path, and make its folder first",
    errno.EEXIST: "name another place",
    errno.ENOTDIR: "a part of the path is a file; name another place",
    errno.EISDIR: "it is a folder; name a file",
    errno.EACCES: "ask for the right to do that, or name another place",
    errno.EPERM: "ask for the right to do that, or name another place",
    errno.EROFS: "name a place that can be written to",
    errno.ENOSPC: "make room, or name another place",
}


def reason(error: OSError) -> str:
    """What the operating system refused, and for which file, in words."""
    if error.strerror is None or error.filename is None:
        return str(error)
    return f"{error.filename}: {error.strerror[:1].lower()}{error.strerror[1:]}"


def explained(error: OSError) -> str:
    """What the operating system refused, with the remedy where it is known."""
    remedy = _REMEDIES.get(error.errno or 0)
    return f"{reason(error)}: {remedy}" if remedy else reason(error)
