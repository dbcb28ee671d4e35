"""Filters and scores by what they read: where each is sorted, what stands for one that breaks down, and how they are asked."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from pumice.framework import functions
from pumice.framework.breakdowns import Breakdowns, PluginBreakdownError, WrongAnswerError
from pumice.framework.configuration import SWITCHES, PluginSetting
from pumice.framework.functions import Filters, Functions, OfOne, Scores
from pumice.framework.points import Point
from pumice.framework.reads import NOTHING, Reads
from pumice.framework.reasons import Code, Reasons
from pumice.framework.registration import RegistrationError, Roster, Slot

NODE, COLUMNS, TASKS, OTHERS = Reads.NODE, Reads.COLUMNS, Reads.TASKS, Reads.OTHER_NODES
TASK, JOB, QUEUE, TIME = Reads.TASK, Reads.JOB, Reads.QUEUE, Reads.TIME
NODES = range(3)


def zeros(*_):
    """Say of three nodes that they take somebody, or are worth nothing."""
    return np.zeros(len(NODES), dtype=np.int16)


def many(subjects, nodes):
    """Say the same of many."""
    return np.zeros((len(subjects), len(nodes)), dtype=np.int16)


def roster(breakdowns=None):
    made = Roster(1, breakdowns=breakdowns or Breakdowns())
    forgotten = []
    made.evaluator = SimpleNamespace(forget=forgotten.append, reasons=Reasons(), forgotten=forgotten)
    made.slot = Slot(0, "test", PluginSetting("test", dict(SWITCHES), {}, 0), NOTHING)
    return made


def filters(*added, known=None):
    made = Point("Predicate", Filters, "subject, nodes", says="").extension(known or roster())
    for each in added:
        made.add(**{"function": zeros, **each})
    return made


def scores(*added, known=None):
    made = Point("NodeOrder", Scores, "subject, nodes", says="").extension(known or roster())
    for each in added:
        made.add(**{"function": zeros, **each})
    return made


# ---- sorting

SORTED = [
    (NOTHING, "static", "static"),
    (NODE, "static", "static"),
    (COLUMNS, "local", "own"),
    (TASKS, "local", "own"),
    (NODE | COLUMNS, "local", "own"),
    (TASK, "local", "own"),
    (JOB, "local", "own"),
    (QUEUE, "local", "own"),
    (TIME | NODE, "local", "own"),
    (OTHERS, "global", "global"),
    (OTHERS | COLUMNS, "global", "global"),
    (OTHERS | JOB, "global", "global"),
]


@pytest.mark.parametrize(("reads", "filtered", "scored"), SORTED)
def test_a_function_is_sorted_by_what_it_reads(reads, filtered, scored):
    found = Functions(filters({"reads": reads}), scores({"reads": reads}))
    sorted_filters = {"static": found.filters_static, "local": found.filters_local, "global": found.filters_global}
    sorted_scores = {"static": found.scores_static, "own": found.scores, "global": found.scores_global}
    assert [name for name, each in sorted_filters.items() if each] == [filtered]
    assert [name for name, each in sorted_scores.items() if each] == [scored]
    assert found.raws == []
    assert found.reads == reads.value


@pytest.mark.parametrize("more", [{"normalise": zeros}, {"follow": zeros}, {"normalise": zeros, "follow": zeros}])
@pytest.mark.parametrize("reads", [NOTHING, COLUMNS, OTHERS])
def test_a_score_that_is_normalised_or_followed_is_kept_raw(more, reads):
    found = Functions(filters(), scores({"reads": reads, **more}))
    assert (len(found.raws), found.scores_static, found.scores, found.scores_global) == (1, [], [], [])
    assert list(found.raw_flags.values()) == [(reads == OTHERS, reads == COLUMNS)]
    assert found.reads == reads.value


@pytest.mark.parametrize(
    ("reads", "ahead", "amounts", "is_ahead", "flags"),
    [
        (COLUMNS, False, True, True, (False, True)),
        (NODE | COLUMNS, False, True, True, (False, False)),
        (COLUMNS | TASKS, False, False, False, (True, False)),
        (TASKS, False, False, False, (True, False)),
        (TASKS, True, False, True, (True, False)),
        (JOB, False, False, False, (False, False)),
        (JOB, True, False, True, (False, False)),
    ],
)
def test_a_filter_of_amounts_or_one_that_looks_ahead_can_be_asked_ahead(reads, ahead, amounts, is_ahead, flags):
    found = Functions(filters({"reads": reads, "ahead": ahead}), scores())
    assert (bool(found.filters_amounts), bool(found.filters_ahead)) == (amounts, is_ahead)
    assert list(found.local_flags.values()) == [flags]


@pytest.mark.parametrize(
    ("reads", "ahead", "read", "blind"),
    [
        (COLUMNS, False, False, False),
        (TASKS, False, True, True),
        (TASKS, True, True, False),
        (NODE | TASKS, False, True, True),
    ],
)
def test_a_score_that_reads_tasks_is_blind_unless_it_looks_ahead(reads, ahead, read, blind):
    found = Functions(filters(), scores({"reads": reads, "ahead": ahead}))
    assert (found.scores_read_tasks, found.scores_are_blind) == (read, blind)


@pytest.mark.parametrize(
    ("reads", "elsewhere", "subjects", "tasks"),
    [
        (NOTHING, False, False, False),
        (NODE | COLUMNS | TASKS, False, False, False),
        (OTHERS, True, False, False),
        (TASK, False, True, True),
        (JOB, False, True, False),
        (QUEUE, False, True, False),
        (TIME, False, True, False),
    ],
)
def test_what_any_function_reads_tells_subjects_apart(reads, elsewhere, subjects, tasks):
    for found in (Functions(filters({"reads": reads}), scores()), Functions(filters(), scores({"reads": reads}))):
        assert found.looks_elsewhere is elsewhere
        assert (found.tells_subjects_apart, found.tells_tasks_apart) == (subjects, tasks)


ALONE = [
    ({"reads": COLUMNS, "function": None, "many": many}, False, False),
    ({"reads": COLUMNS}, True, False),
    ({"reads": COLUMNS | NODE, "function": None, "many": many}, True, False),
    ({"reads": JOB, "function": None, "many": many}, True, False),
    ({"reads": OTHERS, "function": None, "many": many}, False, True),
    ({"reads": NODE}, False, False),
]


@pytest.mark.parametrize(("added", "alone", "around"), ALONE)
def test_many_subjects_are_worked_out_together_only_by_amounts(added, alone, around):
    for found in (Functions(filters(added), scores()), Functions(filters(), scores(added))):
        assert (bool(found.asked_alone), bool(found.looking_around)) == (alone, around)
    raw = Functions(filters(), scores({**added, "normalise": zeros}))
    assert (bool(raw.asked_alone), bool(raw.looking_around)) == (not around, around)


def test_a_question_that_tells_subjects_apart_is_kept_once():
    apart, other = lambda subject: None, lambda subject: None
    found = Functions(filters({"apart": apart}, {"apart": other}), scores({"apart": apart}, {}))
    assert found.aparts == [apart, other]
    assert [plugin for plugin, _ in found.identity()] == ["test"] * 4


# ---- one function


@pytest.mark.parametrize(("steady", "stepwise"), [(None, True), (lambda _: True, False), (lambda _: False, True)])
def test_a_placement_may_change_the_answer_to_equals_unless_the_function_says_that_it_does_not(steady, stepwise):
    (found,) = filters({"steady": steady}).registered()
    assert found.is_stepwise(None) is stepwise


def test_what_a_filter_says_of_itself_is_kept():
    detail, cause = lambda *_: "", lambda *_: ""
    (plain, special) = filters({}, {"own_queue": True, "ahead": True, "cause": cause, "details": detail}).registered()
    assert (plain.own_queue, plain.ahead, plain.cause, plain.details) == (False, False, None, None)
    assert (special.own_queue, special.ahead, special.cause, special.details) == (True, True, cause, detail)


@pytest.mark.parametrize("made", [filters, scores])
def test_a_function_is_asked_about_one_subject_or_about_many_and_has_to_be_one_of_both(made):
    with pytest.raises(TypeError, match="or `many`"):
        made({"function": None})
    (both,) = made({"many": many}).registered()
    assert (both.function, both.many) == (zeros, many)


SUBJECT = SimpleNamespace(alone=lambda vocabulary: ["it"])
VIEW = type("View", (), {"__len__": lambda _: 3, "table": SimpleNamespace(vocabulary=None)})()
ONE = [
    (None, None),
    (np.array([[1, 2, 3]]), [1, 2, 3]),
    (np.array([[4]]), [4, 4, 4]),
]


@pytest.mark.parametrize(("answer", "row"), ONE)
def test_what_is_said_of_many_is_said_of_one_as_the_only_row(answer, row):
    found = OfOne(lambda subjects, nodes: answer)(SUBJECT, VIEW)
    assert (None if found is None else found.tolist()) == row


@pytest.mark.parametrize("answer", [np.zeros((2, 3)), np.zeros((1, 2)), np.zeros(3), np.array([["a", "b", "c"]]), 3])
def test_what_is_no_row_is_no_answer_about_one(answer):
    with pytest.raises(WrongAnswerError):
        OfOne(lambda subjects, nodes: answer)(SUBJECT, VIEW)


def test_forms_of_the_same_function_are_the_same():
    assert OfOne(many) == OfOne(many)
    assert hash(OfOne(many)) == hash(OfOne(many))
    assert OfOne(many) != OfOne(zeros)
    assert OfOne(many) != many
    assert OfOne(many).__code__ is many.__code__


def test_a_form_of_many_is_refused_that_cannot_be_called_about_subjects_and_nodes():
    with pytest.raises(RegistrationError, match=r'plugin "test": NodeOrder .*<lambda> does not take them'):
        scores({"function": None, "many": lambda subjects: None})


# ---- asking


def fail(*_):
    raise ValueError("no")


def test_a_filter_that_breaks_down_refuses_every_node_and_what_was_known_is_forgotten():
    known = roster()
    made = filters({"function": fail}, {}, known=known)
    found = [answer.tolist() for _, answer in functions.answers(made.registered(), "it", NODES)]
    reasons = known.evaluator.reasons
    assert [reasons.table[number].text.partition(" (")[0] for number in found[0]] == [
        "plugin test broke down at Predicate"
    ] * 3
    assert found[1] == [0, 0, 0]
    assert known.evaluator.forgotten == ["it"]
    with pytest.raises(ValueError, match="no"):
        list(functions.answers(made.registered(), "it", NODES, bare=True))


def test_a_reason_that_nobody_knows_is_no_answer():
    known = roster()
    number = known.evaluator.reasons.number("test", Code.UNSCHEDULABLE, "full")
    for said, told in ((number, "full"), (number + 1, "plugin test broke down at Predicate")):
        made = filters({"function": lambda *_, said=said: np.full(3, said, dtype=np.int16)}, known=known)
        ((_, answer),) = functions.answers(made.registered(), "it", NODES, known.evaluator.reasons)
        assert known.evaluator.reasons.table[answer[0]].text.startswith(told)


def test_a_score_that_breaks_down_gives_up_the_job_that_is_tried():
    known = roster()
    made = scores({"function": fail}, known=known)
    known.breakdowns.trying = SimpleNamespace(key="a/g")
    with pytest.raises(PluginBreakdownError):
        list(functions.answers(made.registered(), "it", NODES))
    assert known.evaluator.forgotten == ["it"]
    assert made.active


def test_where_no_job_is_tried_a_score_that_breaks_down_is_done_without():
    known = roster()
    made = scores({"function": fail, "many": many}, known=known)
    kept = made.registered()
    assert list(functions.answers(kept, "it", NODES)) == []
    assert not made.active
    assert list(known.breakdowns.found)
    assert kept[0].many is None
    assert kept[0].function("it", NODES) is None


def test_scores_are_added_and_where_nobody_speaks_there_are_none():
    def points(*values):
        return {"function": lambda *_: np.array(values, dtype=np.float64) if values else None}

    known = scores(points(1, 2, 3), points(), points(10, 0, -1)).registered()
    assert functions.points_of(known, "it", NODES).tolist() == [11, 2, 2]
    assert functions.points_of(known[1:2], "it", NODES) is None
    assert [functions.speaks(each, "it", NODES) for each in (known, known[1:2], [])] == [True, False, False]
    with pytest.raises(ValueError, match="no"):
        functions.speaks(scores({"function": fail}).registered(), "it", NODES)


def test_of_many_subjects_those_are_asked_that_can_be_asked_about_many():
    def said(value):
        return lambda subjects, nodes: None if value is None else np.full((len(subjects), len(nodes)), value)

    known = scores(
        {"reads": COLUMNS, "many": said(1)},
        {"reads": COLUMNS, "many": said(None)},
        {"reads": COLUMNS | NODE, "many": said(2)},
        {"reads": COLUMNS},
        {"reads": COLUMNS, "many": said(3)},
    ).registered()
    found = list(functions.answers_about_many(known, ["it", "another"], NODES, "fiu"))
    assert [each.tolist() for each in found] == [[[1] * 3] * 2, [[3] * 3] * 2]
    (wrong,) = scores({"reads": COLUMNS, "many": lambda *_: np.zeros((3, 3))}).registered()
    with pytest.raises(WrongAnswerError):
        list(functions.answers_about_many([wrong], ["it", "another"], NODES, "fiu"))


# ---- in place of a plugin, and at rest


def test_what_stands_in_for_a_plugin_is_asked_as_one_of_its_filters():
    made = filters()
    made.stand_in(fail)
    assert made.active
    assert [(each.plugin, each.function) for each in made.registered()] == [("test", fail)]


@pytest.mark.parametrize("about", ["a/g", ""])
def test_a_filter_at_rest_is_asked_about_each_subject_alone(about):
    streaks = {}
    for cycle in (1, 2):
        found = Breakdowns(cycle, streaks)
        found.note("test", "Predicate", zeros, ValueError("no"), about)
        found.end()
    made = filters({"many": many}, known=roster(Breakdowns(3, streaks)))
    (rests,) = made.registered()
    assert (rests.function is zeros, rests.many) == (False, None)
    other = filters({"function": fail, "many": many}, known=roster(Breakdowns(3, streaks)))
    assert [(each.function, each.many) for each in other.registered()] == [(fail, many)]
