"""What cannot be an answer: checks that cost one look at each answer, however many nodes or candidates it is about."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pumice.framework.breakdowns import WrongAnswerError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pumice.model.task import Task

_COMPARABLE = frozenset({int, str, bool})
"""Parts of sort keys that hold nothing that could be NaN."""


def check_reasons(answer: object, length: int) -> None:
    """Check what a filter says about nodes: a whole number for each."""
    if not isinstance(answer, np.ndarray) or answer.shape != (length,):
        raise WrongAnswerError(_lengths(answer, length))
    if answer.dtype.kind not in "iu":
        raise WrongAnswerError(f"it gives values of type {answer.dtype} instead of numbers of reasons")


def check_known(answer: Any, known: int) -> None:
    """Check that every reason a filter gives is in the table."""
    if len(answer) and not 0 <= int(answer.min()) <= int(answer.max()) < known:
        raise WrongAnswerError(
            f"it gives a reason with the number {answer.max()} or {answer.min()}, which nobody has defined"
        )


def check_points(answer: object, length: int) -> None:
    """Check what a score says about nodes or domains: a number for each, and no NaN."""
    if not isinstance(answer, np.ndarray) or answer.shape != (length,):
        raise WrongAnswerError(_lengths(answer, length))
    if answer.dtype.kind not in "fiu":
        raise WrongAnswerError(f"it gives values of type {answer.dtype} instead of numbers")
    least = np.minimum.reduce(answer, initial=0)  # NaN, if there is one
    if least != least:  # noqa: PLR0124  NaN alone differs from itself
        raise WrongAnswerError(f"it gives NaN for {int(np.isnan(answer).sum())} of {length}")


def check_many(answer: object, shape: tuple[int, int], kinds: str) -> None:
    """Check what is said about many subjects: numbers for each and every node, or what numpy spreads to that."""
    if not isinstance(answer, np.ndarray) or answer.ndim != 2:
        raise WrongAnswerError(f"it gives {_shown(answer)} instead of an array of subjects by nodes, {shape}")
    if answer.dtype.kind not in kinds or answer.shape[0] not in (1, shape[0]) or answer.shape[1] not in (1, shape[1]):
        raise WrongAnswerError(f"it gives {answer.dtype} of shape {answer.shape} where {shape} is asked for")


def check_truth(answer: object) -> bool:
    """Return an answer that is yes or no."""
    if isinstance(answer, (bool, np.bool_)):
        return bool(answer)
    raise WrongAnswerError(f"it gives {_shown(answer)} instead of True or False")


def check_instance(answer: object, wanted: type) -> None:
    """Check that an answer is of the type that its point declares."""
    if isinstance(answer, bool) or not isinstance(answer, (int, np.integer) if wanted is int else wanted):
        raise WrongAnswerError(f"it gives {_shown(answer)} instead of {wanted.__name__}")


def check_position(answer: Any, length: int) -> None:
    """Check that a position is one among so many."""
    if not 0 <= answer < length:
        raise WrongAnswerError(f"asked about {length} nodes, it chooses the one at position {answer}")


def check_chosen(answer: object, asked: Sequence[Task]) -> None:
    """Check that a choice among tasks names only those that were asked about."""
    if not isinstance(answer, (list, tuple)):
        raise WrongAnswerError(f"it gives {_shown(answer)} instead of a list of tasks")
    if answer and not set(map(id, asked)).issuperset(map(id, answer)):
        raise WrongAnswerError(
            f"asked about {len(asked)} tasks, it names {len(answer)}, of whom some were not asked about"
        )


def check_keys(parts: Sequence[object]) -> None:
    """Check that sort keys can be compared as far as NaN goes: numbers, and what tuples hold."""
    kinds = set(map(type, parts))
    for kind in kinds:
        if issubclass(kind, (float, np.floating)):
            if any(part != part for part in parts if type(part) is kind):  # noqa: PLR0124  as above
                raise WrongAnswerError("it gives NaN as a sort key")
        elif issubclass(kind, tuple):
            check_keys([inner for part in parts if isinstance(part, tuple) for inner in part])


def check_key(parts: Iterable[object]) -> None:
    """Check the parts of the sort key of one item, as `check_keys` does those of many: it is asked for every turn of every job and queue."""
    for part in parts:
        kind = type(part)
        if kind is float:
            if part != part:  # noqa: PLR0124  as above
                raise WrongAnswerError("it gives NaN as a sort key")
        elif isinstance(part, tuple):
            check_key(part)
        elif kind not in _COMPARABLE:
            check_keys([part])


def check_comparison(answer: object) -> None:
    """Check that a comparator gives a number."""
    if not isinstance(answer, (int, float, np.number)) or answer != answer:  # noqa: PLR0124  as above
        raise WrongAnswerError(f"it gives {_shown(answer)} instead of a number below, at or above 0")


def _lengths(answer: object, length: int) -> str:
    if isinstance(answer, np.ndarray):
        return f"it gives an array of shape {answer.shape} where {length} values are asked for"
    return f"it gives {_shown(answer)} instead of an array of {length} values"


def _shown(answer: object) -> str:
    try:
        return f"{answer!r:.40}" if isinstance(answer, (str, int, float, type(None))) else type(answer).__name__
    except Exception:  # noqa: BLE001  what cannot even be shown
        return type(answer).__name__
