"""The paper's three tables: models, tasks, published figures and budgets.

Rows are measured by `launch/reproduce.py`; here they become Markdown. JAX is not imported.
"""

from __future__ import annotations

import dataclasses
import math
import pathlib
import types
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from jaxevo import config as configs
from jaxevo.config import NetworkConfig, SearchConfig, TrainingConfig
from jaxevo.config.presets import STRATEGIES, preset
from jaxevo.errors import InputError
from jaxevo.reports import table
from jaxevo.run.workdir import read_json

# In the order of the tables; what must be searched first comes last.
LABELS = {
    "resnet18": "ResNet18",
    "small_cnn": "small CNN",
    "deepswarm": "DeepSwarm",
    "model_a": "Model-A (B=3)",
    "model_b": "Model-B (B=4)",
    "evoB": "EvoB",
    "evoA": "EvoA",
    "aco": "ant colony (after DeepSwarm)",
    "aging": "aging evolution (Real et al.)",
}
SEARCHED = {name: STRATEGIES[name] for name in ("aco", "aging")}
NOTES = {
    "deepswarm": (
        "published only; there the test images had a part in fitness and in the choice of weights"
    ),
    "aging": "the paper: never converged with so small a population",
}


class Published(NamedTuple):
    """A figure of the paper; sizes stand only in its table `digits`."""

    parameters: int | None
    accuracy: float


# By the data set tested on; on USPS after training on MNIST. Tables "ablation" and "digits" agree
# on EvoA and EvoB.
PUBLISHED: dict[str, dict[str, Published]] = {
    "mnist": {
        "resnet18": Published(11_180_000, 0.9956),
        "deepswarm": Published(340_000, 0.9953),
        "model_a": Published(None, 0.9947),
        "model_b": Published(None, 0.9949),
        "evoB": Published(210_000, 0.9955),
        "evoA": Published(220_000, 0.9959),
    },
    "svhn_cropped": {
        "resnet18": Published(11_180_000, 0.9200),
        "deepswarm": Published(340_000, 0.9315),
        "evoB": Published(370_000, 0.9156),
        "evoA": Published(390_000, 0.9180),
    },
    "usps": {
        "resnet18": Published(None, 0.8908),
        "deepswarm": Published(None, 0.6156),
        "evoB": Published(None, 0.9672),
        "evoA": Published(None, 0.9640),
    },
}
OFFICIAL_SIZES = {
    "mnist": (60_000, 10_000),
    "svhn_cropped": (73_257, 26_032),
    "usps": (7_291, 2_007),
}


class DataPair(NamedTuple):
    """Trained on one data set, tested on the same or another one."""

    trained_on: str
    tested_on: str


@dataclasses.dataclass(frozen=True)
class PaperTable:
    """Rows and tasks of one of the paper's tables."""

    models: tuple[str, ...]
    tasks: tuple[DataPair, ...]


TABLES = {
    "ablation": PaperTable(("model_a", "model_b", "evoB", "evoA"), (DataPair("mnist", "mnist"),)),
    "digits": PaperTable(
        tuple(LABELS), (DataPair("mnist", "mnist"), DataPair("svhn_cropped", "svhn_cropped"))
    ),
    "transfer": PaperTable(tuple(LABELS), (DataPair("mnist", "usps"),)),
}


@dataclasses.dataclass(frozen=True)
class Budget:
    """Lengths of all trainings and searches."""

    seeds: int
    training: TrainingConfig
    train_examples: int  # 0: all
    networks: Mapping[str, NetworkConfig]  # by the data set trained on
    preset: str  # of searches
    search: Mapping[str, Any]  # settings over the preset

    def search_config(self, model: str, num_images: int) -> SearchConfig:
        """The search on MNIST for a model of `SEARCHED`."""
        settings = preset(self.preset, num_images) | SEARCHED[model] | dict(self.search)
        own = {"dataset": "mnist", "compare_winner": False}  # the table compares
        return configs.replace(SearchConfig(), settings | own)


_TINY_SEARCH = {
    **{
        "population_size": 3,
        "num_offspring": 3,
        "num_generations": 20,
        "max_trainings": 4,
        "num_ants": 3,
    },
    **{"train_examples": 640, "epochs": 4, "validation_fraction": 0.01, "retrain_best": 0},
}
# The paper's SVHN network has "N=4, D=32 and each normal cell repeated thrice". Only D=32 with N=3
# makes its 0.22 M and 0.21 M parameters on MNIST to its 0.39 M and 0.37 M there.
SVHN_AS_WRITTEN = NetworkConfig(channels=32, num_normal_cells=4, normal_repeats=3)
_PAPER_NETWORKS = {"mnist": NetworkConfig(), "svhn_cropped": NetworkConfig(channels=32)}
BUDGETS = {
    # Minutes: shows that every row can be made, and nothing about the models.
    "smoke": Budget(
        1,
        TrainingConfig(epochs=1, learning_rate=1e-2),
        2560,
        {
            name: dataclasses.replace(network, channels=8)
            for name, network in _PAPER_NETWORKS.items()
        },
        "quick",
        _TINY_SEARCH,
    ),
    # A night or two on two cores.
    "cpu": Budget(1, TrainingConfig(epochs=3, learning_rate=3e-3), 0, _PAPER_NETWORKS, "quick", {}),
    "paper": Budget(
        5, TrainingConfig(epochs=100, learning_rate=1e-3), 0, _PAPER_NETWORKS, "paper", {}
    ),
}


