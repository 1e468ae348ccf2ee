"""A search on a cluster ends as in one process, whatever nodes and processes join, leave and die.

Nodes are processes of this machine. The long forms are slow:
python -m pytest -m slow -s tests/run/test_cluster.py
"""

from __future__ import annotations

import collections
import contextlib
import json
import pathlib
import random
import statistics
import subprocess
import sys
import time

import psutil
import pytest
import test_reliability as reliability
from builders import Outcome, Table, explore_and_choose, history_of
from cluster_driver import CONFIG
from conftest import REPOSITORY
from faults import TableSetup
from ray_nodes import RayNodes, environment_of

from jaxevo.config import replace
from jaxevo.run import cluster as cluster_module
from jaxevo.run.cluster import Cluster
from jaxevo.run.pool import Job, WorkerError
from jaxevo.run.queued_pool import QueuedJob
from jaxevo.run.workdir import Workdir

pytest.importorskip("ray", reason="Ray is not installed: pip install '.[ray]'")


@pytest.fixture(scope="module")
def nodes(launch_environment):
    """A head; each test has nodes join and leave."""
    cluster = RayNodes(environment_of(launch_environment))
    yield cluster
    cluster.close()


@pytest.fixture(scope="module")
def expected(tmp_path_factory) -> tuple[str, list[dict]]:
    """The winner and the history of this process."""
    path = tmp_path_factory.mktemp("whole") / "run"
    winner = explore_and_choose(path, CONFIG)
    return f"winner {winner.id} {winner.fitness}", history_of(path)


def places(path: pathlib.Path) -> dict[int, dict]:
    """Where each candidate was trained."""
    lines = [json.loads(line) for line in Workdir(path).history.read_text().splitlines()]
    return {line["id"]: line for line in lines if "where" in line}


def test_two_nodes_of_which_one_joins_late_and_processes_that_die(nodes, tmp_path, expected):
    nodes.join("a")
    plan = {2: ["kill"], 3: ["segfault"], 5: ["kill parent"], 6: ["raise"]}
    driver = nodes.drive(tmp_path, tmp_path / "attempts", candidates=plan, seconds=0.2)
    driver.until(lines=4)
    nodes.join("b")
    driver.until(said="node b joins")
    assert driver.end() == expected[0]
    assert history_of(tmp_path / "run") == expected[1]
    found = places(tmp_path / "run")
    again = {id_: line["attempt"] for id_, line in found.items() if line["attempt"] > 1}
    assert again == dict.fromkeys(plan, 2)
    assert {line["where"].split("/")[0] for line in found.values()} == {"a", "b"}
    nodes.kill("b")


def test_a_node_that_dies_costs_no_attempt_and_a_killed_driver_goes_on(nodes, tmp_path, expected):
    """Candidate 7 hangs until its node is killed; it is done by the next one that joins."""
    attempts = tmp_path / "attempts"
    plan = {"candidates": {7: ["hang"]}}
    first = nodes.drive(tmp_path / "search", attempts, **plan)
    first.until(lines=7)
    while not list(attempts.glob("0-0-7.*")):
        time.sleep(0.02)
    nodes.kill("a")
    first.until(said="node a is gone")
    nodes.join("c")
    first.until(lines=12)
    first.kill()
    second = nodes.drive(tmp_path / "search", attempts, **plan)
    assert second.end() == expected[0]
    assert history_of(tmp_path / "search" / "run") == expected[1]
    line = places(tmp_path / "search" / "run")[7]
    assert (line["attempt"], line["lost"]) == (1, 1)
    assert line["where"].startswith("c/")
    nodes.kill("c")


OTHER_VERSION = """
import importlib.metadata
known = importlib.metadata.version
importlib.metadata.version = lambda name: "0.9" if name == "jaxlib" else known(name)
"""


