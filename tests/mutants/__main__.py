"""`make mutants`, `make mutants PATHS=src/pumice/cache SAMPLE=200 SEED=3`: how many changes are noticed, and each that is not."""

from __future__ import annotations

import argparse
import os
import random
import time
from pathlib import Path

from tests.mutants import changing, noticing

PATHS = ("src/pumice/actions", "src/pumice/framework", "src/pumice/cache", "src/pumice/controllers")
SCENARIOS = "tests/mutants/scenario_checks.py"
TESTS = {  # by the beginning of a path: folders of scenarios, and tests, that could notice
    "src/pumice/actions/eviction": (
        "eviction",
        ("tests/eviction/test_eviction_judge_steps.py", "tests/eviction/test_eviction_judge_door.py"),
    ),
    "src/pumice/actions": ("gangs,queues,topology,best-effort", ("tests/actions/test_actions_enqueue.py",)),
    "src/pumice/framework": ("gangs,queues,eviction,configuration,explain", ("tests/framework",)),
    "src/pumice/cache": ("faults,status,lifecycle,bad-input", ("tests/cache",)),
    "src/pumice/controllers": ("controllers,jobs", ("tests/controllers",)),
}
STARTING = 20.0  # seconds beyond its usual time after which a test counts as hanging


def main() -> None:
    parser = argparse.ArgumentParser(prog="make mutants")
    parser.add_argument("--sample", type=int, default=100, help="how many changes, 0 for all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--paths", nargs="*", default=list(PATHS), help="files or folders")
    parser.add_argument(
        "--tests", nargs="*", help="files or folders of tests, instead of those that belong to the paths"
    )
    parser.add_argument("--budget", type=float, default=10.0, help="seconds of tests for one change")
    options = parser.parse_args()
    files = [str(file) for path in options.paths for file in _files(Path(path))]
    found = [mutant for file in files for mutant in changing.mutants(file)]
    if options.sample and len(found) > options.sample:
        found = sorted(random.Random(options.seed).sample(found, options.sample))  # noqa: S311  a sample
    raise SystemExit(_try_all(found, options.tests or _tests(files), tuple(options.paths), options.budget))


def _files(path: Path) -> list[Path]:
    return sorted(path.rglob("*.py")) if path.is_dir() else [path]


def _tests(files: list[str]) -> list[str]:
    """Give the tests that belong to some files; scenarios are chosen by the environment, as their tests are made when they are loaded."""
    wanted = dict.fromkeys(
        next(TESTS[beginning] for beginning in TESTS if file.startswith(beginning)) for file in files
    )
    os.environ["PUMICE_SCENARIOS"] = ",".join(dict.fromkeys(",".join(folders for folders, _ in wanted).split(",")))
    return list(dict.fromkeys([SCENARIOS, *(test for _, tests in wanted for test in tests)]))


def _try_all(found: list[changing.Mutant], tests: list[str], roots: tuple[str, ...], budget: float) -> int:
    called = noticing.record(tests, roots)
    began, noticed, unknown = time.perf_counter(), 0, []
    for mutant in found:
        chosen = noticing.those_who_call(mutant, called, budget)
        patience = STARTING + 10 * sum(called[test][0] for test in chosen)
        if chosen and noticing.is_noticed(mutant, chosen, patience):
            noticed += 1
        else:
            unknown.append(mutant)
            tried = f"{len(chosen)} tests do not notice" if chosen else "no test calls"
            print(f"{tried} {mutant}", flush=True)  # noqa: T201
    seconds = time.perf_counter() - began
    share = 100 * noticed / max(1, len(found))
    print(f"{len(found)} changes, {noticed} noticed ({share:.1f} %), {len(unknown)} not, {seconds:.0f} s")  # noqa: T201
    return 0


if __name__ == "__main__":
    main()
