"""Networks: operations, a genome as a Flax module, one module for all genomes, hand-made ones."""
