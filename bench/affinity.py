"""Rules about other pods: anti-affinity, spreading, preferences, on thousands of nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bench import worlds
from bench.cases import Figure, seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"
NODES = 5000
GANGS = 50
SIZE = 100


def _gangs(spec: Callable[[str], dict[str, Any]], *more: Callable[[str], dict[str, Any]]) -> float:
    """Decide 50 gangs of 100 pods, each pod labelled with its gang, and return pods per second."""

    def pods(gang: str) -> Iterator[dict[str, Any]]:
        for index in range(SIZE):
            pod = worlds.pod(gang, index, "1", "2Gi", **spec(gang))
            pod["metadata"]["labels"] = {"gang": gang, "app": "train", "index": str(index)}
            yield pod

    def run() -> float:
        bench = worlds.Bench()
        bench.feed(_node(i) for i in range(NODES))
        for number in range(GANGS):
            gang = f"gang-{number}"
            bench.feed([worlds.group(gang, SIZE), *(make(gang) for make in more)])
            bench.feed(pods(gang))
        bench.apply()
        spent = seconds(bench.decide)
        if len(bench.world.binds) != GANGS * SIZE:
            raise RuntimeError(f"{len(bench.world.binds)} of {GANGS * SIZE} pods were bound")
        return spent

    return GANGS * SIZE / min(run() for _ in range(3))


def _node(index: int) -> dict[str, Any]:
    node = worlds.node(index)
    node["metadata"]["labels"][ZONE] = f"z{index % 3}"
    return node


def _among(gang: str) -> dict[str, Any]:
    return {"matchLabels": {"gang": gang}}


def _apart(gang: str) -> dict[str, Any]:
    term = {"labelSelector": _among(gang), "topologyKey": HOST}
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def _spread_and_near(gang: str) -> dict[str, Any]:
    constraint = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": _among(gang),
    }
    term = {"labelSelector": {"matchLabels": {"app": "train"}}, "topologyKey": HOST}
    preferred = [{"weight": 10, "podAffinityTerm": term}]
    return {
        "topologySpreadConstraints": [constraint],
        "affinity": {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}},
    }


def _service(gang: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": gang, "namespace": "bench"},
        "spec": {"selector": {"gang": gang}},
    }


def _figure(name: str, rate: float, target: int, note: str = "") -> Figure:
    return Figure(name, rate, "pods/s", f">= {target}", rate >= target, note=note)


def gangs_apart() -> Figure:
    """Measure 5,000 pods in 50 gangs whose members must be on different nodes."""
    return _figure("5,000 pods with hostname anti-affinity, 5,000 nodes", _gangs(_apart), 30_000)


def gangs_spread() -> Figure:
    """Measure 5,000 pods with hard zone spread and preferred affinity."""
    return _figure("5,000 pods with zone spread and preferred affinity", _gangs(_spread_and_near), 12_000)


def gangs_behind_services() -> Figure:
    """Measure 5,000 plain pods behind services, which are spread by default."""
    rate = _gangs(lambda _: {}, _service)
    return _figure("5,000 pods behind services, 5,000 nodes", rate, 10_000, "spread over hosts and zones by default")


def everything() -> list[Callable[[], Figure]]:
    """Return all measurements of this page."""
    return [gangs_apart, gangs_spread, gangs_behind_services]
