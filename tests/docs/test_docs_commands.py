"""The page about commands shows what they print: every command on it is run, in order, against a cluster with the objects of its example."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from contract.contract_up import UpServer
from pumice.api import kinds
from pumice.cli.program import program
from pumice.cli.volcano import programs
from pumice.kube.calls import paths

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "commands.md"
OBJECTS = ROOT / "docs" / "examples" / "commands" / "cluster.yaml"
MERGE = "application/merge-patch+json"
# What is another one in every run: times, ages, versions, uids, generated names, the address of the server.
PASSING = (
    (re.compile(r"\d{4}-\d\d-\d\d( \d\d:\d\d:\d\d)?"), "DATE"),
    (re.compile(r"\d\d:\d\d:\d\d"), "TIME"),
    (re.compile(r"https://127\.0\.0\.1:\d+"), "SERVER"),
    (re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"), "UID"),
    (re.compile(r"(Resource Version:\s+)\d+"), r"\1N"),
    (re.compile(r"\b\d+s\b"), "AGE"),
    (re.compile(r"(-(?:abortjob|resumejob|openqueue|closequeue)-)\w{5}"), r"\1XXXXX"),
    (re.compile(r" +"), " "),
)


def load(server):
    """Create the objects of the example, their statuses as whoever writes them would."""
    for name in ("research",):
        server.call("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    for item in yaml.safe_load_all(OBJECTS.read_text(encoding="utf-8")):
        kind = kinds.find(item["apiVersion"], item["kind"])
        metadata = item["metadata"]
        server.call("POST", paths.path(kind, metadata.get("namespace", "")), item)
        if "status" in item and kind is not kinds.POD_GROUP:
            where = paths.path(kind, metadata.get("namespace", ""), metadata["name"], "status")
            server.call("PATCH", where, {"status": item["status"]}, content_type=MERGE)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with UpServer(tmp_path_factory.mktemp("page")) as running:
        load(running)
        yield running


def shown():
    """Give every command of the page with what stands below it; output cut with … is compared up to there."""
    for block in re.findall(r"```console\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            if command.startswith(("pumice job", "pumice queue", "pumice pod", "pumice top", "vcctl", "vjobs")):
                yield command, output


def printed(command, server, monkeypatch):
    name, *arguments = shlex.split(command.partition("  #")[0])
    chosen = program if name == "pumice" else programs.find(name)
    monkeypatch.setenv("KUBECONFIG", str(server.kubeconfig))
    monkeypatch.setenv("COLUMNS", "150")
    return CliRunner().invoke(chosen, arguments, prog_name=name).output


def normal(text):
    for pattern, word in PASSING:
        text = pattern.sub(word, text)
    return [line.rstrip() for line in text.splitlines()]


def test_commands_of_the_page_print_what_it_shows(server, monkeypatch):
    found = list(shown())
    assert len(found) > 10
    for command, output in found:
        real, claimed = normal(printed(command, server, monkeypatch)), normal(output)
        lines = iter(real)
        for line in claimed:
            assert line == "…" or line in lines, (
                f"{command}: {line!r} is not printed in this place; it prints\n" + "\n".join(real)
            )
        assert claimed[-1:] == ["…"] or len(real) == len(claimed) or "…" in claimed, command
