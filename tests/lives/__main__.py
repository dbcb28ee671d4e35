"""Search random lives for broken rules: `make lives`, `make lives SEED=123`, `make lives LIVES=1000 POLICY=tree`."""

from __future__ import annotations

import argparse
import collections
import multiprocessing
import sys
import time

from tests.lives import judge, rest, scripts, stories, variants

VARIED = 5  # every which life is also lived otherwise


def main():
    """Live many lives, or tell one."""
    parser = argparse.ArgumentParser(prog="make lives")
    parser.add_argument("--seed", type=int, help="tell the life of one seed")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--lives", type=int, default=300)
    parser.add_argument("--policy", default="", help="only policies whose name holds this text")
    parser.add_argument(
        "--cycles", type=int, default=0, help="let things happen in so many cycles, instead of a few that are drawn"
    )
    parser.add_argument(
        "--packing",
        action="store_true",
        help="ask also for gangs that wait and fit in some way, which no rule promises",
    )
    parser.add_argument("--jobs", type=int, default=multiprocessing.cpu_count())
    parser.add_argument("--check", default="", help="only findings of this check")
    parser.add_argument("--skip", default="", help="checks whose findings are left out, such as let_in,quiet")
    parser.add_argument("--shrink", action="store_true", help="write a smaller life with the same finding")
    parser.add_argument("--scenario", help="write the life as a scenario file")
    parser.add_argument("--files", nargs="+", help="judge scenario files instead")
    options = parser.parse_args()
    if options.files:
        raise SystemExit(stories.judge_files(options.files))
    if options.seed is not None:
        raise SystemExit(stories.tell(options))
    raise SystemExit(_search(options))


def _search(options):
    started = time.perf_counter()
    seeds = [(seed, options) for seed in range(options.first, options.first + options.lives)]
    found, cycles, count = collections.defaultdict(list), 0, 0
    with multiprocessing.Pool(options.jobs) as pool:
        for seed, number, findings in pool.imap_unordered(live, seeds, chunksize=4):
            cycles, count = cycles + number, count + 1
            for check, text in findings:
                if options.check in ("", check) and check not in options.skip.split(","):
                    found[check].append((seed, text))
                    print(f"seed {seed}: {text}", file=sys.stderr)  # noqa: T201
            if count % 500 == 0:
                print(f"{count} lives, {sum(map(len, found.values()))} findings", file=sys.stderr)  # noqa: T201
    for check, each in sorted(found.items()):
        print(f"\n{check}: {len(each)} lives")  # noqa: T201
        for seed, text in sorted(each)[:8]:
            print(f"  seed {seed}: {text}")  # noqa: T201
    took = time.perf_counter() - started
    print(f"\n{count} lives, {cycles} cycles in {took:.0f} s: {sum(map(len, found.values()))} findings")  # noqa: T201
    return 1 if found else 0


def live(task):
    """Live one life; give the first finding of each check."""
    seed, options = task
    script = scripts.draw(seed, options.policy, options.cycles)
    try:
        life, findings = judge.judge(script, rest.OPTIONAL if options.packing else ())
        if seed % VARIED == 0:
            findings = [*findings, *(finding for variant in variants.VARIANTS for finding in variant(script))]
    except Exception as error:  # noqa: BLE001  a life that falls over is a finding like any other
        return seed, 0, [("fell_over", f"{type(error).__name__}: {error}")]
    first = {}
    for finding in findings:
        first.setdefault(finding.check, f"{script.policy.name}: {finding}")
    return seed, len(life.cycles), list(first.items())


if __name__ == "__main__":
    main()
