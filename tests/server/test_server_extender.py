"""The plugin extender and the server it asks: questions as Volcano sends them, answers as it reads them, and what a server that is away costs."""

import contextlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from builders import Desk, group, node, pod
from pumice.framework import configuration, registry
from pumice.plugins.extender import Extender, exchange
from pumice.server import extending

VERBS = {
    "predicate": "predicate",
    "prioritize": "prioritize",
    "preemptable": "preemptable",
    "queueOverused": "queueOverused",
    "jobEnqueueable": "jobEnqueueable",
    "jobEnqueued": "jobEnqueued",
    "jobReady": "jobReady",
    "allocateFunc": "allocateFunc",
    "deallocateFunc": "deallocateFunc",
    "onSessionOpen": "onSessionOpen",
    "onSessionClose": "onSessionClose",
}


class Played:
    """An extender whose answers are a table: by verb, a value or a function of the question; what is not there is away."""

    def __init__(self, **answers):
        self.answers = answers
        self.asked = []

    def post(self, url, body, timeout):
        verb = url.rpartition("/")[2]
        question = json.loads(body)
        self.asked.append((verb, question))
        answer = self.answers.get(verb)
        answer = answer(question) if callable(answer) else answer
        if answer is None:
            raise exchange.ExchangeError(f"{verb} is away")
        return answer if isinstance(answer, bytes) else json.dumps(answer).encode()

    def verbs(self):
        return [verb for verb, _ in self.asked]


def text(*points, extra="", top=""):
    verbs = "".join(f"      extender.{point}Verb: {VERBS[point]}\n" for point in points)
    return (
        'actions: "enqueue, allocate, backfill"\n'
        "tiers:\n- plugins:\n  - name: gang\n  - name: predicates\n  - name: extender\n    arguments:\n"
        f"      extender.urlPrefix: http://extender/api/\n{verbs}{extra}{top}"
    )


OBJECTS = (node("n1"), node("n2"), group("g", 1, minResources={"cpu": "1"}), pod("p", "g", cpu="1"))


def desk(played, *points, extra="", top="", objects=OBJECTS):
    class Asking(Extender):
        asker = played

    return Desk(text(*points, extra=extra, top=top), Asking).feed(*objects)


def bound(made, cycles=2):
    for _ in range(cycles):
        made.cycle()
    return made.world.binds


IGNORABLE = "      extender.ignorable: true\n"
VOLCANO = "compatibility: volcano\n"


def test_a_filter_is_asked_about_each_node_with_volcanos_field_names():
    played = Played(predicate=lambda q: {"status": "no licence" if q["node"]["Name"] == "n1" else "", "code": 2})
    assert bound(desk(played, "predicate")) == {"p": "n2"}
    task = played.asked[0][1]["task"]
    assert (task["Name"], task["Namespace"], task["Job"], task["Status"]) == ("p", "a", "a/g", 1)
    assert task["Resreq"] == {"MilliCPU": 1000, "Memory": 0, "ScalarResources": {"pods": 1}, "MaxTaskNum": 1}
    assert task["Pod"]["metadata"]["name"] == "p"
    found = played.asked[0][1]["node"]
    assert found["Idle"]["MilliCPU"] == 8000
    assert found["State"] == {"Phase": 1, "Reason": ""}


def test_a_refusal_without_a_code_is_an_error_and_a_code_without_a_text_is_none():
    made = desk(Played(predicate={"status": "no licence", "code": 0}), "predicate")
    assert bound(made) == {}
    assert "2 no licence" in made.cycle().explain("a/g")
    assert bound(desk(Played(predicate={"status": "", "code": 2}), "predicate")) != {}


def test_scores_choose_the_node():
    assert bound(desk(Played(prioritize={"nodeScore": {"n2": 7.5}}), "prioritize")) == {"p": "n2"}


