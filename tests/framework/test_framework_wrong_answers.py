"""What can be an answer of a plugin and what cannot, and what is said of the latter."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from pumice.framework import wrong_answers
from pumice.framework.breakdowns import WrongAnswerError

NAN, END = float("nan"), float("inf")


class Odd:
    """What cannot be shown."""

    def __repr__(self):
        raise ValueError("not even this")


class OddText(str):
    """A text that cannot be shown."""

    __slots__ = ()
    __repr__ = Odd.__repr__


A, B, C = SimpleNamespace(), SimpleNamespace(), SimpleNamespace()
IN_ORDER = [
    ("check_reasons", (np.array([1, 2]), 2)),
    ("check_reasons", (np.array([1, 2], dtype=np.uint8), 2)),
    ("check_known", (np.array([0, 2]), 3)),
    ("check_known", (np.zeros(0, dtype=np.int16), 0)),
    ("check_points", (np.array([1.5, -2]), 2)),
    ("check_points", (np.array([1, 2]), 2)),
    ("check_points", (np.array([END, -END]), 2)),
    ("check_many", (np.zeros((2, 3)), (2, 3), "f")),
    ("check_many", (np.zeros((1, 3)), (2, 3), "fiu")),
    ("check_many", (np.zeros((2, 1)), (2, 3), "fiu")),
    ("check_truth", (True,)),
    ("check_truth", (np.True_,)),
    ("check_instance", (1, int)),
    ("check_instance", (np.int16(1), int)),
    ("check_instance", ("text", str)),
    ("check_position", (0, 1)),
    ("check_position", (2, 3)),
    ("check_chosen", ([], [])),
    ("check_chosen", ((A,), [B, A])),
    ("check_chosen", ([A, B], [B, A])),
    ("check_keys", ([1, "a", 1.5, (2, (0.5, "b"))],)),
    ("check_keys", ([None, False, (None,)],)),
    ("check_key", ([1, "a", True, 1.5, (2, (0.5, "b")), np.float64(1), None],)),
    ("check_comparison", (0,)),
    ("check_comparison", (-0.5,)),
    ("check_comparison", (np.int64(1),)),
]
NO_ANSWERS = [
    ("check_reasons", ([1, 2], 2), "it gives list instead of an array of 2 values"),
    ("check_reasons", (np.array([1]), 2), "it gives an array of shape (1,) where 2 values are asked for"),
    ("check_reasons", (np.zeros((2, 1), dtype=int), 2), "it gives an array of shape (2, 1) where 2 values are asked for"),
    ("check_reasons", (np.array([1.0]), 1), "it gives values of type float64 instead of numbers of reasons"),
    ("check_reasons", (np.array([True]), 1), "it gives values of type bool instead of numbers of reasons"),
    ("check_known", (np.array([0, 3]), 3), "it gives a reason with the number 3 or 0, which nobody has defined"),
    ("check_known", (np.array([-1, 2]), 3), "it gives a reason with the number 2 or -1, which nobody has defined"),
    ("check_points", (None, 2), "it gives None instead of an array of 2 values"),
    ("check_points", (np.array([1.0]), 2), "it gives an array of shape (1,) where 2 values are asked for"),
    ("check_points", (np.array(["a"]), 1), "it gives values of type <U1 instead of numbers"),
    ("check_points", (np.array([NAN, 1, NAN]), 3), "it gives NaN for 2 of 3"),
    ("check_points", (np.array([END, -END, NAN]), 3), "it gives NaN for 1 of 3"),
    ("check_many", ("high", (2, 3), "f"), "it gives 'high' instead of an array of subjects by nodes, (2, 3)"),
    ("check_many", (np.zeros(3), (2, 3), "f"), "it gives ndarray instead of an array of subjects by nodes, (2, 3)"),
    ("check_many", (np.zeros((2, 3)), (2, 3), "iu"), "it gives float64 of shape (2, 3) where (2, 3) is asked for"),
    ("check_many", (np.zeros((3, 3)), (2, 3), "f"), "it gives float64 of shape (3, 3) where (2, 3) is asked for"),
    ("check_many", (np.zeros((2, 2)), (2, 3), "f"), "it gives float64 of shape (2, 2) where (2, 3) is asked for"),
    ("check_truth", (1,), "it gives 1 instead of True or False"),
    ("check_truth", (Odd(),), "it gives Odd instead of True or False"),
    ("check_instance", (True, int), "it gives True instead of int"),
    ("check_instance", (1, str), "it gives 1 instead of str"),
    ("check_instance", (1.5, int), "it gives 1.5 instead of int"),
    ("check_instance", (OddText("text"), int), "it gives OddText instead of int"),
    ("check_instance", ("x" * 99, int), f"it gives '{'x' * 39} instead of int"),
    ("check_position", (3, 3), "asked about 3 nodes, it chooses the one at position 3"),
    ("check_position", (-1, 3), "asked about 3 nodes, it chooses the one at position -1"),
    ("check_chosen", (A, [A]), "it gives SimpleNamespace instead of a list of tasks"),
    ("check_chosen", ([A, C], [A, B]), "asked about 2 tasks, it names 2, of whom some were not asked about"),
    ("check_keys", ([1, NAN],), "it gives NaN as a sort key"),
    ("check_keys", ([np.float64(1), np.float32(NAN)],), "it gives NaN as a sort key"),
    ("check_keys", ([(1, ("a", NAN))],), "it gives NaN as a sort key"),
    ("check_keys", ([(1,), (NAN,)],), "it gives NaN as a sort key"),
    ("check_key", ([1, NAN],), "it gives NaN as a sort key"),
    ("check_key", ([(1, ("a", NAN))],), "it gives NaN as a sort key"),
    ("check_key", ([np.float64(NAN)],), "it gives NaN as a sort key"),
    ("check_comparison", (None,), "it gives None instead of a number below, at or above 0"),
    ("check_comparison", (NAN,), "it gives nan instead of a number below, at or above 0"),
]  # fmt: skip


@pytest.mark.parametrize(("check", "given"), IN_ORDER)
def test_what_can_be_an_answer_is_let_pass(check, given):
    with np.errstate(invalid="ignore"):
        found = getattr(wrong_answers, check)(*given)
    assert found is (True if check == "check_truth" else None)


@pytest.mark.parametrize(("check", "given", "told"), NO_ANSWERS)
def test_of_what_cannot_be_an_answer_it_is_said_why(check, given, told):
    with np.errstate(invalid="ignore"), pytest.raises(WrongAnswerError) as error:
        getattr(wrong_answers, check)(*given)
    assert str(error.value) == told


def test_no_is_an_answer():
    assert wrong_answers.check_truth(False) is wrong_answers.check_truth(np.False_) is False
