"""Searches for a network for scikit-learn's handwritten digits, in a minute or in earnest.

python examples/search_digits.py              # tiny: shows that it works, finds nothing good
python examples/search_digits.py --real       # the preset for this machine, minutes on a CPU
"""

import argparse

import jaxevo

TINY = {
    "population_size": 3,
    "num_offspring": 2,
    "num_generations": 1,
    "max_nodes": 3,
    "channels": 2,
    "num_normal_cells": 1,
    "train_examples": 200,
    "epochs": 2,
    "retrain_best": 1,
    "retrain_seeds": 1,
    "final_epochs": 2,
}

parser = argparse.ArgumentParser()
parser.add_argument("--real", action="store_true", help="search with all of the preset's settings")
parser.add_argument("--workdir", help="folder of the run; the same one resumes")
parser.add_argument("--seed", type=int, default=0)
arguments = parser.parse_args()

if __name__ == "__main__":
    settings = {} if arguments.real else {"preset": "quick"} | TINY
    result = jaxevo.search("digits", workdir=arguments.workdir, seed=arguments.seed, **settings)
    print(f"test accuracy {result.test_accuracy:.2%}, {result.parameters:,} parameters")
    print(f"weights in {result.weights}; jaxevo.load reads them")