@pytest.mark.parametrize(
    ("point", "ignorable", "top", "starts"),
    [
        ("predicate", False, "", False),
        ("predicate", True, "", True),
        ("prioritize", False, "", False),
        ("prioritize", True, "", True),
        ("queueOverused", False, "", False),
        ("queueOverused", True, "", True),
        ("jobEnqueueable", False, "", False),
        ("jobEnqueueable", True, "", True),
        ("jobReady", False, "", False),
        ("jobReady", True, "", True),
        ("jobReady", False, VOLCANO, True),
        ("jobReady", True, VOLCANO, False),
        ("jobEnqueued", False, "", True),
        ("allocateFunc", False, "", False),
        ("allocateFunc", True, "", True),
        ("deallocateFunc", False, "", True),
        ("onSessionClose", False, "", True),
        ("onSessionOpen", False, "", True),
    ],
)
@pytest.mark.parametrize("answer", [None, b"<html>", b"[" * 50_000])
def test_a_server_that_is_away_refuses_what_it_is_asked_unless_it_can_be_ignored(point, ignorable, top, starts, answer):
    if answer is not None and point in ("jobEnqueued", "onSessionOpen", "onSessionClose"):
        starts = True
    made = desk(Played(**{point: answer}), point, extra=IGNORABLE if ignorable else "", top=top)
    assert bool(bound(made)) == starts


def test_a_server_that_misses_the_beginning_is_asked_all_the_same_but_not_by_volcanos_rules():
    for top, starts in (("", False), (VOLCANO, True)):
        made = desk(Played(predicate={"status": "no", "code": 2}), "onSessionOpen", "predicate", top=top)
        assert bool(bound(made)) == starts


def test_a_server_that_fails_is_not_asked_for_ever():
    played = Played()
    objects = (*(node(f"n{i}") for i in range(50)), group("g", 1), pod("p", "g", cpu="1"))
    made = desk(played, "predicate", objects=objects)
    made.cycle()
    made.cycle()
    assert len(played.asked) <= 2 * exchange.PATIENCE


def test_pods_without_a_managed_resource_are_none_of_its_business():
    played = Played(predicate={"status": "no", "code": 3})
    made = desk(played, "predicate", extra="      extender.managedResources: [example.com/fpga]\n")
    assert bound(made) == {"p": "n1"}
    assert played.asked == []


def test_an_objection_to_a_placement_undoes_it():
    played = Played(allocateFunc={"errorMessage": "licence server says no"}, deallocateFunc={})
    made = desk(played, "allocateFunc", "deallocateFunc", extra=IGNORABLE)
    assert bound(made) == {}
    assert "deallocateFunc" in played.verbs()
    assert made.cluster.tasks["a.p"].status.name == "PENDING"


def test_victims_are_those_that_are_named_and_a_vote_of_zero_abstains():
    for status, named, evicted in ((1, ["a.v1"], {"v1"}), (1, [], set()), (0, [], {"v1", "v2"}), (-1, [], set())):
        answer = {"status": status, "victims": [{"UID": uid} for uid in named]}
        objects = (
            node("n1", cpu="2"),
            group("v", 0, phase="Running"),
            *(pod(f"v{i}", "v", cpu="1", node="n1", phase="Running") for i in (1, 2)),
            {
                **group("c", 1, priorityClassName="high"),
            },
            pod("c", "c", cpu="1"),
            {
                "apiVersion": "scheduling.k8s.io/v1",
                "kind": "PriorityClass",
                "metadata": {"name": "high", "uid": "high"},
                "value": 100,
            },
        )
        made = desk(Played(preemptable=answer), "preemptable", objects=objects)
        text_ = (
            text("preemptable")
            .replace("allocate, backfill", "allocate, preempt")
            .replace("name: gang", "name: priority\n  - name: gang")
        )

        class Asking(Extender):
            asker = Played(preemptable=answer)

        made = Desk(text_, Asking).feed(*objects)
        made.cycle()
        made.cycle()
        gone = set(made.world.evictions)
        assert gone <= evicted
        assert bool(gone) == bool(evicted)


