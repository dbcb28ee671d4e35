"""Typical kinds of pods: what each asks for of cpu and cards, on which models, and which of them cover most of the pods that were created of late."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from pumice.model import selectors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pumice.model.constraints import Constraints
    from pumice.model.shape import Shape

Models = tuple[tuple[tuple[str, tuple[str, ...]], ...], ...]
"""Which models a pod may use: alternatives, each of them requirements (operator, values) on one label; without any, all."""
Kind = tuple[int, int, int, Models]
"""Cpu in thousandths, thousandths of each card, cards, models."""
Learnt = tuple[tuple[Kind, int], ...]
"""Typical kinds, the most frequent first, with how many pods were of each."""

_NONE: Final = ("In", ())
ALL: Final = 100


def models_of(constraints: Constraints, label: str) -> Models:
    """Return what a pod's node selector and required affinity say about a label."""
    own = (("In", (constraints.node_selector[label],)),) if label in constraints.node_selector else ()
    required = selectors.required_terms(constraints.affinity)
    if required is None:
        return (own,) if own else ()
    found = {
        tuple(
            sorted({*own, *((r.operator, tuple(sorted(r.values))) for r in term.match_expressions if r.key == label)})
        )
        for term in required
        if selectors.term_is_valid(term)
    }
    if () in found:
        return ()
    return tuple(sorted(found)) or ((_NONE,),)


def allows(models: Models, model: str | None) -> bool:
    """Tell whether a model is among those that a pod may use."""
    return not models or any(
        all(selectors.holds(operator, values, model) for operator, values in each) for each in models
    )


def counted(shapes: Iterable[Shape], kind_of: Callable[[Shape], Kind]) -> Counter[Kind]:
    """Count pods by their kinds; pods of one shape are of one kind."""
    listed = list(shapes)
    by_shape = {id(shape): shape for shape in listed}
    numbers = Counter(map(id, listed))
    kinds: Counter[Kind] = Counter()
    for number, count in numbers.items():
        kinds[kind_of(by_shape[number])] += count
    return kinds


def learn(kinds: Counter[Kind], share: int) -> Learnt:
    """Return the most frequent kinds, of equally frequent ones the larger, until they cover a share of all pods in percent."""
    pods, covered = kinds.total(), 0
    found: list[tuple[Kind, int]] = []
    for kind, count in sorted(kinds.items(), key=lambda each: (each[1], each[0]), reverse=True):
        if covered * ALL >= share * pods:
            break
        found.append((kind, count))
        covered += count
    return tuple(found)
