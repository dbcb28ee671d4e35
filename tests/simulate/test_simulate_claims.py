"""Claims of `--assert`: a grammar of its own, and nothing that is not in it."""

from __future__ import annotations

import re

import pytest

from pumice.simulate import claims
from pumice.simulate.report import Judged

POLICIES = [
    Judged(
        name="easy",
        figures={"wait": {"mean": 90.0, "wide": None}, "utilisation": {"nvidia.com/gpu": 0.75}, "evictions": 0},
    ),
    Judged(name="easy.2", figures={"wait": {"mean": 100.0}}),
]


@pytest.mark.parametrize(
    ("claim", "holds"),
    [
        ("easy.wait.mean < easy.2.wait.mean", True),
        ("easy.wait.mean>easy.2.wait.mean", False),
        ("easy.wait.mean <= 1.5m", True),
        ("easy.wait.mean < 1.5m", False),
        ("easy.wait.mean == 90 and easy.evictions == 0", True),
        ("easy.wait.mean == 90 and easy.evictions != 0", False),
        ("easy.utilisation.nvidia.com/gpu >= 75%", True),
        ("easy.wait.mean * 2 - 80 == easy.2.wait.mean", True),
        ("(easy.wait.mean + 10) / 2 == 50", True),
        ("-easy.wait.mean < -89", True),
        ("easy.wait.wide < 5", False),
        ("easy.wait.wide >= 5", False),
        ("easy.wait.mean / 0 < 1", False),
        ("2 + 3 * 4 == 14", True),
        ("1e3s == 1000", True),
    ],
)
def test_a_claim_is_judged_by_arithmetic(claim, holds):
    assert claims.judge(claim, POLICIES).holds is holds


@pytest.mark.parametrize(
    ("claim", "told"),
    [
        ("", "expected a number or a figure such as easy.wait.mean, found the end"),
        ("easy.wait.mean", "expected one of < <= > >= == !=, found the end"),
        ("easy.wait.mean <", "expected a number or a figure"),
        ("easy.wait.mean < 1 2", "expected the end, or 'and', found '2'"),
        ("easy.wait.mean < (1", "expected ')', found the end"),
        ("easy.wait.man < 1", "there is no figure 'wait.man'; did you mean easy.wait.mean?"),
        ("hard.wait.mean < 1", "hard.wait.mean names no policy; there are easy, easy.2"),
        ("__import__('os') < 1", "nothing known begins at"),
        ("easy.wait.mean < 1; 2", "nothing known begins at '; 2'"),
        ("(" * 60 + "1" + ")" * 60 + " < 2", "nested too deeply"),
        ("1 <" * 400, "longer than 1000 characters"),
        ("easy.wait < 1", "there is no figure 'wait'"),
    ],
)
def test_what_is_no_claim_is_told(claim, told):
    with pytest.raises(claims.ClaimError) as caught:
        claims.judge(claim, POLICIES)
    assert told in str(caught.value)


def test_a_claim_about_no_policy_or_group_is_refused_before_anything_runs():
    claims.check("easy.wait.mean < 1", ["easy"])
    claims.check("easy.queues.a.wait < 1", ["easy"])
    for wrong, told in (
        ("hard.wait.mean < 1", "names no policy"),
        ("easy.wiat.mean < 1", "there is no figure 'wiat'; did you mean easy.wait?"),
        ("easy.wait.mena < 1", "there is no figure 'wait.mena'; did you mean easy.wait.mean?"),
        ("easy.makespan.mean < 1", "there is no figure 'makespan.mean'"),
        ("easy.wait < 1", "there is no figure 'wait'"),
        ("easy.wait.mean", "found the end"),
    ):
        with pytest.raises(claims.ClaimError, match=re.escape(told)):
            claims.check(wrong, ["easy"])


def test_a_verdict_shows_the_figures_it_rests_on():
    told = str(claims.judge("easy.wait.mean < 60", POLICIES))
    assert told == "does not hold: easy.wait.mean < 60 (easy.wait.mean = 90)"
