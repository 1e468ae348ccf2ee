"""Makes the golden files of `test_golden.py`: small runs of each strategy, and the reading of the
shipped histories.

    python tests/golden/make.py FOLDER          # every run, into FOLDER
    python tests/golden/make.py FOLDER rea      # one of them

Runs are made by commands (`launch/*.py`). A trained run is the same bit for bit only on a like
processor with like versions: `machine.json` says which it was.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import pathlib
import subprocess
import sys

REPOSITORY = pathlib.Path(__file__).parent.parent.parent
TINY = (
    "--dataset=digits --preset=quick --population_size=4 --num_offspring=3 --num_generations=3 "
    "--max_nodes=4 "
    "--channels=2 --num_normal_cells=2 --train_examples=128 --epochs=1 --batch_size=32 "
    "--learning_rate=0.01 "
    "--validation_fraction=0.1 --stagnation_start=1 --stagnation_patience=1 --num_ants=4 "
    "--final_epochs=2 "
    "--final_batch_size=32 --final_learning_rate=0.01 --retrain_best=2 --retrain_seeds=2 --seed=3 "
    "--engine=universal --nocompare_winner --recipe=paper"
).split()
RUNS = {
    "rea": ("--strategy=rea",),
    "rea_workers": ("--strategy=rea", "--workers=1"),
    "survivors_workers": ("--strategy=rea", "--mating_pool=survivors", "--workers=2"),
    "aging": ("--strategy=aging", "--sample_size=2"),
    "random": ("--strategy=random", "--max_trainings=6"),
    "aco": ("--strategy=aco", "--recipe=modern"),
}
HISTORIES = ("mnist-search", "mnist-search-b3", "mnist-search-b4")


def make_run(folder: pathlib.Path, name: str) -> None:
    """One run, reduced to what must not change:

    no seconds, no paths, and the weights as digests.
    """
    workdir = folder / "workdirs" / name
    command = [
        sys.executable,
        REPOSITORY / "launch" / "search.py",
        *TINY,
        *RUNS[name],
        f"--workdir={workdir}",
    ]
    subprocess.run([*map(str, command)], check=True, stdout=subprocess.DEVNULL, cwd=REPOSITORY)
    document = summarize_run(workdir)
    (folder / f"{name}.json").write_text(
        json.dumps(document, sort_keys=True, separators=(",", ":")) + "\n"
    )


def summarize_run(workdir: pathlib.Path) -> dict:
    """A finished run's history, genome, result and weights, without its times."""
    lines = [json.loads(line) for line in (workdir / "history.jsonl").read_text().splitlines()]
    history = [timeless(line) for line in lines if line["kind"] != "session"]
    result = timeless(json.loads((workdir / "result.json").read_text()))
    return {
        "history": history,
        "best": json.loads((workdir / "best.json").read_text()),
        "result": result,
        "weights": weight_digests(workdir / "best"),
    }


def timeless(record: dict) -> dict:
    """A record without its seconds and places, which differ between equal runs."""
    places = ("where", "attempt", "lost")
    return {
        key: value
        for key, value in record.items()
        if not key.endswith("seconds") and key not in places
    }


def weight_digests(folder: pathlib.Path) -> dict[str, str]:
    """The SHA-256 of each saved array by its name."""
    import tensorstore

    database = {
        "driver": "ocdbt",
        "base": {"driver": "file", "path": f"{folder.resolve()}/arrays/"},
    }
    keys = tensorstore.KvStore.open(database).result().list().result()
    names = sorted(
        key.removesuffix(b"/zarr.json").decode() for key in keys if key.endswith(b"/zarr.json")
    )
    digests = {}
    for name in names:
        spec = {"driver": "zarr3", "kvstore": database | {"path": f"{name}/"}}
        array = tensorstore.open(spec).result().read().result()
        digests[name] = hashlib.sha256(array.tobytes()).hexdigest()
    return digests


def summarize_strategy(name: str, pool: str) -> dict:
    """A strategy's candidates with a table in place of training, as a digest."""
    from jaxevo import config as configs
    from jaxevo.config.presets import STRATEGIES
    from jaxevo.strategies.registry import make_strategy

    settings = {
        "seed": 5,
        "fitness": "accuracy",
        "racing": 0.0,
        "num_generations": 12,
        "mating_pool": pool,
        "stagnation_start": 3,
        "stagnation_patience": 2,
    }
    config = configs.replace(configs.SearchConfig(), STRATEGIES[name] | settings)
    strategy = make_strategy(config, cost=length)
    told = []
    while candidates := strategy.ask():
        for candidate in candidates:
            cost = length(candidate.genome) if config.seeks_front else None
            evaluated = dataclasses.replace(candidate, fitness=table_fitness(candidate), cost=cost)
            told.append(evaluated.to_dict())
            strategy.tell(evaluated)
    text = json.dumps([told, strategy.state_dict()], sort_keys=True)
    return {
        "candidates": len(told),
        "sha256": hashlib.sha256(text.encode()).hexdigest(),
        "best": strategy.best.id,
        "events": [event.kind for event in strategy.events],
    }


def length(genome) -> int:
    """A cost in place of the number of parameters."""
    return sum(map(len, genome.to_dict().values()))


def table_fitness(candidate) -> float | None:
    """A fitness in place of a training; every eighth candidate fails."""
    name = f"{candidate.genome.canonical_key()} {candidate.id}"
    digest = hashlib.sha256(name.encode()).digest()
    return None if digest[0] < 32 else digest[1] / 256


def make_strategies(folder: pathlib.Path) -> None:
    """The candidates of every strategy."""
    from jaxevo.config.presets import STRATEGIES

    found = {
        f"{name} {pool}": summarize_strategy(name, pool)
        for name in STRATEGIES
        for pool in ("growing", "survivors")
    }
    (folder / "strategies.json").write_text(json.dumps(found, indent=1) + "\n")


def read_history(name: str) -> dict:
    """What `inspect_checkpoint.py` prints of a shipped history."""
    script = REPOSITORY / "launch" / "inspect_checkpoint.py"
    command = [sys.executable, str(script), f"--workdir=docs/{name}", "--json"]
    made = subprocess.run(command, check=True, capture_output=True, text=True, cwd=REPOSITORY)
    return json.loads(made.stdout)


def machine() -> dict[str, str]:
    """What decides the bits of a training:

    the processor's features and caches, and the version of XLA.
    """
    import importlib.metadata

    lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    processor = {
        line.split(":")[0].strip(): line.split(":")[1].strip() for line in lines if ":" in line
    }
    wanted = ("vendor_id", "cpu family", "model", "cache size", "flags")
    digest = hashlib.sha256(
        "\n".join(processor.get(name, "") for name in wanted).encode()
    ).hexdigest()
    versions = {name: importlib.metadata.version(name) for name in ("jaxlib", "numpy")}
    return versions | {"processor": digest, "cores": str(os.cpu_count())}


def main() -> None:
    folder = pathlib.Path(sys.argv[1])
    names = sys.argv[2:] or [*RUNS, "strategies", *HISTORIES]
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        if name in RUNS:
            make_run(folder, name)
        elif name == "strategies":
            make_strategies(folder)
        else:
            (folder / f"{name}.json").write_text(
                json.dumps(read_history(name), sort_keys=True, separators=(",", ":")) + "\n"
            )
    (folder / "machine.json").write_text(json.dumps(machine(), indent=1) + "\n")


if __name__ == "__main__":
    main()
