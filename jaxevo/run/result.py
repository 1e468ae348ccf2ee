"""The result of a finished run: one type that is printed, saved, compared and drawn."""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from jaxevo.checked import CheckedFields
from jaxevo.errors import printable
from jaxevo.files import read_json
from jaxevo.run.confusion import Confusion
from jaxevo.run.mistakes import Mistake, read_mistakes
from jaxevo.run.records import PARTS
from jaxevo.run.workdir import Workdir
from jaxevo.search_space.genome import Genome

if TYPE_CHECKING:  # imported late, as it brings JAX
    from jaxevo.training.classifier import Classifier


@dataclasses.dataclass(frozen=True)
class Kept:
    """A network that is kept beside the winner. It is not tested, so that no test chooses one."""

    id: int  # of its individual
    retrained_fitness: float  # mean of its fresh trainings
    validation_accuracy: float  # after its final training
    parameters: int


@dataclasses.dataclass(frozen=True)
class BaselineScores:
    """The small hand-designed CNN, trained as the winner was, on the same images.

    The last two fields count images of the test, or of the validation without a test.
    """

    parameters: int
    multiply_adds: int  # of one image
    validation_accuracy: float
    test_accuracy: float | None
    winner_alone: int  # classified rightly by the winner and not by the CNN
    baseline_alone: int  # classified rightly by the CNN and not by the winner


@dataclasses.dataclass(frozen=True)
class Result:
    """The winner of a run, how good it is, and what finding it took.

    Accuracies are shares from 0 to 1. Without test images the three fields of the test are None.
    """

    path: pathlib.Path  # of the run's folder
    genome: Genome
    id: int  # the winner's, among the individuals of the search
    dataset: str
    search_fitness: float  # that it was selected for: the luckiest of many
    retrained_fitness: float  # mean of its fresh trainings
    validation_accuracy: float  # after the final training
    test_accuracy: float | None
    test_interval: tuple[float, float] | None  # 95 %, Wilson's
    test_images: int | None
    parameters: int
    multiply_adds: int  # of one image
    candidates: int
    trainings: int  # of candidates, of the best again, and the final one
    memo_hits: int  # candidates isomorphic to an earlier one
    failures: int
    # Seconds of all trainings of all sessions, by part; `final` is the final training.
    seconds: Mapping[str, float]
    session_seconds: Mapping[str, float]  # of the session that ended the run, by part
    # Test accuracies that were known before the run was continued, oldest first.
    earlier_tests: tuple[float, ...] = ()
    generation: int | None = None  # in which the winner was born; None in earlier versions
    # The best of the first generation, trained again as often as the winner, unless that is off.
    first_id: int | None = None
    first_fitness: float | None = None
    baseline: BaselineScores | None = None
    no_baseline: str = ""  # why it was left out where it was asked for
    kept: tuple[Kept, ...] = ()  # the best first
    # After each epoch of the final training: its mean loss, and the validation accuracy.
    final_losses: tuple[float, ...] = ()
    final_accuracies: tuple[float, ...] = ()
    test_repeated: int = 0  # test images that are training images too; 0 in earlier versions

    @property
    def weights(self) -> pathlib.Path:
        """The folder of the trained weights."""
        return Workdir(self.path).best_weights

    def classifier(self) -> Classifier:
        """The trained network. Raises `CheckpointError`."""
        from jaxevo.training.classifier import Classifier

        return Classifier.load(self.weights)

    def confusion(self) -> Confusion | None:
        """Which classes are taken for which, of the test images, else of the validation images.

        None in runs of earlier versions, and for very many classes. Raises `FileError`.
        """
        return Confusion.read(Workdir(self.path).confusion)

    def mistakes(self) -> list[Mistake] | None:
        """Some images that are taken for another class, of those that `confusion` counts.

        None in runs of earlier versions. Raises `FileError`.
        """
        return read_mistakes(Workdir(self.path).mistakes)

    @property
    def measured_on(self) -> str:
        """The images that `confusion` counts, in words."""
        return "validation images" if self.test_accuracy is None else "test images"

    def to_dict(self) -> dict[str, Any]:
        """The content of `result.json`: all fields but the path and the genome (`best.json`)."""
        names = {field.name for field in dataclasses.fields(self)} - {"path", "genome"}
        return {name: _plain(getattr(self, name)) for name in names}


def _plain(value: Any) -> Any:
    """A value as JSON gives it back."""
    if dataclasses.is_dataclass(value):
        fields = dataclasses.fields(value)
        return {field.name: _plain(getattr(value, field.name)) for field in fields}
    if isinstance(value, Mapping):
        return dict(value)
    return [_plain(each) for each in value] if isinstance(value, tuple) else value


