"""The last phase of a run: the winner is trained on all training images, saved and tested.

The network that is tested is the one read back from the saved weights. The test images are loaded
here, after the last choice has been made.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from jaxevo.config import SearchConfig
from jaxevo.datasets import Images, SearchData, duplicates_note
from jaxevo.files import write_json, write_text
from jaxevo.intervals import accuracy_interval
from jaxevo.networks.builder import NetworkBuilder
from jaxevo.networks.genome_network import Network
from jaxevo.run.evaluator import Evaluator
from jaxevo.run.ledger import Ledger
from jaxevo.run.records import PARTS
from jaxevo.run.reporter import Reporter
from jaxevo.run.result import Result
from jaxevo.run.workdir import Workdir
from jaxevo.search_space.genome_files import dumps
from jaxevo.seeds import final_seed
from jaxevo.strategies.individual import Individual
from jaxevo.training.checkpoints import Checkpoints
from jaxevo.training.classifier import Classifier, Source
from jaxevo.training.engines import Engine, make_engine
from jaxevo.training.fit import fit

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

    def run(self, winner: Individual) -> Result:
        """Trains and tests the winner.

        Raises `DivergedError`, and `OSError` where something cannot be written.
        """
        builder = self.evaluator.builder
        # Should the final training fail, the search was not in vain: its genome is there.
        self._write_genome(winner)
        network, seconds = self._train(winner)
        # Save the network, and score the one that is read back.
        source = Source(
            self.data.name,
            self.data.class_names,
            self.config.data.resize,
            self.data.form,
            self.data.content,
        )
        trained = Classifier.of(winner.genome, builder, source, network)
        trained.save(self.workdir.best_weights)
        scores = self._score(Classifier.load(self.workdir.best_weights))
        # Write the result last: where its file is, the run is complete.
        result = self._result(winner, builder, scores, seconds)
        self.ledger.add_session(dict(result.session_seconds))
        self._write_genome(winner, test_accuracy=result.test_accuracy)
        write_json(self.workdir.result, result.to_dict())
        return result

    def _engine(self) -> Engine:
        """The engine of the final training: the search's own if the batch sizes agree.

        With another batch size the search's programs would not fit, so another engine is made.
        """
        config = self.config
        batch_size = config.final_training.batch_size
        if batch_size == config.training.batch_size:
            return self.evaluator.engine
        builder = self.evaluator.builder
        max_nodes = config.evolution.max_nodes
        stopwatch = self.evaluator.stopwatch
        return make_engine(config.engine, builder, batch_size, max_nodes, stopwatch)

    def _train(self, winner: Individual) -> tuple[Network, float]:
        """Trains the winner, with checkpoints between epochs.

        Returns:
            The trained network, and the seconds of all sessions that trained it.
        """
        config = self.config.final_training
        engine = self._engine()
        seed = final_seed(self.config.seed)

        def on_epoch(epoch: int, loss: float) -> None:
            self.reporter.training("final training", epoch, config.epochs, f"loss {loss:.4f}")

        with engine.stopwatch.part("train"):
            prepared = engine.prepare(winner.genome, seed)
            trained = fit(
                prepared,
                self.evaluator.data.whole(),
                config,
                seed,
                checkpoints=Checkpoints(self.workdir.final_checkpoints),
                identity={"id": winner.id, "training": dataclasses.asdict(config)},
                on_epoch=on_epoch,
                message=self.reporter.message,
            )
        return engine.network(winner.genome, trained.state.weights), trained.seconds

    def _score(self, classifier: Classifier) -> dict[str, Any]:
        """Scores the network that was read back, on the validation and the test images.

        Nothing else in a run looks at the test images.
        """
        stopwatch = self.evaluator.stopwatch
        # Load the test images, and tell of those that were trained on.
        test = self.load_test() if self.load_test else None
        if test is not None and (
            note := duplicates_note(test, self.data.train, self.data.validation)
        ):
            self.reporter.message(note)
        # Score the validation images, and once the test images.
        with stopwatch.part("evaluate"):
            validation = classifier.accuracy(self.data.validation)
            accuracy = None if test is None else classifier.accuracy(test)
        if test is None or accuracy is None:
            return {
                "validation_accuracy": validation,
                **dict.fromkeys(("test_accuracy", "test_interval", "test_images")),
            }
        return {
            "validation_accuracy": validation,
            "test_accuracy": accuracy,
            "test_interval": accuracy_interval(accuracy, len(test)),
            "test_images": len(test),
        }

    def _result(
        self,
        winner: Individual,
        builder: NetworkBuilder,
        scores: Mapping[str, Any],
        final_seconds: float,
    ) -> Result:
        """The winner's sizes and scores, and what the search took."""
        candidates = list(self.ledger.candidates.values())
        retrainings = list(self.ledger.retrainings.values())
        # Add up the seconds of all trainings by part.
        seconds: dict[str, float] = dict.fromkeys(PARTS, 0.0)
        for record in (*candidates, *retrainings):
            for part, value in record.seconds.items():
                seconds[part] += value
        size = builder.complexity(winner.genome)
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
            trainings=self.ledger.trainings + len(retrainings) + 1,
            memo_hits=sum(candidate.reused is not None for candidate in candidates),
            failures=sum(candidate.failure is not None for candidate in candidates),
            seconds={part: round(value, 1) for part, value in seconds.items()}
            | {"final": round(final_seconds, 1)},
            session_seconds=self._session_seconds(),
            earlier_tests=tuple(
                change.test_accuracy
                for change in self.ledger.changes
                if change.test_accuracy is not None
            ),
            **scores,
        )

    def _session_seconds(self) -> dict[str, float]:
        """Seconds of this session by what they went into."""
        stopwatch = self.evaluator.stopwatch
        spent = {part: stopwatch.seconds.get(part, 0.0) for part in SESSION_PARTS}
        spent["other"] = max(0.0, stopwatch.total() - sum(spent.values()))
        return {part: round(value, 1) for part, value in spent.items()}

    def _write_genome(self, winner: Individual, **more: float | None) -> None:
        candidate = self.ledger.candidates[winner.id]
        metadata = candidate.metadata(self.data.name, self.config.seed)
        metadata |= {"retrained_fitness": winner.fitness}
        metadata |= {name: value for name, value in more.items() if value is not None}
        write_text(self.workdir.best_genome, dumps(winner.genome, metadata))
