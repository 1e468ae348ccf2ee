"""The library's functions: search, train, load and evolve.

`data` is a data set's name, a folder of class folders, an `.npz` file, a pair of arrays (images,
labels), or a dict of `x_train`, `y_train`, `x_test` and `y_test`. Settings are those of the
command's flags (`jaxevo search --help`).
"""

from __future__ import annotations

import dataclasses
import os
import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rich.console import Console

from jaxevo.config import (
    FRONT_KINDS,
    LAYOUT_BOUNDS,
    ColonyConfig,
    EvolutionConfig,
    NetworkConfig,
    SearchConfig,
    TrainingConfig,
    WorkerConfig,
    check_known,
    leaf_fields,
    replace,
)
from jaxevo.config.fields import unknown_setting
from jaxevo.config.presets import RECIPES, search_settings
from jaxevo.datasets import ReadOptions, load_training_data
from jaxevo.errors import InputError
from jaxevo.files import home_expanded
from jaxevo.networks.baselines import Architecture, Baseline
from jaxevo.networks.builder import NetworkBuilder
from jaxevo.reports.live import LiveReport
from jaxevo.run.claim import claim_training
from jaxevo.run.prepare import Data, dataset_name, make_task
from jaxevo.run.progress import RunReporter, reading
from jaxevo.run.reporter import Reporter
from jaxevo.run.result import Result
from jaxevo.run.search import run_search
from jaxevo.search_space import genome_files
from jaxevo.search_space.complexity import check_given
from jaxevo.search_space.genome import Genome
from jaxevo.strategies.base import evolve as evolve_strategy
from jaxevo.strategies.individual import Individual
from jaxevo.strategies.registry import make_strategy
from jaxevo.training.classifier import Classifier
from jaxevo.training.engine_choice import settle_engine
from jaxevo.training.full_training import train_classifiers
from jaxevo.training.source import Source

# The settings that count without a network: of evolution and colony, and what a layout may be.
EVOLVED = {
    *(leaf_fields(EvolutionConfig).keys() - {"racing"}),
    *leaf_fields(ColonyConfig),
    *(*LAYOUT_BOUNDS.values(), "conv_kind"),
}


def search(
    data: Data = None,
    *,
    preset: str = "auto",
    strategy: str | None = None,
    recipe: str | None = None,
    workdir: str | os.PathLike[str] | None = None,
    data_dir: str | None = None,
    workers: int | WorkerConfig = 0,
    time_limit: float | None = None,
    continue_: bool = False,
    reporter: Reporter | None = None,
    report: bool = True,
    **settings: Any,
) -> Result:
    """Searches for a network, trains the winner and tests it once; the same call resumes.

    Args:
        data: Images to search on; see the module. None: digits, or those of a run that is
            continued.
        preset: Settings to begin with: `quick`, `paper`, or `auto` (quick on a CPU, else paper).
        strategy: One of `config.presets.STRATEGIES`; None: the preset's.
        recipe: How the winner is trained, one of `config.presets.RECIPES`; None: modern with quick,
            else paper.
        workdir: Folder of the run; by default `runs/<data>-<preset>-seed<seed>`.
        data_dir: Folder with published files.
        workers: Processes that evaluate candidates; 0 is this one.
        time_limit: Seconds after which no candidate is begun, with time left for the final
            training.
        continue_: Goes on with the run in `workdir` beyond its end: with more generations or
            trainings, another time limit, or another final training. All that is not named stays
            as it was, and what cannot change is refused.
        reporter: Is told how the run goes on; by default it is shown in the terminal.
        report: Without a `reporter`, the page `report.html` in the folder shows it too.
        **settings: Settings of `SearchConfig` by flag name. `initial_genomes` may also be a list of
            genomes and names.

    Returns:
        The result; its `classifier()` is the trained network.

    Raises:
        InputError: A setting, the data or the folder cannot be used.
        SearchFailedError: Too many candidates in a row failed.
        DivergedError: The final training failed.
        OSError: Something cannot be written; the same call, once it can, goes on from there.
    """
    console = Console(quiet=reporter is not None)
    with reading(console) as on_image:
        task = make_task(
            data,
            preset=preset,
            strategy=strategy,
            recipe=recipe,
            workdir=workdir,
            data_dir=data_dir,
            workers=workers,
            time_limit=time_limit,
            continues=continue_,
            settings=settings,
            on_image=on_image,
        )
    if reporter is not None:
        return _placed(run_search(task, reporter))
    display = RunReporter(task.config, console)
    page = LiveReport(display, task.workdir) if report else None
    with display.live():
        result = run_search(task, page or display)
    if page is not None:
        page.finish()
    return _placed(result)


def _placed(result: Result) -> Result:
    """The result with its folder as an absolute path, which holds after a change of folder."""
    return dataclasses.replace(result, path=result.path.absolute())


