"""`make mutants`, `make mutants PATHS=src/pumice/cache SAMPLE=200 SEED=3`: how many changes are noticed, and each that is neither noticed nor explained."""

from __future__ import annotations

import argparse
import os
import random
import re
import time
from collections import Counter, defaultdict
from pathlib import Path

from tests.mutants import changing, explained, noticing

PATHS = ("src/pumice/actions", "src/pumice/framework", "src/pumice/cache", "src/pumice/controllers")
SCENARIOS = "tests/mutants/scenario_checks.py"
_NUMBER = re.compile(r" #\d+$")  # of those that read alike
WORLDS = "tests/mutants/world_checks.py"
DECIDING = ("actions", "framework", "eviction", "cases", "explaining", "topology", "lives", "bench")
TESTS = {  # by the beginning of a path: folders of tests, besides all scenarios, that could notice
    "src/pumice/actions": DECIDING,
    "src/pumice/framework": (*DECIDING, "configuration"),
    "src/pumice/cache": (
        "cache",
        "cases",
        "faults",
        "devices",
        "actions",
        "study",
        "recording",
        "plugins/test_plugins_volume_binding.py",
    ),
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
    known = explained.read()
    reasons = {each: known[each.path, each.change] for each in found if (each.path, each.change) in known}
    began, tests = time.perf_counter(), options.tests or _tests(files)
    verdicts = noticing.tried(
        [each for each in found if each not in reasons],
        tests,
        tuple(options.paths),
        budget=options.budget,
        longest=options.longest,
        workers=options.workers,
        known=options.runs,
    )
    for mutant, each in reasons.items():
        print(f"explained as {each.kind}: {mutant}")  # noqa: T201
    for line in summary(verdicts, list(reasons)):
        print(line)  # noqa: T201
    print(f"{time.perf_counter() - began:.0f} s")  # noqa: T201


def _files(path: Path) -> list[Path]:
    return sorted(path.rglob("*.py")) if path.is_dir() else [path]


def unnoticed(found: list[changing.Mutant], told: list[str]) -> list[changing.Mutant]:
    """Give the changes of which a run has told that nobody noticed them: of several that read alike, the one that is nearest to where it was, in one line the one of its number."""
    alike: dict[tuple[str, str], list[changing.Mutant]] = defaultdict(list)
    for mutant in found:
        alike[mutant.path, mutant.wording].append(mutant)
    chosen = []
    for text in told:
        if " not notice " in text or text.startswith("no test calls"):
            path, line, change = text[text.index("src/") :].split(":", 2)
            if same := alike[path, _NUMBER.sub("", change.strip())]:
                nearest = min(same, key=lambda each: (abs(each.line - int(line)), each.change != change.strip()))
                same.remove(nearest)
                chosen.append(nearest)
    return chosen


def _tests(files: list[str]) -> list[str]:
    """Give the tests that belong to some files; scenarios are chosen by the environment, as their tests are made when they are loaded."""
    os.environ["PUMICE_SCENARIOS"] = ",".join(
        each.name for each in sorted(Path("scenarios").iterdir()) if each.is_dir()
    )
    wanted = [TESTS[beginning] for beginning in TESTS if any(file.startswith(beginning) for file in files)]
    worlds = [WORLDS] if any("eviction" in folders for folders in wanted) else []
    return [SCENARIOS, *worlds, *dict.fromkeys(f"tests/{folder}" for folders in wanted for folder in folders)]


def summary(verdicts: list[noticing.Verdict], reasons: list[changing.Mutant]) -> list[str]:
    """Say by folder what became of the changes, and which share of those that nobody explained was noticed."""
    tried = [(verdict.mutant.path, "left" if verdict.by is None else "noticed") for verdict in verdicts]
    folders: dict[str, Counter[str]] = defaultdict(Counter)
    for path, what in [*tried, *((mutant.path, "explained") for mutant in reasons)]:
        folders["/".join(Path(path).parts[:3])][what] += 1
    lines = []
    for folder, counts in [*sorted(folders.items()), ("in all", sum(folders.values(), Counter[str]()))]:
        share = 100 * counts["noticed"] / max(1, counts["noticed"] + counts["left"])
        each = ", ".join(f"{counts[what]} {what}" for what in ("explained", "noticed", "left"))
        lines.append(f"{folder}: {counts.total()} changes, {each} ({share:.1f} % of those not explained noticed)")
    return lines


if __name__ == "__main__":
    main()
