"""The pages about other projects show what happens: their commands are run on a cluster of `pumice up`, and print what is shown."""

from __future__ import annotations

from pathlib import Path

import pages
import pytest
import running_operators
from running_cluster import RunningCluster

FOLDER = Path(__file__).parents[2] / "docs/integrations"


def marked(name, programs):
    return pytest.param(name, marks=[getattr(pytest.mark, each) for each in ("kube", *programs)])


@pytest.mark.parametrize("name", [marked(*each) for each in running_operators.PAGES.items()])
def test_a_page_shows_what_its_commands_print(name, tmp_path):
    page = (FOLDER / f"{name}.md").read_text(encoding="utf-8")
    programs = running_operators.PAGES[name]
    with RunningCluster(tmp_path, *pages.options(page)) as cluster, running_operators.beside(cluster, programs):
        pages.play(page, cluster)


@pytest.mark.parametrize(
    ("printed", "shown", "same"),
    [
        ("job-0-t2hnb  1/1  Running  12s\n", "job-0-9bbdv 1/1 Running 3m20s", True),
        ("job-0-t2hnb  1/1  Running  12s\n", "job-0-9bbdv 1/1 Pending 12s", False),
        ("job-0-t2hnb  1/1  Running  12s\n", "job-1-t2hnb 1/1 Running 12s", False),
        ("podgroup-e708a281-fd20-44b7-8d22-8a7e9961773f 4", "podgroup-00000000-fd20-44b7-8d22-8a7e9961773f 4", True),
        ("one\ntwo\nthree\n", "one\n…\nthree", True),
        ("one\ntwo\nthree\n", "one\n…\nfour", False),
        ("worker 4", "worker 40", False),
    ],
)
def test_only_what_cannot_be_the_same_twice_is_left_out_of_the_comparison(printed, shown, same):
    assert pages.is_shown(printed, shown) is same
