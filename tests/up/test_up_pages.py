"""The pages about other projects show what happens: their commands are run on a cluster of `pumice up`, and print what is shown."""

from __future__ import annotations

import shlex
from pathlib import Path

import pages
import pytest
from running_cluster import RunningCluster

pytestmark = pytest.mark.kube

FOLDER = Path(__file__).parents[2] / "docs/integrations"
PAGES = ["jobs"]


@pytest.mark.parametrize("name", PAGES)
def test_a_page_shows_what_its_commands_print(name, tmp_path):
    page = (FOLDER / f"{name}.md").read_text(encoding="utf-8")
    start = next(step.command for step in pages.steps(page) if step.command.startswith("pumice up"))
    with RunningCluster(tmp_path, *shlex.split(start)[2:]) as cluster:
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
