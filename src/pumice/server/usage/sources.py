"""The sources that can be asked how busy nodes are: what is sent to each, and what its answer means.

Each gives averages of ten minutes in percent, by the name of the node. A node that an answer does not name, or not with a number, is not known.
"""

from __future__ import annotations

import base64
import math
from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.parse import quote, urlencode

import msgspec

from pumice.api import duration, quantity, usage
from pumice.kube import errors

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

LARGEST: Final = 64 << 20
TIMEOUT: Final = 20.0  # seconds
INTERVAL: Final = "30s"
SHORTEST: Final = duration.SECOND
_MOST_NODES: Final = 10_000

_IDLE: Final = 'avg by (instance) (rate(node_cpu_seconds_total{mode="idle"}[5m]))'
_FREE: Final = "avg by (instance) (node_memory_MemAvailable_bytes) / avg by (instance) (node_memory_MemTotal_bytes)"
PROMETHEUS: Final = {
    "cpu": f"avg_over_time((100 - 100 * {_IDLE})[10m:30s])",
    "memory": f"avg_over_time((100 - 100 * {_FREE})[10m:30s])",
}
ADAPTOR: Final = {"cpu": "node_cpu_usage_avg", "memory": "node_memory_usage_avg"}
_CUSTOM: Final = "/apis/custom.metrics.k8s.io/v1beta1/nodes/*/"
ELASTICSEARCH: Final = {"cpu": "host.cpu.usage", "memory": "system.memory.actual.used.pct"}

Percents = dict[str, dict[str, float]]  # by resource, then by node
Loads = dict[str, usage.NodeLoad]


class SourceError(ValueError):
    """A source that could not be asked, or whose answer cannot be read."""


class Requester(Protocol):
    """The request that custom metrics are read with."""

    async def request(self, method: str, path: str) -> bytes:
        """Send a request to the API server."""


class Source(Protocol):
    """Somebody who knows how busy nodes are."""

    name: str

    async def read(self) -> Loads:
        """Ask once, or raise a `SourceError`."""


def make(metrics: Mapping[str, str], client: Requester) -> Source | None:
    """Return the source that a configuration names; None if it names none."""
    kind, address = metrics.get("type", ""), metrics.get("address", "").rstrip("/")
    insecure = metrics.get("tls.insecureSkipVerify", "").lower() == "true"
    if kind == "prometheus_adaptor":
        return Adaptor(client)
    if not address:
        return None
    if kind == "prometheus":
        return Prometheus(address, insecure=insecure)
    if kind == "elasticsearch":
        return Elasticsearch(address, metrics, insecure=insecure)
    return None


def interval(metrics: Mapping[str, str]) -> int:
    """Return how often a source is asked, in microseconds."""
    return max(SHORTEST, duration.parse(metrics.get("interval") or INTERVAL))


class Prometheus:
    """Two queries of the HTTP API of Prometheus; the label `instance` is the name of the node, with or without a port."""

    def __init__(self, address: str, *, insecure: bool) -> None:
        self.name = f"prometheus at {shown(address)}"
        self._address = address
        self._insecure = insecure

    async def read(self) -> Loads:
        """Ask for cpu and for memory."""
        return _loads({resource: await self._query(query) for resource, query in PROMETHEUS.items()})

    async def _query(self, query: str) -> dict[str, float]:
        url = f"{self._address}/api/v1/query?{urlencode({'query': query})}"
        answer = _json(await _ask("GET", url, "GET /api/v1/query", {}, None, insecure=self._insecure))
        data = answer.get("data")
        found = data.get("result") if answer.get("status") == "success" and isinstance(data, dict) else None
        if not isinstance(found, list):
            raise SourceError("the answer to GET /api/v1/query holds no result")
        return dict(_samples(found))


def _samples(found: list[Any]) -> Iterable[tuple[str, float]]:
    for each in found:
        match each:
            case {"metric": {"instance": str(instance)}, "value": [_, str(text)]}:
                number = _number(text)
                if number is not None:
                    yield instance.partition(":")[0], number


