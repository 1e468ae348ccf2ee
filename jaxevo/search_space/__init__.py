"""The search space: genomes, how genomes vary, and the sizes of their networks.

Nothing here imports JAX.
"""
