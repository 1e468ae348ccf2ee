"""Genomes in the notation of DARTS, which NAS-Bench-301 and many other projects use.

A genotype lists two operations with their inputs for each node, and the states that a cell puts
out::

    Genotype(normal=[('sep_conv_3x3', 0), ('skip_connect', 1), ...], normal_concat=[2, 3],
             reduce=[...], reduce_concat=[...])

The notation tells the graph, not what networks make of it: DARTS (Liu, Simonyan, Yang 2019) adds
the two results of a node and gives a cell two different inputs; here a node concatenates them, and
both inputs are the same tensor. Here a cell puts out its unused states, so a genotype that puts out
others cannot be read, nor one with operations that this search space lacks. Layouts have no
notation.
"""

from __future__ import annotations

import ast
from typing import Any

from jaxevo.search_space.genome import Cell, Genome, Node, Op

PREFIX = "Genotype("
_NAMES = {
    Op.IDENTITY: "skip_connect",
    Op.CONV_3X3: "sep_conv_3x3",
    Op.CONV_5X5: "sep_conv_5x5",
    Op.CONV_7X7: "sep_conv_7x7",
    Op.MAX_POOL_3X3: "max_pool_3x3",
    Op.AVG_POOL_3X3: "avg_pool_3x3",
}
_OPS = {name: op for op, name in _NAMES.items()}
_KINDS = {"normal": "normal", "reduction": "reduce"}  # genome's name -> genotype's
_FIELDS = [f"{kind}{part}" for kind in _KINDS.values() for part in ("", "_concat")]


def dumps(genome: Genome) -> str:
    """A genome as one line. Raises `ValueError` for a genome with a layout of its own."""
    if genome.layout is not None:
        raise ValueError("the notation of DARTS has no width and no number of cells")
    fields = []
    for kind, name in _KINDS.items():
        cell = genome.cell(kind)
        edges = [(_NAMES[op], state) for node in cell.nodes for state, op in node.operands]
        fields += [f"{name}={edges}", f"{name}_concat={list(cell.unused_states())}"]
    return f"{PREFIX}{', '.join(fields)})\n"


def loads(text: str) -> Genome:
    """The reverse of `dumps`. Raises `ValueError` saying what is wrong; nothing is evaluated."""
    try:
        call = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ValueError(f"not a genotype ({error})") from None
    # The call's arguments, by name.
    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and not call.args):
        raise ValueError(f"expected {PREFIX}{'=..., '.join(_FIELDS)}=...)")
    given = {str(keyword.arg): keyword.value for keyword in call.keywords}
    if sorted(given) != sorted(_FIELDS) or len(call.keywords) != len(_FIELDS):
        raise ValueError(f"a genotype has {', '.join(_FIELDS)}, not {', '.join(given)}")
    normal, reduction = (
        _cell(name, given[name], given[f"{name}_concat"]) for name in _KINDS.values()
    )
    return Genome(normal, reduction)


def _cell(name: str, edges: ast.expr, concat: ast.expr) -> Cell:
    pairs = _literal(name, edges)
    if not (isinstance(pairs, list) and len(pairs) % 2 == 0):
        raise ValueError(f"{name}: expected a list of two (operation, input) for each node")
    for pair in pairs:
        if not (isinstance(pair, tuple) and len(pair) == 2):
            raise ValueError(f"{name}: {pair!r} is not (operation, input)")
        if not (isinstance(pair[0], str) and pair[0] in _OPS):
            raise ValueError(f"{name}: {pair[0]!r} is not one of {', '.join(_OPS)}")
    # Two edges make a node.
    nodes = [
        Node((left[1], right[1]), (_OPS[left[0]], _OPS[right[0]]))
        for left, right in zip(pairs[::2], pairs[1::2], strict=True)
    ]
    cell = Cell(tuple(nodes))
    # Here a cell puts out exactly what no node reads.
    states = _states(name, concat)
    if states != list(cell.unused_states()):
        unused = list(cell.unused_states())
        raise ValueError(f"{name}_concat is {states}; here a cell puts out its unused {unused}")
    return cell


def _states(name: str, concat: ast.expr) -> Any:
    """The sorted states of a list, or of a `range` as DARTS writes it."""
    if isinstance(concat, ast.Call) and isinstance(concat.func, ast.Name):
        bounds = [_literal(name, bound) for bound in concat.args]
        few = all(type(bound) is int and 0 <= bound < 100 for bound in bounds)
        if concat.func.id == "range" and len(bounds) == 2 and few and not concat.keywords:
            return list(range(*bounds))
    states = _literal(name, concat)
    if not (isinstance(states, list) and all(type(state) is int for state in states)):
        raise ValueError(f"{name}_concat: expected a list of states")
    return sorted(states)


def _literal(name: str, tree: ast.expr) -> Any:
    try:
        return ast.literal_eval(tree)
    except (ValueError, TypeError, RecursionError, MemoryError):
        raise ValueError(f"{name}: expected plain lists, pairs, texts and numbers") from None