def published_row(model: str, task: DataPair) -> dict[str, Any]:
    """A row of what is known without measuring; the empty entries are for what is measured."""
    found = PUBLISHED[task.tested_on].get(model)
    return {
        **{
            "model": LABELS[model],
            **task._asdict(),
            "resize": None,
            "parameters": None,
            "multiply_adds": None,
        },
        **{
            "mean": None,
            "std": None,
            "low": None,
            "high": None,
            "seeds": 0,
            "seconds": None,
            "device": None,
        },
        "training": None,
        "paper_parameters": found.parameters if found else None,
        "paper_accuracy": found.accuracy if found else None,
        "note": NOTES.get(model, ""),
    }


def sentence(row: Mapping[str, Any]) -> str:
    """The gist of a row."""
    paper = "" if row["paper_accuracy"] is None else f"; the paper: {row['paper_accuracy']:.2%}"
    if row["mean"] is None:
        return f"{_why_not(row)}{paper}; {row['note']}"
    resized = f"{row['resize']}: " if row["resize"] else ""
    interval = f"95 % interval {row['low']:.2%} to {row['high']:.2%}"
    return (
        f"{resized}{row['mean']:.2%} ({interval}), {row['parameters']:,} parameters, "
        f"{row['training']}{paper}"
    )


def markdown(rows: Sequence[Mapping[str, Any]], caption: str) -> str:
    """A table with its caption."""
    return "\n".join([caption, "", *table_of(rows).markdown()]) + "\n"


def table_of(rows: Sequence[Mapping[str, Any]]) -> table.Table:
    """The rows in words, with the paper's figures beside."""
    names = (
        "model",
        "tested on",
        "parameters",
        "multiply-adds",
        "test accuracy",
        "95 % interval",
        "s a training",
    )
    names += ("paper: parameters", "paper: accuracy", "training, remarks")
    lines = []
    for row in rows:
        tested = row["tested_on"] + (f", {row['resize']}" if row["resize"] else "")
        spread = "" if row["std"] is None else f" ± {100 * row['std']:.2f}"
        cells = (
            *(row["model"], tested, _count(row["parameters"]), _count(row["multiply_adds"])),
            _why_not(row) if row["mean"] is None else f"{row['mean']:.2%}{spread}",
            "" if row["low"] is None else f"{row['low']:.2%} to {row['high']:.2%}",
            "" if row["seconds"] is None else f"{row['seconds']:,.0f}",
            "" if row["paper_parameters"] is None else f"{row['paper_parameters'] / 1e6:.2f} M",
            "" if row["paper_accuracy"] is None else f"{row['paper_accuracy']:.2%}",
            "; ".join(filter(None, (row["training"], row["note"]))),
        )
        lines.append(cells)
    return table.Table("Models", names, lines, "remarks")


def unofficial(name: str, train: int, test: int | None) -> str:
    """A sentence for a caption if so many images cannot be the official split's, else nothing.

    `None` says that the test split is not used.
    """
    official = OFFICIAL_SIZES[name]
    if (train, official[1] if test is None else test) == official:
        return ""
    tests = "" if test is None else f" and {test:,} test"
    return (
        f"{name} is here a sample of {train:,} training{tests} images, not the official split: "
        "figures made with it cannot be compared with published ones."
    )


def read_part(path: pathlib.Path, kinds: Mapping[str, type | types.UnionType]) -> dict[str, Any]:
    """A finished part of a table, with values of these types.

    Raises `InputError` naming the file.
    """
    found = read_json(path)
    for name, kind in kinds.items():
        there = isinstance(found, dict) and name in found
        if (
            not there
            or not isinstance(found[name], kind)
            or (kind is float and not 0 <= found[name] < math.inf)
        ):
            raise InputError(
                f"{path} is damaged ({name}); delete it, and the same command makes it again"
            )
    return found


def _why_not(row: Mapping[str, Any]) -> str:
    return "failed" if row["seeds"] else "not run"


def _count(number: int | None) -> str:
    return "" if number is None else f"{number:,}"
