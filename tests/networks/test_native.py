"""The native cells against the universal network's and the genomes' own; indices; threads; C++."""

from __future__ import annotations

import dataclasses
import functools
import importlib.util
import os
import pathlib
import subprocess
import sys
from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from builders_arrays import compile_operations
from conftest import REPOSITORY, random_genomes
from flax import nnx

from jaxevo.config import NetworkConfig, TrainingConfig
from jaxevo.networks import native
from jaxevo.networks.builder import split
from jaxevo.networks.genome_network import Network
from jaxevo.networks.native import NativeCell, NativeNetwork
from jaxevo.networks.universal import UniversalCell, UniversalNetwork
from jaxevo.networks.universal_cell import Outlet
from jaxevo.networks.universal_encoding import encode
from jaxevo.networks.universal_weights import from_network, to_network
from jaxevo.search_space.genome import OPS, Cell, Genome, Node
from jaxevo.training.data import TrainingData
from jaxevo.training.trainer import Trainer

needs_native = pytest.mark.skipif(
    native.unavailable_reason() is not None, reason=str(native.unavailable_reason())
)
slow = pytest.mark.slow
both_kinds = pytest.mark.parametrize("conv_kind", ["separable", "full"])
MAX_NODES = 6
# Kind, D, E, image, batch. Batches fill the lanes in all ways; images are odd and not square.
SETTINGS = [
    ("normal", 3, 5, (5, 4), 17),
    ("reduction", 2, 3, (7, 6), 3),
    ("classifier", 4, 3, (4, 4), 16),
    *(
        pytest.param(*setting, marks=slow)
        for setting in (
            ("normal", 8, 16, (8, 8), 64),
            ("reduction", 6, 12, (9, 9), 64),
            ("reduction", 3, 7, (3, 11), 1),
            ("classifier", 5, 4, (7, 7), 33),
            ("normal", 24, 24, (14, 14), 9),
        )
    ),
]


def genomes(number: int, seed: int = 0) -> list[Genome]:
    """Random genomes, and for each operation one that has it on an input and on a hidden state."""
    every = [Cell((Node((0, 1), (op, op)), Node((2, 0), (op, op)))) for op in OPS]
    return random_genomes(number, 1, MAX_NODES, seed) + [Genome(cell, cell) for cell in every]


def normal(rng: np.random.Generator, *shape: int) -> jax.Array:
    return jnp.asarray(rng.standard_normal(shape).astype(np.float32))


def filled(cell: UniversalCell, seed: int) -> UniversalCell:
    """The cell with random weights and running moments."""
    rng = np.random.default_rng(seed)
    for variable in (cell.kernels, cell.pointwise, cell.readers):
        variable.set_value(0.3 * normal(rng, *variable.shape))
    for variable in (cell.scale, cell.var):
        variable.set_value(1 + 0.1 * jnp.abs(normal(rng, *variable.shape)))
    for variable in (cell.bias, cell.mean):
        variable.set_value(0.1 * normal(rng, *variable.shape))
    return cell


@functools.partial(jax.jit, static_argnums=0)
def everything(graphdef, params, stats, x, genome, g):
    """Training output and moments, prediction, and all gradients for the output's gradient `g`."""

    def train(params, x):
        cell = nnx.merge(graphdef, params, stats, copy=True)
        out = cell(x, genome, True)
        return out, nnx.state(cell, nnx.BatchStat)

    out, pullback, moments = jax.vjp(train, params, x, has_aux=True)
    predicted = nnx.merge(graphdef, params, stats)(x, genome, False)
    return {"out": out, "moments": moments, "predicted": predicted, "gradients": pullback(g)}


