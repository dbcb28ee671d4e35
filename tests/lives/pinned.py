"""What lives have come to, written down: `python -m tests.lives.pinned` writes it anew, after a change that is meant to change it.

A digest of what was decided, one of what was said of it, one of the explanations at the end, and how often plugins were asked about nodes. So the same
life is the same on every machine and Python, and a change of the code that is not meant to change anything does not.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from pumice.bench import counting
from pumice.framework import explaining
from tests.lives import decisions, judge, scripts
from tests.lives.player import Player
from tests.lives.stage import Stage

FILE = Path(__file__).with_name("pinned.json")
SEEDS = range(120)
MOST = 10_000  # questions of a life that is quick enough
SHOWN = "python -m tests.lives.compare CHECKOUT_OF_BEFORE . --lives 1 --first"
DECIDED = ("bind ", "evict ", "nominate ", "phase ", "gone ")


class Asking(Stage):
    """Counts what the scheduler asks plugins, and has it explain every job in the end."""

    def __init__(self, *arguments, **named):
        super().__init__(*arguments, **named)
        self.counters = counting.Counters()
        self.explained = []
        self._count()

    def restart(self):
        """Go on counting."""
        super().restart()
        self._count()

    def explain(self):
        """Have the scheduler explain every job, in one more cycle."""
        self.scheduler.cycle(self._ask)
        return self.explained

    def _ask(self, explainer):
        for key in sorted(explainer.session.cluster.jobs):
            if (found := explainer.job(key)) is not None:
                self.explained += [key, *explaining.text(found)]

    def _count(self):
        scheduler = self.scheduler
        scheduler.engine_type = counting.CountingEngine
        scheduler.renew()
        scheduler.engine.counters = self.counters


def of_seed(seed):
    """Live a life; give what it comes to, and which rules were broken."""
    script = scripts.draw(seed)
    watching, player = judge.Judge(script), Player(script, stage=Asking)
    every = decisions.lines(player.play(watching.watch))
    counters = player.stage.counters
    found = {
        "decided": _digest([[line for line in cycle if line.startswith(DECIDED)] for cycle in every]),
        "said": _digest(every),
        "asked": [counters.filters_asked, counters.verdicts, counters.scores_asked, counters.scores],
        "explained": _digest(player.stage.explain()),
    }
    return found, watching.findings


def _digest(found):
    return hashlib.sha256(json.dumps(found).encode()).hexdigest()[:12]


def read():
    """Read what is written down, by seed."""
    return {int(seed): found for seed, found in json.loads(FILE.read_text(encoding="utf-8")).items()}


def main():
    """Write down what the lives come to today."""
    every = {seed: of_seed(seed)[0] for seed in SEEDS}
    lines = [f' "{seed}": {json.dumps(found)}' for seed, found in every.items() if found["asked"][0] <= MOST]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
