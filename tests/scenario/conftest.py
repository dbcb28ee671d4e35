"""Expectations read from YAML as in a scenario file, checked against a cluster that is only data."""

from __future__ import annotations

import textwrap

import pytest
from scenario_clusters import by_name, make_view, pod

from pumice.api import documents
from pumice.scenario import expectations, results
from pumice.scenario.reading import Cursor


def read(text):
    """Read an expectation; give it and the messages of what is wrong with it."""
    problems = []
    (document,) = documents.load_all(textwrap.dedent(text), "test")
    return expectations.read(Cursor(document, problems, document.data)), [problem.message for problem in problems]


@pytest.fixture
def mismatches():
    """Give the sentences of what does not hold of an expectation."""

    def check(text, **parts):
        expectation, problems = read(text)
        assert problems == []
        return [results.sentence(one) for one in expectations.check(expectation, make_view(**parts))]

    return check


@pytest.fixture
def refusals():
    """Give the messages of what is wrong with an expectation."""
    return lambda text: read(text)[1]


@pytest.fixture
def cluster():
    """Three pods of one gang: two on n1, one waiting."""
    return by_name(
        pod("a/g-0", "n1", "Running", "2"), pod("a/g-1", "n1", "Running", "500m"), pod("a/g-2", nominatedNodeName="n2")
    )
