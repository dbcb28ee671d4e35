"""Our histograms say what those of Prometheus' own library say, whoever measures and however much."""

from __future__ import annotations

import threading

import prometheus_client
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.server.metrics import histograms, series, text_format

TABLE = [each for each in series.SERIES if each.type == "histogram"]
PLAIN = next(each for each in TABLE if not each.labels)
LABELLED = next(each for each in TABLE if len(each.labels) == 1)

values = st.one_of(
    st.floats(0, 1e7), st.sampled_from([*series.bounds(PLAIN), *series.bounds(LABELLED)]), st.just(float("inf"))
)
seen = st.lists(st.tuples(st.sampled_from([PLAIN.name, LABELLED.name]), st.sampled_from(["a", "b"]), values))


@given(seen)
def test_what_is_scraped_is_what_the_library_itself_would_show(found):
    prometheus_client.disable_created_metrics()
    ours, theirs = prometheus_client.CollectorRegistry(), prometheus_client.CollectorRegistry()
    made = histograms.Histograms([PLAIN, LABELLED])
    ours.register(text_format.Measured(made))
    library = {
        each.name: prometheus_client.Histogram(
            each.name, each.help, each.labels, registry=theirs, buckets=series.bounds(each)
        )
        for each in (PLAIN, LABELLED)
    }
    for name, label, value in found:
        labels = (label,) if name == LABELLED.name else ()
        made.find(name, *labels).observe(value)
        (library[name].labels(*labels) if labels else library[name]).observe(value)
    assert prometheus_client.generate_latest(ours) == prometheus_client.generate_latest(theirs)


def test_no_value_is_lost_or_kept_for_long_when_several_threads_measure():
    histogram = histograms.Histogram([1.0, 2.0])

    def measure(value):
        for _ in range(5 * histograms.MOST):
            histogram.observe(value)

    threads = [threading.Thread(target=measure, args=(value,)) for value in (0.5, 1.5, 2.5)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(histogram._waiting) < 2 * histograms.MOST  # noqa: SLF001  how much memory it takes shows nowhere else
    counts, total = histogram.totals()
    assert counts == [5 * histograms.MOST, 10 * histograms.MOST, 15 * histograms.MOST]
    assert total == 4.5 * 5 * histograms.MOST


def test_labels_that_do_not_belong_to_a_histogram_are_refused():
    with pytest.raises(ValueError, match="not 1"):
        histograms.Histograms([PLAIN]).find(PLAIN.name, "label")
