"""Training: compiled programs, checkpoints, and trained classifiers."""