def out_shape(kind: str, channels: int, readers: int, image: tuple[int, int], batch: int):
    if kind == "classifier":
        return MAX_NODES, 2 * channels, batch
    return readers, *(side // 2 if kind == "reduction" else side for side in image), batch


def both(
    kind: str,
    channels: int,
    readers: int,
    image: tuple[int, int],
    batch: int,
    *,
    conv_kind: str,
    relu: bool = False,
    seed: int = 0,
):
    """The two forms of a cell as functions of a genome's cell, x and an output's gradient."""
    forms = []
    settings = {"reader_channels": readers, "conv_kind": conv_kind}
    for cell_type in (UniversalCell, NativeCell):
        cell = filled(cell_type(Outlet(kind, relu), channels, MAX_NODES, **settings), seed)
        forms.append(functools.partial(everything, *split(cell)))
    rng = np.random.default_rng(seed)
    x = normal(rng, channels, *image, batch)
    return forms, x, normal(rng, *out_shape(kind, channels, readers, image, batch))


def assert_close(actual, expected, about: str, *, few: float = 0) -> None:
    """Compares arrays on the scale of their part's largest number.

    Of each part the fraction `few` may differ by a twentieth of that. Rounding decides whether what
    is almost zero is rectified and which of almost equal numbers is the largest, and so where a
    pixel's gradient goes, once in some hundred genomes with long sums. (Where that was seen, the
    universal cell gave the other numbers too, for an input that differed by a millionth.)
    """
    for part, values in expected.items():
        scale = max(float(np.abs(leaf).max()) for leaf in jax.tree.leaves(values))
        differ = total = 0
        for a, b in zip(jax.tree.leaves(actual[part]), jax.tree.leaves(values), strict=True):
            about_part = f"{about} {part}"
            atol = (0.05 if few else 2e-4) * scale
            np.testing.assert_allclose(a, b, rtol=1e-3, atol=atol, err_msg=about_part)
            differ += np.sum(~np.isclose(a, b, rtol=1e-3, atol=2e-4 * scale))
            total += a.size
        assert differ <= few * total, f"{about}: {differ} of {total} numbers of {part} differ"


@needs_native
@pytest.mark.parametrize(("kind", "channels", "readers", "image", "batch"), SETTINGS)
@pytest.mark.parametrize("number", [12, pytest.param(300, marks=slow)])
@both_kinds
@pytest.mark.parametrize("relu", [False, True], ids=["plain", "relu"])
def test_equals_the_universal_cell(kind, channels, readers, image, batch, number, conv_kind, relu):
    (universal, own), x, g = both(
        kind, channels, readers, image, batch, conv_kind=conv_kind, relu=relu
    )
    for genome in genomes(number):
        encoded = encode(genome, MAX_NODES).normal
        expected, actual = universal(x, encoded, g), own(x, encoded, g)
        few = 0.03 if conv_kind == "full" and number > 12 else 0
        assert_close(actual, expected, genome.canonical_key(), few=few)


@needs_native
@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
@both_kinds
def test_passes_on_what_is_not_finite_as_the_universal_cell(wrong, conv_kind):
    (universal, own), x, g = both("normal", 3, 5, (5, 4), 17, conv_kind=conv_kind)
    for genome in genomes(6, seed=1):
        encoded = encode(genome, MAX_NODES).normal
        for place in ((0, 2, 1, 4), (2, 0, 3, 16)):
            for inputs in (
                (x.at[place].set(wrong), encoded, g),
                (x, encoded, g.at[place].set(wrong)),
            ):
                assert_alike_in_what_is_finite(own(*inputs), universal(*inputs))


def assert_alike_in_what_is_finite(actual, expected) -> None:
    """Number by number, but for the parameters' gradients, of which the whole of each is compared.

    Columns of a slot that an operand does not use have a gradient of 0 natively, of 0 times the
    gradient of the output in JAX.
    """
    finite = [jax.tree.map(np.isfinite, form) for form in (actual, expected)]
    parameters, inputs = zip(*(form.pop("gradients") for form in finite), strict=True)
    whole = [[part.all() for part in jax.tree.leaves(form)] for form in parameters]
    assert whole[0] == whole[1]
    jax.tree.map(np.testing.assert_array_equal, *finite)
    np.testing.assert_array_equal(*inputs)


@needs_native
@pytest.mark.parametrize("batch", [1, 3, 16, 17, 64])
@both_kinds
def test_a_batch_given_twice_has_the_same_moments_and_twice_the_gradients(batch, conv_kind):
    (_, own), x, g = both("normal", 3, 4, (6, 5), batch, conv_kind=conv_kind)
    for genome in genomes(3, seed=2):
        encoded = encode(genome, MAX_NODES).normal
        once, twice = own(x, encoded, g), own(jnp.tile(x, 2), encoded, jnp.tile(g, 2))
        parameters, x_gradient = twice["gradients"]
        halved = jax.tree.map(lambda a: a / 2, parameters), x_gradient[..., :batch]
        first = {part: twice[part][..., :batch] for part in ("out", "predicted")}
        assert_close(twice | first | {"gradients": halved}, once, genome.canonical_key())


@needs_native
@both_kinds
def test_images_of_a_batch_are_predicted_as_alone(conv_kind):
    (_, own), x, g = both("reduction", 3, 4, (6, 5), 64, conv_kind=conv_kind)
    for genome in genomes(3, seed=3):
        encoded = encode(genome, MAX_NODES).normal
        whole = own(x, encoded, g)["predicted"]
        for batch in (1, 3, 16, 17):
            part = own(x[..., :batch], encoded, g[..., :batch])["predicted"]
            np.testing.assert_array_equal(part, whole[..., :batch])


@needs_native
@both_kinds
def test_the_number_of_threads_changes_no_bit(conv_kind):
    (_, own), x, g = both("normal", 3, 5, (5, 4), 40, conv_kind=conv_kind)
    try:
        for genome in genomes(4, seed=4):
            encoded = encode(genome, MAX_NODES).normal
            native.limit_threads(1)
            one = jax.tree.map(np.asarray, own(x, encoded, g))
            native.limit_threads(0)
            jax.tree.map(np.testing.assert_array_equal, own(x, encoded, g), one)
    finally:
        native.limit_threads(0)


@needs_native
@both_kinds
def test_candidates_can_be_mapped(conv_kind):
    (_, own), x, g = both("normal", 2, 3, (4, 4), 5, conv_kind=conv_kind)
    cells = [encode(genome, MAX_NODES).normal for genome in genomes(2, seed=5)[:2]]
    stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *cells)
    mapped = jax.vmap(own, in_axes=(None, 0, None))(x, stacked, g)
    for index, encoded in enumerate(cells):
        part = jax.tree.map(lambda a, index=index: a[index], mapped)
        jax.tree.map(np.testing.assert_array_equal, part, own(x, encoded, g))


