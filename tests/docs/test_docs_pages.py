"""The documentation is true: generated pages are up to date, links lead somewhere, and what is shown is what comes out."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from pumice.cli.program import program
from pumice.framework import configuration

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def module(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def text(name):
    return (ROOT / name).read_text(encoding="utf-8")


def printed(*arguments, folder="docs/examples"):
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT / folder)
        return CliRunner().invoke(program, list(arguments), prog_name="pumice").output.strip()


def test_generated_pages_say_what_the_code_says():
    assert module(ROOT / "docs/generate.py").outdated() == [], "run `make docs`"


def test_every_plugin_says_where_it_differs():
    assert sorted(module(ROOT / "docs/differences.py").PLUGINS) == sorted(configuration.PEER_PLUGINS)


def test_generator_only_compares_when_told_to_check(monkeypatch, capsys):
    generate = module(ROOT / "docs/generate.py")
    monkeypatch.setattr(generate, "pages", lambda: {"docs/reference/flags.md": "something else"})
    assert generate.main(["--check"]) == 1
    assert capsys.readouterr().out == "docs/reference/flags.md is out of date; run `make docs`\n"
    assert text("docs/reference/flags.md") != "something else"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files_of_this_repository(page):
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        assert "://" not in target, target
        assert (page.parent / target.partition("#")[0]).exists(), target


@pytest.mark.parametrize(
    ("page", "example"),
    [
        ("README.md", "gang.yaml"),
        ("README.md", "mistakes.yaml"),
        ("README.md", "headroom.py"),
        ("docs/scenarios.md", "deployed.yaml"),
        ("docs/plugins.md", "plugins/fence.py"),
        ("docs/plugins.md", "plugins/fence.yaml"),
        ("docs/plugins.md", "plugins/generation.py"),
        ("docs/plugins.md", "plugins/apart.py"),
        ("docs/plugins.md", "plugins/small_first.py"),
        ("docs/plugins.md", "plugins/pod_limit.py"),
        ("docs/plugins.md", "plugins/checkpoints.py"),
        ("docs/vet.md", "job-mistakes.yaml"),
    ],
)
def test_examples_are_shown_as_they_are(page, example):
    assert text(f"docs/examples/{example}") in text(page)


@pytest.mark.parametrize(
    ("page", "arguments"),
    [
        ("README.md", ["test", "gang.yaml"]),
        ("docs/scenarios.md", ["test", "too-small.yaml"]),
        ("docs/scenarios.md", ["test", "deployed.yaml"]),
        ("docs/scenarios.md", ["test", "deployed.yaml", "--config", "next.yaml"]),
        ("README.md", ["config", "check", "mistakes.yaml"]),
        ("docs/configuration.md", ["config", "check", "scheduler.yaml"]),
        ("docs/configuration.md", ["config", "show", "scheduler.yaml"]),
        ("README.md", ["test", "headroom.yaml", "--plugins-dir", "."]),
        ("docs/plugins.md", ["test", "plugins", "--plugins-dir", "plugins"]),
        ("docs/vet.md", ["vet", "job-mistakes.yaml"]),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_output_shown_is_what_the_command_prints(page, arguments):
    assert f"$ pumice {' '.join(arguments)}\n{printed(*arguments)}\n```" in text(page)


@pytest.mark.parametrize(
    ("page", "command"),
    [
        ("README.md", "explain job llama --from cluster.yaml --config deployed.yaml"),
        ("docs/policy-changes.md", "explain job llama -v --from cluster.yaml --config deployed.yaml"),
        ("docs/policy-changes.md", "what-if job.yaml --from cluster.yaml --config deployed.yaml"),
        ("docs/policy-changes.md", "what-if --drain node-2 --from cluster.yaml --config deployed.yaml"),
        ("docs/policy-changes.md", "config diff deployed.yaml proposed.yaml --on cluster.yaml"),
    ],
)
def test_explanations_and_comparisons_shown_are_what_the_commands_print(page, command):
    assert f"$ pumice {command}\n{printed(*command.split(), folder='docs/examples/changes')}\n```" in text(page)


def test_scenario_of_the_page_about_changes_tells_the_two_policies_apart():
    assert text("docs/examples/changes/scenario.yaml") in text("docs/policy-changes.md")
    folder = "docs/examples/changes"
    assert printed("test", "scenario.yaml", folder=folder).endswith("1 passed, 0 failed")
    assert "0 passed, 1 failed" in printed("test", "scenario.yaml", "--config", "proposed.yaml", folder=folder)


def test_output_of_the_demonstration_is_what_it_prints():
    shown = re.search(r"```console\n\$ pumice demo --plain\n(.*?)```", text("README.md"), flags=re.DOTALL).group(1)
    lines = iter(printed("demo", "--plain").splitlines())
    for line in shown.splitlines():
        assert line == "…" or line in lines, line


def test_gang_of_plain_pods_starts_whole(tmp_path):
    node = "{apiVersion: v1, kind: Node, metadata: {name: n1}, status: {allocatable: {cpu: '4', memory: 8Gi}}}"
    (tmp_path / "gang.yaml").write_text(
        f"scenario: gang\ngiven: {ROOT}/docs/examples/pods-gang.yaml\nsteps:\n- apply: [{node}]\n- cycles: 2\n"
        "- expect: {pods: {default/pods-gang-*: {bound: true, some: 4}}, podgroups: {default/pods-gang: {phase: Running}}}\n"
    )
    assert printed("test", str(tmp_path / "gang.yaml")).endswith("1 passed, 0 failed")


PLUGINS = sorted((ROOT / "docs/examples/plugins").glob("*.yaml"))


@pytest.mark.parametrize("scenario", PLUGINS, ids=lambda path: path.stem)
def test_worked_plugin_is_what_its_scenario_passes_by(scenario, tmp_path):
    name = scenario.stem.replace("_", "-")
    lines = scenario.read_text(encoding="utf-8").splitlines(keepends=True)
    without = [line for line in lines if f"name: {name}" not in line]
    assert len(without) == len(lines) - 1
    (tmp_path / "without.yaml").write_text("".join(without))
    assert printed("test", str(scenario), "--plugins-dir", str(scenario.parent)).endswith("1 passed, 0 failed")
    assert printed("test", str(tmp_path / "without.yaml")).endswith("0 passed, 1 failed")


def test_start_of_a_plugin_is_shown_as_it_goes(tmp_path):
    shown = text("docs/plugins.md")
    for arguments in (["plugin", "new", "few-pods"], ["test", "few-pods.yaml", "--plugins-dir", "."]):
        assert f"$ pumice {' '.join(arguments)}\n{printed(*arguments, folder=tmp_path)}\n" in shown


@pytest.mark.parametrize(
    ("described", "left_out", "told"),
    [
        ({"nothing": ("int", "x")}, "", "Demand has no nothing"),
        ({"tasks": ("x", "x"), "waits": ("x", "x")}, "", "say what amounts of Demand means"),
    ],
)
def test_reference_of_types_follows_the_code(described, left_out, told):
    generate = module(ROOT / "docs/generate.py")
    demand = next(kind for kind in generate.plugin_types.TYPES if kind.__name__ == "Demand")
    with pytest.raises(LookupError, match=told):
        generate.chosen(demand, described, left_out.split())
