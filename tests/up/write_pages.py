"""Play pages about other projects and write what their commands print: `make pages PAGES="jobs ray"`. What reads waits a moment first: look at what it wrote."""

from __future__ import annotations

import re
import sys
import tempfile
import time
from pathlib import Path

import pages
import running_operators
from running_cluster import RunningCluster

FOLDER = pages.ROOT / "docs/integrations"
_SETTLING = 10.0  # seconds until nothing changes any more; only here: the test asks until it sees what is shown
_WIDEST = 150  # characters of a line on a page


def main(names: list[str]) -> None:
    """Write the pages that are named, else all that can be played here."""
    for name in names or [each for each in running_operators.PAGES if running_operators.can_play(each)]:
        file = FOLDER / f"{name}.md"
        page = file.read_text(encoding="utf-8")
        with (
            tempfile.TemporaryDirectory() as folder,
            RunningCluster(Path(folder), *pages.options(page)) as cluster,
            running_operators.beside(cluster, running_operators.PAGES[name]),
        ):
            text = pages.BLOCK.sub(lambda block, cluster=cluster: _written(block[1], cluster), page)
        file.write_text(text, encoding="utf-8")


def _written(block: str, cluster: RunningCluster) -> str:
    parts = re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]
    return f"```console\n{''.join(_answered(part, cluster) for part in parts)}```"


def _answered(part: str, cluster: RunningCluster) -> str:
    command, _, shown = part.partition("\n")
    step = pages.Step(command, shown)
    if step.starts:
        return f"$ {part}"
    time.sleep(_SETTLING if step.only_reads else 0)
    printed = pages.run(command, cluster)
    sys.stdout.write(f"$ {command}\n{printed}\n")
    kept = shown if shown and pages.is_shown(printed, shown) else "\n".join(map(_cut, printed.splitlines()))
    return f"$ {command}\n{kept}" + ("" if kept.endswith("\n") or not kept else "\n")


def _cut(line: str) -> str:
    return line if len(line) <= _WIDEST else line[:_WIDEST].rpartition(" ")[0] + " …"


if __name__ == "__main__":
    main(sys.argv[1:])
