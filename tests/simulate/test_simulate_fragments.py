"""GPU fragments over time: what is left of cards and of no use to the kinds of pods of a trace."""

from __future__ import annotations

import pytest
from simulating import SECOND, simulated

from pumice.api import core, kinds, meta, names
from pumice.simulate import cases, judging, pages, report
from pumice.simulate.loading import Loaded
from pumice.simulate.results import JobResult, PodRun, Result
from pumice.simulate.trace import Members, Trace, TraceJob, pod_spec


def node(**offered):
    """Make the only node."""
    status = core.NodeStatus(allocatable={"memory": "64Gi", "pods": "110", **offered})
    return kinds.NODE, core.Node(metadata=meta.ObjectMeta(name="n1"), status=status)


def trace(given, *asked):
    """Make a trace of single pods that run for 100 seconds."""
    jobs = [
        TraceJob(
            number=number,
            name=f"job-{number}",
            submit=0,
            members=(Members(count=1, spec=pod_spec(each, scheduler=names.SCHEDULER), run_time=100 * SECOND),),
            min_member=1,
            run_time=100 * SECOND,
            queue="default",
            line=number,
        )
        for number, each in enumerate(asked, 1)
    ]
    return Trace(source="made", jobs=jobs, cluster=[given])


def test_a_card_without_cpu_beside_it_is_of_no_use_and_one_with_some_is_of_use_to_some():
    given = node(**{"cpu": "8", "nvidia.com/gpu": "2"})
    whole = trace(given, {"cpu": "8", "nvidia.com/gpu": "1"}, {"cpu": "1", "nvidia.com/gpu": "1"})
    case = cases.Case(Loaded(whole, whole.cluster), simulated(whole))
    # One card is left without cpu; then one that half of the kinds can use; then both, of which all can use each.
    wanted = [(0, 1000.0, 1000), (100 * SECOND, 500.0, 1000), (200 * SECOND, 0.0, 2000)]
    assert case.fragments()[1:] == wanted
    figures = judging.judge(case)
    assert (figures["gpu"]["fragments"], figures["gpu"]["fragmentsOfIdle"]) == (0.75, 0.75)
    judged = report.Judged(name="p", figures=figures, case=case)
    assert "gpu-fragments.svg" in pages.drawn([judged])
    assert [line.split()[-1] for line in report.table([judged]) if line.startswith("GPU fragments")] == ["0.75", "%"]


@pytest.mark.parametrize(("cards", "useless"), [((), 0), ((0,), 1000 / 3)])
def test_a_share_is_on_the_card_that_the_bind_names_else_on_the_fullest_that_has_room(cards, useless):
    share, whole = ({"cpu": "1", "pumice.dev/gpu-milli": each} for each in ("500", "1000"))
    given = trace(node(**{"cpu": "8", "pumice.dev/gpu-milli": "2000"}), share, share, whole)
    runs = [[PodRun(0, "n1", 0, None, cards=(1,))], [PodRun(0, "n1", 10, None, cards=cards)], []]
    jobs = [JobResult(job=index, submit=0, start=0, runs=each) for index, each in enumerate(runs)]
    case = cases.Case(Loaded(given, given.cluster), Result(policy="p", jobs=jobs, stopped=20))
    assert [idle for _, _, idle in case.fragments()] == [2000, 1500, 1000]
    assert case.fragments()[-1][1] == pytest.approx(useless)


def test_where_nobody_asks_for_cards_there_are_no_fragments():
    plain = trace(node(**{"cpu": "8", "nvidia.com/gpu": "2"}), {"cpu": "8"})
    case = cases.Case(Loaded(plain, plain.cluster), simulated(plain))
    assert case.fragments() == []
    assert "fragments" not in judging.judge(case)["gpu"]
