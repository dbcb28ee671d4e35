"""The scenario format: text in, scenarios or problems out.

A file is valid as a whole or not at all. Every problem of it is found in one pass, each with its line; nothing is guessed and no key is
ignored, because a misspelt expectation that is skipped would be a test that cannot fail.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from pumice.api import documents
from pumice.scenario import given_files, manifest_reading, step_reading, steps
from pumice.scenario.reading import Cursor, Problem
from pumice.scheduler import Options

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pumice.scenario.manifests import Entry

_KEYS = ("scenario", "config", "given", "steps", "period", "flags", "breakdowns")


class ScenarioFile(msgspec.Struct, frozen=True, kw_only=True):
    """What a file holds: scenarios, or what is wrong with it."""

    file: str
    scenarios: tuple[steps.Scenario, ...] = ()
    problems: tuple[Problem, ...] = ()


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
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        return ScenarioFile(file=str(path), problems=(Problem(1, f"cannot be read: {error}"),))
    return parse(text, str(path))


def parse(text: str, file: str) -> ScenarioFile:
    """Read the scenarios of a text, one per YAML document."""
    problems: list[Problem] = []
    try:
        found = documents.load_all(text, file)
    except documents.DocumentError as error:
        return ScenarioFile(file=file, problems=(Problem(error.line, error.message),))
    scenarios = [_read(Cursor(document, problems, document.data), file) for document in found]
    if not found:
        problems.append(Problem(1, "the file holds no scenario; a scenario starts with `scenario: its name`"))
    if problems:
        return ScenarioFile(file=file, problems=tuple(sorted(problems)))
    return ScenarioFile(file=file, scenarios=tuple(scenarios))


def _read(cursor: Cursor, file: str) -> steps.Scenario:
    fields = cursor.fields(_KEYS, "a scenario")
    taken = _read_steps(cursor, fields)
    name = fields["scenario"].text("text: the scenario's name") if "scenario" in fields else ""
    if isinstance(cursor.value, dict) and "scenario" not in fields:
        cursor.refuse("the scenario has no name; it starts with `scenario: its name`")
    elif "scenario" in fields and isinstance(cursor.value["scenario"], str) and not name.strip():
        fields["scenario"].refuse("the scenario's name is empty")
    return steps.Scenario(
        name=" ".join(name.split()),
        file=file,
        line=cursor.line,
        config=step_reading.config_text(fields["config"]) if "config" in fields else None,
        config_line=fields["config"].line if "config" in fields else 0,
        given=_read_given(fields["given"], file) if "given" in fields else (),
        steps=taken,
        period=fields["period"].duration() if "period" in fields else steps.SECOND,
        flags=_read_flags(fields["flags"]) if "flags" in fields else {},
        breakdowns=_read_breakdowns(fields["breakdowns"]) if "breakdowns" in fields else False,
    )


def _read_given(cursor: Cursor, file: str) -> tuple[Entry, ...]:
    """Read what exists before the first cycle: manifests, or the name of a file that holds them."""
    return given_files.read(cursor, file) if isinstance(cursor.value, str) else manifest_reading.read(cursor)


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


def _read_flags(cursor: Cursor) -> dict[str, Any]:
    flags = {name: entry.value for name, entry in cursor.entries("a map of the scheduler's flags")}
    for name, value in flags.items():
        try:
            Options.from_flags({name: value})
        except ValueError as error:
            cursor.at(name).refuse(str(error))
    return flags
