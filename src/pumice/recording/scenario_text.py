"""Objects, a policy and a verdict as the text of a scenario file."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import msgspec

from pumice.cache.options import Options
from pumice.recording.shrinking import group_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pumice.recording.verdicts import JobVerdict

_SPECIAL: Final = re.compile(r"([.^$*+?{}\[\]\\|()])")


def render(
    job: str,
    verdict: JobVerdict,
    objects: Sequence[dict[str, Any]],
    config: str,
    options: Options,
    *,
    cycles: int,
    remark: str,
) -> str:
    """Write the scenario. Objects are lines of JSON, which is YAML that nobody can misread."""
    lines = [f"# {remark}", f"scenario: {_json(f'{job} {_name(verdict)}')}"]
    lines += ["config: |2", *(f"  {line}".rstrip() for line in config.splitlines())]
    if flags := _flags(options):
        lines.append(f"flags: {_json(flags)}")
    lines += ["given:", *(f"- {_json(manifest)}" for manifest in objects)]
    lines += ["steps:", f"- cycles: {cycles}", f"- expect: {_json(_expected(job, verdict, objects))}"]
    return "\n".join(lines) + "\n"


def _name(verdict: JobVerdict) -> str:
    return {"waits": "waits", "starts": "starts", "evicted": "is evicted"}[verdict.is_]


def _expected(job: str, verdict: JobVerdict, objects: Iterable[dict[str, Any]]) -> dict[str, Any]:
    if verdict.is_ == "evicted":
        return {"pods": {pod: {"evicted": True} for pod, _ in verdict.pods}}
    if verdict.is_ == "starts":
        return {"pods": {pod: {"bound": True, "node": node} for pod, node in verdict.pods}}
    said = _SPECIAL.sub(r"\\\1", verdict.text)
    waiting = [m["metadata"] for m in objects if m["kind"] == "Pod" and group_of(m) == job and not _has_node(m)]
    pods = {f"{each['namespace']}/{each['name']}": {"bound": False} for each in waiting}
    return {"pods": pods, "explain": {job: f"{verdict.source} .*: {said}"}}


def _has_node(manifest: dict[str, Any]) -> bool:
    return bool(manifest.get("spec", {}).get("nodeName"))


def _flags(options: Options) -> dict[str, Any]:
    """Return the flags that are not as they are by default."""
    usual = Options()
    return {
        field.replace("_", "-"): getattr(options, field)
        for field in Options.__struct_fields__
        if getattr(options, field) != getattr(usual, field)
    }


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