def train(
    model: Genome | str | os.PathLike[str],
    data: Data = "digits",
    *,
    recipe: str = "paper",
    engine: str = "auto",
    seed: int = 0,
    workdir: str | os.PathLike[str] | None = None,
    data_dir: str | None = None,
    image_size: int = 0,
    resize: str = "stretch",
    pixel_range: str = "",
    background: str = "auto",
    skip_unreadable: bool = False,
    on_epoch: Callable[[int, float], None] = lambda epoch, loss: None,
    **settings: Any,
) -> Classifier:
    """Trains one network on all training images.

    Args:
        model: A genome, a genome file, or the name of a shipped genome or of a hand-designed model.
        data: Images to train on; see the module.
        recipe: One of `config.presets.RECIPES`.
        engine: One of `config.ENGINES`; `auto` is the one that the training in the workdir began
            with, else the fastest that can train the model.
        seed: Of weights, order of images, dropout and augmentation.
        workdir: Folder for checkpoints between epochs, from which the same call goes on. It belongs
            to one model, its settings and images: another training is refused.
        data_dir: Folder with published files.
        image_size: Side in pixels that images are resized to; 0 leaves them as they are.
        resize: How, `stretch` or `mnist_box`.
        pixel_range: Stored values of black and of white, such as `0,4095`; empty: the images tell.
        background: What transparent pixels lie on, `white`, `black`, or `auto`.
        skip_unreadable: Leave image files out that cannot be read.
        on_epoch: Told the number of epochs done, and the mean loss of the last.
        **settings: Settings of `NetworkConfig` and `TrainingConfig`.

    Raises:
        InputError: A setting or the data cannot be used.
        DivergedError: The loss is not finite any more.
    """
    # Check all that needs no images.
    network, training = split_settings(settings, recipe)
    check_seed(seed)
    architecture = find_model(model)
    if isinstance(architecture, Genome):
        check_given(architecture, settings)
    # Read the images, for which the network is built.
    options = ReadOptions.of(pixel_range, background, skip_unreadable)
    loaded = load_training_data(
        data, data_dir, image_size=image_size, resize=resize, options=options
    )
    images, classes = loaded.images, loaded.class_names
    builder = NetworkBuilder.for_images(network, images.images, len(classes))
    # Claim the folder, and train.
    folder = pathlib.Path(home_expanded(workdir)) if workdir is not None else None
    if folder is not None:
        claim_training(folder, architecture, images, network=network, training=training)
    trained = train_classifiers(
        architecture,
        builder,
        images,
        source=Source(dataset_name(data), classes, resize, loaded.form, loaded.content),
        config=training,
        seeds=(seed,),
        engine=settle_engine(engine, architecture, network, folder=folder),
        folder=folder,
        on_epoch=lambda _, epoch, loss: on_epoch(epoch, loss),
    )
    ((classifier, _),) = trained
    return classifier


def split_settings(
    settings: Mapping[str, Any], recipe: str = "paper"
) -> tuple[NetworkConfig, TrainingConfig]:
    """The network and the training of these settings, over a recipe. Raises `InputError`."""
    known = [leaf_fields(cls).keys() for cls in (NetworkConfig, TrainingConfig)]
    both = set().union(*known)
    if unknown := sorted(settings.keys() - both):
        raise unknown_setting(unknown[0], both)
    network, training = (
        {name: value for name, value in settings.items() if name in names} for names in known
    )
    final = SearchConfig().final_training
    trained = replace(final, recipe_settings(recipe) | training)
    return replace(NetworkConfig(), network), trained


def recipe_settings(name: str) -> dict[str, Any]:
    """The settings of a recipe. Raises `InputError` for an unknown name."""
    check_known("recipe", name, RECIPES)
    return RECIPES[name]


def check_seed(seed: int) -> None:
    """Raises `InputError` for what cannot be a seed."""
    replace(SearchConfig(), {"seed": seed})


def find_model(model: Genome | Baseline | str | os.PathLike[str]) -> Architecture:
    """A genome or hand-designed model, given itself, by name or as a file. Raises `InputError`."""
    if isinstance(model, Genome | Baseline):
        return model
    if not isinstance(model, str | os.PathLike):
        raise InputError(f"model is a {type(model).__name__}: give a genome, a file or a name")
    name = home_expanded(model)
    return Baseline(name) if Baseline.is_known(name) else genome_files.find(name)[0]


def load(folder: str | os.PathLike[str]) -> Classifier:
    """A trained network from its folder, such as `runs/.../best`. Raises `CheckpointError`."""
    return Classifier.load(home_expanded(folder))


def evolve(
    fitness: Callable[[Genome], float | None],
    *,
    strategy: str = "rea",
    seed: int = 0,
    max_consecutive_failures: int = 20,
    initial_genomes: str | Sequence[Genome | str] = (),
    **settings: Any,
) -> Individual:
    """The best individual of a search with a fitness of one's own, which is maximised.

    No network is trained.

    Args:
        fitness: Of a genome; None or NaN where it has none: another genome is then drawn.
        strategy: One of `config.presets.STRATEGIES`.
        seed: The search's only source of randomness.
        max_consecutive_failures: So many in a row end the search.
        initial_genomes: Genomes, genome files or names of shipped genomes that the population
            begins with.
        **settings: Settings of the strategy, by default the paper's (P=10, F=10, G=200), and of the
            layout where that is a gene.

    Raises:
        InputError: A setting is not known or not possible, or has no effect without trainings; or
            the fitness gives something else than a number.
        RuntimeError: Too many genomes in a row have no fitness.
    """
    unused = leaf_fields(SearchConfig).keys() - EVOLVED
    if found := sorted(settings.keys() & unused):
        raise InputError(
            f"{found[0]}={settings[found[0]]} has no effect here, where no network is trained: "
            "give settings of the strategy only"
        )
    begin = search_settings("paper", strategy, "paper", num_images=1)
    if begin["strategy"] in FRONT_KINDS:
        raise InputError(
            f"strategy={strategy} minimises the size of networks, and here there are none; choose "
            "another one"
        )
    begin["racing"] = 0.0  # no epochs, no race
    given = genome_files.pack(genome_files.listed(initial_genomes))
    config = replace(SearchConfig(), begin | settings | {"seed": seed, "initial_genomes": given})
    made = make_strategy(config, own_fitness=True)
    return evolve_strategy(made, fitness, max_consecutive_failures)
