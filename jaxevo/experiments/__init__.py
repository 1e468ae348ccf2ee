"""Experiments of several trainings or searches.

They are full evaluation, comparison of strategies, and the paper's tables.
"""
