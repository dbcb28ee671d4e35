"""`make mutants`, `make mutants PATHS=src/pumice/cache SAMPLE=200 SEED=3`: how many changes are noticed, and each that is not."""

from __future__ import annotations

import argparse
import os
import random
import time
from collections import defaultdict
from pathlib import Path

from tests.mutants import changing, noticing

PATHS = ("src/pumice/actions", "src/pumice/framework", "src/pumice/cache", "src/pumice/controllers")
SCENARIOS = "tests/mutants/scenario_checks.py"
WORLDS = "tests/mutants/world_checks.py"
TESTS = {  # by the beginning of a path: folders of tests, besides all scenarios, that could notice
    "src/pumice/actions": ("actions", "eviction", "cases", "explaining", "topology"),
    "src/pumice/framework": ("framework", "actions", "eviction", "cases", "explaining", "topology", "configuration"),
    "src/pumice/cache": ("cache", "cases", "faults", "devices", "actions", "study"),
    "src/pumice/controllers": ("controllers",),
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="make mutants")
    parser.add_argument("--sample", type=int, default=100, help="how many changes, 0 for all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--paths", nargs="*", default=list(PATHS), help="files or folders")
    parser.add_argument(
        "--tests", nargs="*", help="files or folders of tests, instead of those that belong to the paths"
    )
    parser.add_argument("--again", type=Path, help="try those that nobody noticed, by the output of an earlier run")
    parser.add_argument("--runs", type=Path, help="a file that keeps which lines each test runs, for the next sample")
    parser.add_argument("--budget", type=float, default=10.0, help="seconds of tests for one change")
    parser.add_argument("--longest", type=float, default=5.0, help="seconds of a test that is still worth its time")
    parser.add_argument("--workers", type=int, default=2, help="how many processes")
    options = parser.parse_args()
    files = [str(file) for path in options.paths for file in _files(Path(path))]
    found = [mutant for file in files for mutant in changing.mutants(file)]
    if options.again:
        found = unnoticed(found, options.again.read_text().splitlines())
    elif options.sample and len(found) > options.sample:
        found = random.Random(options.seed).sample(found, options.sample)  # noqa: S311  a sample
    began, tests = time.perf_counter(), options.tests or _tests(files)
    verdicts = noticing.tried(
        found,
        tests,
        tuple(options.paths),
        budget=options.budget,
        longest=options.longest,
        workers=options.workers,
        known=options.runs,
    )
    _tell(verdicts, time.perf_counter() - began)


def _files(path: Path) -> list[Path]:
    return sorted(path.rglob("*.py")) if path.is_dir() else [path]


def unnoticed(found: list[changing.Mutant], told: list[str]) -> list[changing.Mutant]:
    """Give the changes of which a run has told that nobody noticed them: of several that read alike, the one that is nearest to where it was."""
    alike: dict[tuple[str, str], list[changing.Mutant]] = defaultdict(list)
    for mutant in found:
        alike[mutant.path, str(mutant).partition(": in ")[2]].append(mutant)
    chosen = []
    for text in told:
        if " not notice " in text or text.startswith("no test calls"):
            place, _, change = text[text.index("src/") :].partition(": in ")
            path, _, line = place.partition(":")
            if same := alike[path, change]:
                chosen.append(same.pop(min(range(len(same)), key=lambda each: abs(same[each].line - int(line)))))
    return chosen


def _tests(files: list[str]) -> list[str]:
    """Give the tests that belong to some files; scenarios are chosen by the environment, as their tests are made when they are loaded."""
    os.environ["PUMICE_SCENARIOS"] = ",".join(
        each.name for each in sorted(Path("scenarios").iterdir()) if each.is_dir()
    )
    wanted = [TESTS[beginning] for beginning in TESTS if any(file.startswith(beginning) for file in files)]
    worlds = [WORLDS] if any("eviction" in folders for folders in wanted) else []
    return [SCENARIOS, *worlds, *dict.fromkeys(f"tests/{folder}" for folders in wanted for folder in folders)]


def _tell(verdicts: list[noticing.Verdict], seconds: float) -> None:
    folders: dict[str, list[bool]] = defaultdict(list)
    for verdict in verdicts:
        folders["/".join(Path(verdict.mutant.path).parts[:3])].append(verdict.by is not None)
    for folder, noticed in [*sorted(folders.items()), ("in all", [each for part in folders.values() for each in part])]:
        share = 100 * sum(noticed) / max(1, len(noticed))
        print(f"{folder}: {len(noticed)} changes, {sum(noticed)} noticed ({share:.1f} %)")  # noqa: T201
    print(f"{seconds:.0f} s")  # noqa: T201


if __name__ == "__main__":
    main()