def test_everything_is_sent_when_a_cycle_begins():
    played = Played(onSessionOpen={}, onSessionClose={})
    made = desk(played, "onSessionOpen", "onSessionClose")
    made.cycle()
    verb, sent = played.asked[0]
    assert verb == "onSessionOpen"
    assert set(sent) == {"Jobs", "Nodes", "Queues", "NamespaceInfo", "RevocableNodes", "NodeList"}
    job = sent["Jobs"]["a/g"]
    assert (job["MinAvailable"], list(job["Tasks"])) == (1, ["a.p"])
    assert set(sent["Queues"]) == {"root", "default"}
    assert played.asked[-1] == ("onSessionClose", {})


@pytest.mark.parametrize(
    ("extra", "says"),
    [
        ("      extender.predicateVerb: predicate\n", "is of no use without extender.urlPrefix"),
        ("      extender.urlPrefix: file:///etc/passwd\n", "http://"),
        ("      extender.managedResources: [1]\n", "expected the name of a resource"),
        ("      extender.unknownVerb: x\n", "extender.unknownVerb"),
    ],
)
def test_a_wrong_setting_is_refused(extra, says):
    given = 'actions: "allocate"\ntiers:\n- plugins:\n  - name: extender\n    arguments:\n' + extra
    with pytest.raises(configuration.ConfigurationError, match=says):
        configuration.load(given, registry.catalog())


def test_only_a_running_scheduler_asks():
    with pytest.raises(exchange.ExchangeError, match="is not asked here"):
        Extender.asker.post("http://x/y", b"", 1.0)
    joined = extending.asking(registry.installed())
    assert isinstance(joined.plugins["extender"].asker, extending.HttpAsker)
    assert registry.installed().plugins["extender"] is Extender


# ---- over the wire


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.server.asked.append((self.path, self.rfile.read(int(self.headers["Content-Length"])), self.client_address))
        kind = self.path.rpartition("/")[2]
        if kind == "slow":
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n")
            with contextlib.suppress(OSError):
                while not self.server.over.wait(0.05):
                    self.wfile.write(b" ")
            return
        if kind == "short":
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{}")
            self.close_connection = True
            return
        body = b"x" * (exchange.LARGEST + 1) if kind == "large" else b"{}"
        self.send_response(302 if kind == "elsewhere" else 500 if kind == "broken" else 200)
        self.send_header("Location", "/other")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    made = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.asked, made.over = [], threading.Event()
    thread = threading.Thread(target=made.serve_forever, daemon=True)
    thread.start()
    yield made
    made.over.set()
    made.shutdown()
    thread.join()
    made.server_close()


@pytest.fixture
def asker():
    made = extending.HttpAsker()
    yield made
    made.close()


def address(server, verb):
    return f"http://127.0.0.1:{server.server_address[1]}/api/{verb}"


def test_one_connection_serves_many_questions(server, asker):
    assert [asker.post(address(server, "fine"), b'{"a": 1}', 60.0) for _ in range(5)] == [b"{}"] * 5
    assert {path for path, *_ in server.asked} == {"/api/fine"}
    assert len({client for *_, client in server.asked}) == 1


@pytest.mark.parametrize(
    ("verb", "timeout", "says"),
    [
        ("broken", 60.0, "status 500, not 200"),
        ("elsewhere", 60.0, "status 302, not 200"),
        ("large", 60.0, "is larger than 10485760 bytes"),
        ("short", 60.0, "ends 98 bytes too soon"),
        ("slow", 0.3, "took longer than 0.3 s"),
    ],
)
def test_an_answer_out_of_bounds_is_a_failure_and_the_next_question_is_asked_anew(server, asker, verb, timeout, says):
    with pytest.raises(exchange.ExchangeError, match=says):
        asker.post(address(server, verb), b"{}", timeout)
    assert asker.post(address(server, "fine"), b"{}", 60.0) == b"{}"


def test_a_server_that_is_not_there_is_a_failure(asker):
    with pytest.raises(exchange.ExchangeError, match="failed: ConnectionRefusedError"):
        asker.post("http://127.0.0.1:1/api/x", b"{}", 60.0)
