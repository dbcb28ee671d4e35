"""As much of Prometheus' language as our alerts use, evaluated over scrapes: instant and range selectors, rate and its kin, aggregation, comparison, `and`, `or`.

Written from the description of the language. What it does not know it refuses, so that an alert never seems fine because it was not understood. Of `rate`, `increase`
and `delta` it leaves out the extrapolation to the ends of the window.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
import re
from collections import defaultdict

from prometheus_client.parser import text_string_to_metric_families

TOKEN = re.compile(r"\s*([a-zA-Z_]\w*|[0-9.]+(?:[smhd]\b)?|\"[^\"]*\"|==|!=|<=|>=|[-+*/<>(){}\[\],=])")
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
STALE = 300.0  # seconds after which a series that is not scraped any more is gone
COMPARISONS = {"<": operator.lt, ">": operator.gt, "==": operator.eq, "!=": operator.ne, "<=": operator.le, ">=": operator.ge}  # fmt: skip
AGGREGATIONS = {"sum": sum, "min": min, "max": max}
NOWHERE = frozenset()


def seconds(text):
    """Read a duration such as 5m."""
    return float(text[:-1]) * UNITS[text[-1]]


@functools.cache
def named(written, instance):
    """Read the name and the labels of a series; they are written alike in every scrape."""
    (family,) = text_string_to_metric_families(f"{written} 0\n")
    (sample,) = family.samples
    return sample.name, frozenset({**sample.labels, "instance": instance}.items())


class Scrapes:
    """What was scraped of some instances, each at its time."""

    def __init__(self):
        self.series = defaultdict(list)  # name and labels -> time and value

    def add(self, now, instance, text):
        """Read a scrape; the first one as a whole, too, with what it says of types and meanings."""
        lines = [line for line in text.splitlines() if line and not line.startswith("#")]
        if not self.series:
            assert sum(len(family.samples) for family in text_string_to_metric_families(text)) == len(lines)
        for line in lines:
            written, _, value = line.rpartition(" ")
            self.series[named(written, instance)].append((now, float(value)))

    def select(self, name, chosen, now, window):
        """Give the values of each series within a window, the oldest first."""
        for (known, labels), values in self.series.items():
            if known == name and chosen.items() <= dict(labels).items():
                found = [(at, value) for at, value in values if now - window < at <= now]
                if found:
                    yield labels, found


def increase(found, _window):
    """Add up what a counter has grown by; one that falls has begun anew."""
    values = [value for _, value in found]
    return sum(b - a if b >= a else b for a, b in itertools.pairwise(values))


RANGES = {
    "increase": increase,
    "rate": lambda found, window: increase(found, window) / window,
    "delta": lambda found, _window: found[-1][1] - found[0][1],
    "changes": lambda found, _window: float(sum(a[1] != b[1] for a, b in itertools.pairwise(found))),
    "min_over_time": lambda found, _window: min(value for _, value in found),
    "max_over_time": lambda found, _window: max(value for _, value in found),
}


def quantile(part, buckets):
    """Estimate a quantile from the counts of buckets, by upper bound; within a bucket they are spread evenly."""
    buckets = sorted(buckets)
    total = buckets[-1][1]
    if not total:
        return math.nan
    rank, low, below = part * total, 0.0, 0.0
    for bound, count in buckets:
        if count >= rank:
            return low if math.isinf(bound) else low + (bound - low) * (rank - below) / (count - below)
        low, below = bound, count
    return low


class Reader:
    """One expression, evaluated while it is read: each method reads a rule and gives a vector, labels to values, or a number."""

    def __init__(self, scrapes, expression, now):
        self.scrapes, self.now = scrapes, now
        self.tokens = TOKEN.findall(expression)
        assert "".join(self.tokens) == re.sub(r"\s", "", expression), f"not understood: {expression}"
        self.at = 0

    def peek(self):
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self, *expected):
        token = self.peek()
        assert not expected or token in expected, f"{token!r} where {expected} was expected"
        self.at += 1
        return token

    def whole(self):
        found = self.union()
        assert not self.peek(), f"{self.peek()!r} is too much"
        return found

    def union(self):
        left = self.intersection()
        while self.peek() == "or":
            self.take()
            left = {**self.intersection(), **left}
        return left

    def intersection(self):
        left = self.comparison()
        while self.peek() == "and":
            self.take()
            right = self.comparison()
            left = {labels: value for labels, value in left.items() if labels in right}
        return left

    def comparison(self):
        left = self.quotient()
        if self.peek() in COMPARISONS:
            compare, limit = COMPARISONS[self.take()], float(self.take())
            left = {labels: value for labels, value in left.items() if compare(value, limit)}
        return left

    def quotient(self):
        left = self.term()
        while self.peek() == "/":
            self.take()
            right = self.term()
            left = {labels: divided(value, right[labels]) for labels, value in left.items() if labels in right}
        return left

    def term(self):
        name = self.take()
        if name == "(":
            found = self.union()
            self.take(")")
            return found
        if name in AGGREGATIONS:
            return self.aggregation(AGGREGATIONS[name])
        if name in RANGES:
            self.take("(")
            metric, chosen = self.take(), self.labels()
            self.take("[")
            window = seconds(self.take())
            self.take("]"), self.take(")")
            found = self.scrapes.select(metric, chosen, self.now, window)
            return {labels: RANGES[name](values, window) for labels, values in found if len(values) > 1}
        if name == "absent":
            return {} if self.argument() else {NOWHERE: 1.0}
        if name == "histogram_quantile":
            return self.quantiles()
        assert re.match(r"(pumice|volcano)_", name), f"{name} is not understood"
        found = self.scrapes.select(name, self.labels(), self.now, STALE)
        newest = {labels: values[-1] for labels, values in found}
        last = max((at for at, _ in newest.values()), default=0)
        return {labels: value for labels, (at, value) in newest.items() if at == last}

    def argument(self):
        self.take("(")
        found = self.union()
        self.take(")")
        return found

    def labels(self):
        chosen = {}
        if self.peek() == "{":
            self.take()
            while self.peek() != "}":
                name, _, value = self.take(), self.take("="), self.take()
                chosen[name] = value.strip('"')
                if self.peek() == ",":
                    self.take()
            self.take("}")
        return chosen

    def aggregation(self, add):
        kept = []
        if self.peek() == "by":
            self.take(), self.take("(")
            while self.peek() != ")":
                if (name := self.take()) != ",":
                    kept.append(name)
            self.take(")")
        groups = defaultdict(list)
        for labels, value in self.argument().items():
            groups[frozenset(pair for pair in labels if pair[0] in kept)].append(value)
        return {labels: add(values) for labels, values in groups.items()}

    def quantiles(self):
        self.take("(")
        part = float(self.take())
        self.take(",")
        groups = defaultdict(list)
        for labels, value in self.union().items():
            groups[frozenset(pair for pair in labels if pair[0] != "le")].append((float(dict(labels)["le"]), value))
        self.take(")")
        return {labels: quantile(part, buckets) for labels, buckets in groups.items()}


def divided(a, b):
    return a / b if b else math.nan


def evaluate(scrapes, expression, now):
    """Give what is true at a moment."""
    return Reader(scrapes, expression, now).whole()


def fires(scrapes, expression, lasts, times):
    """Tell whether an alert fires: its expression is true for the same labels at every one of these times for as long as it has to last."""
    since = {}
    for now in times:
        found = evaluate(scrapes, expression, now)
        since = {labels: since.get(labels, now) for labels in found}
        if any(now - began >= seconds(lasts) for began in since.values()):
            return True
    return False
