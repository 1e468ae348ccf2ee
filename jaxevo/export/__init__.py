"""Runs, networks and genomes in the forms of other programs."""
