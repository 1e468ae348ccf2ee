"""Experiments of several trainings or searches:

full evaluation, comparison of strategies, the paper's tables.
"""
