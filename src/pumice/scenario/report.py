"""Reports of a run: lines for people, JSON and JUnit for machines.

Nothing here depends on the clock or on the machine: the same files give the same report.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import msgspec

from pumice.scenario import results

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pumice.scenario.results import Result
    from pumice.scenario.view import Mismatch

_WIDEST = 80
_MOST_LISTED = 10
_MARKS = {"passed": "✓", "failed": "✗", "invalid": "✗"}
_PLAIN_MARKS = {"passed": "ok", "failed": "FAIL", "invalid": "INVALID"}


class Writer:
    """Turns results into lines; `fancy` allows signs beyond ASCII."""

    def __init__(self, names: Iterable[str], *, fancy: bool) -> None:
        self._marks = _MARKS if fancy else _PLAIN_MARKS
        self._mark_width = max(map(len, self._marks.values()))
        self._name_width = min(_WIDEST, max(map(len, names), default=0))

    def line(self, result: Result) -> str:
        """Give the one line of a scenario."""
        mark = self._marks[result.status].ljust(self._mark_width)
        if result.status == "invalid":
            return f"{mark}  {result.name.ljust(self._name_width)}  {_number(len(result.mismatches), 'problem')}"
        done = f"{_number(result.cycles, 'cycle')}, {_number(result.binds, 'bind')}, {_number(result.evictions, 'eviction')}"
        return f"{mark}  {result.name.ljust(self._name_width)}  {done}"

    def details(self, result: Result) -> Iterator[str]:
        """Give the lines that say what was expected, what was found, and what the scheduler last thought."""
        place = result.file if result.status == "invalid" else f"{result.name} ({result.file}:{result.line})"
        yield ""
        yield f"{'not a valid scenario file' if result.status == 'invalid' else 'failed'}: {place}"
        for mismatch, subjects in _grouped(result.mismatches):
            where = f"  {result.file}:{mismatch.line}:"
            if mismatch.expected:
                yield f"{where} {_listed(subjects)}"
                yield f"    expected  {_indented(mismatch.expected, 14)}"
                yield f"    found     {_indented(mismatch.found, 14)}"
            else:
                yield f"{where} {_indented(mismatch.found, 4)}"
        if result.status == "failed":
            yield f"  decision trace of the last cycle ({result.cycles}):" if result.cycles else "  no cycle was run"
            nothing = ("nothing was decided",) if result.cycles else ()
            yield from (f"    {line}" for line in result.trace or nothing)


def summary(done: Sequence[Result], config: str = "") -> str:
    """Give the last line; it names a configuration that stood in for those of the scenarios."""
    numbers = {status: sum(result.status == status for result in done) for status in ("passed", "failed", "invalid")}
    parts = [f"{numbers['passed']} passed", f"{numbers['failed']} failed"]
    parts += [_number(numbers["invalid"], "invalid file")] if numbers["invalid"] else []
    return ", ".join(parts) + (f", all with the configuration {config}" if config else "")


def as_json(done: Sequence[Result], config: str = "") -> bytes:
    """Give the JSON report."""
    entries = [
        {
            "name": result.name,
            "file": result.file,
            "passed": result.status == "passed",
            "failures": result.failures,
            "cycles": result.cycles,
            "binds": result.binds,
            "evictions": result.evictions,
        }
        for result in done
    ]
    report = {"config": config, "scenarios": entries} if config else {"scenarios": entries}
    return msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n"


def as_junit(done: Sequence[Result], config: str = "") -> bytes:
    """Give the JUnit report: a failed scenario is a failure, an invalid file an error."""
    failed = [result for result in done if result.status == "failed"]
    wrong = [result for result in done if result.status == "invalid"]
    numbers = {"tests": str(len(done)), "failures": str(len(failed)), "errors": str(len(wrong))}
    root = ET.Element("testsuites", numbers)
    suite = ET.SubElement(root, "testsuite", {"name": "pumice test", **numbers})
    if config:
        ET.SubElement(ET.SubElement(suite, "properties"), "property", {"name": "config", "value": _clean(config)})
    for result in done:
        case = ET.SubElement(suite, "testcase", {"classname": _clean(result.file), "name": _clean(result.name)})
        if result.status != "passed":
            tag = "failure" if result.status == "failed" else "error"
            failure = ET.SubElement(case, tag, {"message": _clean(results.sentence(result.mismatches[0]))})
            failure.text = _clean("\n".join([*result.failures, *result.trace]))
    ET.indent(root)
    return bytes(ET.tostring(root, encoding="utf-8", xml_declaration=True)) + b"\n"


def _grouped(mismatches: Iterable[Mismatch]) -> list[tuple[Mismatch, list[str]]]:
    """Put together what differs only in its subject, so that ten thousand equal pods are told about once."""
    groups: dict[tuple[int, str, str], tuple[Mismatch, list[str]]] = {}
    for mismatch in mismatches:
        key = (mismatch.line, mismatch.expected, mismatch.found)
        groups.setdefault(key, (mismatch, []))[1].append(mismatch.subject)
    return list(groups.values())


def _listed(subjects: list[str]) -> str:
    more = len(subjects) - _MOST_LISTED
    return ", ".join(subjects[:_MOST_LISTED]) + (f" and {more} more" if more > 0 else "")


def _number(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _indented(text: str, width: int) -> str:
    return text.replace("\n", "\n" + " " * width)


def _clean(text: str) -> str:
    """Leave out control characters, which XML cannot hold."""
    return "".join(
        character for character in text if character in "\t\n" or (character >= " " and character not in "\ufffe\uffff")
    )
