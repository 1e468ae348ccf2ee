"""Searches as processes, killed at random moments and with faults: they end as if nothing had been.

The long forms are slow: python -m pytest -m slow -s tests/run/test_reliability.py
"""

from __future__ import annotations

import collections
import contextlib
import json
import pathlib
import random
import signal
import statistics
import subprocess
import sys
import time

import psutil
import pytest
from conftest import REPOSITORY, timeless

from jaxevo.run.history import read_lines
from jaxevo.run.workdir import Workdir
from jaxevo.training.checkpoints import load_weights

TINY = (
    "--preset=quick --population_size=4 --num_offspring=4 --num_generations=3 --max_nodes=3 "
    "--channels=2 --epochs=4 --num_normal_cells=1 --train_examples=300 --batch_size=32 "
    "--retrain_best=2 --retrain_seeds=2 --final_epochs=6 --final_batch_size=32 "
    "--mating_pool=survivors --nocompare_winner"
).split()
NUM_LINES = (
    16 + 4 + 1
)  # candidates, retrainings and the session; failures and stagnation do not occur


def command(*flags: str) -> list[str]:
    return [sys.executable, str(REPOSITORY / "launch" / "search.py"), *TINY, *flags]


def run(environment: dict[str, str], *flags: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        command(*flags), env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 0, done.stderr
    return done


def outcome(path: pathlib.Path) -> tuple:
    """All that a run must have in common with another one of its configuration."""
    workdir = Workdir(path)
    records, length = read_lines(workdir.history)
    assert length == workdir.history.stat().st_size
    document, weights = load_weights(workdir.best_weights)
    arrays = {name: (array.dtype.name, array.tobytes()) for name, array in weights.items()}
    result = timeless(json.loads(workdir.result.read_text()))
    return (
        [json.dumps(timeless(r)) for r in records],
        result,
        workdir.best_genome.read_text(),
        document,
        arrays,
    )


@pytest.fixture(scope="module")
def expected(tmp_path_factory, launch_environment) -> tuple:
    """The outcome of an uninterrupted run."""
    workdir = tmp_path_factory.mktemp("runs") / "whole"
    run(launch_environment, f"--workdir={workdir}")
    whole = outcome(workdir)
    assert len(whole[0]) == NUM_LINES
    return whole


def progress(path: pathlib.Path) -> int:
    """Lines of the history, and then epochs of the final training."""
    workdir = Workdir(path)
    lines = workdir.history.read_bytes().count(b"\n") if workdir.history.exists() else 0
    epochs = [
        int(folder.name)
        for folder in workdir.final_checkpoints.glob("*")
        if folder.name.isdecimal()
    ]
    return lines + max(epochs, default=0)


def unfinished(path: pathlib.Path) -> set[int]:
    """Checkpoints that are being written, or were at a kill: they lie there until the next one."""
    found = set()
    for folder in (path / "checkpoints").glob("*/*-tmp*"):
        with contextlib.suppress(FileNotFoundError):  # renamed, as it is complete
            found.add(folder.stat().st_ino)
    return found


def kill_at(
    environment: dict[str, str], path: pathlib.Path, flags: list[str], moment: tuple[int, float]
) -> str:
    """Starts the search and kills it so many seconds after so many steps.

    Less than no seconds: amid the next checkpoint.
    """
    steps, delay = moment
    before = unfinished(path)
    process = subprocess.Popen(
        command(f"--workdir={path}", *flags),
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    while process.poll() is None and not (
        progress(path) >= steps and (delay >= 0 or unfinished(path) - before)
    ):
        time.sleep(0.0005)
    time.sleep(max(0, delay))
    workers = psutil.Process(process.pid).children(recursive=True) if process.poll() is None else []
    process.kill()
    process.wait()
    assert process.returncode == -signal.SIGKILL, "it had ended before it could be killed"
    assert not psutil.wait_procs(workers, timeout=60)[1]
    return f"{progress(path)} steps{', amid a checkpoint' if unfinished(path) - before else ''}"


def draw_moments(rng: random.Random, number: int) -> list[tuple[int, float]]:
    """In the order of a run; many amid a checkpoint of the search, those being rarer than lines."""
    steps = sorted(rng.randrange(NUM_LINES + 5) for _ in range(number))
    return [
        (k, -1.0 if k < NUM_LINES - 1 and rng.random() < 0.4 else rng.uniform(0, 0.4))
        for k in steps
    ]


def check_killed_run(
    environment, path: pathlib.Path, expected: tuple, seed: int, kills: int
) -> None:
    rng = random.Random(seed)
    for moment in draw_moments(rng, kills):
        workers = rng.choice([0, 0, 2])
        where = kill_at(environment, path, [f"--workers={workers}"], moment)
        print(f"run {seed}: killed with --workers={workers} after {where}", flush=True)
    run(environment, f"--workdir={path}", f"--workers={rng.choice([0, 0, 2])}")
    assert outcome(path) == expected


def faulty_command(plan: dict, *flags: str) -> list[str]:
    return [
        sys.executable,
        str(REPOSITORY / "tests" / "faults.py"),
        json.dumps(plan),
        *TINY,
        *flags,
    ]


@pytest.mark.slow
def test_crashed_workers_and_a_full_disk_leave_a_run_that_goes_on(tmp_path, launch_environment):
    attempts, workdir = tmp_path / "attempts", tmp_path / "run"
    attempts.mkdir()
    plan = {
        "attempts": str(attempts),
        "candidates": {1: ["segfault"], 2: ["nan"], 3: ["raise", "segfault"]},
        "history": {8: "ENOSPC"},
    }
    script = faulty_command(plan, f"--workdir={workdir}", "--workers=2")
    full = subprocess.run(
        script, env=launch_environment, capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
    assert full.returncode == 2
    assert full.stderr.count("\n") == 1 and full.stderr.startswith("error: "), full.stderr
    assert "No space left on device" in full.stderr and "give the same command" in full.stderr
    run(launch_environment, f"--workdir={workdir}")
    records, _ = read_lines(Workdir(workdir).history)
    individuals = [record for record in records if record["kind"] == "individual"]
    assert [record["id"] for record in individuals] == list(
        range(18)
    )  # 16 valid ones and the failed ones, once each
    failures = {record["id"]: record["failure"] for record in individuals if record["failure"]}
    assert failures.keys() == {2, 3}
    assert "the loss was" in failures[2] and "learning rate" in failures[2]
    assert failures[3] == "RuntimeError: injected; tried again: its process ended by SIGSEGV"


def test_an_interrupt_at_the_very_end_ends_in_no_traceback(launch_environment):
    """While libraries clean up after the command, as JAX does."""
    script = """
import atexit
import os
import signal

from jaxevo.commands import command, flags

def main(console):
    atexit.register(os.kill, os.getpid(), signal.SIGINT)
    print("done")

command.run(main, "__main__", "give the same command to go on", arguments=["program"])
"""
    launched = [sys.executable, "-c", script]
    done = subprocess.run(launched, env=launch_environment, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


def test_second_interrupt_ends_it_at_once(launch_environment):
    """Also where Python sees neither, as during a long computation."""
    script = """
import signal

from jaxevo.commands import command, flags

def main(console):
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: None)
    print("ready", flush=True)
    while True:
        signal.pause()

command.run(main, "__main__", "give the same command to go on", arguments=["program"])
"""
    launched = [sys.executable, "-c", script]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen(launched, env=launch_environment, **pipes)
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGINT)
    assert process.communicate()[1] == "interrupted twice; give the same command to go on\n"
    assert process.returncode == 130


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_thirty_kills_at_random_moments(tmp_path, expected, launch_environment, seed):
    check_killed_run(launch_environment, tmp_path / "run", expected, seed, kills=3)


# Four checkpoints are of generations, two of the final training (its first epoch and, as it is
# short, only the last one more), and the last one is the weights; the documents are config.json,
# best.json twice, and result.json.
WRITES = {"history": [2, 13, NUM_LINES - 1], "checkpoint": [0, 3, 5, 6], "document": [0, 1, 2, 3]}
FAILING_WRITES = [
    (kind, number, "ENOSPC") for kind, numbers in WRITES.items() for number in numbers
]
FAILING_WRITES += [
    (kind, numbers[1], fault) for kind, numbers in WRITES.items() for fault in ("EIO", "torn")
]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "number", "fault"), FAILING_WRITES)
def test_write_that_fails(tmp_path, expected, launch_environment, kind, number, fault):
    """Torn: killed amid it."""
    plan = {"attempts": str(tmp_path), kind: {number: fault}}
    script = faulty_command(plan, f"--workdir={tmp_path / 'run'}")
    done = subprocess.run(
        script, env=launch_environment, capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
    assert done.returncode == (-signal.SIGKILL if fault == "torn" else 2)
    if fault != "torn":
        assert done.stderr.startswith("error: ") and done.stderr.count("\n") == 1, done.stderr
    run(launch_environment, f"--workdir={tmp_path / 'run'}")
    assert outcome(tmp_path / "run") == expected


@pytest.mark.slow
@pytest.mark.parametrize("free", [0, 8, 40, 80, 120, 160, 220, 280])
def test_disk_that_fills_up_and_then_has_room(tmp_path, expected, launch_environment, free):
    """A file system of its own, in a user namespace, with so many KiB left.

    Whatever write is the first to fail.
    """
    script = """
mount -t tmpfs -o size=16m none "$0" || exit 77
head -c $((16384 - $1))K /dev/zero > "$0/filler"
shift
"$@"
echo "exit code $?" >&2
rm "$0/filler"
exec "$@"
"""
    disk = tmp_path / "disk"
    disk.mkdir()
    search = command(f"--workdir={disk / 'run'}")
    # What must be compared lies in the namespace, so it is copied out of it.
    copy = ["sh", "-c", '"$@" && cp -r "$0/run" "$0/../run"', str(disk), *search]
    isolated = ["unshare", "-rm", "sh", "-c", script, str(disk), str(free), *copy]
    done = subprocess.run(isolated, env=launch_environment, capture_output=True, text=True)
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip("no user namespaces with mounts here")
    assert done.returncode == 0, done.stderr
    print(f"{free} KiB free: {done.stderr.strip()}", flush=True)
    first, second = done.stderr.splitlines()
    assert (
        first.startswith("error: ")
        and "No space left on device" in first
        and second == "exit code 2"
    )
    assert outcome(tmp_path / "run") == expected


def draw_faults(rng: random.Random, rate: float, number: int) -> dict[int, list[str]]:
    """Faults of that many candidates at this rate: half of them go away when tried again."""
    kinds = ("raise", "nan", "hang", "stop", "exit", "segfault", "abort", "kill", "allocate")
    drawn = {k: rng.choice(kinds) for k in range(number) if rng.random() < rate}
    return {k: [fault] * rng.choice((1, 2)) for k, fault in drawn.items()}


class Memory:
    """Resident MiB of a process and of its largest worker, by candidates recorded."""

    def __init__(self, process: subprocess.Popen[str], history: pathlib.Path):
        self.parent, self.workers, self.candidates = [], [], []
        while process.poll() is None:
            with contextlib.suppress(psutil.NoSuchProcess):
                known = psutil.Process(process.pid)
                children = [child.memory_info().rss for child in known.children()]
                self.parent.append(known.memory_info().rss >> 20)
                self.workers.append(max(children, default=0) >> 20)
                self.candidates.append(history.read_bytes().count(b"\n") if history.exists() else 0)
            time.sleep(0.2)

    def growth(self) -> dict[str, float]:
        """The median during candidates 400 to 499 as a multiple of that during 100 to 199."""
        found = {}
        for name, series in (("parent", self.parent), ("workers", self.workers)):
            early, late = (
                [
                    size
                    for size, number in zip(series, self.candidates, strict=True)
                    if first <= number < first + 100
                ]
                for first in (100, 400)
            )
            if any(series):
                found[name] = statistics.median(late) / statistics.median(early)
        return found

    def __str__(self) -> str:
        most = f"at most {max(self.parent)} MiB, a worker {max(self.workers)} MiB"
        return f"{most}, growth {self.growth()}"


def failing(faults: dict[int, list[str]]) -> set[int]:
    """Candidates that fail for good; no second attempt changes a loss that is not a number."""
    return {k for k, drawn in faults.items() if len(drawn) == 2 or drawn[0] == "nan"}


def soak(
    environment: dict[str, str], folder: pathlib.Path, faults: dict[int, list[str]], *flags: str
) -> list[dict]:
    """A search of 500 valid candidates with faults; its history without times and reasons."""
    (folder / "attempts").mkdir(parents=True)
    plan = {"attempts": str(folder / "attempts"), "candidates": faults}
    sizes = "--population_size=10 --num_offspring=10 --num_generations=49 --train_examples=64"
    more = [
        *sizes.split(),
        "--noreuse_fitness",
        "--epochs=2",
        "--retrain_best=1",
        "--final_epochs=1",
        f"--workdir={folder / 'run'}",
        *flags,
    ]
    begin = time.monotonic()
    with (folder / "output").open("w") as output:
        process = subprocess.Popen(
            faulty_command(plan, *more), env=environment, stdout=output, stderr=output
        )
        memory = Memory(process, folder / "run" / "history.jsonl")
    assert process.returncode == 0, (folder / "output").read_text()[-2000:]
    history = [timeless(record) for record in read_lines(Workdir(folder / "run").history)[0]]
    individuals = [record for record in history if record["kind"] == "individual"]
    assert [record["id"] for record in individuals] == list(range(len(individuals)))
    assert sum(record["failure"] is None for record in individuals) == 500
    met = {k: drawn for k, drawn in faults.items() if k < len(individuals)}
    assert {record["id"] for record in individuals if record["failure"]} == failing(met)
    counts = collections.Counter(" ".join(drawn) for drawn in met.values())
    print(
        f"{time.monotonic() - begin:.0f} s, {len(individuals)} candidates,",
        f"{len(failing(met))} failed",
        flags,
    )
    print(f"injected: {dict(sorted(counts.items()))}")
    print(f"memory: {memory}")
    assert memory.growth()["parent"] < 1.1
    for record in history:
        record.pop("traceback", None)
        record["failure"] = bool(record.get("failure"))
    return history


@pytest.mark.slow
def test_soak(tmp_path, launch_environment):
    """With workers that crash, hang and eat memory: as in one process where the same ones fail."""
    faults = draw_faults(random.Random(5), 0.05, 600)
    limits = ["--workers=2", "--candidate_timeout=10", "--worker_memory_limit=3000"]
    isolated = soak(launch_environment, tmp_path / "isolated", faults, *limits)
    harmless = {k: ["nan" if faults[k][0] == "nan" else "raise"] * 2 for k in failing(faults)}
    assert soak(launch_environment, tmp_path / "inline", harmless) == isolated
