"""What the page about Jobs shows is what happens."""

import re
from pathlib import Path

from click.testing import CliRunner

from pumice.cli.program import program
from pumice.controllers.volcano.job_plugins import protocol, registry
from pumice.controllers.volcano.jobs import reading

PAGE = (Path(__file__).parents[2] / "docs/jobs.md").read_text(encoding="utf-8")


def block(language):
    return re.search(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)[1]


def test_the_scenario_on_the_page_passes(tmp_path):
    file = tmp_path / "shown.yaml"
    file.write_text(block("yaml"), encoding="utf-8")
    ran = CliRunner().invoke(program, ["test", str(file)])
    assert ran.exit_code == 0, ran.output


def test_the_plugin_on_the_page_is_one_that_works():
    found = {}
    exec(block("python"), found)  # noqa: S102  the page is ours
    greeting = found["Greeting"]
    assert registry.GROUP in block("toml")
    spec = {"tasks": [{"name": "w", "replicas": 1, "template": {}}]}
    job = reading.Job({"metadata": {"name": "j", "namespace": "a", "uid": "u"}, "spec": spec})
    pod = {"metadata": {}, "spec": {"containers": [{"name": "c"}]}}
    (plugin,) = registry.Catalog({"greeting": greeting}).named({"greeting": ("--word=good morning",)})
    assert isinstance(plugin, protocol.JobPlugin)
    plugin.complete(pod, protocol.Place(job, job.roles[0], 2))
    assert pod["spec"]["containers"][0]["env"] == [{"name": "GREETING", "value": "good morning w 2"}]
