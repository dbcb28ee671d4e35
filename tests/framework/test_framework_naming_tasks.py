"""How answers combine that name tasks, tier by tier: whom all plugins of a tier agree on, and whom any of them wants gone."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from pumice.framework.breakdowns import Breakdowns
from pumice.framework.configuration import SWITCHES, PluginSetting
from pumice.framework.naming_tasks import Intersection, Union
from pumice.framework.points import EVERYTHING, Point
from pumice.framework.registration import Roster, Slot
from pumice.model.task import Task

TASKS = {name: SimpleNamespace(uid=name) for name in "abcde"}
STRANGER = SimpleNamespace(uid="stranger")


def fail(candidates):
    """Break down."""
    raise ValueError(len(candidates))


def strange(candidates):
    """Name somebody whom nobody asked about."""
    return [*candidates[:1], STRANGER]


def first_of_b_and_c(candidates):
    """Give the first of two, as one does that counts what it gives."""
    return [task for task in candidates if task.uid in "bc"][:1]


def half(candidates):
    """Give the last two of many, and everybody of few."""
    return candidates if len(candidates) <= 2 else candidates[-2:]


def half_but_c(candidates):
    """Give the same, but not one of them alone."""
    return [] if candidates == [TASKS["c"]] else half(candidates)


def few(candidates):
    """Give everybody of few, and nobody of many."""
    return candidates if len(candidates) <= 2 else []


def extension(kind, tiers, *, final_veto=False):
    """Give an extension of plugins by tier: each gives those that it names in a text, abstains if it names none, or is a function."""
    roster = Roster(len(tiers), final_veto=final_veto, breakdowns=Breakdowns())
    words = "claimant, candidates" if issubclass(kind, Intersection) else "candidates"
    declared = kind[Task] if issubclass(kind, Intersection) else kind[[list[Task]]]
    made = Point("Made", declared, words, says="").extension(roster)
    for tier, answers in enumerate(tiers):
        for place, answer in enumerate(answers):
            roster.slot = Slot(tier, f"p{tier}{place}", PluginSetting("p", dict(SWITCHES), {}, 0), EVERYTHING)
            made.add(function(kind, answer))
    return made, roster.breakdowns


def function(kind, answer):
    def said(candidates):
        if callable(answer):
            return answer(candidates)
        return None if answer is None else [task for task in candidates if task.uid in answer]

    return (lambda _claimant, candidates: said(candidates)) if issubclass(kind, Intersection) else said


AGREED = [
    ("all agree", [["ab", "bc"]], 0, "b"),
    ("one abstains", [[None, "bc"]], 0, "bc"),
    ("all abstain", [[None], [None, None]], -1, ""),
    ("nobody is asked", [[], []], -1, ""),
    ("one lets everybody go", [["abcd"]], 0, "abcd"),
    ("the first tier with any decides", [[None], ["cd", "bd"], ["a"]], 1, "d"),
    ("one who gives nobody ends its tier", [["", "bc"]], -1, ""),
    ("also after others, and the next tier decides", [["ab", ""], ["cd"]], 1, "cd"),
    ("whoever comes after those who have nobody in common starts afresh", [["ab", "cd", "d"]], 0, "d"),
    ("but not with everybody", [["ab", "cd", "abcd"], ["a"]], 1, "a"),
    ("and is intersected with those after it", [["ab", "cd", "abc", "bc"]], 0, "bc"),
    ("those who have nobody in common decide nothing", [["ab", "cd"], ["a"]], 1, "a"),
    ("unless they agree on some whom none of them refuses alone", [[first_of_b_and_c, half], ["a"]], 0, "b"),
    ("be it one", [[first_of_b_and_c, half_but_c], ["a"]], 0, "b"),
    ("but not where somebody else was given", [[first_of_b_and_c, half, "bc"]], 0, "bc"),
    ("nor where one gives nobody", [[few, "ab"], ["c"]], 1, "c"),
    ("of whom all could go alone none is left over", [[lambda c: c[:1], lambda c: c[-1:]], ["d"]], 1, "d"),
    ("one that breaks down protects everybody", [["ab", fail]], -1, ""),
    ("in later tiers too", [[None, fail], ["ab"]], -1, ""),
    ("but is not asked where a tier before it decides", [["ab"], [fail]], 0, "ab"),
    ("so does one that names strangers", [["ab", strange]], -1, ""),
]


@pytest.mark.parametrize(("tiers", "number", "names"), [row[1:] for row in AGREED], ids=[row[0] for row in AGREED])
def test_the_first_tier_decides_whose_plugins_agree_on_somebody(tiers, number, names):
    made, _ = extension(Intersection, tiers)
    candidates = [TASKS[name] for name in "abcd"]
    decided, found = made.decided(None, candidates)
    assert (decided, "".join(task.uid for task in found)) == (number, names)
    assert made(None, candidates) == found
    assert made.of_tier(number, None, candidates) == found


@pytest.mark.parametrize(("number", "names"), [(-1, ""), (0, "ab"), (1, "c"), (2, "")])
def test_each_tier_can_be_asked_alone(number, names):
    made, _ = extension(Intersection, [["ab"], ["c"], [fail]])
    found = made.of_tier(number, None, [TASKS[name] for name in "abcd"])
    assert "".join(task.uid for task in found) == names


VETOES = [
    ("one intersection over all tiers", [["abc"], ["bcd"]], 0, "bc"),
    ("one abstains", [[None], ["bc"]], 0, "bc"),
    ("all abstain", [[None], [None]], -1, ""),
    ("an empty one is final", [["ab"], ["cd"], ["abcd"]], -1, ""),
    ("so is one who gives nobody", [["ab", ""], ["ab"]], -1, ""),
    ("one that breaks down protects everybody", [["ab"], [fail]], -1, ""),
]


@pytest.mark.parametrize(("tiers", "number", "names"), [row[1:] for row in VETOES], ids=[row[0] for row in VETOES])
def test_with_a_final_veto_all_tiers_have_to_agree(tiers, number, names):
    made, _ = extension(Intersection, tiers, final_veto=True)
    decided, found = made.decided(None, [TASKS[name] for name in "abcd"])
    assert (decided, "".join(task.uid for task in found)) == (number, names)


@pytest.mark.parametrize("kind", [Intersection, Union])
@pytest.mark.parametrize("breaks", [fail, strange])
def test_who_breaks_down_or_names_strangers_is_noted(kind, breaks):
    made, found = extension(kind, [["ab", breaks]])
    candidates = [TASKS[name] for name in "abcd"]
    made(None, candidates) if kind is Intersection else made(candidates)
    assert [each.plugin for each in found.found.values()] == ["p01"]


UNITED = [
    ("each with the first that names it", [["ab", "bc"]], [("a", "p00"), ("b", "p00"), ("c", "p01")]),
    ("the first tier that names anybody", [[""], ["c", ""], ["a"]], [("c", "p10")]),
    ("nobody names anybody", [["", ""], []], []),
    ("one that breaks down names nobody", [[fail, "b"], ["c"]], [("b", "p01")]),
    ("nor does one that names strangers", [[strange], ["c"]], [("c", "p10")]),
]


@pytest.mark.parametrize(("tiers", "named"), [row[1:] for row in UNITED], ids=[row[0] for row in UNITED])
def test_of_those_who_want_tasks_gone_the_first_tier_that_names_any_is_heard(tiers, named):
    made, _ = extension(Union, tiers)
    assert [(task.uid, plugin) for task, plugin in made([TASKS[name] for name in "abcd"])] == named


def test_who_broke_down_is_asked_no_more_in_the_cycle():
    asked = []

    def breaks(candidates):
        asked.append(len(candidates))
        fail(candidates)

    made, _ = extension(Union, [[breaks, "a"]])
    for _ in range(2):
        assert [task.uid for task, _ in made([TASKS["a"], TASKS["b"]])] == ["a"]
    assert asked == [2]
