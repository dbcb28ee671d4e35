"""What a plugin registers is checked where it registers it: the message names the plugin, the point and what the point asks with."""

from __future__ import annotations

import ast
import functools
import inspect
import operator
from pathlib import Path

import pytest

import pumice
from builders import Desk
from pumice.framework import registration
from pumice.framework.configuration import Settings
from pumice.framework.plugin import Plugin
from pumice.framework.points import POINTS, RegistrationError

CONFIG = 'actions: "allocate"\ntiers:\n- plugins: [{name: author}]\n'
ROOT = Path(__file__).parents[2]
SOURCE = Path(pumice.__file__).parent


class Author(Plugin):
    """Does in `open` what a test tells it to."""

    name = "author"
    points = frozenset(point.name for point in POINTS)
    act = staticmethod(lambda session: None)

    def open(self, session):
        type(self).act(session)

    def one(self, job):
        return job is not None

    def two(self, queue, demand):
        return None


def opened(act):
    plugin = type("Author", (Author,), {"act": staticmethod(act)})
    return Desk(CONFIG, plugin).session()


def keyword_only(job, *, strict):
    return strict and job


WRONG = [
    (
        "too many",
        lambda s: s.job_ready.add(lambda job, more: True),
        "JobReady calls functions with 1 parameter (job: Job)",
    ),
    (
        "too few",
        lambda s: s.allocatable.add(lambda queue: None),
        "Allocatable calls functions with 2 parameters (queue: Queue, demand: Demand)",
    ),
    (
        "a method",
        lambda s: s.job_valid.add(Author(Settings(), {}).two),
        "JobValid calls functions with 1 parameter (job: Job), and Author.two",
    ),
    (
        "a filter",
        lambda s: s.predicate.add(lambda subject: None),
        "Predicate calls functions with 2 parameters (subject: Subject, nodes: Nodes)",
    ),
    ("a score", lambda s: s.score.add(lambda: None), "NodeOrder calls functions with 2 parameters"),
    (
        "a keyword",
        lambda s: s.job_ready.add(keyword_only),
        "keyword_only does not take them: missing a required argument: 'strict'",
    ),
    ("a partial", lambda s: s.job_ready.add(functools.partial(Author.two, None, 1, 2)), "JobReady calls functions"),
    (
        "a partial after another",
        lambda s: [s.job_ready.add(functools.partial(Author.two, None, *given)) for given in ([1], [1, 2])],
        "JobReady calls functions",
    ),
    ("no function", lambda s: s.job_ready.add(True), "True cannot be called"),
    (
        "a comparator",
        lambda s: s.job_order.add_comparator(lambda job: 0),
        "JobOrder calls functions with 2 parameters (left, right)",
    ),
    (
        "a misspelt point",
        lambda s: s.job_redy.add(Author.one),
        "no extension point job_redy; did you mean job_ready (JobReady)?",
    ),
    (
        "a point by its name",
        lambda s: s.NodeOrder.add(Author.one),
        "no extension point NodeOrder; did you mean score (NodeOrder)?",
    ),
    ("a point of nobody", lambda s: s.cluster_order.add(Author.one), "no extension point cluster_order"),
]


def refusal(session):
    """What was wrong with the one plugin that could not be opened."""
    (found,) = session.breakdowns.found.values()
    assert found.point == "open"
    assert isinstance(found.error, RegistrationError)
    return str(found.error)


@pytest.mark.parametrize(("act", "text"), [case[1:] for case in WRONG], ids=[case[0] for case in WRONG])
def test_what_a_point_cannot_ask_is_refused_by_name(act, text):
    refused = refusal(opened(act))
    assert refused.startswith('plugin "author": ')
    assert text in refused


RIGHT = [
    lambda s: s.job_ready.add(Author(Settings(), {}).one),
    lambda s: s.job_ready.add(lambda *_: True),
    lambda s: s.job_ready.add(lambda job, strict=True: strict),
    lambda s: s.job_ready.add(functools.partial(Author.two, None, 1)),
    lambda s: s.job_order.add(operator.attrgetter("priority")),
    lambda s: s.job_order.add(len),
    lambda s: s.job_order.add_comparator(lambda left, right: 0),
    lambda s: s.job_valid.add(Invalidating()),
]


class Invalidating:
    def __call__(self, job):
        return None


def test_the_message_is_the_one_that_the_documentation_shows():
    class Headroom(Plugin):
        name = "headroom"

        def open(self, session):
            session.predicate.add(self.fits)

        def fits(self, subject):
            return None

    Headroom.fits.__qualname__ = "Headroom.fits"
    session = Desk('actions: "allocate"\ntiers:\n- plugins: [{name: headroom}]\n', Headroom).session()
    assert refusal(session) in (ROOT / "docs/plugins.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("act", RIGHT)
def test_whatever_can_be_asked_is_taken(act):
    session = opened(act)
    assert sum(len(list(getattr(session, point.attribute))) for point in POINTS) == 1


def test_outside_open_a_missing_attribute_is_an_ordinary_mistake():
    session = opened(lambda session: None)
    with pytest.raises(AttributeError, match="'Session' object has no attribute 'job_redy'"):
        _ = session.job_redy
    assert not hasattr(session, "cluster_order")


def test_nobody_but_the_dispatcher_calls_what_was_registered():
    """`.function` of a registered function is read by the classes that combine answers, by what counts calls for benchmarks, and by nobody else."""
    readers = {
        str(file.relative_to(SOURCE))
        for file in sorted(SOURCE.rglob("*.py"))
        for each in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(each, ast.Attribute) and each.attr == "function"
    }
    assert readers == {
        "bench/counting.py",
        "framework/combining.py",
        "framework/naming_tasks.py",
        "framework/extensions.py",
        "framework/functions.py",
        "framework/ordering.py",
    }


class Odd:
    """Methods of every kind of signature."""

    def none(self): ...
    def one(self, job): ...
    def with_default(self, job, more=1): ...
    def any_number(*args): ...
    def keyword(self, job, *, strict): ...
    def keyword_with_default(self, job, *, strict=True): ...
    def by_place(self, job, /, more): ...
    @classmethod
    def of_class(cls, job): ...
    @staticmethod
    def of_nobody(job, more): ...
    @functools.wraps(lambda job, more: None)
    def wrapping(self, *args): ...
    def __call__(self, job, more): ...


def named(function):
    return getattr(function, "__name__", "called")


ODD = [getattr(Odd(), name) for name in vars(Odd) if not name.startswith("__")]


@pytest.mark.parametrize("parameters", [(), ("a",), ("a", "b"), ("a", "b", "c")], ids=len)
@pytest.mark.parametrize("function", [*ODD, Odd(), Odd.one, lambda *, a=1: a, lambda **more: more], ids=named)
def test_what_is_refused_is_what_python_would_not_bind(function, parameters):
    try:
        inspect.signature(function).bind(*parameters)
    except TypeError:
        with pytest.raises(RegistrationError):
            registration.check(function, "Point", parameters, "author")
    else:
        registration.check(function, "Point", parameters, "author")


@pytest.mark.parametrize("point", ["predicate", "score"])
def test_a_form_over_many_that_does_not_take_subjects_and_nodes_is_refused(point):
    session = opened(lambda session: getattr(session, point).add(many=lambda subjects: None))
    (found,) = session.breakdowns.found.values()
    assert "calls functions with 2 parameters (subject: Subject, nodes: Nodes)" in str(found)