class Adaptor:
    """The custom metrics of nodes that an adapter serves through the API server, each with the time of its measurement."""

    def __init__(self, client: Requester) -> None:
        self.name = "custom metrics of nodes"
        self._client = client

    async def read(self) -> Loads:
        """Ask for cpu and for memory."""
        percents: Percents = {}
        times: dict[str, str] = {}
        for resource, metric in ADAPTOR.items():
            percents[resource] = {}
            for node, share, time in await self._values(metric):
                percents[resource][node] = 100 * share
                times[node] = min(times.get(node, time), time)
        loads = _loads(percents)
        return {node: msgspec.structs.replace(load, time=times[node]) for node, load in loads.items()}

    async def _values(self, metric: str) -> list[tuple[str, float, str]]:
        path = _CUSTOM + quote(metric)
        try:
            answer = _json(await self._client.request("GET", path))
        except errors.KubeError as error:
            raise SourceError(str(error)) from None
        items = answer.get("items")
        if not isinstance(items, list):
            raise SourceError(f"the answer to GET {path} holds no items")
        found = []
        for each in items:
            match each:
                case {"describedObject": {"name": str(node)}, "value": value, "timestamp": str(time)}:
                    share = _quantity(value)
                    if share is not None:
                        found.append((node, share, time))
        return found


class Elasticsearch:
    """One search of the documents that metricbeat writes."""

    def __init__(self, address: str, metrics: Mapping[str, str], *, insecure: bool) -> None:
        self.name = f"elasticsearch at {shown(address)}"
        self._url = f"{address}/{quote(metrics.get('elasticsearch.index') or 'metricbeat-*', safe='*,')}/_search"
        self._host = metrics.get("elasticsearch.hostnameFieldName") or "host.hostname"
        self._insecure = insecure
        self._headers = {"Content-Type": "application/json"}
        if name := metrics.get("elasticsearch.username"):
            pair = f"{name}:{metrics.get('elasticsearch.password', '')}"
            self._headers["Authorization"] = "Basic " + base64.b64encode(pair.encode()).decode()

    async def read(self) -> Loads:
        """Ask for the averages of all hosts."""
        averages = {resource: {"avg": {"field": field}} for resource, field in ELASTICSEARCH.items()}
        body = {
            "size": 0,
            "query": {"range": {"@timestamp": {"gte": "now-10m"}}},
            "aggs": {"nodes": {"terms": {"field": self._host, "size": _MOST_NODES}, "aggs": averages}},
        }
        title = "POST …/_search"
        data = msgspec.json.encode(body)
        answer = _json(await _ask("POST", self._url, title, self._headers, data, insecure=self._insecure))
        match answer:
            case {"aggregations": {"nodes": {"buckets": list(buckets)}}}:
                return _loads(_averages(buckets))
        raise SourceError(f"the answer to {title} holds no averages of hosts")


def _averages(buckets: list[Any]) -> Percents:
    percents: Percents = {resource: {} for resource in ELASTICSEARCH}
    for each in buckets:
        node = each.get("key") if isinstance(each, dict) else None
        for resource, shares in percents.items():
            found = each.get(resource) if isinstance(node, str) else None
            share = found.get("value") if isinstance(found, dict) else None
            if isinstance(node, str) and isinstance(share, int | float) and math.isfinite(share):
                shares[node] = 100 * share
    return percents


def _loads(percents: Percents) -> Loads:
    """Put both averages together, in thousandths of a percent; a node of which one is missing is not known."""
    both = percents["cpu"].keys() & percents["memory"].keys()
    return {
        node: usage.NodeLoad(cpu=_percent(percents["cpu"][node]), memory=_percent(percents["memory"][node]))
        for node in sorted(both)
    }


def _percent(value: float) -> str:
    return f"{min(max(value, 0.0), 100.0):.3f}"


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _quantity(value: object) -> float | None:
    try:
        return float(quantity.parse(value)) if isinstance(value, str | int | float) else None
    except quantity.QuantityError:
        return None


async def _ask(
    method: str, url: str, title: str, headers: Mapping[str, str], body: bytes | None, *, insecure: bool
) -> bytes:
    from pumice.kube import outside  # noqa: PLC0415  an HTTP client takes a while to load, and few need it

    try:
        return await outside.ask(
            method, url, title, headers=headers, body=body, largest=LARGEST, timeout=TIMEOUT, insecure=insecure
        )
    except outside.OutsideError as error:
        raise SourceError(str(error)) from None


def _json(text: bytes) -> dict[str, Any]:
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError):
        raise SourceError(f"the answer, {len(text)} bytes, is no JSON object") from None


def shown(address: str) -> str:
    """Return an address without the name and the password that may stand in it."""
    scheme, _, rest = address.rpartition("://")
    host = rest.rpartition("@")[2]
    return f"{scheme}://{host}" if scheme else host
