"""What must come before what: names that are defined, and no way back to oneself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.api import documents

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pumice.admission.laws import Law
    from pumice.admission.parts import Part

Needs = dict[str, list[tuple[str, "Part"]]]
"""By name: what it waits for, each with where that is written."""


def judge(needs: Needs, what: str, law: Law) -> None:
    """Find names that are not defined, and the first circle that each name begins."""
    for name, waited in needs.items():
        for other, where in waited:
            if other == name:
                where.breaks(law, f"is {documents.quoted(name)} itself")
            elif other not in needs:
                near = documents.nearest(other, needs)
                hint = f"; did you mean {near}?" if near else f"; there are {', '.join(needs)}"
                where.breaks(law, f"is {documents.quoted(other)}, and there is no {what} of that name{hint}")
    graph = {name: [other for other, _ in waited if other in needs and other != name] for name, waited in needs.items()}
    circle = find_circle(graph)
    if circle:
        where = next(where for other, where in needs[circle[0]] if other == circle[1])
        where.breaks(law, f"closes a circle, in which everybody waits: {' needs '.join(circle)}")


def find_circle(graph: Mapping[str, Sequence[str]]) -> list[str]:
    """Find a circle, as the names on it with the first one again at the end; without recursion, for chains may be long."""
    done: set[str] = set()
    way: dict[str, None] = {}  # from where the walk began to where it is, in order
    for start in graph:
        waiting: list[tuple[str, int]] = [(start, 0)]
        while waiting:
            name, position = waiting.pop()
            if position == 0:
                if name in way:
                    steps = list(way)
                    return [*steps[steps.index(name) :], name]
                if name in done:
                    continue
                way[name] = None
            if position < len(graph[name]):
                waiting.append((name, position + 1))
                waiting.append((graph[name][position], 0))
            else:
                del way[name]
                done.add(name)
    return []
