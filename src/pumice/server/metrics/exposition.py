"""From numbers to the text that Prometheus scrapes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import prometheus_client
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from pumice.server.metrics import histograms, series

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

Sample = tuple[str, tuple[str, ...], float]

LONGEST_LABEL: Final = 253  # as long as a name may be; whoever names a queue that does not exist may write more
CONTENT_TYPE: Final = prometheus_client.CONTENT_TYPE_LATEST


class Exposition:
    """A registry of its own: histograms are kept in it, everything else is asked for when somebody scrapes."""

    def __init__(self, ask: Callable[[], Iterable[Sample]], table: Sequence[series.Series] = series.SERIES) -> None:
        self._registry = prometheus_client.CollectorRegistry()
        self._histograms = histograms.Histograms(table)
        self._registry.register(self._histograms)
        self._registry.register(_Board(ask))
        prometheus_client.ProcessCollector(registry=self._registry)
        prometheus_client.PlatformCollector(registry=self._registry)
        prometheus_client.GCCollector(registry=self._registry)

    def histogram(self, name: str, *labels: str) -> histograms.Histogram:
        """Return a histogram, bound to its labels once and for all."""
        return self._histograms.find(name, *labels)

    def text(self) -> bytes:
        """Write everything out."""
        return prometheus_client.generate_latest(self._registry)


class _Board(Collector):
    """Gauges and counters, from whoever has the numbers."""

    def __init__(self, ask: Callable[[], Iterable[Sample]]) -> None:
        self._ask = ask

    def describe(self) -> Iterable[Metric]:
        """Describe nothing: the names are checked where the table is."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Give every series that has samples now."""
        families: dict[str, Metric] = {}
        for name, labels, value in self._ask():
            family = families.get(name)
            if family is None:
                family = families[name] = _family(series.BY_NAME[name])
            _add(family, name, labels, value)
        yield from families.values()


def _family(found: series.Series) -> Metric:
    if found.type == "gauge":
        return GaugeMetricFamily(found.name, found.help, labels=found.labels)
    if found.name.endswith("_total"):
        return CounterMetricFamily(found.name, found.help, labels=found.labels)
    return Metric(found.name, found.help, "unknown")


def _add(family: Metric, name: str, labels: Sequence[str], value: float) -> None:
    cut = (label[:LONGEST_LABEL] for label in labels)
    family.add_sample(name, dict(zip(series.BY_NAME[name].labels, cut, strict=True)), value)