WRONG = {
    "no state -1": {"states": (1, 0, -1)},
    "not its own state": {"states": (1, 0, 2)},
    "a state far away": {"states": (0, 1, 2**31 - 1)},
    "no operation -1": {"ops": (0, 0, -1)},
    "no operation 6": {"ops": (1, 1, 6)},
    "fewer than no nodes": {"num_nodes": -1},
    "more nodes than slots": {"num_nodes": MAX_NODES + 1},
}


@needs_native
@pytest.mark.parametrize("change", WRONG.values(), ids=WRONG.keys())
def test_numbers_out_of_range_are_refused(change):
    cell = Cell((Node((0, 1), (OPS[1], OPS[0])), Node((2, 0), (OPS[2], OPS[3]))))
    encoded = encode(Genome(cell, cell), MAX_NODES).normal
    wrong = {}
    for name, value in change.items():
        if isinstance(value, tuple):
            *place, number = value
            value = np.array(getattr(encoded, name))
            value[tuple(place)] = number
        wrong[name] = np.int32(value)
    bad = encoded._replace(**wrong)
    native_cell = filled(NativeCell(Outlet("normal"), 2, MAX_NODES, reader_channels=3), 0)
    x = jnp.ones((2, 4, 4, 3))
    for train in (True, False):
        with pytest.raises(jax.errors.JaxRuntimeError, match="native cell"):
            native_cell(x, bad, train).block_until_ready()
    names = ("kernels", "pointwise", "scale", "bias")
    slots = native.Slots(*(getattr(native_cell, name)[...] for name in names))
    outlet = native_cell.outlet
    (out, _), residuals = native._train_forward(outlet, slots, native_cell.readers[...], x, encoded)
    with pytest.raises(jax.errors.JaxRuntimeError, match="native cell"):
        jax.block_until_ready(
            native._train_backward(outlet, residuals._replace(cell=bad), (out, None))
        )


