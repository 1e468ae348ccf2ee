"""The error of everything that comes from outside: files, flags, data."""


class InputError(ValueError):
    """Something given from outside cannot be used; one sentence names it, its value and the remedy."""
