"""A long training that an interruption does not undo: `evaluation.fit` with checkpoints between epochs."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxevo.config import TrainingConfig
from jaxevo.run.evaluator import fit
from jaxevo.training.checkpoints import CheckpointError, Checkpoints, flatten, unflatten
from jaxevo.training.engines import Prepared, Seed
from jaxevo.training.trainer import TrainState

_CHECKPOINT_SHARE = 0.05  # of the training's time: short epochs go without a checkpoint


class Trained(NamedTuple):
    """What came out of a training."""

    state: TrainState
    seconds: float  # of all its sessions
    session: float  # of this one
    writing: float  # of this one, on checkpoints


def fit_resumably(
    prepared: Prepared,
    images: jax.Array,
    labels: jax.Array,
    config: TrainingConfig,
    seed: Seed,
    subset: np.ndarray,
    checkpoints: Checkpoints,
    identity: Mapping[str, Any],
    on_epoch: Callable[[int, float], None],
    message: Callable[[str], None],
) -> Trained:
    """Trains as `fit` does, from the newest usable checkpoint of the same `identity`, plain values of JSON.

    `on_epoch` is told epochs done and loss; `message` what was wrong with a checkpoint.
    """
    first, before = _resume(prepared, checkpoints, identity, message)
    begin = due = time.perf_counter()
    writing = 0.0

    def save(epoch: int, state: TrainState, loss: float) -> None:
        nonlocal due, writing
        now = time.perf_counter()
        if now >= due or epoch == config.epochs:
            data = dict(identity) | {"seconds": before + now - begin, "loss": loss}
            checkpoints.save(epoch, data, flatten(state))
            taken = time.perf_counter() - now
            writing, due = writing + taken, now + taken + taken / _CHECKPOINT_SHARE
        on_epoch(epoch, loss)

    state = fit(prepared, images, labels, config, seed, subset, first_epoch=first, on_epoch=save)
    session = time.perf_counter() - begin
    return Trained(state, before + session, session, writing)


def _resume(
    prepared: Prepared, checkpoints: Checkpoints, identity: Mapping[str, Any], message: Callable[[str], None]
) -> tuple[int, float]:
    """Puts the newest usable state into `prepared`; epochs done and their seconds."""
    newest = checkpoints.load_newest(message)
    if newest is None:
        return 0, 0.0
    epoch, data, arrays = newest
    if any(data.get(name) != value for name, value in identity.items()):
        return 0, 0.0
    try:
        state, seconds = unflatten(prepared.state, arrays), float(data["seconds"])
        if not 0 <= seconds < math.inf:
            raise ValueError(f"seconds is {seconds}")
    except (CheckpointError, KeyError, TypeError, ValueError) as error:
        message(f"checkpoint {epoch} cannot be gone on from ({error}); the training begins anew")
        return 0, 0.0
    prepared.state = state
    return epoch, seconds
