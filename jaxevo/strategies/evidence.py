"""What a search knows of fitness: the individuals so far, and the model that is fitted to them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from jaxevo.config import EvolutionConfig, NetworkConfig
from jaxevo.strategies.generational import Generational
from jaxevo.strategies.individual import Individual
from jaxevo.strategies.linear_model import FitnessPredictor

_MOST = 500  # individuals that the model is fitted to: the latest


@dataclasses.dataclass
class Evidence:
    """Evaluated individuals, by id, with the model of their fitness.

    Attributes:
        config: The search's; by its mating pool a candidate is drawn with the present generation or
            without.
        own_share: Part of what features do not foretell that counts as a genome's own.
        network: The settings of the genomes' networks.
        any_size: Whether fitness may be of any size.
    """

    config: EvolutionConfig
    own_share: float
    network: NetworkConfig
    any_size: bool = False
    _individuals: list[Individual] = dataclasses.field(default_factory=list)
    # The last model, with the ids that it is fitted to.
    _fitted: tuple[list[int], FitnessPredictor] | None = None

    def add(self, individual: Individual, generation: int) -> None:
        """Takes an individual of the present generation."""
        by_id = sorted([*self._individuals, individual], key=lambda each: each.id)
        # Those of this generation push no older one out, as a candidate may be drawn without them.
        older = [each for each in by_id if each.generation < generation]
        self._individuals = older[-_MOST:] + by_id[len(older) :]

    def latest(self) -> list[Individual]:
        """All that the model may be fitted to."""
        return self._individuals[-_MOST:]

    def for_draw(self, generation: int) -> list[Individual]:
        """Those by which a candidate of the present generation is drawn."""
        growing = self.config.mating_pool == "growing"
        return [each for each in self._individuals if growing or each.generation < generation][
            -_MOST:
        ]

    def model(self, known: Sequence[Individual]) -> FitnessPredictor:
        """The model of two and more individuals, fitted once for all candidates drawn by it."""
        ids = [each.id for each in known]
        if self._fitted is None or self._fitted[0] != ids:
            predictor = FitnessPredictor(
                known, self.own_share, self.network, any_size=self.any_size
            )
            self._fitted = ids, predictor
        return self._fitted[1]

    def to_list(self) -> list[dict[str, Any]]:
        """All individuals, in plain values for JSON."""
        return [each.to_dict() for each in self._individuals]

    def load(self, listed: Sequence[dict[str, Any]]) -> None:
        """Takes the individuals that `to_list` gave in place of its own."""
        self._individuals = [Individual.from_dict(data) for data in listed]
        self._fitted = None


class LearningStrategy(Generational):
    """A strategy with evidence, which takes each individual and outlives an interruption."""

    def __init__(self, *common: Any, evidence: Evidence, **more: Any) -> None:
        super().__init__(*common, **more)
        self._evidence = evidence

    def state_dict(self) -> dict[str, Any]:
        """All that is needed to go on from here, in plain values for JSON."""
        return super().state_dict() | {"known": self._evidence.to_list()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes on as the strategy that gave `state`."""
        super().load_state_dict(state)
        self._evidence.load(state["known"])

    def _note_evaluated(self, individual: Individual) -> None:
        self._evidence.add(individual, self.generation)
