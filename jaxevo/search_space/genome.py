"""The genotype: an architecture as plain data.

A genome is a normal and a reduction cell (paper, section 3.1). A cell is a list of nodes; a node applies one operation
to each of two earlier states and concatenates the results. States are numbered: 0 and 1 are the cell's inputs, `k + 2`
is the output of node `k`. Nothing here knows how a network is built or trained.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import json
import os
import pathlib
from collections.abc import Iterable, Mapping
from typing import Any

from jaxevo.errors import InputError

NUM_INPUTS = 2
MAX_NODES = 12  # bounds the work that a file from elsewhere can ask for; the paper's B_max is 6
SCHEMA_VERSION = 1
MAX_FILE_BYTES = 1 << 20


class Op(enum.StrEnum):
    """The operations of the search space (paper, section 3.1)."""

    IDENTITY = "identity"
    CONV_3X3 = "conv_3x3"
    CONV_5X5 = "conv_5x5"
    CONV_7X7 = "conv_7x7"
    MAX_POOL_3X3 = "max_pool_3x3"
    AVG_POOL_3X3 = "avg_pool_3x3"

    @property
    def kernel_size(self) -> int:
        """Side of the convolution's kernel; 0 for operations without one."""
        return {Op.CONV_3X3: 3, Op.CONV_5X5: 5, Op.CONV_7X7: 7}.get(self, 0)


OPS = tuple(Op)


@dataclasses.dataclass(frozen=True)
class Node:
    """A hidden node: `concat(ops[0](state[inputs[0]]), ops[1](state[inputs[1]]))`."""

    inputs: tuple[int, int]
    ops: tuple[Op, Op]

    def __post_init__(self) -> None:
        if len(self.inputs) != 2 or not all(type(i) is int for i in self.inputs):
            raise ValueError(f"inputs must be two state numbers, not {list(self.inputs)!r}")
        if len(self.ops) != 2 or not all(op in OPS for op in self.ops):
            raise ValueError(f"ops must be two of {', '.join(OPS)}, not {[str(op) for op in self.ops]}")

    @property
    def operands(self) -> tuple[tuple[int, Op], tuple[int, Op]]:
        """The two `(input state, operation)` pairs."""
        return ((self.inputs[0], self.ops[0]), (self.inputs[1], self.ops[1]))


@dataclasses.dataclass(frozen=True)
class Cell:
    """A directed acyclic graph of hidden nodes in topological order."""

    nodes: tuple[Node, ...]

    def __post_init__(self) -> None:
        if not 1 <= len(self.nodes) <= MAX_NODES:
            raise ValueError(f"a cell has 1 to {MAX_NODES} nodes, not {len(self.nodes)}")
        for k, node in enumerate(self.nodes):
            for i in node.inputs:
                if not 0 <= i < k + NUM_INPUTS:
                    raise ValueError(f"node {k}: input {i} is not one of the earlier states 0 to {k + 1}")

    @property
    def num_nodes(self) -> int:
        """B of the paper."""
        return len(self.nodes)

    def unused_states(self) -> tuple[int, ...]:
        """Hidden states that no node reads; concatenated, they are the cell's output."""
        used = {i for node in self.nodes for i in node.inputs}
        return tuple(s for s in range(NUM_INPUTS, self.num_nodes + NUM_INPUTS) if s not in used)


@dataclasses.dataclass(frozen=True)
class Genome:
    """The pair of cells from which a whole network is stacked."""

    normal: Cell
    reduction: Cell

    def canonical_key(self) -> str:
        """A text that two genomes share exactly if they are isomorphic.

        The order of a node's operands, the order of nodes where the graph allows another, and which of the two equal
        inputs is read make no difference: such genomes describe the same network up to the order of its channels.
        """
        return f"{_canonical_cell(self.normal)} / {_canonical_cell(self.reduction)}"

    def to_dict(self) -> dict[str, list[dict[str, list[Any]]]]:
        """Plain lists and dicts, as in a genome file."""
        return {
            name: [{"inputs": list(n.inputs), "ops": [str(op) for op in n.ops]} for n in cell.nodes]
            for name, cell in (("normal", self.normal), ("reduction", self.reduction))
        }

    @classmethod
    def from_dict(cls, data: Any) -> Genome:
        """The reverse of `to_dict`. Raises `ValueError` naming the field at fault."""
        _expect_keys(data, "genome", ("normal", "reduction"))
        return cls(_parse_cell(data["normal"], "normal"), _parse_cell(data["reduction"], "reduction"))


def _expect_keys(data: Any, where: str, required: Iterable[str], optional: Iterable[str] = ()) -> None:
    if not isinstance(data, Mapping):
        raise ValueError(f"{where}: expected an object, found {type(data).__name__}")
    required, allowed = set(required), {*required, *optional}
    if unknown := sorted(set(data) - allowed):
        names = ", ".join(map(repr, unknown))
        raise ValueError(f"{where}: unknown key {names}; allowed are {', '.join(sorted(allowed))}")
    if missing := sorted(required - set(data)):
        raise ValueError(f"{where}: missing key {', '.join(map(repr, missing))}")


