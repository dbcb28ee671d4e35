"""Pages that show commands and what they print, played on a cluster of `pumice up`.

In a block `console` a line that begins with `$ ` is a command, and what follows is what it prints. Commands that only read are asked again until they print
it; what cannot be the same twice (ages, generated names) is left out of the comparison, and `…` stands for anything.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from testbed import provide, waiting

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_READING = {"get", "describe", "explain", "logs", "events", "top"}
_CHANGING = (
    (re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"), "UID"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"), "TIME"),
    (re.compile(r"-[bcdfghjklmnpqrstvwxz2456789]{5}\b"), "-RANDOM"),
    (re.compile(r"\b[0-9a-f]{9,10}\b"), "HASH"),
    (re.compile(r"(?<=\s)(\d+(\.\d+)?(ms|s|m|h|d))+(?=\s|$)", re.MULTILINE), "AGE"),
    (re.compile(r"\b10\.\d+\.\d+\.\d+\b"), "ADDRESS"),
    (re.compile(r"[ \t]+"), " "),
    (re.compile(r" +$", re.MULTILINE), ""),
)


class Step(NamedTuple):
    """A command, and what the page shows of what it prints."""

    command: str
    shown: str

    @property
    def only_reads(self) -> bool:
        """Tell whether the command may be run as often as one likes."""
        return self.command.split()[1] in _READING

    @property
    def starts(self) -> bool:
        """Tell whether the command starts the cluster."""
        return self.command.startswith("pumice up")


def steps(page: str) -> list[Step]:
    """Give the commands of a page in their order."""
    found = []
    for block in BLOCK.findall(page):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, shown = part.partition("\n")
            found.append(Step(command, shown))
    return found


def options(page: str) -> list[str]:
    """Give the options with which a page starts its cluster."""
    return next(shlex.split(step.command)[2:] for step in steps(page) if step.starts)


def settled(text: str) -> str:
    """Return a text without what cannot be the same twice."""
    for pattern, word in _CHANGING:
        text = pattern.sub(word, text)
    return text.strip()


def is_shown(printed: str, shown: str) -> bool:
    """Tell whether a page shows what was printed."""
    parts = [re.escape(part) for part in settled(shown).split("…")]
    return re.fullmatch(".*".join(parts), settled(printed), re.DOTALL) is not None


def play(page: str, cluster) -> None:
    """Run the commands of a page; fail where they print something else."""
    for step in steps(page):
        if step.starts:
            continue
        printed = run(step.command, cluster)
        if step.only_reads and not is_shown(printed, step.shown):
            last = [printed]

            def reads(step=step, last=last):
                last[0] = run(step.command, cluster)
                return is_shown(last[0], step.shown)

            waiting.until(reads, lambda step=step, last=last: _differing(step, last[0], cluster))
        assert step.only_reads or is_shown(printed, step.shown), _differing(step, printed, cluster)


def run(command: str, cluster) -> str:
    """Run a command of a page where the page is read: in the folder of the sources, with the cluster's kubeconfig."""
    program, *arguments = shlex.split(command)
    programs = {
        "kubectl": [str(provide.program("kubectl"))],
        "pumice": [sys.executable, "-c", "from pumice.cli import main; main()"],
    }
    environment = {**os.environ, **cluster.environment, "COLUMNS": "100"}
    done = subprocess.run(
        [*programs[program], *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=waiting.PATIENCE,
    )
    return done.stdout + done.stderr


def _differing(step: Step, printed: str, cluster) -> str:
    told = f"$ {step.command}\nprints\n{printed}\nand the page shows\n{step.shown}"
    return f"{told}\nThe cluster printed:\n{cluster.output.read_text()[-2000:]}"
