"""What a process tells about itself: histograms are kept here, everything else is asked for when somebody scrapes."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from pumice.server.metrics import histograms, series

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pumice.server.metrics.series import Sample
    from pumice.server.metrics.text_format import TextFormat


class Exposition:
    """The numbers of one process, and how they are written out."""

    def __init__(self, ask: Callable[[], Iterable[Sample]], table: Sequence[series.Series] = series.SERIES) -> None:
        self._ask = ask
        self._histograms = histograms.Histograms(table)

    def histogram(self, name: str, *labels: str) -> histograms.Histogram:
        """Return a histogram, bound to its labels once and for all."""
        return self._histograms.find(name, *labels)

    def text(self) -> bytes:
        """Write everything out."""
        return self._format.text()

    @functools.cached_property
    def _format(self) -> TextFormat:
        from pumice.server.metrics import text_format  # noqa: PLC0415  it takes long to load, and nobody scrapes during a start

        return text_format.TextFormat(self._ask, self._histograms)
