"""What `docs/simulate.md` shows: every command there is run on the files of `docs/examples/simulate`, and its pictures are drawn by it.

`docs/generate.py` writes the output below each command, and the plots beside the examples. How long the simulator took differs each time, so that row is left out.
"""

from __future__ import annotations

import re
import shlex
import tempfile
from contextlib import chdir
from pathlib import Path

from click.testing import CliRunner

from pumice.cli.simulate import command

FOLDER = Path(__file__).parent / "examples" / "simulate"
SHOWN = ("waits.svg", "allocated-2.svg")
_BLOCK = re.compile(
    r"(```console\n)(\$ pumice simulate (?P<arguments>(?:[^\n]*\\\n)*[^\n]*)\n)(?:(?!```).)*?(?=```)", re.DOTALL
)


def refreshed(page: str) -> str:
    """Return the page with the output of every command as it is now."""
    return _BLOCK.sub(lambda found: found[1] + found[2] + shown(found["arguments"]), page)


def shown(arguments: str) -> str:
    """Run a command, and return what it prints."""
    with chdir(FOLDER), tempfile.TemporaryDirectory() as made:
        given = shlex.split(arguments.replace("\\\n", " ").replace("; echo $?", ""))
        given = [str(Path(made) / each) if given[at - 1] == "--out" else each for at, each in enumerate(given)]
        found = CliRunner().invoke(command, [*given, "-q"])
        lines = [
            line for line in found.output.replace(f"{made}/", "").splitlines() if not line.startswith("processor time")
        ]
    if "; echo $?" in arguments:
        lines.append(str(found.exit_code))
    return "\n".join(lines) + "\n"


def plots() -> dict[str, str]:
    """Draw the pictures of the page, by the path of their file."""
    with tempfile.TemporaryDirectory() as made:
        policies = [f"--config={FOLDER / name}" for name in ("greedy.yaml", "priority.yaml")]
        given = [str(FOLDER / "jobs.csv"), "--cluster", str(FOLDER / "cluster.yaml"), *policies, "--out", made, "-q"]
        found = CliRunner().invoke(command, given)
        if found.exit_code:
            raise RuntimeError(found.output)
        return {f"docs/examples/simulate/{name}": (Path(made) / name).read_text(encoding="utf-8") for name in SHOWN}