def _parse_cell(data: Any, where: str) -> Cell:
    if not isinstance(data, list):
        raise ValueError(f"{where}: expected a list of nodes, found {type(data).__name__}")
    if len(data) > MAX_NODES:
        raise ValueError(f"{where}: a cell has 1 to {MAX_NODES} nodes, not {len(data)}")
    nodes = []
    for k, item in enumerate(data):
        _expect_keys(item, f"{where} node {k}", ("inputs", "ops"))
        if not isinstance(item["inputs"], list) or not isinstance(item["ops"], list):
            raise ValueError(f"{where} node {k}: inputs and ops must be lists of two")
        try:
            ops = tuple(Op(op) if op in OPS else op for op in item["ops"])
            nodes.append(Node(tuple(item["inputs"]), ops))  # type: ignore[arg-type]
        except ValueError as error:
            raise ValueError(f"{where} node {k}: {error}") from None
    try:
        return Cell(tuple(nodes))
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None


@functools.lru_cache(maxsize=4096)
def _canonical_cell(cell: Cell) -> str:
    """The smallest listing of a cell over all its topological orders, where a node comes soon after those it reads.

    Listings grow node by node; of all partial listings only the smallest are kept, so ties (nodes that look alike so
    far) are the only branching, and of those with equal futures one is enough.
    """
    labels: list[dict[int, int]] = [{0: 0, 1: 0}]  # state -> its number in the listing; the inputs are alike
    listing: list[tuple[tuple[int, str], ...]] = []
    for position in range(1, cell.num_nodes + 1):
        best: tuple[tuple[int, str], ...] | None = None
        chosen: dict[tuple, dict[int, int]] = {}
        for label in labels:
            for state, node in enumerate(cell.nodes, NUM_INPUTS):
                if state in label or not all(i in label for i in node.inputs):
                    continue
                # Numbers count downwards: readers of the latest states come first and soon tell like nodes apart.
                code = tuple(sorted((-label[i], str(op)) for i, op in node.operands))
                if best is None or code < best:
                    best, chosen = code, {}
                if code == best:
                    extended = label | {state: position}
                    chosen.setdefault(_future(cell, extended), extended)
        assert best is not None  # a cell is acyclic, so some node is always ready
        listing.append(best)
        labels = list(chosen.values())
    return " ".join("+".join(f"{-i}.{op}" for i, op in code) for code in listing)


def _future(cell: Cell, label: Mapping[int, int]) -> tuple:
    """All that decides how a partial listing can go on: the nodes still to come, and the numbers of what they read."""
    rest = [state for state in range(NUM_INPUTS, cell.num_nodes + NUM_INPUTS) if state not in label]
    read = {i for state in rest for i in cell.nodes[state - NUM_INPUTS].inputs}
    return tuple(rest), tuple(label.get(i) for i in sorted(read))


def dumps(genome: Genome, metadata: Mapping[str, Any] | None = None) -> str:
    """A genome file's text: one node a line, so that a change of one node is a change of one line."""
    cells = []
    for name, nodes in genome.to_dict().items():
        lines = ",\n".join(f"      {json.dumps(node)}" for node in nodes)
        cells.append(f'    "{name}": [\n{lines}\n    ]')
    body = ",\n".join(cells)
    parts = [f'  "schema": {SCHEMA_VERSION}', f'  "genome": {{\n{body}\n  }}']
    if metadata:
        parts.append('  "metadata": ' + json.dumps(dict(metadata), indent=2, sort_keys=True).replace("\n", "\n  "))
    return "{\n" + ",\n".join(parts) + "\n}\n"


def loads(text: str) -> tuple[Genome, dict[str, Any]]:
    """Genome and metadata of a genome file's text. Raises `ValueError` saying what is wrong."""
    try:
        data = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"not a JSON document ({error})") from None
    _expect_keys(data, "genome file", ("schema", "genome"), ("metadata",))
    if data["schema"] != SCHEMA_VERSION:
        raise ValueError(f"schema {data['schema']!r} is not known; this version reads schema {SCHEMA_VERSION}")
    metadata = data.get("metadata", {})
    if not isinstance(metadata, dict):
        raise ValueError(f"metadata: expected an object, found {type(metadata).__name__}")
    return Genome.from_dict(data["genome"]), metadata


def load(path: str | os.PathLike[str]) -> tuple[Genome, dict[str, Any]]:
    """Reads a genome file. Raises `InputError` naming the file, or `OSError`."""
    path = pathlib.Path(path)
    with path.open("rb") as file:
        content = file.read(MAX_FILE_BYTES + 1)
    if len(content) > MAX_FILE_BYTES:
        raise InputError(f"{path}: a genome file is smaller than {MAX_FILE_BYTES} bytes; this is another kind of file")
    try:
        return loads(content.decode("utf-8"))
    except (ValueError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: {error}") from None


def shipped_path(name: str) -> pathlib.Path | None:
    """The file of a genome that comes with the package (`evoA` or `evoA.json`), or None."""
    folder = pathlib.Path(__file__).parent / "genomes"
    candidates = {p.stem: p for p in sorted(folder.glob("*.json"))}
    return candidates.get(name.removesuffix(".json"))


def find(name: str) -> tuple[Genome, dict[str, Any]]:
    """The genome at a path, or a shipped one by name. A file of that name in the working folder comes first."""
    if pathlib.Path(name).is_file():
        return load(name)
    if (path := shipped_path(name)) is not None:
        return load(path)
    shipped = ", ".join(sorted(p.name for p in (pathlib.Path(__file__).parent / "genomes").glob("*.json")))
    raise InputError(f"genome {name!r} is neither a file nor one of the shipped ones ({shipped}); give one of these")
