"""The search space:

genomes, how they vary, and the sizes of their networks. Nothing here imports JAX.
"""
