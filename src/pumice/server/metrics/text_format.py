"""From numbers to the text that Prometheus scrapes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import prometheus_client
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from pumice.server.metrics import series

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pumice.server.metrics.histograms import Histograms
    from pumice.server.metrics.series import Sample

LONGEST_LABEL: Final = 253  # as long as a name may be; whoever names a queue that does not exist may write more
CONTENT_TYPE: Final = prometheus_client.CONTENT_TYPE_LATEST


class TextFormat:
    """A registry of its own, from which everything is written out."""

    def __init__(self, ask: Callable[[], Iterable[Sample]], histograms: Histograms) -> None:
        self._registry = prometheus_client.CollectorRegistry()
        self._registry.register(Measured(histograms))
        self._registry.register(_Board(ask))
        prometheus_client.ProcessCollector(registry=self._registry)
        prometheus_client.PlatformCollector(registry=self._registry)
        prometheus_client.GCCollector(registry=self._registry)

    def text(self) -> bytes:
        """Write everything out."""
        return prometheus_client.generate_latest(self._registry)


class _Undescribed(Collector):
    """Whoever describes nothing: the names are checked where the table is."""

    def describe(self) -> Iterable[Metric]:
        """Describe nothing."""
        return ()


class Measured(_Undescribed):
    """Histograms, as they are kept."""

    def __init__(self, histograms: Histograms) -> None:
        self._histograms = histograms

    def collect(self) -> Iterator[Metric]:
        """Give every histogram."""
        for each, bounds, made in self._histograms.all():
            family = HistogramMetricFamily(each.name, each.help, labels=each.labels)
            edges = [*map(floatToGoString, bounds), "+Inf"]
            for labels, histogram in made:
                counts, total = histogram.totals()
                family.add_metric(labels, list(zip(edges, counts, strict=True)), total)
            yield family


class _Board(_Undescribed):
    """Gauges and counters, from whoever has the numbers."""

    def __init__(self, ask: Callable[[], Iterable[Sample]]) -> None:
        self._ask = ask

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