@needs_native
def test_numbers_beyond_the_last_node_are_not_read():
    (_, own), x, g = both("normal", 2, 3, (4, 4), 5, conv_kind="separable")
    encoded = encode(genomes(1, seed=6)[0], MAX_NODES).normal._replace(num_nodes=np.int32(2))
    used = np.arange(MAX_NODES)[:, None] < 2
    other = encoded._replace(
        states=np.where(used, encoded.states, -7).astype(np.int32),
        ops=np.where(used, encoded.ops, 99).astype(np.int32),
    )
    jax.tree.map(np.testing.assert_array_equal, own(x, other, g), own(x, encoded, g))


# ------------------------------------------------------------------------------ whole networks

PLAIN = NetworkConfig(channels=3, num_normal_cells=2, dropout_rate=0.3)
FULL = dataclasses.replace(PLAIN, conv_kind="full")
RELU = dataclasses.replace(PLAIN, output_relu=True)
every_config = pytest.mark.parametrize("config", [PLAIN, FULL, RELU], ids=["plain", "full", "relu"])
CLASSES = 3


@pytest.fixture
def quick_ops(monkeypatch):
    """Operations compiled one by one and kept, so that no network is compiled."""
    compile_operations(monkeypatch)


def loss(params, stats, graphdef, images, labels, inputs):
    module = nnx.merge(graphdef, params, stats, copy=True)
    logits = module(images, *inputs, train=True, dropout_key=jax.random.key(7))
    own = jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], -1)
    return -own.mean(), nnx.state(module, nnx.BatchStat)


value_and_gradient = jax.value_and_grad(loss, has_aux=True)


def images_and_labels(shape: tuple[int, int, int]) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.integers(0, 256, (9, *shape), np.uint8), rng.integers(0, CLASSES, 9)


def networks(
    shape: tuple[int, int, int], number: int, config: NetworkConfig
) -> Iterator[tuple[Genome, Network, NativeNetwork]]:
    """Random genomes, their own networks, and the native one with the same weights."""
    for seed, genome in enumerate(random_genomes(number, 1, MAX_NODES, seed=7)):
        network = Network(genome, config, shape, num_classes=CLASSES, seed=seed)
        whole = NativeNetwork(config, MAX_NODES, shape, num_classes=CLASSES)
        from_network(whole, network, genome)
        yield genome, network, whole


@needs_native
@pytest.mark.parametrize("number", [2, pytest.param(300, marks=slow)])
@every_config
def test_predicts_as_the_genomes_own_networks(quick_ops, number, config):
    predict = nnx.jit(functools.partial(NativeNetwork.__call__, train=False))
    images, _ = images_and_labels((6, 5, 3))
    for genome, network, whole in networks((6, 5, 3), number, config):
        logits = predict(whole, images, encode(genome, MAX_NODES))
        np.testing.assert_allclose(logits, network(images, train=False), rtol=1e-3, atol=1e-4)


@needs_native
@slow
@pytest.mark.parametrize("shape", [(6, 5, 3), (9, 9, 1)])
@every_config
def test_trains_as_300_genomes_own_networks(quick_ops, shape, config):
    images, labels = images_and_labels(shape)
    compiled = jax.jit(value_and_gradient, static_argnums=2)
    differ = []
    for genome, network, whole in networks(shape, 300, config):
        values = []
        forms = (network, (), value_and_gradient), (whole, (encode(genome, MAX_NODES),), compiled)
        for module, inputs, step in forms:
            graphdef, params, stats = split(module)
            (value, stats), gradient = step(params, stats, graphdef, images, labels, inputs)
            nnx.update(module, gradient, stats)
            values.append(value)
        np.testing.assert_allclose(values[1], values[0], rtol=1e-4, err_msg=genome.canonical_key())
        carried = Network(genome, config, shape, num_classes=CLASSES, seed=0)
        to_network(whole, carried, genome)
        leaves = (jax.tree.leaves(nnx.state(each)) for each in (network, carried))
        if not all(
            np.allclose(b, a, 5e-3, 1e-3 * max(1, np.abs(a).max()))
            for a, b in zip(*leaves, strict=True)
        ):
            differ.append(genome.canonical_key())
    # Rounding may decide where a gradient goes, see `assert_close`.
    assert len(differ) <= (3 if config is FULL else 0), differ


