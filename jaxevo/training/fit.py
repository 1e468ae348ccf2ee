"""The one way to train: a prepared model over its epochs, with or without checkpoints."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxevo.config import TrainingConfig
from jaxevo.networks.builder import Weights
from jaxevo.seeds import Seed
from jaxevo.training.checkpoints import CheckpointError, Checkpoints, flatten, unflatten
from jaxevo.training.data import TrainingData
from jaxevo.training.epoch import TrainState
from jaxevo.training.trainer import Trainer

CHECKPOINT_SHARE = 0.05  # of the training's time: short epochs go without a checkpoint


class DivergedError(ArithmeticError):
    """The loss is not finite any more."""


@dataclasses.dataclass
class Prepared:
    """A model ready to be trained."""

    trainer: Trainer
    state: TrainState
    inputs: tuple[Any, ...]  # of the module's call beside images: an encoded genome, or none


class Epoch(NamedTuple):
    """A point of a training's curve."""

    loss: float  # mean of the epoch
    score: float | None  # what `measure` gave after it


class Trained(NamedTuple):
    """A training's last state, its seconds and its curve."""

    state: TrainState
    seconds: float  # of all its sessions
    curve: tuple[Epoch, ...]  # of all its sessions

    @property
    def losses(self) -> tuple[float, ...]:
        """The mean of each epoch."""
        return tuple(epoch.loss for epoch in self.curve)


def check_loss(loss: float, epoch: int) -> None:
    """Raises `DivergedError` unless the mean loss of an epoch is finite."""
    if not math.isfinite(loss):
        raise DivergedError(f"the loss was {loss} in epoch {epoch}; a lower learning rate may help")


def check_weights(weights: Weights) -> None:
    """Raises `DivergedError` unless every weight is finite."""
    if not all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(weights)):
        raise DivergedError("a weight is not finite after training; a lower learning rate may help")


def fit(
    prepared: Prepared,
    data: TrainingData,
    config: TrainingConfig,
    *,
    seed: Seed,
    checkpoints: Checkpoints | None = None,
    identity: Mapping[str, Any] | None = None,
    measure: Callable[[TrainState], float] | None = None,
    on_epoch: Callable[[int, float], None] = lambda epoch, loss: None,
    stop_after: Callable[[Sequence[Epoch]], bool] = lambda curve: False,
    message: Callable[[str], None] = lambda text: None,
) -> Trained:
    """Trains from `prepared.state`, which the device takes over.

    Args:
        prepared: What to train.
        data: What it is trained on.
        config: How.
        seed: The order of images, dropout and augmentation derive from it.
        checkpoints: Takes the state between epochs, and gives it back to a later call of the same
            `identity`.
        identity: Plain values of JSON that name this training.
        measure: Scores the state after each epoch, for the curve; None: the curve has losses alone.
        on_epoch: Told the number of epochs done, and the mean loss of the last.
        stop_after: Gets the curve after each epoch; true ends the training there.
        message: Told what was wrong with a checkpoint.

    Raises:
        DivergedError: As soon as an epoch's loss, or after the last a weight, is not finite.
        OSError: A checkpoint cannot be written.
    """
    # Go on from the newest checkpoint of this training, if there is one.
    saver = None if checkpoints is None else _Saver(checkpoints, identity or {}, prepared.trainer)
    seconds_before, curve = saver.resume(prepared, message) if saver else (0.0, [])
    first_epoch = len(curve)
    begin = time.perf_counter()
    state = prepared.state
    # Train epoch by epoch, and save the state between epochs where that is due.
    epochs = prepared.trainer.epochs(
        state, prepared.inputs, data, config=config, seed=seed, first_epoch=first_epoch
    )
    for epoch, (state, loss) in enumerate(epochs, first_epoch + 1):  # noqa: B007
        check_loss(loss, epoch)
        curve.append(Epoch(loss, None if measure is None else measure(state)))
        if saver is not None:
            seconds = seconds_before + time.perf_counter() - begin
            saver.save_if_due(state, seconds, curve, last=epoch == config.epochs)
        on_epoch(epoch, loss)
        if stop_after(curve):
            break
    # No loss was computed after the last step.
    check_weights(state.weights)
    return Trained(state, seconds_before + time.perf_counter() - begin, tuple(curve))


class _Saver:
    """Saves a training's state between epochs, and takes it back.

    Saving takes at most a twentieth of the training's time.
    """

    def __init__(self, checkpoints: Checkpoints, identity: Mapping[str, Any], trainer: Trainer):
        self.checkpoints = checkpoints
        self.identity = identity
        self.stopwatch = trainer.stopwatch
        self.due = time.perf_counter()

    def resume(
        self, prepared: Prepared, message: Callable[[str], None]
    ) -> tuple[float, list[Epoch]]:
        """Puts the newest usable state into `prepared`.

        Returns the seconds of the epochs done, and their curve.
        """
        newest = self.checkpoints.load_newest(message)
        if newest is None:
            return 0.0, []
        epoch, document, arrays = newest
        # A checkpoint of another training is left alone, and so is one that does not fit.
        if any(document.get(name) != value for name, value in self.identity.items()):
            return 0.0, []
        try:
            state = unflatten(prepared.state, arrays)
            seconds = float(document["seconds"])
            if not 0 <= seconds < math.inf:
                raise ValueError(f"seconds is {seconds}")
            curve = [
                Epoch(float(loss), None if score is None else float(score))
                for loss, score in document["curve"]
            ]
            if len(curve) != epoch:
                raise ValueError(f"the curve has {len(curve)} epochs")
        except (CheckpointError, KeyError, TypeError, ValueError) as error:
            message(
                f"checkpoint {epoch} cannot be gone on from ({error}); the training begins anew"
            )
            return 0.0, []
        prepared.state = state
        return seconds, curve

    def save_if_due(
        self, state: TrainState, seconds: float, curve: list[Epoch], *, last: bool
    ) -> None:
        """Saves after the first and the last epoch, and after others that took long enough."""
        begin = time.perf_counter()
        if begin < self.due and not last:
            return
        with self.stopwatch.part("checkpoint"):
            document = dict(self.identity) | {"seconds": seconds, "curve": curve}
            self.checkpoints.save(len(curve), document, flatten(state))
        # The longer saving took, the later it is due again.
        end = time.perf_counter()
        self.due = end + (end - begin) / CHECKPOINT_SHARE