_MAX_IMAGES = 10**9
# Values that results of earlier versions do not have.
_ADDED_LATER: dict[str, Any] = {
    **dict.fromkeys(("generation", "first_id", "first_fitness", "baseline")),
    **{"earlier_tests": [], "final_losses": [], "final_accuracies": []},
    "no_baseline": "",
    "kept": [],
    "test_repeated": 0,
}


def read_result(workdir: Workdir, genomes: Mapping[int, Genome], searched: bool) -> Result | None:
    """The result of a run whose individuals have these genomes; None while the run is incomplete.

    Raises `FileError` if it cannot be the result of this history.
    """
    if not workdir.result.exists():
        return None
    document = {"result": read_json(workdir.result)}
    stored = CheckedFields(str(workdir.result), document).inner("result")
    fields = dataclasses.replace(stored, data=_ADDED_LATER | dict(stored.data))
    # The scores on test images are all there or all null.
    interval = fields.optional("test_interval", list)
    if interval is not None:
        interval = fields.items("test_interval", float)
    test_accuracy = fields.optional("test_accuracy", float)
    test_images = fields.optional("test_images", int)
    if len({value is None for value in (test_accuracy, interval, test_images)}) > 1:
        raise fields.error("test_accuracy, test_interval and test_images: some are null, not all")
    # The winner must be an individual of the history, whose search has ended.
    winner = fields.take("id", int)
    if not searched or winner not in genomes or (interval is not None and len(interval) != 2):
        raise fields.error("it is not the result of this history")
    curve = [fields.items(name, float) for name in ("final_losses", "final_accuracies")]
    if len(curve[0]) != len(curve[1]):
        raise fields.error("final_losses and final_accuracies have not as many epochs")
    repeated = fields.take("test_repeated", int)
    if not 0 <= repeated <= (test_images or 0):
        raise fields.error(f"test_repeated is {repeated}, no number of test images")
    session = fields.inner("session_seconds")
    seconds = fields.inner("seconds")
    return Result(
        path=workdir.path,
        genome=genomes[winner],
        id=winner,
        dataset=fields.take("dataset", str),
        search_fitness=fields.take("search_fitness", float),
        retrained_fitness=fields.take("retrained_fitness", float),
        validation_accuracy=fields.take("validation_accuracy", float),
        test_accuracy=test_accuracy,
        test_interval=None if interval is None else (interval[0], interval[1]),
        test_images=test_images,
        parameters=fields.count("parameters"),
        multiply_adds=fields.count("multiply_adds"),
        candidates=fields.count("candidates", least=1),
        trainings=fields.count("trainings"),
        memo_hits=fields.count("memo_hits"),
        failures=fields.count("failures"),
        seconds={
            part: seconds.take(part, float) for part in ("final", *PARTS) if part in seconds.data
        }
        | {"final": seconds.take("final", float)},
        session_seconds={printable(part): session.take(part, float) for part in session.data},
        earlier_tests=fields.items("earlier_tests", float),
        generation=fields.optional("generation", int),
        first_id=fields.optional("first_id", int),
        first_fitness=fields.optional("first_fitness", float),
        baseline=_read_baseline(fields),
        no_baseline=fields.take("no_baseline", str),
        kept=_read_kept(fields, genomes),
        final_losses=curve[0],
        final_accuracies=curve[1],
        test_repeated=repeated,
    )


def _read_baseline(fields: CheckedFields) -> BaselineScores | None:
    """Raises `FileError`."""
    if fields.optional("baseline", dict) is None:
        return None
    inner = fields.inner("baseline")
    alone = [inner.take(name, int) for name in ("winner_alone", "baseline_alone")]
    if not all(0 <= number <= _MAX_IMAGES for number in alone):
        raise inner.error(f"winner_alone or baseline_alone is no number of images: {alone}")
    return BaselineScores(
        parameters=inner.count("parameters"),
        multiply_adds=inner.count("multiply_adds"),
        validation_accuracy=inner.take("validation_accuracy", float),
        test_accuracy=inner.optional("test_accuracy", float),
        winner_alone=alone[0],
        baseline_alone=alone[1],
    )


def _read_kept(fields: CheckedFields, genomes: Mapping[int, Genome]) -> tuple[Kept, ...]:
    """Raises `FileError`."""
    kept = []
    for entry in fields.items("kept", dict):
        inner = CheckedFields(f"{fields.where}, kept", entry)
        known = inner.take("id", int)
        if known not in genomes:
            raise inner.error(f"individual {known} is not one of this history")
        kept.append(
            Kept(
                known,
                inner.take("retrained_fitness", float),
                inner.take("validation_accuracy", float),
                inner.count("parameters"),
            )
        )
    return tuple(kept)
