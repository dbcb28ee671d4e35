"""What the pages about queues, schedules, flows and discovery show is what happens."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from pumice.cli.program import program
from pumice.controllers.volcano.hyper_nodes import settings

DOCS = Path(__file__).parents[2] / "docs"
SHOWN = re.findall(r"```yaml\n(scenario: .*?)```", (DOCS / "schedules.md").read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.parametrize("text", SHOWN, ids=lambda text: text.splitlines()[0])
def test_the_scenarios_on_the_page_pass(text, tmp_path):
    file = tmp_path / "shown.yaml"
    file.write_text(text, encoding="utf-8")
    ran = CliRunner().invoke(program, ["test", str(file)])
    assert ran.exit_code == 0, ran.output
    assert len(SHOWN) == 3


def test_the_sources_on_the_page_are_read_without_a_problem():
    page = (DOCS / "topology.md").read_text(encoding="utf-8")
    text = re.search(r"```yaml\n(networkTopologyDiscovery:.*?)```", page, re.DOTALL)[1]
    found = settings.read({"data": {settings.KEY: text}})
    assert found.problems == ()
    assert found.labels.types == {"racks": ("example.com/rack", "example.com/block")}
    assert (found.ufm.endpoint, found.ufm.insecure) == ("https://ufm.example:443", False)
