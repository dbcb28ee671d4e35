"""Scenario files as lives, so that the oracle can judge them, and lives as scenario files, so that anybody can run them again."""

from __future__ import annotations

import json
from pathlib import Path

import yaml

from tests.lives import policies
from tests.lives.scripts import Script

DEFAULT = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: overcommit}, {name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder}]
"""
REST = 12  # cycles that are added, so that what must be true at rest can be asked


def read(path):
    """Give the scripts of a scenario file; expectations are left out, the oracle has its own."""
    with Path(path).open(encoding="utf-8") as file:
        return [_script(document) for document in yaml.safe_load_all(file) if document]


def _script(document):
    settings = yaml.safe_load(document.get("config") or DEFAULT)
    actions = [name.strip() for name in settings["actions"].split(",")]
    policy = policies.Policy(document["scenario"], actions, [tier["plugins"] for tier in settings["tiers"]])
    policy.text = document.get("config") or DEFAULT
    steps = [each for step in document["steps"] for each in _steps(step)]
    return Script(0, policy, _expanded(document.get("given", [])), [*steps, *({"cycles": 1} for _ in range(REST))])


def _steps(step):
    if "cycles" in step or "until" in step:
        return [{"cycles": 1} for _ in range(step.get("cycles") or step["within"])]
    if "apply" in step or "patch" in step:
        return [{kind: _expanded(entries) for kind, entries in step.items()}]
    return [step] if "delete" in step or "fail" in step else []


def _expanded(entries):
    found = []
    for entry in entries:
        copies = range(entry["repeat"]) if "repeat" in entry else [None]
        body = json.dumps(entry.get("object", entry))
        found += [json.loads(body if index is None else body.replace("{i}", str(index))) for index in copies]
    for manifest in found:
        if manifest["kind"] in ("Pod", "PodGroup"):
            manifest["metadata"].setdefault("namespace", "default")
    return found


def write(script, findings):
    """Write a script as a scenario file; `restart` is not in that format and is left as a comment."""
    lines = [f"# {finding}" for finding in findings[:6]]
    lines += [f"scenario: {json.dumps(f'life {script.seed} of {script.policy.name}')}", "config: |"]
    lines += [f"  {line}" for line in script.policy.text.splitlines()]
    lines += ["given:", *(f"- {json.dumps(manifest)}" for manifest in script.given), "steps:"]
    number = 0
    for step in script.steps:
        if "cycles" in step:
            number += step["cycles"]
            continue
        if number:
            lines.append(f"- cycles: {number}")
            number = 0
        lines.append("# the scheduler is started again" if "restart" in step else f"- {json.dumps(step)}")
    if number:
        lines.append(f"- cycles: {number}")
    lines.append('- expect: {counts: {binds: ">= 0"}}')
    return "\n".join(lines) + "\n"
