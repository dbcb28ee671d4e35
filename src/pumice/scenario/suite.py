"""Many scenarios: which ones, in which order, on how many processes.

Results come in the order of the files whatever the number of processes, so that a run reads the same each time.
"""

from __future__ import annotations

import functools
import gc
import multiprocessing
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import structs

from pumice.scenario import format as scenario_format
from pumice.scenario import results, runner, stage
from pumice.scenario.format import ScenarioFile

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pumice.framework.registry import Registry
    from pumice.scenario.policies import Policy
    from pumice.scenario.results import Result
    from pumice.scenario.steps import Scenario


def collect(paths: Iterable[str], selection: str = "", policy: Policy | None = None) -> list[ScenarioFile | Scenario]:
    """List the scenarios whose name contains the selection, each invalid file standing for its own; a policy replaces that of every one."""
    wanted = selection.casefold()
    given = list(paths)
    collected: list[ScenarioFile | Scenario] = []
    for file in _scenario_files(given):
        if file.problems:
            collected.append(file)
        collected += [scenario for scenario in file.scenarios if wanted in scenario.name.casefold()]
    if not collected and wanted:
        raise scenario_format.NothingFoundError(f"no scenario's name contains {selection!r}")
    if not collected:
        raise scenario_format.NothingFoundError(f"{', '.join(given)}: nothing but what other documents extend")
    return collected if policy is None else [_under(policy, item) for item in collected]


def _scenario_files(paths: list[str]) -> list[ScenarioFile]:
    """Read files; one that only lies in a folder, and that a scenario takes its configuration or objects from, is none."""
    named = {Path(path).resolve() for path in paths}
    files = [scenario_format.load(path) for path in scenario_format.find(paths)]
    taken = frozenset().union(*(file.named for file in files)) - named
    return [file for file in files if not (file.problems and Path(file.file).resolve() in taken)]


def _under(policy: Policy, item: ScenarioFile | Scenario) -> ScenarioFile | Scenario:
    return item if isinstance(item, ScenarioFile) else structs.replace(item, policy=policy)


def name_of(item: ScenarioFile | Scenario) -> str:
    """Give the name under which an item is reported."""
    return item.file if isinstance(item, ScenarioFile) else item.name


def run(
    items: list[ScenarioFile | Scenario], jobs: int = 1, known: Registry | None = None, *, plain: bool = False
) -> Iterator[Result]:
    """Run scenarios with the plugins that are known, those installed if not told, and give their results in order, each as soon as it and all before it are done."""
    run_one = functools.partial(_run_one, known=known, plain=plain)
    if jobs <= 1 or len(items) <= 1:
        yield from map(run_one, items)
        return
    # Processes are started afresh: a copy of this one would inherit threads and buffers in whatever state they are.
    processes = min(jobs, len(items))
    with multiprocessing.get_context("spawn").Pool(processes, gc.set_threshold, gc.get_threshold()) as pool:
        yield from pool.imap(run_one, items)


def _run_one(item: ScenarioFile | Scenario, known: Registry | None, *, plain: bool) -> Result:
    if isinstance(item, ScenarioFile):
        return results.invalid(item)
    return runner.run(item, functools.partial(stage.build, known=known, plain=plain))
