"""Compare what two checkouts decide in the same lives: `python -m tests.lives.compare PATH_A PATH_B --lives 500`.

Each path is a checkout with its `.venv`; one without is run by this interpreter, with its `src` in front. The lives are those of this checkout. Of each
life that differs the first cycle that does is printed; `--only bind,evict` looks at these kinds of lines alone. With `--plain` the second takes no shortcuts: of one path given twice
that says whether any shortcut changes a decision.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def main():
    """Run the lives on both sides and print what differs; the exit status says whether anything does."""
    parser = argparse.ArgumentParser(prog="python -m tests.lives.compare")
    parser.add_argument("paths", nargs=2, type=Path, metavar="PATH")
    parser.add_argument("--lives", type=int, default=500)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--policy", default="", help="only policies whose name holds this text")
    parser.add_argument("--only", default="", help="kinds of lines to compare, such as bind,evict,nominate,phase")
    parser.add_argument("--show", type=int, default=20, help="how many lives that differ are shown")
    parser.add_argument("--plain", action="store_true", help="let the second take no shortcuts")
    options = parser.parse_args()
    plain = [[], ["plain"] if options.plain else []]
    sides = [_decisions(path, options, more) for path, more in zip(options.paths, plain, strict=True)]
    kinds = tuple(f"{kind} " for kind in options.only.split(",") if kind)
    count, cycles, different = 0, 0, []
    for (seed, left), (other, right) in zip(*sides, strict=True):
        assert seed == other
        count, cycles = count + 1, cycles + len(left)
        found = _difference(left, right, kinds)
        if found is None:
            continue
        different.append(seed)
        if len(different) <= options.show:
            _print(seed, *found)
    print(f"{count} lives, {cycles} cycles: {len(different)} lives differ {different[:50] if different else ''}")  # noqa: T201
    raise SystemExit(1 if different else 0)


def _decisions(path, options, more):
    """Start one side, and give its lives one after the other while both run."""
    python = path / ".venv" / "bin" / "python"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    if not python.exists():
        python = Path(sys.executable)
        environment["PYTHONPATH"] = f"{path / 'src'}{os.pathsep}{ROOT}"
    last = options.first + options.lives
    command = [python.absolute(), "-m", "tests.lives.decisions", str(options.first), str(last), options.policy, *more]
    running = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)
    return _read(running, path)


def _read(running, path):
    for line in running.stdout:
        yield tuple(json.loads(line))
    if running.wait():
        raise SystemExit(f"{path}: the lives ended with status {running.returncode}")


def _difference(left, right, kinds):
    """Give the first cycle that differs, with what only one side says."""
    for number, sides in enumerate(itertools.zip_longest(left, right, fillvalue=["no cycle "]), 1):
        mine, yours = ([line for line in side if not kinds or line.startswith(kinds)] for side in sides)
        if mine != yours:
            return number, [line for line in mine if line not in yours], [line for line in yours if line not in mine]
    return None


def _print(seed, number, mine, yours):
    print(f"seed {seed}, cycle {number}:")  # noqa: T201
    for sign, said in (("-", mine), ("+", yours)):
        for line in said or ["(the same lines in another order)"]:
            print(f"  {sign} {line}")  # noqa: T201


if __name__ == "__main__":
    main()
