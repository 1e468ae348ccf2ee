"""The settings of evolution, and of the ant colony, with their papers' values as defaults.

The paper's symbol stands in a field's help text.
"""

from __future__ import annotations

import dataclasses

from jaxevo.config.fields import (
    check,
    check_at_least,
    check_at_most,
    check_below_one,
    check_choice,
    check_probabilities,
    setting,
)

MAX_DRAWN = 10_000  # so many candidates may be drawn before one is trained
MAX_NODES = 12  # of a cell: bounds the work that a file can ask for; the paper's B_max is 6
# The largest numbers of a genome's own layout, which bound the work that a file can ask for.
MAX_LAYOUT = {"channels": 1024, "num_normal_cells": 10, "channel_multiplier": 4}
# By the setting that makes a number of the layout a gene, which is its least: that of its most.
LAYOUT_BOUNDS = {
    "min_channels": "channels",
    "min_normal_cells": "num_normal_cells",
    "min_channel_multiplier": "channel_multiplier",
}


@dataclasses.dataclass(frozen=True)
class EvolutionConfig:
    """The evolutionary algorithm (paper, sections 3.2 and 4.2)."""

    population_size: int = setting(10, "individuals in the population (P)")
    num_offspring: int = setting(10, "offspring a generation (F)")
    sample_size: int = setting(2, "individuals a tournament draws (S)")
    num_generations: int = setting(200, "generations after the initial one (G)")
    min_nodes: int = setting(2, "fewest nodes of a cell (B_min)")
    max_nodes: int = setting(6, "most nodes of a cell (B_max)")
    crossover_bias: float = setting(
        0.6, "probability that a node comes from the better parent (tau_cross)"
    )
    op_mutation_prob: float = setting(0.4, "probability of the operation mutation (tau_m-op)")
    edge_mutation_prob: float = setting(
        0.4, "probability of the hidden state mutation (tau_m-edge)"
    )
    add_node_prob: float = setting(0.2, "probability of the mutation that appends a node (tau_b)")
    min_channels: int = setting(
        0, "the width is a gene, from this to channels; 0: all networks have channels"
    )
    min_normal_cells: int = setting(
        0,
        "the number of cells is a gene, from this to num_normal_cells; 0: all networks have "
        "num_normal_cells",
    )
    vary_conv_kind: bool = setting(
        False, "the kind of convolutions is a gene; without, all networks have conv_kind"
    )
    min_channel_multiplier: int = setting(
        0,
        "the factor on the width after a reduction cell is a gene, from this to "
        "channel_multiplier; 0: all networks have channel_multiplier",
    )
    layout_mutation_prob: float = setting(
        0.4,
        "probability that one of width, number of cells, kind of convolutions and factor on the "
        "width changes, where they are genes: numbers go a step up or down",
    )
    stagnant_op_mutation_prob: float = setting(
        0.6, "tau_m-op after soft stagnation avoidance (tau_m-op-avoid)"
    )
    stagnant_edge_mutation_prob: float = setting(
        0.6, "tau_m-edge after soft stagnation avoidance (tau_m-edge-avoid)"
    )
    stagnation_start: int = setting(50, "first generation at which stagnation is looked for")
    stagnation_patience: int = setting(
        40, "generations without a better best that count as stagnation (A_stag)"
    )
    mating_pool: str = setting(
        "growing",
        "where parents are drawn from: the population with the offspring so far (growing, "
        "Algorithm 1) or without",
        ("growing", "survivors"),
    )
    lag: int = setting(
        1,
        "candidates that may be under way at once (L): each is drawn from what is known of all but "
        "the L - 1 before it; 1: Algorithm 1; auto: twice the workers. Needs mating_pool=growing",
    )
    crossover: bool = setting(
        True, "rea makes an offspring of two parents; without, of the better one alone"
    )
    stagnation_avoidance: bool = setting(
        True, "rea avoids stagnation, softly and then hard; without, it does not"
    )
    racing: float = setting(
        0.0,
        "a candidate's training ends after an epoch by which its mean loss is above that of the "
        "population's worst member by more than this part (0.07: 7 %, which guided has); 0: it "
        "never does. Needs fitness=speed",
    )

    def __post_init__(self) -> None:
        check_at_least(
            self,
            1,
            "population_size",
            "num_offspring",
            "sample_size",
            "lag",
            "min_nodes",
            "stagnation_patience",
        )
        check_at_least(self, 0, "num_generations", "stagnation_start")
        check_at_most(self, MAX_DRAWN, "population_size", "num_offspring", "lag")
        check_at_least(self, 0, *LAYOUT_BOUNDS)
        check_below_one(self, "racing")
        check(
            self.max_nodes >= self.min_nodes,
            "max_nodes",
            self.max_nodes,
            rule=f"min_nodes is {self.min_nodes}",
        )
        check(
            self.max_nodes <= MAX_NODES,
            "max_nodes",
            self.max_nodes,
            rule=f"a cell has at most {MAX_NODES} nodes",
        )
        check(
            self.sample_size <= self.population_size,
            "sample_size",
            self.sample_size,
            rule=f"only {self.population_size} individuals can be drawn (population_size)",
        )
        check_probabilities(
            self, "crossover_bias", "op_mutation_prob", "edge_mutation_prob", "add_node_prob"
        )
        check_probabilities(self, "layout_mutation_prob")
        check_probabilities(self, "stagnant_op_mutation_prob", "stagnant_edge_mutation_prob")
        check_choice(self, "mating_pool")
        check(
            self.lag == 1 or self.mating_pool == "growing",
            "lag",
            self.lag,
            rule=f"with mating_pool={self.mating_pool} parents wait for a whole generation; use "
            "mating_pool=growing",
        )

    @property
    def num_candidates(self) -> int:
        """P + F G, which every strategy tries; hard avoidance and failures come on top."""
        return self.population_size + self.num_offspring * self.num_generations


@dataclasses.dataclass(frozen=True)
class ColonyConfig:
    """The ant colony (`strategy="aco"`), with the defaults of DeepSwarm.

    DeepSwarm: Byla and Pang 2019, arXiv 1905.07350.
    """

    num_ants: int = setting(16, "aco: ants an iteration; B grows by one with each, up to B_max")
    greediness: float = setting(
        0.5, "aco: probability that an ant takes the option of most pheromone (q_0)"
    )
    pheromone_start: float = setting(0.1, "aco: pheromone on every option at first (tau_0)")
    pheromone_decay: float = setting(
        0.1, "aco: how far each ant moves the pheromone of its choices to the start (rho)"
    )
    pheromone_evaporation: float = setting(
        0.1, "aco: how far the best ant so far moves that of its choices to its fitness (alpha)"
    )

    def __post_init__(self) -> None:
        check_at_least(self, 1, "num_ants")
        check_at_most(self, MAX_DRAWN, "num_ants")
        check_probabilities(self, "greediness", "pheromone_decay")
        check(
            self.pheromone_start > 0, "pheromone_start", self.pheromone_start, rule="it is positive"
        )
        check_below_one(self, "pheromone_evaporation")
