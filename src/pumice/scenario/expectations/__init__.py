"""What must be true: one module per section of an expectation, each with how it is read and how it is checked.

A check looks only at a `View`, never at the scheduler, and gives every mismatch. Nothing here changes the cluster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from pumice.scenario import view
from pumice.scenario.expectations import counts, events, explanations, groups, nodes, objects, placement, pods

if TYPE_CHECKING:
    from collections.abc import Callable

    from pumice.scenario.reading import Cursor

_SECTIONS: dict[str, tuple[Callable[[Cursor], tuple[Any, ...]], Callable[[Any, view.View], list[view.Mismatch]]]] = {
    "pods": (pods.read, pods.check),
    "podgroups": (groups.read_pod_groups, groups.check_pod_groups),
    "queues": (groups.read_queues, groups.check_queues),
    "nodes": (nodes.read, nodes.check),
    "counts": (counts.read, counts.check),
    "events": (events.read, events.check),
    "together": (placement.read, placement.check_together),
    "apart": (placement.read, placement.check_apart),
    "sameLabel": (placement.read_same_label, placement.check_same_label),
    "explain": (explanations.read, explanations.check),
    "objects": (objects.read, objects.check),
}


class Expectation(msgspec.Struct, frozen=True, kw_only=True):
    """What must be true at one moment: rules by section, and an expectation that must not hold."""

    line: int
    sections: dict[str, tuple[Any, ...]] = {}
    negated: Expectation | None = None

    @property
    def counts(self) -> bool:
        """Tell whether writes are counted anywhere in it."""
        return "counts" in self.sections or (self.negated is not None and self.negated.counts)

    @property
    def explained(self) -> tuple[str, ...]:
        """The groups, globs among them, whose explanation is looked at anywhere in it."""
        mine = tuple(rule.group for rule in self.sections.get("explain", ()))
        return mine if self.negated is None else (*mine, *self.negated.explained)


def read(cursor: Cursor) -> Expectation:
    """Read an expectation; whatever is wrong with it is noted as a problem."""
    fields = cursor.fields((*_SECTIONS, "not"), "an expectation")
    negated = fields.pop("not", None)
    return Expectation(
        line=cursor.line,
        sections={key: _SECTIONS[key][0](entry) for key, entry in fields.items()},
        negated=read(negated) if negated is not None else None,
    )


def check(expectation: Expectation, seen: view.View) -> list[view.Mismatch]:
    """Give everything that does not hold."""
    found = [mismatch for key, rules in expectation.sections.items() for mismatch in _SECTIONS[key][1](rules, seen)]
    if expectation.negated is not None and not check(expectation.negated, seen):
        found.append(
            view.Mismatch(
                line=expectation.negated.line,
                subject="not",
                expected="that this does not hold",
                found=f"it holds: {_words(expectation.negated)}",
            )
        )
    return found


def _words(expectation: Expectation) -> str:
    parts = [f"{key} {', '.join(_subject(rule) for rule in rules)}" for key, rules in expectation.sections.items()]
    parts += ["not (" + _words(expectation.negated) + ")"] if expectation.negated is not None else []
    return "; ".join(parts) or "an empty expectation"


def _subject(rule: Any) -> str:
    return str(
        getattr(rule, "pattern", None) or getattr(rule, "group", None) or getattr(rule, "sort", None) or rule.expected
    )
