"""A cell as text."""

from __future__ import annotations

from jaxevo.search_space.genome import NUM_INPUTS, Cell


def cell_lines(cell: Cell) -> list[str]:
    """A cell as text, a line a node.

    Nodes are ordered by depth, the longest way from the input; the output's states follow.
    """
    depth = cell.depths()
    # Both inputs are one tensor.
    names = ["input" if s < NUM_INPUTS else f"node {s - NUM_INPUTS}" for s in range(len(depth))]
    calls = {
        s: [f"{op}({names[i]})" for i, op in n.operands]
        for s, n in enumerate(cell.nodes, NUM_INPUTS)
    }
    width = max(len(left) for left, _ in calls.values()) + 1
    lines = []
    shown = 0
    for s in sorted(calls, key=lambda s: (depth[s], s)):
        label = f"depth {depth[s]}" if depth[s] > shown else ""
        lines.append(
            f"{label:<8}  {names[s]:<7} = concat( {calls[s][0] + ',':<{width}} {calls[s][1]} )"
        )
        shown = depth[s]
    outputs = ", ".join(names[s] for s in cell.unused_states())
    return [*lines, f"{'output':<17} = " + (f"concat( {outputs} )" if "," in outputs else outputs)]
