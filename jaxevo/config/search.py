"""The settings of a whole search: `SearchConfig` holds those of all its parts together."""

from __future__ import annotations

import dataclasses

from jaxevo.config.data import DataConfig
from jaxevo.config.evolution import LAYOUT_BOUNDS, MAX_LAYOUT, ColonyConfig, EvolutionConfig
from jaxevo.config.fields import (
    check,
    check_at_least,
    check_choice,
    check_probabilities,
    setting,
)
from jaxevo.config.network import NetworkConfig
from jaxevo.config.training import TrainingConfig

STRATEGY_KINDS = ("rea", "aging", "random", "aco", "guided", "nsga2", "guided_front")
FRONT_KINDS = ("nsga2", "guided_front")  # these minimise a cost too
LEARNING_KINDS = ("guided", "guided_front")  # these have a model of fitness
COSTS = ("parameters", "multiply_adds")
FITNESSES = ("accuracy", "likelihood", "speed")
CLASS_WEIGHTS = ("none", "balanced")
ENGINES = ("auto", "native", "universal", "compiled")


@dataclasses.dataclass(frozen=True)
class SearchConfig:
    """A whole search: the same configuration gives the same result on the same machine."""

    seed: int = setting(0, "the run's only source of randomness")
    strategy: str = setting(
        "rea",
        "rea: the paper's; aging: mutation only, the oldest dies (Real et al. 2018); random: no "
        "selection; aco: ant colony (DeepSwarm, Byla and Pang 2019); guided: a model of fitness "
        "chooses and ranks; nsga2: a front of networks, none fitter and smaller than another (Deb "
        "et al. 2002); guided_front: the same with a model. All try P + F G candidates",
        STRATEGY_KINDS,
    )
    fitness: str = setting(
        "accuracy",
        "what candidates are selected by: accuracy on the validation images; likelihood, the "
        "geometric mean of the probabilities given to their true classes; speed of learning, exp "
        "of minus the mean training loss of all epochs. guided has speed, guided_front likelihood",
        FITNESSES,
    )
    minimize: str = setting(
        "parameters",
        "nsga2 and guided_front: what is minimised while the fitness is maximised",
        COSTS,
    )
    max_trainings: int = setting(
        0,
        "end the search after so many trainings of candidates, isomorphic ones not counted; 0: "
        "only after the last",
    )
    max_parameters: int = setting(
        0, "draw only genomes whose networks have at most so many parameters; 0: of any size"
    )
    max_multiply_adds: int = setting(
        0, "draw only genomes whose networks take at most so many multiply-adds an image; 0: any"
    )
    target_accuracy: float = setting(
        0.0, "end the search once a candidate reaches this validation accuracy; 0: it goes on"
    )
    initial_genomes: str = setting(
        "",
        "genome files or shipped genomes, with commas between them, that the population begins "
        "with; the rest is drawn (config.json keeps the genomes themselves)",
    )
    reuse_fitness: bool = setting(
        True, "give an isomorphic genome the fitness that was measured first"
    )
    retrain_best: int = setting(
        3, "how many of the best are trained again with fresh seeds before the final choice"
    )
    retrain_seeds: int = setting(2, "fresh trainings of each of them")
    keep: int = setting(
        1, "how many of the best networks are trained to the end and kept with their weights"
    )
    compare_winner: bool = setting(
        False,
        "tell whether the search was worth it: train the small CNN as the winner is trained, and "
        "the best of the first generation again as often as the winner",
    )
    candidates_per_step: int = setting(
        1,
        "candidates trained at once by the universal engine, divided among the devices; needs "
        "mating_pool=survivors",
    )
    max_consecutive_failures: int = setting(20, "failed candidates in a row that end the search")
    engine: str = setting(
        "auto",
        "native: one program for all genomes, its cells in C++; universal: the same in JAX; "
        "compiled: a program each; auto: on a CPU the first of these that can run",
        ENGINES,
    )
    class_weights: str = setting(
        "none",
        "how much an image counts in every training, that of the winner included: none, all alike; "
        "balanced, in inverse proportion to the images of its class",
        CLASS_WEIGHTS,
    )
    data: DataConfig = dataclasses.field(default_factory=DataConfig)
    evolution: EvolutionConfig = dataclasses.field(default_factory=EvolutionConfig)
    colony: ColonyConfig = dataclasses.field(default_factory=ColonyConfig)
    network: NetworkConfig = dataclasses.field(default_factory=NetworkConfig)
    training: TrainingConfig = dataclasses.field(default_factory=TrainingConfig)
    final_training: TrainingConfig = dataclasses.field(
        default_factory=lambda: TrainingConfig(epochs=100, learning_rate=1e-3)
    )

    def __post_init__(self) -> None:
        check_at_least(self, 0, "seed", "retrain_seeds", "retrain_best", "max_trainings")
        check_at_least(self, 0, "max_parameters", "max_multiply_adds")
        check_probabilities(self, "target_accuracy")
        check_at_least(self, 1, "max_consecutive_failures", "candidates_per_step", "keep")
        check(
            not self.retrain_best or self.keep <= self.retrain_best,
            "keep",
            self.keep,
            rule=f"only {self.retrain_best} of the best are trained again; raise retrain_best",
        )
        check(
            self.candidates_per_step == 1
            or (self.engine in ("auto", "universal") and self.evolution.mating_pool == "survivors"),
            "candidates_per_step",
            self.candidates_per_step,
            rule="several at once need engine=universal and mating_pool=survivors, where parents "
            "do not wait for offspring",
        )
        check_choice(self, "engine")
        check_choice(self, "class_weights")
        check_choice(self, "strategy")
        check_choice(self, "fitness")
        check_choice(self, "minimize")
        evolution = self.evolution
        check(
            self.strategy != "aging"
            or evolution.op_mutation_prob + evolution.edge_mutation_prob + evolution.add_node_prob
            > 0,
            "strategy",
            self.strategy,
            rule="it needs op_mutation_prob, edge_mutation_prob or add_node_prob above 0",
        )
        self._check_genes()
        self._check_race()
        check(
            self.engine != "native" or self.network.precision == "float32",
            "engine",
            self.engine,
            rule=f"it has no {self.network.precision}; use engine=universal",
        )

    def _check_genes(self) -> None:
        """Raises `InputError` if a layout cannot be made of genes as it should."""
        for low, high in LAYOUT_BOUNDS.items():
            least, most = getattr(self.evolution, low), getattr(self.network, high)
            check(least <= most, low, least, rule=f"{high} is {most}, which is the most")
            fits = not self.layout_genes or most <= MAX_LAYOUT[high]
            rule = f"where a layout is made of genes, it is at most {MAX_LAYOUT[high]}"
            check(fits, high, most, rule=rule)
        no_genes = f"leave {', '.join(LAYOUT_BOUNDS)} at 0, and vary_conv_kind out"
        check(
            not self.layout_genes or self.strategy != "aco",
            "strategy",
            self.strategy,
            rule=f"ants choose no layout; {no_genes}",
        )
        check(
            not self.layout_genes or self.candidates_per_step == 1,
            "candidates_per_step",
            self.candidates_per_step,
            rule=f"networks of several layouts cannot be trained in one step; {no_genes}",
        )

    def _check_race(self) -> None:
        """Raises `InputError` if trainings cannot be a race as they should."""
        if not self.evolution.racing:
            return
        check(
            self.fitness == "speed",
            "fitness",
            self.fitness,
            rule="racing goes by losses; use fitness=speed, or leave racing at 0",
        )
        check(
            not self.seeks_front,
            "strategy",
            self.strategy,
            rule="racing would end all small networks; use another, or leave racing at 0",
        )
        check(
            self.candidates_per_step == 1,
            "candidates_per_step",
            self.candidates_per_step,
            rule="racing ends trainings one by one; use candidates_per_step=1, or leave racing "
            "at 0",
        )

    @property
    def seeks_front(self) -> bool:
        """True if a cost is minimised while the fitness is maximised."""
        return self.strategy in FRONT_KINDS

    @property
    def layout_genes(self) -> bool:
        """True if anything of a network's layout is a gene."""
        genes = self.evolution
        return genes.vary_conv_kind or any(getattr(genes, name) for name in LAYOUT_BOUNDS)

    @property
    def num_candidates(self) -> int:
        """Number of candidates to expect, at most `max_trainings` if that ends the search."""
        expected = self.evolution.num_candidates
        return min(expected, self.max_trainings) if self.max_trainings else expected

    @property
    def num_retrainings(self) -> int:
        """Fresh trainings that follow the search, at most."""
        ranked = self.retrain_best + self.compare_winner if self.retrain_best else 0
        return ranked * self.retrain_seeds

    @property
    def num_final_trainings(self) -> int:
        """Trainings to the end: the winner's, of others that are kept, and of the small CNN."""
        return self.keep + self.compare_winner

    def fits(self, parameters: int, multiply_adds: int) -> bool:
        """True if a network of this size is within the bounds."""
        bounds = ((parameters, self.max_parameters), (multiply_adds, self.max_multiply_adds))
        return all(not bound or size <= bound for size, bound in bounds)

    def cost(self, parameters: int, multiply_adds: int) -> int | None:
        """What such a network costs; None where the search minimises nothing."""
        if not self.seeks_front:
            return None
        return parameters if self.minimize == "parameters" else multiply_adds

    def target_reached(self, accuracy: float) -> bool:
        """Whether a candidate of this accuracy ends the search."""
        return 0 < self.target_accuracy <= accuracy

    def budget_spent(self, trainings: int) -> bool:
        """True if so many trainings of candidates end the search."""
        return 0 < self.max_trainings <= trainings
