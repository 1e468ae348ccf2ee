"""Every setting of a search, with the paper's values as defaults.

One frozen dataclass a concern; `SearchConfig` holds them together. The help text beside a field is the
help text of the flag made from it, and the paper's symbol for it stands there too.
"""

from __future__ import annotations

import dataclasses

from jaxevo.config.fields import (
    check,
    check_at_least,
    check_below_one,
    check_choice,
    check_probabilities,
    setting,
)

MAX_NODES = 12  # of a cell: bounds the work that a file can ask for; the paper's B_max is 6
RESIZE_METHODS = ("stretch", "mnist_box")
STRATEGY_KINDS = ("rea", "aging", "random", "aco")
ENGINES = ("auto", "universal", "compiled")


@dataclasses.dataclass(frozen=True)
class EvolutionConfig:
    """The evolutionary algorithm (paper, sections 3.2 and 4.2)."""

    population_size: int = setting(10, "individuals in the population (P)")
    num_offspring: int = setting(10, "offspring a generation (F)")
    sample_size: int = setting(2, "individuals a tournament draws (S)")
    num_generations: int = setting(200, "generations after the initial one (G)")
    min_nodes: int = setting(2, "fewest nodes of a cell (B_min)")
    max_nodes: int = setting(6, "most nodes of a cell (B_max)")
    crossover_bias: float = setting(0.6, "probability that a node comes from the better parent (tau_cross)")
    op_mutation_prob: float = setting(0.4, "probability of the operation mutation (tau_m-op)")
    edge_mutation_prob: float = setting(0.4, "probability of the hidden state mutation (tau_m-edge)")
    add_node_prob: float = setting(0.2, "probability of the mutation that appends a node (tau_b)")
    stagnant_op_mutation_prob: float = setting(0.6, "tau_m-op after soft stagnation avoidance (tau_m-op-avoid)")
    stagnant_edge_mutation_prob: float = setting(0.6, "tau_m-edge after soft stagnation avoidance (tau_m-edge-avoid)")
    stagnation_start: int = setting(50, "first generation at which stagnation is looked for")
    stagnation_patience: int = setting(40, "generations without a better best that count as stagnation (A_stag)")
    mating_pool: str = setting(
        "growing",
        "where parents are drawn from: the population with the offspring so far (growing, Algorithm 1) or without",
        ("growing", "survivors"),
    )
    crossover: bool = setting(True, "rea makes an offspring of two parents; without, of the better one alone")
    stagnation_avoidance: bool = setting(True, "rea avoids stagnation, softly and then hard; without, it does not")

    def __post_init__(self) -> None:
        check_at_least(self, 1, "population_size", "num_offspring", "sample_size", "min_nodes", "stagnation_patience")
        check_at_least(self, 0, "num_generations", "stagnation_start")
        check(self.max_nodes >= self.min_nodes, "max_nodes", self.max_nodes, f"min_nodes is {self.min_nodes}")
        check(
            self.max_nodes <= MAX_NODES,
            "max_nodes",
            self.max_nodes,
            f"a cell has at most {MAX_NODES} nodes",
        )
        check(
            self.sample_size <= self.population_size,
            "sample_size",
            self.sample_size,
            f"only {self.population_size} individuals can be drawn (population_size)",
        )
        check_probabilities(self, "crossover_bias", "op_mutation_prob", "edge_mutation_prob", "add_node_prob")
        check_probabilities(self, "stagnant_op_mutation_prob", "stagnant_edge_mutation_prob")
        check_choice(self, "mating_pool")

    @property
    def num_candidates(self) -> int:
        """P + F G, which every strategy tries; hard stagnation avoidance and failures come on top."""
        return self.population_size + self.num_offspring * self.num_generations


@dataclasses.dataclass(frozen=True)
class ColonyConfig:
    """The ant colony (`strategy="aco"`), with the defaults of DeepSwarm (Byla and Pang 2019, arXiv 1905.07350)."""

    num_ants: int = setting(16, "aco: ants an iteration; B grows by one with each, up to B_max")
    greediness: float = setting(0.5, "aco: probability that an ant takes the option of most pheromone (q_0)")
    pheromone_start: float = setting(0.1, "aco: pheromone on every option at first (tau_0)")
    pheromone_decay: float = setting(0.1, "aco: how far each ant moves the pheromone of its choices to the start (rho)")
    pheromone_evaporation: float = setting(
        0.1, "aco: how far the best ant so far moves that of its choices to its fitness (alpha)"
    )

    def __post_init__(self) -> None:
        check_at_least(self, 1, "num_ants")
        check_probabilities(self, "greediness", "pheromone_decay")
        check(self.pheromone_start > 0, "pheromone_start", self.pheromone_start, "it is positive")
        check_below_one(self, "pheromone_evaporation")


