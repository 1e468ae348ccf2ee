"""What an accelerator makes of the engines, in at most five minutes, with the package alone.

    python benchmarks/accelerator.py --output=accelerator.json
    python benchmarks/accelerator.py --size=8 --channels=4    # its mechanics on a CPU, in a minute

Parts, the most wanted first; a part that would begin after the time is over is left out in words:

- engines: seconds of compiling and milliseconds of a step for one genome at 28x28, D=24, in both
  precisions, and from them the seconds of a candidate of 120 steps: what `auto` should be
- depthwise: forward and backward pass of a depthwise convolution, as `ops` has it (sums of shifted
  images) and as `lax.conv` in two layouts, for each size of kernel
- candidates: candidates trained together in a step, from 1 to 16
- epochs: an epoch of EvoA and of ResNet18 on 60,000 images, from some steps
- resume: a training that is interrupted and resumed, beside one that is not

A CPU takes longer than five minutes for the first part alone at 28x28.
"""

from __future__ import annotations

import argparse
import pathlib
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from measuring import BATCH, CLASSES, MAX_NODES, genomes, random_images, write
from rich.console import Console

from jaxevo.config import NetworkConfig, TrainingConfig
from jaxevo.datasets import Images
from jaxevo.machine import device_name
from jaxevo.networks import convolutions, native
from jaxevo.networks.baselines import Architecture, Baseline
from jaxevo.networks.builder import NetworkBuilder, split
from jaxevo.search_space import genome_files
from jaxevo.training.batched_trainer import BatchedTrainer
from jaxevo.training.checkpoints import Checkpoints, flatten
from jaxevo.training.data import TrainingData
from jaxevo.training.engines import make_engine, make_engine_for
from jaxevo.training.fit import Prepared, fit

STEPS, REPEATS = 4, 3
CANDIDATE_STEPS = 120  # of a candidate of the preset quick
EPOCH_STEPS = 60_000 // BATCH


class Scale(NamedTuple):
    """Side of the images, and D."""

    size: int
    channels: int

    def builder(self, precision: str = "float32") -> NetworkBuilder:
        config = NetworkConfig(channels=self.channels, precision=precision)
        return NetworkBuilder(config, (self.size, self.size, 1), CLASSES)

    def images(self) -> TrainingData:
        return TrainingData.of(Images(*random_images(self.size, STEPS)))


def timed(prepared: Prepared, data: TrainingData) -> tuple[float, float]:
    """Seconds of compiling, and the least milliseconds of a step in an epoch."""
    trainer = prepared.trainer
    config = TrainingConfig(epochs=REPEATS + 1, batch_size=BATCH)
    taken = []
    running = trainer.epochs(prepared.state, prepared.inputs, data, config=config, seed=(0,))
    for _ in range(REPEATS + 1):
        begin = time.perf_counter()
        jax.block_until_ready(next(running))
        taken.append(1000 * (time.perf_counter() - begin) / STEPS)
    return trainer.stopwatch.seconds.get("compile", 0.0), min(taken[1:])


def engines(scale: Scale) -> Iterator[dict[str, Any]]:
    """A row for each engine and precision."""
    genome = genomes()["B=5/6"]
    names = ("compiled", "universal", *(() if native.unavailable_reason() else ("native",)))
    for precision in ("float32", "bfloat16"):
        for name in names:
            if name == "native" and precision != "float32":
                continue
            engine = make_engine(name, scale.builder(precision), BATCH, max_nodes=MAX_NODES)
            compiling, step = timed(engine.prepare(genome, (0,)), scale.images())
            # All genomes share the programs of the universal engines.
            each = compiling if name == "compiled" else 0.0
            candidate = each + CANDIDATE_STEPS * step / 1000
            yield {
                **{"engine": name, "precision": precision, "compile_s": compiling},
                **{"step_ms": step, "candidate_s": candidate},
            }


def depthwise(scale: Scale) -> Iterator[dict[str, Any]]:
    """A row for each size of kernel and form; batch 64 of the first cell's images."""
    rng = np.random.default_rng(0)
    size, channels = scale
    x = jnp.asarray(rng.standard_normal((channels, size, size, BATCH), np.float32))
    layouts = {"lax.conv NHWC": (3, 1, 2, 0), "lax.conv NCHW": (3, 0, 1, 2)}
    for k in (3, 5, 7):
        kernel = jnp.asarray(rng.standard_normal((channels, k, k), np.float32))
        shifted = convolutions.depthwise_by_shifts
        expected = shifted(x, kernel)
        yield {"kernel": k, "form": "shifted sums", "ms": _milliseconds(shifted, x, kernel)}
        for form, axes in layouts.items():
            spec = "NHWC" if form.endswith("NHWC") else "NCHW"

            def convolve(x: jax.Array, kernel: jax.Array, spec: str = spec) -> jax.Array:
                return jax.lax.conv_general_dilated(
                    x,
                    kernel.transpose(1, 2, 0)[:, :, None],
                    (1, 1),
                    "SAME",
                    dimension_numbers=(spec, "HWIO", spec),
                    feature_group_count=channels,
                )

            laid = x.transpose(axes)
            same = convolve(laid, kernel).transpose(np.argsort(axes))
            np.testing.assert_allclose(same, expected, atol=1e-2)
            yield {"kernel": k, "form": form, "ms": _milliseconds(convolve, laid, kernel)}


