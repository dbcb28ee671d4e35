"""Job flows: what depends on what."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.admission import laws, naming, remarks
from pumice.admission.jobs import dependencies, validity
from pumice.api import documents

if TYPE_CHECKING:
    from pumice.admission.parts import Part
    from pumice.admission.remarks import Remarks
    from pumice.admission.requests import Request, RuleSettings
    from pumice.admission.surroundings import Surroundings


def judge(request: Request, found: Remarks, _: Surroundings, __: RuleSettings) -> None:
    """Judge a flow that is created or changed."""
    if request.operation == "UPDATE" and request.object.get("spec") == request.old.get("spec"):
        return
    whole = request.part(found)
    own, spec = whole.record("metadata").text("name"), whole.record("spec")
    spec.among("jobRetainPolicy", ("retain", "delete"))
    needs: dependencies.Needs = {}
    for flow in spec.items("flows"):
        name = flow.required("name")
        if name and (problem := naming.subdomain(name)):
            flow.breaks(laws.FLOW_NAMES, f"is {documents.quoted(name)}, and {problem}", "name")
        elif own and name and (problem := naming.qualified(f"{own}-{name}")):
            called = documents.quoted(f"{own}-{name}")
            flow.breaks(laws.FLOW_NAMES, f"makes a job called {called}, and such a name {problem}", "name")
        _warn_of_the_unheeded(flow)
        if name in needs:
            message = f"is {documents.quoted(name)}, which another flow is called already: one job is made for both"
            flow.breaks(laws.FLOW_REPEATS, message, "name")
        waited = flow.record("dependsOn").texts("targets")
        if name:
            needs[name] = waited  # of flows that are called the same Volcano looks at the last
    dependencies.judge(needs, "flow", laws.FLOWS)


def _warn_of_the_unheeded(flow: Part) -> None:
    """Say which fields are stored and change nothing, as in Volcano."""
    if flow.record("dependsOn").part("probe").value:
        flow.record("dependsOn").breaks(
            laws.FLOW_UNHEEDED,
            "is accepted and has no effect: a job starts when those it depends on are Completed",
            "probe",
        )
    if flow.part("patch").value:
        message = "is accepted and has no effect: a job is made of its template as that is"
        flow.breaks(laws.FLOW_UNHEEDED, message, "patch")


def judge_template(request: Request, found: Remarks, _: Surroundings, settings: RuleSettings) -> None:
    """Judge what jobs of flows are made from."""
    of_jobs = remarks.Remarks(strict=found.strict)
    validity.judge_spec(request.part(of_jobs).record("spec"), settings)
    found.include(of_jobs, laws.JOB_TEMPLATE)
