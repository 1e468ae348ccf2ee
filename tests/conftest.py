"""What tests share: random genomes, small data, and programs that are compiled once."""

from __future__ import annotations

import os
import pathlib
import tempfile
import urllib.error
import urllib.request

import numpy as np
import pytest

from jaxevo.config import NetworkConfig
from jaxevo.datasets import Images, SearchData, load_search_data
from jaxevo.search_space.genome import Genome
from jaxevo.search_space.variation import random_cell

# Programs that tests, their parallel workers and the processes they launch have in common are
# compiled once. Set before JAX is imported; a worker takes the folder of the process that began it.
_CACHE_NAME = "JAXEVO_TESTS_CACHE"
if _CACHE_NAME not in os.environ:
    _CACHE = tempfile.TemporaryDirectory(prefix="jaxevo-tests-")
    os.environ[_CACHE_NAME] = _CACHE.name
os.environ["JAX_COMPILATION_CACHE_DIR"] = os.environ[_CACHE_NAME]
os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
os.environ["JAX_PLATFORMS"] = "cpu"
# Programs that run for milliseconds are compiled in a third of the time, with other roundings. An
# empty XLA_FLAGS lets the tests compile as a user's programs are.
os.environ.setdefault(
    "XLA_FLAGS", "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false"
)

REPOSITORY = pathlib.Path(__file__).parent.parent


def random_genomes(
    number: int, min_nodes: int = 2, max_nodes: int = 6, seed: int = 0
) -> list[Genome]:
    """Genomes of any size in the range, more varied than an initial population."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(min_nodes, max_nodes + 1, (number, 2))
    return [Genome(random_cell(rng, int(a)), random_cell(rng, int(b))) for a, b in sizes]


def timeless(record: dict) -> dict:
    """A record without its seconds and places, which differ between equal runs."""
    places = ("where", "attempt", "lost")
    return {
        key: value
        for key, value in record.items()
        if not key.endswith("seconds") and key not in places
    }


@pytest.fixture(scope="session")
def digits() -> SearchData:
    """The embedded data set."""
    return load_search_data("digits")


@pytest.fixture(scope="session")
def few_digits(digits: SearchData) -> tuple[Images, Images]:
    """A few training and validation images."""
    return digits.train.take(np.arange(200)), digits.validation.take(np.arange(100))


@pytest.fixture(scope="session")
def tiny() -> NetworkConfig:
    """A network that compiles quickly and still has all parts: N R N."""
    return NetworkConfig(channels=4, num_normal_cells=2)


@pytest.fixture(scope="session")
def launch_environment() -> dict[str, str]:
    """Environment of launched processes, with the tests' cache of compiled programs instead of the
    user's.
    """
    return os.environ | {"XDG_CACHE_HOME": os.environ[_CACHE_NAME], "COLUMNS": "120"}


@pytest.fixture(scope="session")
def data_cache(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def offline(data_cache: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test may use the network or the person's own cache."""
    real_urlopen = urllib.request.urlopen

    def urlopen(url: str, timeout: float) -> object:
        if url.startswith("file:"):
            return real_urlopen(url, timeout=timeout)
        raise urllib.error.URLError("no network")

    monkeypatch.setattr(urllib.request, "urlopen", urlopen)
    monkeypatch.setenv("JAXEVO_CACHE", str(data_cache))
