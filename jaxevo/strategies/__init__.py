"""Strategies of search by asking and telling. Nothing here imports JAX."""