def _milliseconds(form: Callable[..., jax.Array], x: jax.Array, kernel: jax.Array) -> float:
    """The least of some forward and backward passes."""
    step = jax.jit(jax.grad(lambda x, kernel: jnp.square(form(x, kernel)).sum(), (0, 1)))
    jax.block_until_ready(step(x, kernel))
    taken = []
    for _ in range(5):
        begin = time.perf_counter()
        jax.block_until_ready(step(x, kernel))
        taken.append(1000 * (time.perf_counter() - begin))
    return min(taken)


def candidates(scale: Scale) -> Iterator[dict[str, Any]]:
    """A row for each number of candidates a step, with the milliseconds of each candidate."""
    engine = make_engine("universal", scale.builder(), BATCH, max_nodes=MAX_NODES)
    genome = genomes()["B=5/6"]
    config = TrainingConfig(epochs=1, batch_size=BATCH)
    for number in (1, 2, 4, 8, 16):
        prepared = engine.prepare(genome, (0,))
        together = BatchedTrainer(prepared.trainer, number)
        taken = []
        for _ in range(2):  # the first compiles
            starts = [engine.prepare(genome, (seed,)) for seed in range(number)]
            pairs = [(start.state, start.inputs) for start in starts]
            begin = time.perf_counter()
            seeds = [(seed,) for seed in range(number)]
            jax.block_until_ready(together.train(pairs, scale.images(), config, seeds=seeds))
            taken.append(1000 * (time.perf_counter() - begin) / STEPS)
        yield {"candidates": number, "step_ms": taken[1], "ms_each": taken[1] / number}


def epochs(scale: Scale) -> Iterator[dict[str, Any]]:
    """A row for each network, with the seconds of an epoch of 60,000 images."""
    models: dict[str, Architecture] = {"EvoA": genome_files.find("evoA")[0]}
    models["ResNet18"] = Baseline("resnet18")
    for name, model in models.items():
        choice = "auto" if name == "EvoA" else "compiled"
        engine = make_engine_for(choice, model, scale.builder(), batch_size=BATCH)
        compiling, step = timed(engine.prepare(model, (0,)), scale.images())
        seconds = EPOCH_STEPS * step / 1000
        yield {"network": name, "compile_s": compiling, "step_ms": step, "epoch_s": seconds}


def resume(scale: Scale) -> Iterator[dict[str, Any]]:
    """One row: how much the weights of an interrupted training differ from a whole one's."""
    genome = genomes()["B=2/4"]
    config = TrainingConfig(epochs=3, batch_size=BATCH)

    def train(checkpoints: Checkpoints | None, until: int) -> dict[str, np.ndarray]:
        def on_epoch(epoch: int, loss: float) -> None:
            if epoch == until:
                raise KeyboardInterrupt

        engine = make_engine("auto", scale.builder(), BATCH, max_nodes=MAX_NODES)
        prepared = engine.prepare(genome, (0,))
        fitted = fit(
            prepared,
            scale.images(),
            config,
            seed=(0,),
            checkpoints=checkpoints,
            identity={"seed": 0},
            on_epoch=on_epoch,
        )
        return flatten(split(engine.network(genome, fitted.state.weights))[1:])

    whole = train(None, until=99)
    with tempfile.TemporaryDirectory() as folder:
        checkpoints = Checkpoints(pathlib.Path(folder) / "checkpoints")
        try:
            train(checkpoints, until=2)
        except KeyboardInterrupt:
            pass
        resumed = train(checkpoints, until=99)
    yield {"difference": max(float(np.abs(whole[name] - resumed[name]).max()) for name in whole)}


PARTS = (engines, depthwise, candidates, epochs, resume)


def choice(rows: list[dict[str, Any]]) -> str:
    """What `auto` should be by the rows of the engines, in words."""
    in_float32 = [row for row in rows if row["precision"] == "float32"]
    best = min(in_float32, key=lambda row: row["candidate_s"])
    return f"engine {best['engine']}: {best['candidate_s']:.1f} s a candidate of 120 steps"


def main() -> None:
    """Prints rows as they come, and writes JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", type=int, default=28, help="side of the images")
    parser.add_argument("--channels", type=int, default=24, help="D")
    parser.add_argument("--minutes", type=float, default=5.0, help="when no part begins any more")
    parser.add_argument("--output", type=pathlib.Path, help="JSON file")
    args = parser.parse_args()
    console = Console(highlight=False, soft_wrap=True)
    console.print(f"{device_name()}, JAX {jax.__version__} on {jax.default_backend()}")
    begin = time.perf_counter()
    found: dict[str, list[dict[str, Any]]] = {}
    for part in PARTS:
        rows = found.setdefault(part.__name__, [])
        running = part(Scale(args.size, args.channels))
        while time.perf_counter() - begin < 60 * args.minutes:
            row = next(running, None)
            if row is None:
                break
            rows.append(row)
            shown = (f"{k} {v:.3g}" if isinstance(v, float) else f"{k} {v}" for k, v in row.items())
            console.print(f"{part.__name__}: {', '.join(shown)}")
        else:
            console.print(f"{part.__name__}: the time is over, the rest of it is left out")
    if found["engines"]:
        console.print(f"auto should be {choice(found['engines'])}")
    write(args.output, vars(args), **found, seconds=time.perf_counter() - begin)


if __name__ == "__main__":
    main()
