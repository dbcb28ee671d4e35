"""Live lives in which everything goes wrong: `make storm`, `make storm SEEDS=1000`, `make storm SEED=7`, `make storm SEED=7 SHRINK=1`."""

from __future__ import annotations

import argparse
import collections
import contextlib
import signal
import sys
import time
from multiprocessing.pool import ThreadPool
from pathlib import Path

from tests.storm import life, telling


def main():
    """Live many seeds, or tell one."""
    parser = argparse.ArgumentParser(prog="make storm")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--seeds", type=int, default=200, help="how many")
    parser.add_argument("--seed", type=int, help="tell one")
    parser.add_argument("--shrink", action="store_true", help="leave out what its finding does not need")
    parser.add_argument("--scenario", help="a file for what was found, if a scenario can say it")
    parser.add_argument(
        "--storm", type=float, default=life.STORM, help="seconds of bad weather in each (default: %(default)g)"
    )
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    telling.prepare()
    raise SystemExit(_tell(options) if options.seed is not None else _search(options))


def _tell(options):
    trace = f"storm-{options.seed}.txt"
    found = telling.lived(options.seed, trace=trace, storm=options.storm)
    for rule, text in found["broken"]:
        print(f"{rule}: {text}")  # noqa: T201
    print(f"{sum(found['faults'].values())} faults in {found['steps']} steps; every change is in {trace}")  # noqa: T201
    if options.shrink and found["broken"]:
        rule = found["broken"][0][0]
        without = telling.shrunk(options.seed, rule, options.storm)
        left = [each for each in ("fates", *found["happened"]) if each not in without]
        found = telling.lived(options.seed, without, trace, options.storm)
        print(f"{rule} is still broken with only {', '.join(left) or 'nothing'}:")  # noqa: T201
        for rule, text in found["broken"]:
            print(f"  {rule}: {text}")  # noqa: T201
    if options.scenario and found["scenario"]:
        Path(options.scenario).write_text(found["scenario"])
    elif options.scenario:
        print("nothing was found that a scenario can say")  # noqa: T201
    return 1 if found["broken"] else 0


def _search(options):
    """Live seeds until they are through or somebody ends it, and tell what was borne and found until then."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    started, faults, lives, broken = time.perf_counter(), collections.Counter(), 0, 0
    seeds = range(options.first, options.first + options.seeds)
    with ThreadPool(options.jobs) as pool, contextlib.suppress(KeyboardInterrupt):
        for seed, found in pool.imap_unordered(lambda seed: (seed, telling.lived(seed, storm=options.storm)), seeds):
            faults.update(found["faults"])
            for rule, text in found["broken"]:
                print(f"seed {seed}: {rule}: {text}", flush=True)  # noqa: T201
            lives, broken = lives + 1, broken + bool(found["broken"])
            if sys.stderr.isatty():
                print(f"\r{lives} of {options.seeds} lives, {faults.total()} faults ", end="", file=sys.stderr)  # noqa: T201
    seconds = time.perf_counter() - started
    print(f"{lives} of {options.seeds} lives, {faults.total()} faults, {broken} lives with findings, {seconds:.0f} s")  # noqa: T201
    print("  " + ", ".join(f"{count} {name}" for name, count in faults.most_common()), flush=True)  # noqa: T201
    return 1 if broken or lives < options.seeds else 0


if __name__ == "__main__":
    main()
