"""Lives as something to read: a history on paper, and a scenario file that anybody can run again."""

from __future__ import annotations

import json

from tests.lives import decisions, judge, scripts


def tell(options):
    """Print the history of one seed; give the exit status."""
    script = scripts.draw(options.seed, options.policy)
    life, findings = judge.judge(script)
    if options.shrink:
        from tests.lives import shrinking

        check = options.check or findings[0].check
        script = shrinking.shrink(life.written_out(), check)
        life, findings = judge.judge(script)
    for line in history(life):
        print(line)  # noqa: T201
    for finding in findings:
        print(finding)  # noqa: T201
    if options.scenario:
        with open(options.scenario, "w", encoding="utf-8") as file:  # noqa: PTH123
            file.write(scenario(life.written_out(), findings))
    return 1 if findings else 0


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
            lines += [f"-- cycle {cycle.number}", *(f"   {line}" for line in shown), *(f"      {line}" for line in trace)]
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


def scenario(script, findings):
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
    lines.append("- expect: {counts: {binds: \">= 0\"}}")
    return "\n".join(lines) + "\n"
