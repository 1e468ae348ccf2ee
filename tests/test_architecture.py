"""The house: which wing may import which, no circle, where JAX is imported, and where flags are."""

from __future__ import annotations

import ast
import collections
import functools
import graphlib
import pathlib
import subprocess
import sys
from collections.abc import Iterator

import pytest
from conftest import REPOSITORY

PACKAGE = REPOSITORY / "jaxevo"

# Modules of the package itself that any wing may import.
COMMON = {"checked", "config", "console", "errors", "extras", "files", "intervals", "machine"}
COMMON |= {"seeds", "stopwatch", "versions"}

# What a wing may import beside those and itself. Arrows go down this list only.
ALLOWED: dict[str, set[str]] = {
    "__main__": {"commands"},
    "commands": {
        *("experiments", "export", "api", "predictions", "reports", "run", "training", "networks"),
        *("search_space", "datasets"),
    },
    "experiments": {
        *("api", "reports", "run", "training", "networks", "strategies", "search_space"),
        *("datasets",),
    },
    "export": {"reports", "run", "training", "networks", "strategies", "search_space", "datasets"},
    "estimator": {"estimator_inputs", "api"},
    "estimator_inputs": {"datasets"},
    "predictions": {"training", "datasets"},
    "api": {
        *("reports", "run", "training", "networks", "strategies", "search_space", "datasets"),
    },
    "reports": {"run", "strategies", "search_space"},
    "run": {"training", "networks", "strategies", "search_space", "datasets"},
    "training": {"networks", "search_space", "datasets"},
    "networks": {"search_space"},
    "strategies": {"search_space"},
    "search_space": set(),
    "datasets": set(),
}
# Of those that any wing may import, what each may import itself.
ALLOWED_COMMON: dict[str, set[str]] = {
    "checked": {"errors", "files"},
    "config": {"errors"},
    "console": set(),
    "errors": set(),
    "extras": {"errors"},
    "files": {"errors"},
    "intervals": set(),
    "machine": {"errors"},
    "seeds": set(),
    "stopwatch": set(),
    "versions": {"errors"},
}


def module_name(path: pathlib.Path) -> str:
    parts = path.relative_to(REPOSITORY).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


@functools.cache
def modules() -> dict[str, ast.Module]:
    """Every module of the package, parsed."""
    return {module_name(path): ast.parse(path.read_text()) for path in PACKAGE.rglob("*.py")}


def imports(tree: ast.AST) -> Iterator[str]:
    """What is imported anywhere in a module, in functions too, but for TYPE_CHECKING."""
    for node in ast.iter_child_nodes(tree):
        match node:
            case ast.If(test=ast.Name("TYPE_CHECKING"), orelse=orelse):
                yield from imports(ast.Module(orelse, []))
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=str(module), names=names):
                yield module
                yield from (f"{module}.{alias.name}" for alias in names)
            case _:
                yield from imports(node)


@functools.cache
def arrows() -> dict[str, set[str]]:
    """Module -> modules of the package that it imports, the package itself left out."""
    known = modules().keys() - {"jaxevo"}
    return {name: (set(imports(tree)) & known) - {name} for name, tree in modules().items()}


def wing(module: str) -> str:
    """The part of the package that a module belongs to."""
    return module.split(".")[1]


@pytest.mark.parametrize("name", sorted(modules().keys() - {"jaxevo"}))
def test_imports_go_down(name: str):
    own = wing(name)
    assert own in ALLOWED or own in ALLOWED_COMMON, f"{own} has no row in the table above"
    allowed = ALLOWED_COMMON[own] if own in ALLOWED_COMMON else ALLOWED[own] | COMMON
    imported = {wing(other) for other in arrows()[name]} - {own}
    assert imported <= allowed, f"{name} must not import {', '.join(sorted(imported - allowed))}"


def test_the_tables_have_no_way_up():
    order = [*ALLOWED, *COMMON]
    for position, (_, below) in enumerate(ALLOWED.items()):
        assert all(order.index(name) > position for name in below)
    assert ALLOWED_COMMON.keys() == COMMON