@dataclasses.dataclass(frozen=True)
class NetworkConfig:
    """How a genome becomes a network (paper, section 4.2); the image's shape and the classes come from the data."""

    channels: int = setting(24, "feature maps of an operation in the first cells (D)")
    channel_multiplier: int = setting(2, "factor on the feature maps after a reduction cell (K)")
    num_normal_cells: int = setting(3, "groups of normal cells, with a reduction cell between two groups (N)")
    normal_repeats: int = setting(1, "normal cells in a group")
    dropout_rate: float = setting(0.2, "dropout before the classifier")
    precision: str = setting(
        "float32", "what activations are computed in; parameters stay float32", ("float32", "bfloat16")
    )
    conv_kind: str = setting(
        "separable", "separable: depthwise then 1x1, as NASNet's; full: one dense kernel", ("separable", "full")
    )

    def __post_init__(self) -> None:
        check_at_least(self, 1, "channels", "channel_multiplier", "num_normal_cells", "normal_repeats")
        for name in ("num_normal_cells", "normal_repeats"):  # what saved weights claim to be is counted cell by cell
            check(getattr(self, name) <= 100, name, getattr(self, name), "the largest value is 100")
        check_below_one(self, "dropout_rate")
        check_choice(self, "conv_kind")
        check_choice(self, "precision")

    def stack(self) -> tuple[tuple[str, int], ...]:
        """The cells in order, each `("normal" | "reduction", channels)`: N R N R N with D, D, 2D, 2D, 4D."""
        cells: list[tuple[str, int]] = []
        for group in range(self.num_normal_cells):
            channels = self.channels * self.channel_multiplier**group
            cells += [("normal", channels)] * self.normal_repeats
            if group < self.num_normal_cells - 1:
                cells.append(("reduction", channels))
        return tuple(cells)

    def check_image(self, height: int, width: int) -> None:
        """Raises `InputError` if an image of this size vanishes in the reductions."""
        smallest = 2 ** (self.num_normal_cells - 1)
        check(
            min(height, width) >= smallest,
            "num_normal_cells",
            self.num_normal_cells,
            f"its {self.num_normal_cells - 1} reductions need images of at least {smallest}x{smallest} pixels, "
            f"these have {height}x{width}; resize the images or use fewer normal cells",
        )


@dataclasses.dataclass(frozen=True)
class TrainingConfig:
    """How a network's weights are trained (paper, section 4.2)."""

    epochs: int = setting(15, "passes over the training images")
    batch_size: int = setting(64, "images a step")
    learning_rate: float = setting(1e-4, "Adam's rate at the start")
    rate_decay: float = setting(0.01, "the rate decays exponentially to this fraction of its start")
    schedule: str = setting(
        "exponential",
        "how the rate falls: exponential, to rate_decay; cosine, along half a cosine to 0",
        ("exponential", "cosine"),
    )
    warmup: float = setting(0.0, "fraction of all steps over which the rate first rises linearly from 0")
    label_smoothing: float = setting(0.0, "part of a label that is spread over all classes")
    max_shift: float = setting(0.0, "augmentation: shift an image at random by up to this fraction of its sides")
    max_rotation: float = setting(0.0, "augmentation: rotate an image at random by up to so many degrees")
    max_scale: float = setting(0.0, "augmentation: scale an image at random by 1 - this to 1 + this")
    weight_average: float = setting(
        0.0, "decay a step of the moving average of weights that is measured and saved; 0: the last weights"
    )

    def __post_init__(self) -> None:
        check_at_least(self, 1, "epochs", "batch_size")
        check(self.learning_rate > 0, "learning_rate", self.learning_rate, "it is positive")
        check(0 < self.rate_decay <= 1, "rate_decay", self.rate_decay, "it lies in (0, 1]")
        check_choice(self, "schedule")
        check_below_one(self, "warmup", "label_smoothing", "max_scale", "weight_average")
        check(0 <= self.max_shift <= 1, "max_shift", self.max_shift, "a fraction lies between 0 and 1")
        check(0 <= self.max_rotation <= 180, "max_rotation", self.max_rotation, "degrees lie between 0 and 180")


