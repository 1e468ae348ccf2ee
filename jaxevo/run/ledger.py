"""The ledger of a run: all that happened, on disk and in memory, with answers in constant time.

JAX is not imported.
"""

from __future__ import annotations

from typing import Any

from jaxevo.config import SearchConfig
from jaxevo.run.history import History
from jaxevo.run.reader import Records, read_records
from jaxevo.run.records import Candidate, Change, Retraining, Stagnation, Stop
from jaxevo.run.workdir import Workdir
from jaxevo.search_space.genome import Genome


class Ledger:
    """Candidates, retrainings and totals of a run; records are added once they are on the disk.

    Attributes:
        candidates: By id, in the order of their evaluation.
        retrainings: By id and repeat.
        earlier_retrainings: How many were known when the settings changed last.
        changes: Of settings, since the run began.
        trainings: Candidates that were trained, those that failed among them.
        best_accuracy: Of all candidates, on the validation images; 0 before the first success.
    """

    def __init__(self, workdir: Workdir, records: Records):
        self.candidates: dict[int, Candidate] = {}
        self.retrainings: dict[tuple[int, int], Retraining] = {}
        self.stagnations = list(records.stagnations)
        self.stop = records.stop
        self.changes = list(records.changes)
        self.earlier_retrainings = records.earlier_retrainings
        self.trainings = 0
        self.best_accuracy = 0.0
        self._sessions = records.sessions
        self._history = History(workdir.history, records.length)
        self._generations: dict[int, list[Candidate]] = {}
        self._trained: dict[str, Candidate] = {}  # by canonical key
        for candidate in records.candidates.values():
            self._remember(candidate)
        for retraining in records.retrainings:
            self.retrainings[retraining.id, retraining.repeat] = retraining

    @classmethod
    def open(cls, workdir: Workdir, config: SearchConfig) -> Ledger:
        """Reads the history of a run of this configuration.

        Raises `FileError` if the history cannot be of this configuration.
        """
        return cls(workdir, read_records(workdir, config))

    def trained(self, genome: Genome) -> Candidate | None:
        """The candidate isomorphic to this genome that was trained; failures do not count."""
        return self._trained.get(genome.canonical_key())

    def has_trained(self, canonical_key: str) -> bool:
        """Whether a genome of this key was trained; failures do not count."""
        return canonical_key in self._trained

    def generation(self, number: int) -> list[Candidate]:
        """The candidates born in a generation."""
        return self._generations.get(number, [])

    def add_candidate(self, candidate: Candidate) -> None:
        """Writes a candidate's line, which may be trained again if it is lost. Raises `OSError`."""
        self._history.append(candidate.to_dict(), soon=True)
        self._remember(candidate)

    def add_retraining(self, retraining: Retraining) -> None:
        """Writes a retraining's line. Raises `OSError`."""
        self._history.append(retraining.to_dict())
        self.retrainings[retraining.id, retraining.repeat] = retraining

    def add_stagnation(self, stagnation: Stagnation) -> None:
        """Writes the line of a stagnation avoidance. Raises `OSError`."""
        self._history.append(stagnation.to_dict())
        self.stagnations.append(stagnation)

    def add_stop(self, stop: Stop) -> None:
        """Writes why the search ends before its last candidate. Raises `OSError`."""
        self._history.append(stop.to_dict())
        self.stop = stop

    def add_change(self, change: Change) -> None:
        """Writes the settings with which the run goes on from here. Raises `OSError`."""
        self._history.append(change.to_dict())
        self.changes.append(change)
        self.earlier_retrainings = len(self.retrainings)
        self._sessions = 0
        if change.lifts_stop:
            self.stop = None

    def add_session(self, seconds: dict[str, float]) -> None:
        """Writes the seconds of the session that ended the run, unless such a record is there.

        A run that was continued has ended more than once.

        Raises `OSError`.
        """
        if not self._sessions:
            line: dict[str, Any] = {"kind": "session", "session_seconds": seconds}
            self._history.append(line)
            self._sessions += 1

    def _remember(self, candidate: Candidate) -> None:
        self.candidates[candidate.id] = candidate
        self.best_accuracy = max(self.best_accuracy, candidate.accuracy or 0.0)
        self._generations.setdefault(candidate.individual.generation, []).append(candidate)
        if candidate.reused is None:
            self.trainings += 1
            if candidate.fitness is not None:
                self._trained[candidate.individual.genome.canonical_key()] = candidate
