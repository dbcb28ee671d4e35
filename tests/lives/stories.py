"""Lives as something to read: a history on paper, and a scenario file that anybody can run again."""

from __future__ import annotations

import json
from pathlib import Path

from tests.lives import decisions, files, judge, rest, scripts, shrinking


def tell(options):
    """Print the history of one seed; give the exit status."""
    script = scripts.draw(options.seed, options.policy, options.cycles)
    optional = rest.OPTIONAL if options.packing else ()
    life, findings = judge.judge(script, optional)
    if options.shrink and findings:
        check = options.check or findings[0].check
        script = shrinking.shrink(life.written_out(), check)
        life, findings = judge.judge(script, optional)
    for line in history(life):
        print(line)  # noqa: T201
    for finding in findings:
        print(finding)  # noqa: T201
    if options.scenario:
        Path(options.scenario).write_text(files.write(life.written_out(), findings), encoding="utf-8")
    return 1 if findings else 0


def judge_files(paths):
    """Let the oracle judge scenario files; give the exit status."""
    status = 0
    for path in paths:
        for script in files.read(path):
            findings = judge.judge(script)[1]
            first = {finding.check: finding for finding in reversed(findings)}
            print(f"{path}: {script.policy.name}")  # noqa: T201
            for finding in first.values():
                print(f"  {finding}")  # noqa: T201
            status = 1 if findings else status
    return status


def history(life):
    """Write a life down: objects, steps and decisions in their order."""
    script = life.script
    lines = [f"seed {script.seed}, policy {script.policy.name}", *script.policy.text.splitlines()]
    lines += [_short(manifest) for manifest in script.given]
    said = iter(zip(life.cycles, decisions.lines(life), strict=True))
    for step in life.steps:
        if "cycles" not in step:
            lines += _step(step)
            continue
        cycle, changes = next(said)
        shown = [line for line in changes if not line.startswith(("condition", "event", "queue"))]
        trace = [line for line in cycle.trace if shown]
        if shown:
            lines += [
                f"-- cycle {cycle.number}",
                *(f"   {line}" for line in shown),
                *(f"      {line}" for line in trace),
            ]
    return lines


def _step(step):
    kind, value = next(iter(step.items()))
    if kind in ("apply", "patch"):
        return [f"   {kind} {_short(manifest)}" for manifest in value]
    return [f"   {json.dumps(step)}"]


def _short(manifest):
    metadata = manifest["metadata"]
    rest = {key: value for key, value in manifest.items() if key not in ("apiVersion", "kind", "metadata")}
    notes = {key: metadata[key] for key in ("labels", "annotations") if key in metadata}
    return f"{manifest['kind']} {metadata['name']} {json.dumps({**notes, **rest})}"
