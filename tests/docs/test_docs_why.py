"""The causes on the page about waiting jobs are played, and what the page shows is what came out."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from pumice.cli.program import program

ROOT = Path(__file__).parents[2]
CAUSES = sorted((ROOT / "docs/examples/why").glob("[0-9]*.yaml"))
PAGE = (ROOT / "docs/why.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("file", CAUSES, ids=lambda file: file.stem)
def test_a_cause_is_explained_as_its_scenario_says_and_stands_on_the_page(file):
    ran = CliRunner().invoke(program, ["test", str(file)])
    assert ran.exit_code == 0, ran.output
    assert f"(examples/why/{file.name})" in PAGE


def test_the_page_shows_every_cause_with_what_kubectl_prints():
    assert len(CAUSES) == 18
    # One has no group to show, one no pod.
    assert PAGE.count("$ kubectl get podgroup train\nNAME ") == 17
    assert PAGE.count("$ kubectl get pod train-0 -o jsonpath=") == 17
