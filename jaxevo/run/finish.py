"""The last phase of a run: the winner is trained on all training images, saved and tested.

The network that is tested is the one read back from the saved weights. The test images are loaded
here, after the last choice has been made.
"""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Callable, Mapping
from typing import Any

from jaxevo.config import SearchConfig
from jaxevo.config.presets import SMALL_CNN
from jaxevo.datasets import Images, SearchData, count_duplicates
from jaxevo.errors import InputError
from jaxevo.files import write_json, write_text
from jaxevo.networks.baselines import Architecture, Baseline, describe
from jaxevo.run.choose import Choice
from jaxevo.run.confusion import MAX_CLASSES, Confusion
from jaxevo.run.evaluator import Evaluator
from jaxevo.run.final_training import FinalNetwork, FinalTrainer
from jaxevo.run.front import front_document
from jaxevo.run.ledger import Ledger
from jaxevo.run.mistakes import choose_mistakes, write_mistakes
from jaxevo.run.records import PARTS
from jaxevo.run.reporter import Reporter
from jaxevo.run.result import Kept, Result
from jaxevo.run.scoring import Predictions, baseline_scores, winner_scores
from jaxevo.run.words import accuracy_line, class_lines, worth_lines
from jaxevo.run.workdir import Workdir
from jaxevo.search_space.genome import Genome
from jaxevo.search_space.genome_files import dumps
from jaxevo.seeds import baseline_seed, final_seed, kept_seed
from jaxevo.strategies.individual import Individual
from jaxevo.training.classifier import Classifier
from jaxevo.training.model_card import write_card
from jaxevo.training.source import Source

# What a training may raise that is not the winner's: a loss that is not finite, and XLA's errors.
_FAILURES = (ArithmeticError, MemoryError, RuntimeError)
SESSION_PARTS = ("data", "compile", "train", "evaluate", "checkpoint", "other")


