"""What kubectl shows of the causes on `docs/why.md`: each is a scenario below `docs/examples/why`, played on the simulated cluster.

On the page a cause links to its scenario; the block of commands after that link is written by `docs/generate.py`.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pumice.api import kinds
from pumice.manifests import resources
from pumice.scenario import manifests, stage, steps, suite

if TYPE_CHECKING:
    from collections.abc import Mapping

FOLDER = Path(__file__).parent / "examples" / "why"
GROUP, POD = "ml/train", "ml/train-0"
_BLOCK = re.compile(
    r"(\(examples/why/(?P<file>[\w-]+\.yaml)\)(?:(?!```).)*?```console\n)\$ .*?(?=\n```)",
    re.DOTALL,
)


def refreshed(page: str) -> str:
    """Return a page with the output of every cause as it is now."""
    return _BLOCK.sub(lambda found: found[1] + shown(FOLDER / found["file"]), page)


def shown(file: Path) -> str:
    """Play a scenario up to its first expectation, and write what kubectl shows of its group and of the group's first pod, as much as there is of either."""
    (scenario,) = suite.collect([str(file)])
    if not isinstance(scenario, steps.Scenario):
        raise TypeError(f"{file} is no scenario")
    played = stage.build(scenario)
    for step in scenario.steps:
        match step:
            case steps.Cycles():
                for _ in range(step.count):
                    played.cycle(scenario.period)
            case steps.Patch():
                played.patch(manifests.expand(step.entries))
            case _:
                break
    seen = played.view(played.counts())
    group, pod = seen.pod_groups.get(GROUP), seen.pods.get(POD)
    lines = ["$ kubectl get podgroup train", *_table(group)] if group is not None else []
    return "\n".join(lines + (_asked("pod train-0", "PodScheduled", pod) if pod is not None else []))


def _table(group: Mapping[str, Any]) -> list[str]:
    """Write the columns of a group as kubectl does, its age left out."""
    (known,) = [each for each in resources.SCHEDULING if each.kind is kinds.POD_GROUP]
    columns = [column for column in known.columns if not column.wide and column.name != "Age"]
    heads = ["NAME", *(column.name.upper() for column in columns)]
    cells = ["train", *(_cell(column.path, group) for column in columns)]
    widths = [max(len(head), len(cell)) + 3 for head, cell in zip(heads, cells, strict=True)]
    rows = (heads, cells)
    return ["".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _cell(path: str, found: Any) -> str:
    """Follow the path of a column: names, and the one filter that is used there."""
    for name, key, value in re.findall(r'\.(\w+)(?:\[\?\(@\.(\w+)=="(\w+)"\)\])?', path):
        found = (found or {}).get(name)
        if key:
            found = next((each for each in found or () if each[key] == value), None)
    return "" if found is None else str(found)


def _asked(what: str, kind: str, found: Mapping[str, Any]) -> list[str]:
    message = _cell(f'.status.conditions[?(@.type=="{kind}")].message', found)
    command = f"$ kubectl get {what} -o jsonpath='{{.status.conditions[?(@.type==\"{kind}\")].message}}'"
    return [command, message] if message else []
