"""How each kind of step is read; a step has exactly one kind, and only its own companions beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from pumice.scenario import expectations, manifest_reading, policies, references, steps

if TYPE_CHECKING:
    from collections.abc import Callable

    from pumice.scenario.reading import Cursor

_COMPANIONS = {"within": "until", "grace": "delete", "rejected": "config"}


def read(cursor: Cursor) -> steps.Step | None:
    """Read one step; None if it has no kind, or more than one."""
    fields = cursor.fields((*_READERS, *_COMPANIONS), "a step")
    found = [key for key in fields if key in _READERS]
    for key, kind in _COMPANIONS.items():
        if key in fields and kind not in found:
            fields[key].refuse(f"{key!r} stands only beside {kind!r}")
    if len(found) == 1:
        return _READERS[found[0]](cursor, fields)
    if found:
        cursor.refuse(
            f"a step has exactly one kind, this one has {len(found)}: {', '.join(found)}; make them steps of their own"
        )
    elif isinstance(cursor.value, dict) and not (fields or cursor.value):
        cursor.refuse(f"the step is empty; it needs one of {', '.join(_READERS)}")
    elif isinstance(cursor.value, dict) and len(fields) == len(cursor.value):
        cursor.refuse(f"the step has no kind; it needs one of {', '.join(_READERS)}")
    return None


def _cycles(cursor: Cursor, fields: dict[str, Cursor]) -> steps.Step:
    return steps.Cycles(line=cursor.line, count=fields["cycles"].integer())


def _until(cursor: Cursor, fields: dict[str, Cursor]) -> steps.Step:
    if "within" not in fields:
        cursor.refuse("until needs 'within: N', the number of cycles after which it fails")
    within = fields["within"].integer() if "within" in fields else 0
    return steps.Until(line=cursor.line, expectation=expectations.read(fields["until"]), within=within)


def _advance(cursor: Cursor, fields: dict[str, Cursor]) -> steps.Step:
    return steps.Advance(line=cursor.line, duration=fields["advance"].duration())


def _apply(cursor: Cursor, fields: dict[str, Cursor]) -> steps.Step:
    return steps.Apply(line=cursor.line, entries=manifest_reading.read(fields["apply"]))


def _patch(cursor: Cursor, fields: dict[str, Cursor]) -> steps.Step:
    return steps.Patch(line=cursor.line, entries=manifest_reading.read(fields["patch"], partial=True))


def _delete(cursor: Cursor, fields: dict[str, Cursor]) -> steps.Step:
    return steps.Delete(
        line=cursor.line,
        references=tuple(
            references.read(entry, glob=False)
            for entry in fields["delete"].items("a list of references such as pod/a/g-0")
        ),
        grace=fields["grace"].duration() if "grace" in fields else None,
    )


def _config(cursor: Cursor, fields: dict[str, Cursor]) -> steps.Step:
    return steps.Configure(
        line=cursor.line,
        policy=policies.read(fields["config"]),
        rejected=fields["rejected"].boolean() if "rejected" in fields else False,
    )


def _fail(cursor: Cursor, fields: dict[str, Cursor]) -> steps.Step:
    fault = fields["fail"]
    parts = fault.fields(("verb", "object", "times", "error"), "fail")
    for key in ("verb", "error"):
        if isinstance(fault.value, dict) and key not in fault.value:
            fault.refuse(
                f"fail needs the key {key!r}: one of {', '.join(steps.VERBS if key == 'verb' else steps.ERRORS)}"
            )
    return steps.Fail(
        line=cursor.line,
        verb=cast("steps.Verb", parts["verb"].choice(steps.VERBS)) if "verb" in parts else "bind",
        object=references.read(parts["object"]) if "object" in parts else None,
        times=parts["times"].integer(least=1) if "times" in parts else 1,
        error=cast("steps.Error", parts["error"].choice(steps.ERRORS)) if "error" in parts else "refused",
    )


def _expect(cursor: Cursor, fields: dict[str, Cursor]) -> steps.Step:
    return steps.Expect(line=cursor.line, expectation=expectations.read(fields["expect"]))


_READERS: dict[str, Callable[[Cursor, dict[str, Cursor]], steps.Step]] = {
    "cycles": _cycles,
    "until": _until,
    "advance": _advance,
    "apply": _apply,
    "patch": _patch,
    "delete": _delete,
    "config": _config,
    "fail": _fail,
    "expect": _expect,
}