@needs_native
@slow
@both_kinds
def test_trains_for_20_steps_as_the_universal_network(digits, conv_kind):
    config = NetworkConfig(channels=4, num_normal_cells=2, conv_kind=conv_kind)
    training = TrainingConfig(epochs=4, batch_size=64, learning_rate=0.01, rate_decay=0.9)
    data = TrainingData.of(digits.train.take(np.arange(320)))
    forms = [
        form(config, MAX_NODES, digits.image_shape, num_classes=10)
        for form in (UniversalNetwork, NativeNetwork)
    ]
    trainers = [Trainer(split(network).graphdef, 64) for network in forms]
    for seed, genome in enumerate(random_genomes(3, seed=8)):
        losses, accuracies = [], []
        for network, trainer in zip(forms, trainers, strict=True):
            from_network(
                network,
                Network(genome, config, digits.image_shape, num_classes=10, seed=seed),
                genome,
            )
            state = trainer.start(*split(network)[1:])
            inputs = (encode(genome, MAX_NODES),)
            epochs = list(trainer.epochs(state, inputs, data, config=training, seed=(seed,)))
            losses.append([loss for _, loss in epochs])
            accuracies.append(
                trainer.measure(epochs[-1][0].weights, inputs, digits.validation).accuracy
            )
        assert losses[0][-1] < losses[0][0]
        np.testing.assert_allclose(losses[1], losses[0], rtol=0.01)
        assert abs(accuracies[1] - accuracies[0]) < 0.02


def test_what_it_cannot_do_is_refused_by_name(monkeypatch):
    monkeypatch.setattr(native, "unavailable_reason", lambda: None)
    with pytest.raises(ValueError, match="float32 only, not in bfloat16; use engine=universal"):
        NativeNetwork(NetworkConfig(precision="bfloat16"), MAX_NODES, (8, 8, 1), num_classes=10)


# ---------------------------------------------------------------------------- loading and building


def said_with(value: str) -> str:
    """What a process says of the kernels, with `JAXEVO_NATIVE` set."""
    code = """
from jaxevo.networks import native
print(native.unavailable_reason(), native.kernels_name())
"""
    environment = os.environ | {"JAXEVO_NATIVE": value}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_the_environment_turns_it_off():
    assert said_with("0") == "no native kernels: JAXEVO_NATIVE=0 turns them off None"


@needs_native
def test_the_environment_chooses_a_build():
    assert said_with("generic") == "None GENERIC"
    assert "no kernels called JAXEVO_NATIVE=mmx" in said_with("mmx")


KERNELS = REPOSITORY / "jaxevo" / "networks" / "kernels"


def test_both_sides_have_the_same_interface():
    # Else no kernels would be used, and the tests of them would be skipped.
    assert f"constexpr int kInterface = {native._INTERFACE};" in (KERNELS / "cell.h").read_text()


@pytest.fixture(scope="module")
def compiler():
    """The module that builds the kernels, which is part of no package."""
    spec = importlib.util.spec_from_file_location(
        "compiler", REPOSITORY / "building" / "compiler.py"
    )
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@slow
@pytest.mark.parametrize(
    ("sanitizers", "cells"), [("address,undefined", 150), ("thread", 30)], ids=["memory", "threads"]
)
def test_sanitizers_find_nothing(compiler, tmp_path: pathlib.Path, sanitizers: str, cells: int):
    found = compiler.find_compiler()
    if found is None:
        pytest.skip("no C++ compiler")
    flags = [*"-std=c++17 -O1 -g -pthread -Wno-psabi -fno-sanitize-recover=all".split()]
    flags += [f"-fsanitize={sanitizers}", f"-I{KERNELS}"]
    builds, definitions = compiler.builds()
    wide = next((build.flags for build in builds if build.name == "avx2"), ())
    objects = []
    for build in (*builds, compiler.Build("wide", 16, wide)):
        objects.append(tmp_path / f"{build.name}.o")
        own = [*build.flags, *build.definitions(), "-c", KERNELS / "cell.cc", "-o", objects[-1]]
        subprocess.run([*found, *flags, *own], check=True)
    program = tmp_path / "native_cell"
    sources = [pathlib.Path(__file__).with_name("native_cell.cc"), KERNELS / "select.cc"]
    subprocess.run([*found, *flags, *definitions, *sources, *objects, "-o", program], check=True)
    subprocess.run([program, str(cells), "1"], check=True, timeout=600)
