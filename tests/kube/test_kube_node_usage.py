"""Sources of metrics: what is asked, what answers mean, and that no source costs anybody anything."""

from __future__ import annotations

import asyncio
import base64
import json

import pytest
import virtual_loop
from aiohttp import web

from pumice.api import usage
from pumice.kube import errors
from pumice.server.usage import polling, sources

HUSHED = "hush-hush"


def vector(**values):
    result = [{"metric": {"instance": name}, "value": [1.5, text]} for name, text in values.items()]
    return {"status": "success", "data": {"resultType": "vector", "result": result}}


def asked(handler, kind="prometheus", **metrics):
    """Ask a source whose server is played by a handler; gives what it answered and the requests."""
    seen = []

    async def noted(request):
        seen.append(
            (
                request.method,
                request.path,
                dict(request.query),
                dict(request.headers),
                await request.read(),
                request.raw_path,
            )
        )
        return await handler(request) if asyncio.iscoroutinefunction(handler) else handler(request)

    async def main():
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", noted)
        runner = web.AppRunner(app, shutdown_timeout=0.01)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        address = f"http://127.0.0.1:{runner.addresses[0][1]}/"
        try:
            return await sources.make({"type": kind, "address": address, **metrics}, None).read()
        finally:
            await runner.cleanup()

    return virtual_loop.run(main(), sockets=True), seen


def test_prometheus_is_asked_twice_and_nodes_with_both_averages_are_known():
    def handler(request):
        cpu = "node_cpu_seconds_total" in request.query["query"]
        both = {"n1:9100": "40.12345", "n2": "-3", "n3": "NaN", "n4": "130", "n5": "+Inf"}
        return web.json_response(vector(**both, **({"only-cpu": "1"} if cpu else {"only-memory": "1"})))

    found, seen = asked(handler)
    assert found == {
        "n1": usage.NodeLoad(cpu="40.123", memory="40.123"),
        "n2": usage.NodeLoad(cpu="0.000", memory="0.000"),
        "n4": usage.NodeLoad(cpu="100.000", memory="100.000"),
    }
    assert [(method, path) for method, path, *_ in seen] == [("GET", "/api/v1/query")] * 2
    assert [each[2]["query"] for each in seen] == list(sources.PROMETHEUS.values())


def test_elasticsearch_is_asked_once_with_the_password():
    buckets = [
        {"key": "n1", "cpu": {"value": 0.5}, "memory": {"value": 0.25}},
        {"key": "n2", "cpu": {"value": None}, "memory": {"value": 0.25}},
        {"key": 3, "cpu": {"value": 1}, "memory": {"value": 1}},
        "nonsense",
    ]
    found, seen = asked(
        lambda _: web.json_response({"aggregations": {"nodes": {"buckets": buckets}}}),
        "elasticsearch",
        **{
            "elasticsearch.username": "me",
            "elasticsearch.password": HUSHED,
            "elasticsearch.index": "beat-*/../../_all",
            "elasticsearch.hostnameFieldName": "host.name",
        },
    )
    assert found == {"n1": usage.NodeLoad(cpu="50.000", memory="25.000")}
    ((method, path, _, headers, body, raw),) = seen
    assert method == "POST"
    assert path == "/beat-*/../../_all/_search"  # as one segment: what it is a part of was quoted
    assert raw.startswith("/beat-*%2F..%2F..%2F_all/_search")
    assert headers["Authorization"] == "Basic " + base64.b64encode(f"me:{HUSHED}".encode()).decode()
    sent = json.loads(body)
    assert sent["size"] == 0
    assert sent["query"] == {"range": {"@timestamp": {"gte": "now-10m"}}}
    assert sent["aggs"]["nodes"]["terms"]["field"] == "host.name"
    assert sent["aggs"]["nodes"]["aggs"]["memory"] == {"avg": {"field": "system.memory.actual.used.pct"}}


class Cluster:
    """An API server with an adapter."""

    def __init__(self, answers):
        self.answers = answers
        self.paths = []

    async def request(self, method, path):
        self.paths.append((method, path))
        answer = self.answers[path.rpartition("/")[2]]
        if isinstance(answer, Exception):
            raise answer
        return json.dumps(answer).encode()


def custom(*values):
    return {
        "items": [
            {"describedObject": {"kind": "Node", "name": name}, "value": value, "timestamp": time}
            for name, value, time in values
        ]
    }


