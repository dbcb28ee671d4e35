"""The verdict on many manifests: schemas first, then the rules of admission, over what is known of the cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from pumice.admission import job_flows, laws, remarks, rules, surroundings
from pumice.admission.pod_templates import template
from pumice.admission.remarks import Remark
from pumice.admission.requests import RuleSettings, written
from pumice.api import kinds, names
from pumice.vetting import files, schema_check

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pumice.admission.requests import Request
    from pumice.vetting.files import Entry, Trouble

_RULES: Final = rules.named(tuple(rules.BY_PATH))


class Line(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One remark, as it is printed."""

    file: str
    line: int
    kind: str = ""
    namespace: str = ""
    name: str = ""
    field: str = ""
    message: str
    rule: str = ""
    refuses: bool = True


class Report(msgspec.Struct, kw_only=True):
    """What was looked at and what was found."""

    files: int = 0
    objects: int = 0
    unknown: list[str] = []
    findings: list[Line] = []

    @property
    def refused(self) -> bool:
        """Whether anything would be refused."""
        return any(each.refuses for each in self.findings)


class Vetting:
    """Judges manifests; `around` is what is known of a cluster, and is told of what the files hold."""

    def __init__(self, around: surroundings.KnownObjects, settings: RuleSettings | None = None) -> None:
        self._around = around
        self._settings = settings or RuleSettings()
        self._schemas = schema_check.Schemas()

    def judge(self, entries: Sequence[Entry | Trouble]) -> Report:
        """Judge everything that was read."""
        report = Report(files=len({each.source for each in entries}), unknown=[], findings=[])
        for each in entries:
            if isinstance(each, files.Entry):
                self._note(each.manifest)
        for each in entries:
            if isinstance(each, files.Entry):
                report.objects += 1
                report.findings += self._lines(each, report.unknown)
            else:
                report.findings.append(Line(file=each.source, line=each.line, message=each.message))
        return report

    def _note(self, manifest: dict[str, Any]) -> None:
        """Let what the files define count as there."""
        kind = kinds.find(str(manifest.get("apiVersion")), str(manifest.get("kind")))
        if kind in surroundings.FOLLOWED and kind is not None:
            self._around.put(kind, manifest)

    def _lines(self, entry: Entry, unknown: list[str]) -> Iterable[Line]:
        manifest = entry.manifest
        request = written("CREATE", manifest, namespace=names.DEFAULT_NAMESPACE)
        found = self._remarks(manifest, request, unknown)
        kind = str(manifest.get("kind"))
        resource = self._schemas.find(manifest)
        namespace = request.namespace if resource is None or resource.namespaced else ""
        lines = [
            Line(
                file=entry.source,
                line=entry.line_of(each.path),
                kind=kind,
                namespace=namespace,
                name=request.name,
                field=each.field,
                message=each.message,
                rule=each.law.name,
                refuses=each.refuses,
            )
            for each in found
        ]
        return sorted(lines, key=lambda line: line.line)

    def _remarks(self, manifest: dict[str, Any], request: Request, unknown: list[str]) -> list[Remark]:
        resource = self._schemas.find(manifest)
        if resource is None:
            called = f"{manifest.get('apiVersion')} {manifest.get('kind')}"
            near = self._schemas.near(manifest)
            if near:
                return [
                    Remark(
                        ("apiVersion",),
                        f"is {manifest.get('apiVersion')}, and {manifest.get('kind')} is served as {near}",
                    )
                ]
            if called not in unknown:
                unknown.append(called)
            return []
        ruled = self._ruled(resource.kind, request)
        told = {each.path for each in ruled}
        return ruled + [each for each in self._schemas.check(manifest, resource) if each.path not in told]

    def _ruled(self, kind: kinds.Kind, request: Request) -> list[Remark]:
        made = rules.completed(_RULES, kind, request, self._around, self._settings)
        request = msgspec.structs.replace(request, object=made)
        found = rules.judged(_RULES, kind, request, self._around, self._settings)
        if kind is kinds.JOB_TEMPLATE:
            found = remarks.Remarks(strict=self._settings.strict)
            job_flows.judge_template(request, found, self._around, self._settings)
        elif kind is kinds.POD:
            template.judge_spec(request.part(found).record("spec").under(laws.TEMPLATE))
        return found.all
