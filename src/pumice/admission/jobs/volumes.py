"""Volumes that every pod of a job gets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pumice.admission import laws, naming
from pumice.admission.pod_templates import amounts
from pumice.api import documents

if TYPE_CHECKING:
    from pumice.admission.parts import Part

_MODES: Final = ("ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod")


def judge(spec: Part) -> None:
    """Judge the field `volumes` of a job."""
    at: dict[str, int] = {}
    for index, volume in enumerate(spec.items("volumes")):
        path = volume.required("mountPath")
        if ":" in path:
            volume.refuse(f"is {documents.quoted(path)}, and may not hold a colon", "mountPath")
        if path and at.setdefault(path, index) != index:
            message = f"is {documents.quoted(path)}, which volumes[{at[path]}] has already"
            volume.breaks(laws.VOLUMES, message, "mountPath")
        name, claim = volume.text("volumeClaimName"), volume.record("volumeClaim")
        if name and claim:
            volume.breaks(laws.VOLUMES, "may not be given together with volumeClaimName", "volumeClaim")
        elif not name and not claim:
            volume.breaks(laws.VOLUMES, "needs one of volumeClaim and volumeClaimName")
        if name and (problem := naming.subdomain(name)):
            volume.breaks(laws.CLAIMS, f"is {documents.quoted(name)}, and {problem}", "volumeClaimName")
        if claim:
            _judge_claim(claim.under(laws.CLAIMS))


def _judge_claim(claim: Part) -> None:
    modes = claim.texts("accessModes")
    if not claim.part("accessModes").value:
        claim.refuse(f"is empty, and must hold at least one of {', '.join(_MODES)}", "accessModes")
    for mode, where in modes:
        if mode not in _MODES:
            where.refuse(f"is {documents.quoted(mode)}, and must be one of {', '.join(_MODES)}")
    size = claim.record("resources", "requests").part("storage")
    if size.value is None:
        size.refuse("is missing: say how large the volume must be")
    elif amounts.read_one(size) == 0:
        size.refuse("is 0, and must be above 0")