def test_custom_metrics_are_shares_with_the_older_of_their_times():
    cluster = Cluster(
        {
            "node_cpu_usage_avg": custom(
                ("n1", "250m", "2026-01-01T00:00:05Z"), ("n2", "much", "2026-01-01T00:00:05Z")
            ),
            "node_memory_usage_avg": custom(("n1", "1", "2026-01-01T00:00:03Z"), ("n2", "1", "2026-01-01T00:00:03Z")),
        }
    )
    source = sources.make({"type": "prometheus_adaptor"}, cluster)
    found = asyncio.run(source.read())
    assert found == {"n1": usage.NodeLoad(cpu="25.000", memory="100.000", time="2026-01-01T00:00:03Z")}
    prefix = "/apis/custom.metrics.k8s.io/v1beta1/nodes/*/"
    assert cluster.paths == [("GET", f"{prefix}node_cpu_usage_avg"), ("GET", f"{prefix}node_memory_usage_avg")]


def test_an_adapter_that_is_not_there_is_an_error_of_the_source():
    away = errors.UnreachableError("away", transient=True)
    source = sources.make({"type": "prometheus_adaptor"}, Cluster({"node_cpu_usage_avg": away}))
    with pytest.raises(sources.SourceError, match="away"):
        asyncio.run(source.read())


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        pytest.param(lambda _: web.Response(status=503, text=HUSHED), "status 503, not 200", id="refused"),
        pytest.param(lambda _: web.Response(text="<html>"), "is no JSON object", id="HTML"),
        pytest.param(lambda _: web.Response(text="[" * 100_000), "is no JSON object", id="nested"),
        pytest.param(lambda _: web.json_response([]), "is no JSON object", id="a list"),
        pytest.param(lambda _: web.json_response({"status": "error"}), "holds no result", id="an error of Prometheus"),
        pytest.param(lambda _: web.json_response({"status": "success", "data": 1}), "holds no result", id="no data"),
        pytest.param(lambda _: web.HTTPFound("/elsewhere"), "status 302, not 200", id="sent elsewhere"),
    ],
)
def test_an_answer_that_cannot_be_used_is_said_without_its_words(answer, says):
    def handler(request):
        made = answer(request)
        if isinstance(made, web.HTTPException):
            raise made
        return made

    with pytest.raises(sources.SourceError, match=says) as caught:
        asked(handler)
    assert HUSHED not in str(caught.value)


def test_a_source_that_never_answers_is_given_up():
    async def handler(_request):
        await asyncio.sleep(10 * sources.TIMEOUT)

    with pytest.raises(sources.SourceError, match="took longer than 20 s"):
        asked(handler)


def test_no_password_of_an_address_is_shown():
    assert sources.shown("https://me:secret@host:9200/x") == "https://host:9200/x"
    assert sources.shown("host") == "host"


@pytest.mark.parametrize(
    "metrics", [{}, {"type": "prometheus"}, {"type": "elasticsearch"}, {"type": "statsd", "address": "x"}]
)
def test_without_a_type_and_an_address_nobody_is_asked(metrics):
    assert sources.make(metrics, None) is None


class Played:
    """A source whose answers are a list, the last for ever."""

    name = "played"

    def __init__(self, *answers):
        self.answers = list(answers)

    async def read(self):
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


def polled(monkeypatch, source, seconds, wanted):
    """Poll for some seconds of a clock that stands still while anything can run."""
    fed, told = [], []
    monkeypatch.setattr(sources, "make", lambda metrics, _client: source if metrics else None)

    async def main():
        clock = asyncio.get_running_loop().time
        poller = polling.Poller(None, wanted, fed.append, told.append, lambda: int(clock() * 1_000_000))
        task = asyncio.ensure_future(poller.run())
        await asyncio.sleep(seconds)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return poller

    return virtual_loop.run(main()), fed, told


def test_a_source_is_asked_as_often_as_the_configuration_says(monkeypatch):
    loads = {"n1": usage.NodeLoad(cpu="1", memory="2")}
    _, fed, told = polled(monkeypatch, Played(loads), 95, lambda: {"type": "x", "interval": "30s"})
    assert len(fed) == 4
    assert fed[0].nodes == loads
    assert fed[0].interval == "30s"
    assert len({each.time for each in fed}) == 4
    assert told == []


def test_a_source_that_is_away_is_told_of_once_and_asked_again(monkeypatch):
    loads = {"n1": usage.NodeLoad(cpu="1", memory="2")}
    away = sources.SourceError("away")
    poller, fed, told = polled(monkeypatch, Played(away, away, loads, away, {}), 130, lambda: {"type": "x"})
    assert told == [
        "played: away",
        "played: away",
        "played: no node has both averages; are its names those of the nodes?",
    ]
    assert poller.failures == 3
    assert [each.nodes for each in fed] == [loads, {}]


def test_a_source_that_is_named_later_is_asked_soon(monkeypatch):
    started = []

    def wanted():
        started.append(1)
        return {"type": "x"} if len(started) > 3 else {}

    _, fed, _ = polled(monkeypatch, Played({}), 25, wanted)
    assert len(fed) == 1
