"""A run in its folder: search, choice of the winner, final training, and the records of it."""
