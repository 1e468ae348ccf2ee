"""Reports of runs: summaries, pictures, comparisons and the paper's tables."""
