"""The scenario format: text in, scenarios or problems out.

A file is valid as a whole or not at all. Every problem of it is found in one pass, each with its line; nothing is guessed and no key is
ignored, because a misspelt expectation that is skipped would be a test that cannot fail.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from pumice import plain_files
from pumice.api import documents
from pumice.scenario import sharing, step_reading, steps
from pumice.scenario.reading import Cursor, Problem

if TYPE_CHECKING:
    from collections.abc import Iterable

_KEYS = ("scenario", *sharing.FRAME, "breakdowns", "steps")


class ScenarioFile(msgspec.Struct, frozen=True, kw_only=True):
    """What a file holds: scenarios, or what is wrong with it; and the files it names, which are no scenarios."""

    file: str
    scenarios: tuple[steps.Scenario, ...] = ()
    problems: tuple[Problem, ...] = ()
    named: frozenset[Path] = frozenset()


class NothingFoundError(Exception):
    """A path that leads to no scenario file."""


def find(paths: Iterable[str]) -> list[Path]:
    """List the files that paths name: a file itself, a folder's `*.yaml` at any depth, sorted; each file once."""
    found: dict[Path, None] = {}
    for path in map(Path, paths):
        if path.is_dir():
            files = sorted(file for file in path.rglob("*.yaml") if file.is_file())
            if not files:
                raise NothingFoundError(f"{path}: no scenario in this folder; scenario files end in .yaml")
            found.update(dict.fromkeys(files))
        elif path.exists():
            found[path] = None
        else:
            raise NothingFoundError(f"{path}: no such file or folder")
    return list(found)


def load(path: Path) -> ScenarioFile:
    """Read a file."""
    try:
        text = plain_files.text(path)
    except (OSError, UnicodeDecodeError) as error:
        return ScenarioFile(file=str(path), problems=(Problem(1, f"cannot be read: {error}"),))
    return parse(text, str(path))


def parse(text: str, file: str) -> ScenarioFile:
    """Read the scenarios of a text, one per YAML document that is not only there to be extended."""
    problems: list[Problem] = []
    try:
        found = documents.load_all(text, file)
    except documents.DocumentError as error:
        return ScenarioFile(file=file, problems=(Problem(error.line, error.message),))
    library = sharing.Library(file, found)
    read = [_read(Cursor(document, problems, document.data), library) for document in found]
    if not found:
        problems.append(Problem(1, "the file holds no scenario; a scenario starts with `scenario: its name`"))
    named = sharing.named_files(found)
    if problems:
        return ScenarioFile(file=file, problems=tuple(sorted(problems)), named=named)
    return ScenarioFile(file=file, scenarios=tuple(each for each in read if each is not None), named=named)


def _read(cursor: Cursor, library: sharing.Library) -> steps.Scenario | None:
    """Read a document: a scenario, or None for what is only shared."""
    if sharing.is_shared(cursor.value):
        library.read_shared(cursor)
        return None
    fields = cursor.fields(_KEYS, "a scenario")
    taken = _read_steps(cursor, fields)
    name = fields["scenario"].text("text: the scenario's name") if "scenario" in fields else ""
    if isinstance(cursor.value, dict) and "scenario" not in fields:
        cursor.refuse("the scenario has no name; it starts with `scenario: its name`")
    elif "scenario" in fields and isinstance(cursor.value["scenario"], str) and not name.strip():
        fields["scenario"].refuse("the scenario's name is empty")
    frame = library.read_frame(fields)
    return steps.Scenario(
        name=sharing.plain(name),
        file=cursor.source,
        line=cursor.line,
        policy=frame.policy,
        config_line=next((fields[key].line for key in ("config", "extends") if key in fields), 0),
        given=frame.given,
        steps=taken,
        period=steps.SECOND if frame.period is None else frame.period,
        flags=frame.flags,
        breakdowns=_read_breakdowns(fields["breakdowns"]) if "breakdowns" in fields else False,
    )


def _read_steps(cursor: Cursor, fields: dict[str, Cursor]) -> tuple[steps.Step, ...]:
    if "steps" not in fields:
        if isinstance(cursor.value, dict):
            cursor.refuse("the scenario has no steps")
        return ()
    items = fields["steps"].items("a list of steps")
    taken = tuple(step for item in items if (step := step_reading.read(item)) is not None)
    if isinstance(fields["steps"].value, list) and not any(_demands(item.value) for item in items):
        fields["steps"].refuse("no step has `expect` or `until`, so the scenario could not fail")
    return taken


def _demands(step: Any) -> bool:
    return isinstance(step, dict) and ("expect" in step or "until" in step)


def _read_breakdowns(cursor: Cursor) -> bool:
    if cursor.value != "allowed":
        cursor.refuse("expected `allowed`: the scenario goes on when a plugin breaks down, as a running scheduler does")
    return True