@dataclasses.dataclass(frozen=True)
class Finisher:
    """Makes a search's winner the result of its run.

    Attributes:
        config: The search's.
        workdir: The run's folder.
        data: Training and validation images.
        load_test: Loads the test images; None: there are none.
        evaluator: Its engine, data on the device and stopwatch are used.
        ledger: What the search has recorded.
        reporter: Is told what happens.
    """

    config: SearchConfig
    workdir: Workdir
    data: SearchData
    load_test: Callable[[], Images] | None
    evaluator: Evaluator
    ledger: Ledger
    reporter: Reporter

    def run(self, choice: Choice) -> Result:
        """Trains and tests the winner; trains others that are kept, and the small CNN beside it.

        Raises `DivergedError`, and `OSError` where something cannot be written.
        """
        winner = choice.winner
        # Should the final training fail, the search was not in vain: its genome is there.
        self._write_genome(self.workdir.best_genome, winner)
        trainer = FinalTrainer(self.config, self.evaluator, self.reporter)
        final = trainer.train(
            winner.genome,
            final_seed(self.config.seed),
            self.workdir.final_checkpoints,
            stage="final training",
            identity={"id": winner.id},
        )
        self._save(self.workdir.best_weights, winner.genome, final)
        # Other networks: their failure is no failure of the run.
        kept = self._keep_others(trainer, choice.ranked[1 : self.config.keep])
        baseline, no_baseline = self._train_baseline(trainer, winner.genome)
        # Score the network that is read back, once nothing is left to be chosen or trained.
        classifier = Classifier.load(self.workdir.best_weights)
        scores = self._score(classifier, winner.genome, baseline)
        about: dict[str, Any] = {"kept": tuple(kept), "no_baseline": no_baseline}
        about["final_losses"] = tuple(epoch.loss for epoch in final.curve)
        about["final_accuracies"] = tuple(epoch.score for epoch in final.curve)
        if choice.first is not None:
            about |= {"first_id": choice.first.id, "first_fitness": choice.first.fitness}
        trained = 1 + len(kept) + (baseline is not None)
        # Write the result last: where its file is, the run is complete.
        result = self._result(winner, scores | about, final_seconds=final.seconds, trained=trained)
        self.ledger.add_session(dict(result.session_seconds))
        self._write_genome(self.workdir.best_genome, winner, test_accuracy=result.test_accuracy)
        worth = [accuracy_line(result), *worth_lines(result), *class_lines(result)]
        self._write_card(self.workdir.best_weights, classifier, *worth)
        if self.config.seeks_front:
            front = front_document(result, self.config, self.ledger.candidates)
            write_json(self.workdir.front, front)
        write_json(self.workdir.result, result.to_dict())
        return result

    def _save(self, folder: pathlib.Path, model: Architecture, final: FinalNetwork) -> Classifier:
        """Writes the weights of a network that was trained to the end."""
        source = Source(
            self.data.name,
            self.data.class_names,
            self.config.data.resize,
            self.data.form,
            self.data.content,
        )
        builder = self.evaluator.builder
        classifier = Classifier.of(model, builder, source, network=final.network)
        classifier.save(folder)
        return classifier

    def _write_card(self, folder: pathlib.Path, classifier: Classifier, *results: str) -> None:
        """Writes the card of saved weights."""
        training = dataclasses.asdict(self.config.final_training)
        training |= {"training images": len(self.data.train), "seed": self.config.seed}
        write_card(folder, classifier, results, training=training)

    def _save_other(self, folder: pathlib.Path, model: Architecture, final: FinalNetwork) -> float:
        """Saves a network that is not the winner, and returns its validation accuracy."""
        classifier = self._save(folder, model, final)
        score = final.curve[-1].score or 0.0
        self._write_card(folder, classifier, f"validation accuracy {score:.2%}")
        return score

    def _keep_others(self, trainer: FinalTrainer, others: tuple[Individual, ...]) -> list[Kept]:
        """Trains and saves the networks that are kept beside the winner."""
        kept = []
        for other in others:
            try:
                final = trainer.train(
                    other.genome,
                    kept_seed(self.config.seed, other.id),
                    self.workdir.other_checkpoints(str(other.id)),
                    stage=f"final training of individual {other.id}",
                    identity={"id": other.id},
                )
            except _FAILURES as error:
                self.reporter.message(f"individual {other.id} is not kept: {error}")
                continue
            # Save the genome and the weights, with the accuracy after the last epoch.
            self.workdir.kept.mkdir(exist_ok=True)
            self._write_genome(self.workdir.kept / f"{other.id}.json", other)
            score = self._save_other(self.workdir.weights(other.id), other.genome, final)
            parameters = self.evaluator.builder.complexity(other.genome).parameters
            kept.append(Kept(other.id, other.fitness or 0.0, score, parameters))
        return kept

    def _small_cnn(self, genome: Genome) -> Baseline:
        """The small CNN as wide as the parameters of a genome's network allow.

        Raises `InputError` if there is none.
        """
        builder = self.evaluator.builder
        parameters = builder.complexity(genome).parameters
        return Baseline.of_size(
            SMALL_CNN, parameters, builder.image_shape, num_classes=builder.num_classes
        )

    def _train_baseline(
        self, trainer: FinalTrainer, winner: Genome
    ) -> tuple[FinalNetwork | None, str]:
        """The small CNN, trained and saved; else None, and why it is left out if it is wanted."""
        if not self.config.compare_winner:
            return None, ""
        try:
            model = self._small_cnn(winner)
            final = trainer.train(
                model,
                baseline_seed(self.config.seed),
                self.workdir.other_checkpoints(SMALL_CNN),
                stage="final training of the small CNN",
                identity=describe(model),
            )
        except (InputError, *_FAILURES) as error:
            return None, str(error)
        self._save_other(self.workdir.baseline_weights, model, final)
        return final, ""

    def _score(
        self, classifier: Classifier, winner: Genome, baseline: FinalNetwork | None
    ) -> dict[str, Any]:
        """Scores the winner that was read back, and the small CNN.

        Nothing else in a run looks at the test images.
        """
        # Load the test images, and count those that were trained on.
        images = self.load_test() if self.load_test else None
        repeated = 0
        if images is not None:
            repeated = count_duplicates(images, self.data.train, self.data.validation)
        # Predict the validation images, and once the test images.
        self.reporter.stage("testing", 0, 1)
        with self.evaluator.stopwatch.part("evaluate"):
            validation = _predict(classifier, baseline, self.data.validation)
            test = None if images is None else _predict(classifier, baseline, images)
        self.reporter.stage("testing", 1, 1)
        self._write_mistakes(test or validation, self.data.validation if images is None else images)
        scores = winner_scores(validation, test) | {"test_repeated": repeated}
        if baseline is not None:
            size = self.evaluator.builder.complexity(self._small_cnn(winner))
            scores["baseline"] = baseline_scores(validation, test, size)
        return scores

    def _write_mistakes(self, predictions: Predictions, images: Images) -> None:
        """Writes which classes are taken for which, unless there are very many, and examples."""
        names = self.data.class_names
        examples = choose_mistakes(images, predictions.winner, names)
        write_mistakes(self.workdir.mistakes, examples)
        self.workdir.confusion.unlink(missing_ok=True)
        if len(names) <= MAX_CLASSES:
            table = Confusion.of(predictions.labels, predictions.winner, names)
            table.write(self.workdir.confusion)

    def _result(
        self,
        winner: Individual,
        more: Mapping[str, Any],
        *,
        final_seconds: float,
        trained: int,
    ) -> Result:
        """The winner's sizes and scores, and what the search took."""
        candidates = list(self.ledger.candidates.values())
        retrainings = list(self.ledger.retrainings.values())
        # Add up the seconds of all trainings by part.
        seconds: dict[str, float] = dict.fromkeys(PARTS, 0.0)
        for record in (*candidates, *retrainings):
            for part, value in record.seconds.items():
                seconds[part] += value
        size = self.evaluator.builder.complexity(winner.genome)
        tests = (change.test_accuracy for change in self.ledger.changes)
        return Result(
            path=self.workdir.path,
            genome=winner.genome,
            id=winner.id,
            dataset=self.data.name,
            search_fitness=self.ledger.candidates[winner.id].fitness or 0.0,
            retrained_fitness=winner.fitness or 0.0,
            parameters=size.parameters,
            multiply_adds=size.multiply_adds,
            candidates=len(candidates),
            trainings=self.ledger.trainings + len(retrainings) + trained,
            memo_hits=sum(candidate.reused is not None for candidate in candidates),
            failures=sum(candidate.failure is not None for candidate in candidates),
            seconds={part: round(value, 1) for part, value in seconds.items()}
            | {"final": round(final_seconds, 1)},
            session_seconds=self._session_seconds(),
            earlier_tests=tuple(accuracy for accuracy in tests if accuracy is not None),
            generation=winner.generation,
            **more,
        )

    def _session_seconds(self) -> dict[str, float]:
        """Seconds of this session by what they went into."""
        stopwatch = self.evaluator.stopwatch
        spent = {part: stopwatch.seconds.get(part, 0.0) for part in SESSION_PARTS}
        spent["other"] = max(0.0, stopwatch.total() - sum(spent.values()))
        return {part: round(value, 1) for part, value in spent.items()}

    def _write_genome(
        self, path: pathlib.Path, individual: Individual, **more: float | None
    ) -> None:
        candidate = self.ledger.candidates[individual.id]
        metadata = candidate.metadata(self.data.name, self.config.seed)
        metadata |= {"retrained_fitness": individual.fitness}
        metadata |= {name: value for name, value in more.items() if value is not None}
        write_text(path, dumps(individual.genome, metadata))


def _predict(classifier: Classifier, baseline: FinalNetwork | None, images: Images) -> Predictions:
    """What the winner and the small CNN say of images."""
    winner = classifier.predict_numbers(images.images)
    other = None if baseline is None else baseline.predict(images.images)
    return Predictions(images.labels, winner, other)