@dataclasses.dataclass(frozen=True)
class DataConfig:
    """Which images are searched on and how they are divided."""

    dataset: str = setting("digits", "a data set's name, a folder of class folders, or an .npz file")
    train_examples: int = setting(0, "train candidates on a stratified subset of this many images; 0: all")
    validation_fraction: float = setting(0.1, "part of the training split that only measures fitness")
    image_size: int = setting(0, "resize images to this side in pixels; 0: as they are")
    resize: str = setting(
        "stretch",
        "how: stretched, or as MNIST's digits lie in their frame (box of 20/28, centred by mass)",
        RESIZE_METHODS,
    )

    def __post_init__(self) -> None:
        check_at_least(self, 0, "train_examples", "image_size")
        check(0 < self.validation_fraction < 1, "validation_fraction", self.validation_fraction, "it lies in (0, 1)")
        check_choice(self, "resize")


@dataclasses.dataclass(frozen=True)
class SearchConfig:
    """A whole search: the same configuration gives the same result on the same machine."""

    seed: int = setting(0, "the run's only source of randomness")
    strategy: str = setting(
        "rea",
        "rea: the paper's; aging: mutation only, the oldest dies (Real et al. 2018); random: no selection; aco: ant "
        "colony (DeepSwarm, Byla and Pang 2019). All try P + F G candidates",
        STRATEGY_KINDS,
    )
    max_trainings: int = setting(
        0, "end the search after so many trainings of candidates, isomorphic ones not counted; 0: only after the last"
    )
    reuse_fitness: bool = setting(True, "give an isomorphic genome the fitness that was measured first")
    retrain_best: int = setting(3, "how many of the best are trained again with fresh seeds before the final choice")
    retrain_seeds: int = setting(2, "fresh trainings of each of them")
    candidates_per_step: int = setting(
        1, "candidates trained at once by the universal engine, divided among the devices; needs mating_pool=survivors"
    )
    max_consecutive_failures: int = setting(20, "failed candidates in a row that end the search")
    engine: str = setting(
        "auto",
        "universal: one program for all genomes; compiled: one each; auto: universal on a CPU",
        ENGINES,
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
        check_at_least(self, 1, "max_consecutive_failures", "candidates_per_step")
        check(
            self.candidates_per_step == 1
            or (self.engine in ("auto", "universal") and self.evolution.mating_pool == "survivors"),
            "candidates_per_step",
            self.candidates_per_step,
            "several at once need engine=universal and mating_pool=survivors, where parents do not wait for offspring",
        )
        check_choice(self, "engine")
        check_choice(self, "strategy")
        evolution = self.evolution
        check(
            self.strategy != "aging"
            or evolution.op_mutation_prob + evolution.edge_mutation_prob + evolution.add_node_prob > 0,
            "strategy",
            self.strategy,
            "it needs op_mutation_prob, edge_mutation_prob or add_node_prob above 0",
        )
        check(
            self.engine != "universal" or self.network.conv_kind == "separable",
            "engine",
            self.engine,
            f"it has no {self.network.conv_kind} convolutions; use engine=compiled",
        )

    @property
    def num_candidates(self) -> int:
        """How many candidates to expect, at most `max_trainings` if that ends the search."""
        expected = self.evolution.num_candidates
        return min(expected, self.max_trainings) if self.max_trainings else expected

    def budget_spent(self, trainings: int) -> bool:
        """True if so many trainings of candidates end the search."""
        return 0 < self.max_trainings <= trainings


@dataclasses.dataclass(frozen=True)
class WorkerConfig:
    """How candidates are evaluated on this machine; no result depends on it, so a run may go on with another one."""

    workers: int = setting(
        0,
        "processes that evaluate candidates, so that one that dies takes nothing along; 0: this process. Several work "
        "at once on the first generation and on retraining, and with mating_pool=survivors on every generation",
    )
    candidate_timeout: float = setting(0.0, "seconds after which a worker's candidate is given up; 0: never")
    worker_memory_limit: int = setting(0, "MiB of memory that a worker may have; 0: as much as there is")
    candidates_per_worker: int = setting(100, "candidates after which a worker is replaced by a fresh one")

    def __post_init__(self) -> None:
        check_at_least(self, 0, "workers", "candidate_timeout", "worker_memory_limit")
        check_at_least(self, 1, "candidates_per_worker")
        for name in ("candidate_timeout", "worker_memory_limit"):
            limit = getattr(self, name)
            check(self.workers > 0 or not limit, name, limit, "only a worker can be ended; give --workers=1 or more")

    def check(self, config: SearchConfig) -> None:
        """Raises `InputError` if the search cannot be evaluated so."""
        check(
            not self.workers or config.candidates_per_step == 1,
            "workers",
            self.workers,
            f"candidates_per_step={config.candidates_per_step} trains several candidates in one process; use either",
        )
