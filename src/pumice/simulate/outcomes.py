"""All runs together: judged policy by policy, and written as whoever asked for it wants it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from pumice.simulate import isolating, json_report, loading, report
from pumice.simulate.cases import Case
from pumice.simulate.report import Difference, Judged  # noqa: TC001  msgspec reads the annotations at run time

if TYPE_CHECKING:
    from pumice.simulate.loading import Loaded
    from pumice.simulate.results import Result
    from pumice.simulate.running import Run
    from pumice.simulate.settings import Settings


class Outcome(msgspec.Struct):
    """What is reported."""

    policies: list[Judged]
    partial: bool
    about: dict[str, Any]

    def differences(self) -> list[Difference]:
        """Return the jobs on which the first two policies differ most."""
        return report.differences(self.policies[0].case, self.policies[1].case)

    def as_json(self) -> bytes:
        """Write everything as JSON."""
        return json_report.encode(self.policies, self.about)


def judge(settings: Settings, loaded: Loaded, done: list[tuple[Run, Result]]) -> Outcome:
    """Judge every policy that was run, in the order in which they were given."""
    cases: dict[int, list[Case]] = {}
    alone: dict[int, dict[str, Result]] = {}
    for run, result in done:
        if run.queue:
            alone.setdefault(run.policy, {})[run.queue] = result
        else:
            shaken = loading.load(settings, run.repetition) if run.repetition else loaded
            cases.setdefault(run.policy, []).append(Case(shaken, result))
    policies = [
        report.judged(settings.policies[policy].name, found, _rho(found[0], alone.get(policy, {})))
        for policy, found in sorted(cases.items())
    ]
    partial = any(result.interrupted for _, result in done)
    return Outcome(policies, partial, _about(settings, loaded, partial=partial))


def _rho(case: Case, alone: dict[str, Result]) -> dict[str, float | None]:
    return {
        queue: isolating.rho([each for each in case.result.jobs if case.job(each).queue == queue], result.jobs)
        for queue, result in alone.items()
    }


def _about(settings: Settings, loaded: Loaded, *, partial: bool) -> dict[str, Any]:
    found: dict[str, Any] = {"trace": Path(settings.trace).name, "jobs": len(loaded.trace.jobs), "partial": partial}
    given = {
        "as": settings.form if settings.form != "pod" else "",
        "first": settings.first,
        "load": settings.load,
        "stay": settings.stay,
        "seed": settings.seed if settings.stay or settings.shake else 0,
        "shake": settings.shake,
        "estimates": settings.estimates if settings.estimates != "trace" else "",
        "period": settings.period,
    }
    return found | {key: value for key, value in given.items() if value} | {"notes": loaded.trace.notes}
