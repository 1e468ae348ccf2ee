"""Networks: the operations, a genome as a Flax module, one module for all genomes, and hand-designed ones."""
