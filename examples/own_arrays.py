"""Trains one network on arrays and classifies with it: bright squares against bright crosses.

python examples/own_arrays.py
python examples/own_arrays.py --epochs=40 --channels=8
"""

import argparse

import numpy as np

import jaxevo

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=8)
parser.add_argument("--channels", type=int, default=2, help="feature maps; 24 in the paper")
arguments = parser.parse_args()


def draw(rng: np.random.Generator, number: int) -> tuple[np.ndarray, np.ndarray]:
    """Noisy images, uint8 [number, 8, 8], and the names of what they show."""
    images = rng.integers(0, 80, (number, 8, 8), dtype=np.uint8)
    names = rng.choice(["cross", "square"], number)
    corners = rng.integers(1, 5, (number, 2))
    for image, name, (row, column) in zip(images, names, corners, strict=True):
        shape = np.array([[0, 1, 0], [1, 1, 1], [0, 1, 0]]) if name == "cross" else np.ones((3, 3))
        image[row : row + 3, column : column + 3] += (150 * shape).astype(np.uint8)
    return images, names


if __name__ == "__main__":
    images, names = draw(np.random.default_rng(0), 600)
    # jaxevo.search((images, names)) would look for a network; evoA comes with jaxevo.
    settings = {"epochs": arguments.epochs, "channels": arguments.channels, "num_normal_cells": 1}
    classifier = jaxevo.train("evoA", (images, names), learning_rate=1e-2, **settings)
    unseen, truth = draw(np.random.default_rng(1), 200)
    print(f"{np.mean(classifier.predict(unseen) == truth):.1%} of 200 unseen images are right")