def test_the_package_itself_imports_nothing_of_its_own():
    assert not arrows()["jaxevo"]


def test_no_module_imports_itself_by_way_of_others():
    # A package's `__init__` is imported with each of its modules, but knows them: not counted.
    packages = {module_name(path) for path in PACKAGE.rglob("__init__.py")}
    graph = {name: others - packages for name, others in arrows().items()}
    graphlib.TopologicalSorter(graph).prepare()  # raises CycleError, which names the circle


def test_a_class_has_its_name_for_itself():
    found = collections.Counter(
        node.name
        for tree in modules().values()
        for node in tree.body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert not [name for name, number in found.items() if number > 1]


def names_of_imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=str(module), names=names):
                yield from (f"{module}.{alias.name}" for alias in names)


def test_flags_are_of_the_commands_alone():
    users = {
        wing(name)
        for name, tree in modules().items()
        if any(imported.startswith("absl.flags") for imported in names_of_imports(tree))
    }
    assert users == {"commands"}


def test_launchers_only_call_their_command():
    for path in (REPOSITORY / "launch").glob("*.py"):
        imported = set(names_of_imports(ast.parse(path.read_text())))
        (command,) = imported - {"sys"}
        assert command.startswith("jaxevo.commands."), path


# Functions that JAX or pickle calls, always by position.
BY_POSITION = {
    "jaxevo.networks.native": {"train_cell", "_train_forward"},
    "jaxevo.networks.universal_cell": {"train_cell", "_cell_forward"},
    "jaxevo.networks.universal_operands": {"_spatial_gradients", "_full", "_full_gradients"},
    "jaxevo.training.classifier": {"_restore"},
    "jaxevo.training.epoch": {"run_epoch", "predict_chunk"},
    "jaxevo.training.prediction": {"_probabilities"},
}


def of_many_by_position(tree: ast.AST) -> Iterator[str]:
    """The functions, also those in others, that take a fourth argument by position."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            names = [given.arg for given in (*node.args.posonlyargs, *node.args.args)]
            if len(names) - (names[:1] in (["self"], ["cls"])) > 3:
                yield node.name


def test_parameters_from_the_fourth_on_are_keyword_only():
    found = {name: set(of_many_by_position(tree)) for name, tree in modules().items()}
    assert {name: functions for name, functions in found.items() if functions} == BY_POSITION


# Needs no JAX: the search space, strategies, and looking into a run.
WITHOUT_JAX = [
    *("jaxevo", "jaxevo.config.presets", "jaxevo.strategies.registry"),
    *("jaxevo.run.reader", "jaxevo.run.ledger", "jaxevo.run.explore", "jaxevo.run.choose"),
    *("jaxevo.run.progress", "jaxevo.run.words", "jaxevo.commands.inspect"),
    "jaxevo.commands.watch",
]
WHOLE = ("jaxevo.search_space.", "jaxevo.strategies.", "jaxevo.reports.", "jaxevo.datasets.")


def brought_by(*names: str) -> set[str]:
    """Which of JAX's packages are there after these imports, in a process of their own."""
    code = f"import sys, {', '.join(names)}; print(*{{'jax', 'flax', 'orbax'}} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def test_the_search_space_strategies_and_looking_into_a_run_need_no_jax():
    whole = [name for name in modules() if name.startswith(WHOLE)]
    assert len(whole) > 20
    assert brought_by(*WITHOUT_JAX, *whole) == set()


def test_jax_would_be_seen():
    assert "jax" in brought_by("jaxevo.machine")


def test_the_package_alone_brings_next_to_nothing():
    code = "import sys; before = set(sys.modules); import jaxevo; print(*set(sys.modules) - before)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    brought = set(done.stdout.split())
    assert {name for name in brought if name.startswith("jaxevo")} == {"jaxevo"}
    assert not {"numpy", "scipy", "matplotlib", "absl"} & brought
