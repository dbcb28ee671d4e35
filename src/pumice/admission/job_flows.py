"""Job flows: what depends on what."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.admission import naming
from pumice.admission.jobs import dependencies, validity
from pumice.api import documents

if TYPE_CHECKING:
    from pumice.admission.remarks import Remarks
    from pumice.admission.requests import Request, Settings
    from pumice.admission.surroundings import Surroundings


def judge(request: Request, found: Remarks, _: Surroundings, __: Settings) -> None:
    """Judge a flow that is created or changed."""
    if request.operation == "UPDATE" and request.object.get("spec") == request.old.get("spec"):
        return
    spec = request.part(found).record("spec")
    spec.among("jobRetainPolicy", ("retain", "delete"))
    needs: dependencies.Needs = {}
    for flow in spec.items("flows"):
        name = flow.required("name")
        if name and (problem := naming.subdomain(name)):
            flow.refuse(f"is {documents.quoted(name)}, and {problem}", "name")
        if name in needs:
            flow.refuse(f"is {documents.quoted(name)}, which another flow is called already", "name")
        waited = flow.record("dependsOn").texts("targets")
        if name:
            needs.setdefault(name, []).extend(waited)
    dependencies.judge(needs, "flow")


def judge_template(request: Request, found: Remarks, _: Surroundings, settings: Settings) -> None:
    """Judge what jobs of flows are made from."""
    validity.judge_spec(request.part(found).record("spec"), settings)