def test_a_node_with_other_versions_gets_no_work(nodes, tmp_path, expected):
    (tmp_path / "sitecustomize.py").write_text(OTHER_VERSION)
    path = f"{tmp_path}:{REPOSITORY / 'tests'}"
    nodes.join("other", PYTHONPATH=path)
    refused = nodes.drive(tmp_path / "search", tmp_path / "attempts")
    assert refused.process.wait() == 1
    last = refused.output.splitlines()[-1]
    assert "node other gets no work: jaxlib 0.9 instead of " in refused.output
    assert "WorkerError: no node of --cluster=" in last and "install the same versions" in last
    nodes.join("d")
    nodes.until_joined("d")
    driver = nodes.drive(tmp_path / "search", tmp_path / "attempts")
    assert driver.end() == expected[0]
    assert history_of(tmp_path / "search" / "run") == expected[1]
    found = places(tmp_path / "search" / "run")
    assert {line["where"].split("/")[0] for line in found.values()} == {"d"}
    for name in ("other", "d"):
        nodes.kill(name)


def test_a_cluster_beyond_this_machine_needs_a_token(tmp_path, launch_environment):
    flags = [f"--workdir={tmp_path}/run", "--preset=quick", "--cluster=192.0.2.77:6379"]
    done = subprocess.run(
        [sys.executable, str(REPOSITORY / "launch" / "search.py"), *flags],
        env=environment_of(launch_environment),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "192.0.2.77:6379 is not this machine" in done.stderr
    assert "RAY_AUTH_MODE=token" in done.stderr
    assert not (tmp_path / "run").exists()


def test_a_job_that_loses_node_after_node_ends_the_search():
    cluster = Cluster.__new__(Cluster)  # without a cluster behind it
    cluster._nodes, cluster._queue = {}, collections.deque()
    task = QueuedJob(Job((0, 0, 5), TableSetup({}, pathlib.Path()), ()))
    for k in range(9):
        cluster._lost_with(cluster_module._Node(str(k), f"n{k}", 1), task)
        assert cluster._queue.pop() is task
    with pytest.raises(WorkerError, match=r"10 nodes in turn were lost with job \(0, 0, 5\)"):
        cluster._lost_with(cluster_module._Node("9", "n9", 1), task)


LONG = {"num_generations": 24}  # 100 valid candidates
COUNTED = (("lost", 0), ("attempt", 1))  # and what is the least of each


def processes_of(nodes: RayNodes, name: str) -> list[psutil.Process]:
    """A node's processes that carry out candidates: Ray's, and their workers."""
    found = []
    with contextlib.suppress(psutil.NoSuchProcess):
        for each in psutil.Process(nodes.processes[name].pid).children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                line = " ".join(each.cmdline())
                if "multiprocessing.spawn" in line or line.startswith("ray::carry_out"):
                    found.append(each)
    return found


@pytest.mark.slow
@pytest.mark.parametrize(("number", "seed"), [(1, 1), (2, 2), (4, 5)])
def test_twenty_kills_at_random_moments(nodes, tmp_path, number, seed):
    """Of workers, of nodes, for each of which another one joins, and of the driver."""
    winner = explore_and_choose(tmp_path / "whole", replace(CONFIG, LONG))
    rng = random.Random(seed)
    names = [f"{number}-{k}" for k in range(number)]
    for name in names:
        nodes.join(name)
        nodes.until_joined(name)
    plan = {"settings": LONG, "seconds": 0.3}
    driver = nodes.drive(tmp_path, tmp_path / "attempts", **plan)
    killed: collections.Counter[str] = collections.Counter()
    # No candidate may lose two attempts: between two kills all that were under way are recorded.
    for moment in range(1, 21):
        driver.until(lines=5 * moment)
        time.sleep(rng.uniform(0, 0.3))
        kind = rng.choice(["worker", "worker", "node", "driver"])
        if kind == "worker":
            there = [each for name in names for each in processes_of(nodes, name)]
            if not there:
                kind = "driver"
            else:
                with contextlib.suppress(psutil.NoSuchProcess):
                    rng.choice(there).kill()
        if kind == "node":
            nodes.until_joined(names[0])
            nodes.kill(names.pop(0))
            names.append(f"{number}-{moment}-joins")
            nodes.join(names[-1])
        if kind == "driver":
            driver.kill()
            driver = nodes.drive(tmp_path, tmp_path / "attempts", **plan)
        killed[kind] += 1
    assert driver.end() == f"winner {winner.id} {winner.fitness}"
    assert history_of(tmp_path / "run") == history_of(tmp_path / "whole")
    found = places(tmp_path / "run").values()
    lost, again = (sum(line[name] > least for line in found) for name, least in COUNTED)
    print(f"{number} nodes: killed {dict(killed)}, {again} tried again, {lost} lost with a node")
    for name in names:
        nodes.until_joined(name)
        nodes.kill(name)


@pytest.mark.slow
def test_soak(nodes, tmp_path):
    """1,000 valid candidates on 4 nodes, of which the oldest is lost after each 50th candidate."""
    rng = random.Random(7)
    settings = {"population_size": 10, "num_offspring": 10, "num_generations": 99}
    settings |= {"stagnation_patience": 1000}  # an avoidance draws more candidates
    kinds = ("raise", "hang", "stop", "exit", "segfault", "abort", "kill", "kill parent")
    faults = {
        k: [rng.choice(kinds)] * rng.choice((1, 2)) for k in range(1300) if rng.random() < 0.05
    }
    # In this process the same ones fail.
    table = Table()

    def evaluate(jobs):
        genome, seed, _ = jobs[0]
        if seed[1] == 0 and len(faults.get(seed[2], ())) == 2:
            return Outcome(None, "injected")
        return table(jobs)

    explore_and_choose(tmp_path / "whole", replace(CONFIG, settings), evaluate=evaluate)
    names = [f"soak-{k}" for k in range(4)]
    for name in names:
        nodes.join(name)
        nodes.until_joined(name)
    begin = time.monotonic()
    plan = {"settings": settings, "seconds": 0.3, "candidates": faults}
    limits = {"candidate_timeout": 10.0}
    driver = nodes.drive(tmp_path, tmp_path / "attempts", limits=limits, **plan)
    memory: dict[int, int] = {}
    losses = 0
    while driver.process.poll() is None:
        with contextlib.suppress(psutil.NoSuchProcess):
            memory[driver.lines] = driver.memory()
        if driver.lines >= 50 * (losses + 1):
            nodes.until_joined(names[0])
            nodes.kill(names.pop(0))
            losses += 1
            names.append(f"soak-joins-{losses}")
            nodes.join(names[-1])
        time.sleep(0.1)
    driver.end()
    # Nothing is lost or doubled, and the same ones have failed.
    histories = [history_of(tmp_path / each) for each in ("run", "whole")]
    for line in (line for history in histories for line in history):
        line.pop("traceback", None)
        line["failure"] = bool(line.get("failure"))
    assert histories[0] == histories[1]
    individuals = [line for line in histories[0] if line["kind"] == "individual"]
    assert [line["id"] for line in individuals] == list(range(len(individuals)))
    assert sum(not line["failure"] for line in individuals) == 1000
    # The driver's memory does not grow.
    early, late = (
        statistics.median(size for lines, size in memory.items() if first <= lines < first + 200)
        for first in (200, 900)
    )
    found = places(tmp_path / "run").values()
    lost, again = (sum(line[name] > least for line in found) for name, least in COUNTED)
    print(
        f"{time.monotonic() - begin:.0f} s, {len(individuals)} candidates, {losses} nodes lost "
        f"with {lost} candidates, {again} tried again; driver {early} MiB early, {late} MiB late, "
        f"at most {max(memory.values())}"
    )
    assert late / early < 1.1
    for name in names:
        nodes.until_joined(name)
        nodes.kill(name)


@pytest.mark.slow
def test_real_trainings_on_nodes_end_as_those_of_one_process(nodes, tmp_path, launch_environment):
    """Two nodes; the command is killed once and given again."""
    reliability.run(launch_environment, f"--workdir={tmp_path / 'whole'}")
    for name in ("real-1", "real-2"):
        nodes.join(name)
        nodes.until_joined(name)
    flags = [f"--cluster={nodes.address}"]
    reliability.kill_at(nodes.environment, tmp_path / "run", flags, (6, 0.05))
    reliability.run(nodes.environment, f"--workdir={tmp_path / 'run'}", *flags)
    assert reliability.outcome(tmp_path / "run") == reliability.outcome(tmp_path / "whole")
    for name in ("real-1", "real-2"):
        nodes.kill(name)
