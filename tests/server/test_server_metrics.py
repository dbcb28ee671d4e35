"""Metrics: Volcano's names with the right numbers, and series that go with their objects."""

from __future__ import annotations

import asyncio
import re
import threading
import time

import pytest
from server_desk import Lines, read

import builders
from kube import virtual_loop
from pumice.api import core, decoding, kinds, meta
from pumice.cache.cache import Cache
from pumice.cache.effects import Bind, Evict, Failure, Outcome
from pumice.framework import configuration, registry
from pumice.framework.plugin import Plugin
from pumice.model.volumes import VolumeDecision
from pumice.scheduler import Scheduler
from pumice.server import reporting
from pumice.server.configuration import policy
from pumice.server.health import api_silence, overdue
from pumice.server.logs import write_failures
from pumice.server.metrics import series
from pumice.server.surroundings import Surroundings
from pumice.server.threads import deciding, mailbox
from testbed import waiting

TIERS = """
- plugins: [{name: priority}, {name: gang, enablePreemptable: false}]
- plugins: [{name: drf}, {name: predicates}, {name: SHARING}, {name: nodeorder}]
"""


CLAIM = VolumeDecision(namespace="a", claim="c", uid="u")


class Bench:
    """A scheduler with its reporter on a world that only remembers."""

    def __init__(
        self,
        sharing="proportion",
        actions="enqueue, allocate, backfill",
        verbosity=0,
        *,
        now=builders.NOW,
        heard=None,
        known=None,
        **flags,
    ):
        self.lines = Lines(verbosity)
        self.now = now
        self.box = mailbox.Mailbox()
        installed = known or registry.installed()
        known = installed.catalog()
        text = f'actions: "{actions}"\ntiers:{TIERS.replace("SHARING", sharing)}'
        self.policy = policy.Policy(known, self.lines.log)
        self.watch = overdue.Watch()
        self.heard = heard or api_silence.ApiSilence(time.monotonic)
        self.reporter = reporting.Reporter(
            read(**flags),
            self.lines.log,
            self.policy,
            self.box,
            lambda: self.now,
            api_silence=self.heard,
            watch=self.watch,
        )
        self.world = builders.World(self.reporter.meter)
        self.cache = Cache(self.world)
        self.reporter.meter.look_at(self.cache.cluster)
        self.scheduler = Scheduler(
            self.cache, configuration.load(text, known), lambda: self.now, known=installed, observer=self.reporter.meter
        )
        self.decider = deciding.Decider(
            self.scheduler,
            self.box,
            self.lines.log,
            self.reporter,
            period=1,
            around=Surroundings(wall=lambda: self.now),
        )
        self.reporter.follow(self.scheduler, self.decider)
        self.feed(builders.queue("root"), builders.queue("default"))

    def feed(self, *manifests, event="ADDED"):
        for manifest in manifests:
            self.cache.feed(builders.kind_of(manifest), event, manifest)
        return self

    def cycle(self):
        self.decider.cycle()
        self.now += builders.SECOND
        return self

    def answer(self, code=None):
        for effect in self.world.of(Bind, Evict):
            outcome = Outcome(effect=effect, failure=Failure(code, "no") if code else None)
            self.reporter.meter.answered(outcome)
            self.cache.settled(outcome)
        self.world.effects.clear()

    def samples(self):
        self.reporter.view()
        text = self.reporter.exposition.text().decode()
        return {m[1]: float(m[2]) for m in re.finditer(r"^([a-z_][^ ]*(?:\{.*\})?) ([^ ]+)$", text, re.MULTILINE)}


def gang(size=2, cpu="2", **more):
    pods = [builders.pod(f"p{i}", "g", cpu=cpu, **more) for i in range(size)]
    return [builders.group("g", size, created=0), *pods]


def test_a_bound_gang_is_measured_at_every_stage():
    bench = Bench(verbosity=3)
    bench.feed(builders.node("n1", cpu="8"), *gang())
    bench.now += 3 * builders.SECOND
    bench.cycle()
    bench.answer()
    found = bench.samples()
    assert found["volcano_e2e_scheduling_latency_milliseconds_count"] == 1
    assert found["volcano_open_session_duration_milliseconds_count"] == 1
    assert found['volcano_action_scheduling_latency_milliseconds_count{action="allocate"}'] == 1
    opened = 'volcano_plugin_scheduling_latency_milliseconds_count{OnSession="OnSessionOpen",plugin="gang"}'
    assert found[opened] == found[opened.replace("Open", "Close", 1).replace("Open", "Close")] == 1
    for stage in ("Predicate", "Scoring"):
        assert found[f'volcano_scheduling_stage_duration_milliseconds_count{{stage="{stage}"}}'] >= 1
    for stage in ("Assumed", "PreBound", "Bound"):
        assert found[f'volcano_task_scheduling_latency_milliseconds_count{{stage="{stage}"}}'] == 2
    assert found['volcano_task_scheduling_latency_milliseconds_sum{stage="Assumed"}'] == 6000
    assert found["volcano_e2e_job_scheduling_latency_milliseconds_count"] == 2
    labels = '{job_name="g",job_namespace="a",queue="default"}'
    assert found[f"volcano_e2e_job_scheduling_duration{labels}"] == 3000
    assert found[f"volcano_e2e_job_scheduling_last_time{labels}"] == builders.NOW / 1e6 + 3
    assert found[f"volcano_e2e_job_scheduling_start_time{labels}"] == builders.NOW / 1e6
    assert [line["pod"] for line in bench.lines.of("bind")] == ["a/p0", "a/p1"]
    assert found['pumice_cycles_total{outcome="decided"}'] == 1


def test_a_failed_bind_is_told_of_and_not_counted_as_bound():
    bench = Bench()
    bench.feed(builders.node("n1", cpu="8"), *gang()).cycle()
    bench.answer("refused")
    assert bench.samples()['volcano_task_scheduling_latency_milliseconds_count{stage="Bound"}'] == 0
    assert bench.lines.of("bind failed")[0]["code"] == "refused"


@pytest.mark.parametrize("code", ["unavailable", "unknown"])
def test_binds_that_fail_in_passing_share_a_line_with_one_example(code):
    bench = Bench()
    bench.feed(builders.node("n1", cpu="8"), *gang(3)).cycle()
    bench.answer(code)
    assert bench.lines.of("bind failed") == []
    bench.reporter.meter.write_failures.tell()
    bench.reporter.meter.write_failures.tell()
    (line,) = bench.lines.of("bind failed")
    assert (line["level"], line["pods"], line["code"], line["example"]) == ("warning", 3, code, "a/p0")
    assert line["reason"] == "no"


def test_failures_in_passing_are_told_every_second_and_at_the_end():
    lines = Lines()
    told = write_failures.WriteFailures(lines.log)

    async def outage():
        task = asyncio.create_task(told.run())
        for name in ("a/p", "a/q"):
            told.add("bind", name, Failure("unavailable", "refused"))
            await asyncio.sleep(write_failures.PAUSE + 0.1)
        told.add("bind", "a/r", Failure("unknown", "cut"))
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    virtual_loop.run(outage())
    assert [line["example"] for line in lines.of("bind failed")] == ["a/p", "a/q", "a/r"]


def test_every_refusal_has_a_line_of_its_own():
    bench = Bench()
    bench.feed(builders.node("n1", cpu="8"), *gang(3)).cycle()
    bench.answer("refused")
    assert [line["pod"] for line in bench.lines.of("bind failed")] == ["a/p0", "a/p1", "a/p2"]


class Weak(Plugin):
    """Breaks down about every pod."""

    name = "weak"
    points = frozenset({"NodeOrder"})

    def open(self, session):
        session.score.add(lambda subject, nodes: 1 / 0)


def test_what_is_broken_is_a_gauge_and_an_event_on_the_config_map_also_while_it_rests():
    known = registry.installed()
    extended = registry.Registry({**known.plugins, "weak": Weak}, known.actions)
    bench = Bench(known=extended)
    bench.policy.place = meta.ObjectMeta(name="conf", namespace="ns", uid="u")
    text = 'actions: "allocate"\ntiers: [{plugins: [{name: gang}, {name: weak}]}]\n'
    bench.scheduler.reconfigure(configuration.load(text, extended.catalog()))
    bench.feed(builders.node("n1", cpu="8"), *gang())
    for _ in range(8):
        bench.cycle()
        assert bench.samples()['pumice_broken_functions{plugin="weak",point="NodeOrder"}'] == 1
        assert "[!]deciding: plugin weak broke down at NodeOrder (" in bench.reporter.health.ready()[1]
    told = [note for note in bench.world.notes if note[:2] == ("conf", "PluginBrokeDown")]
    assert "plugin weak broke down at NodeOrder (Weak.open.<lambda>, test_server_metrics.py line " in told[0][2]
    assert len(told) < 8
    bench.scheduler.reconfigure(configuration.load(text.replace(", {name: weak}", ""), extended.catalog()))
    bench.cycle()
    assert bench.samples()['pumice_broken_functions{plugin="weak",point="NodeOrder"}'] == 0


def test_breakdowns_are_counted_by_name_and_noted_until_a_cycle_without_one(monkeypatch):
    bench = Bench()
    bench.feed(builders.node("n1", cpu="8"), *gang())
    allocate = next(action for action in bench.scheduler.engine.actions if action.name == "allocate")
    with monkeypatch.context() as broken:
        broken.setattr(allocate, "execute", lambda _: 1 / 0)
        bench.cycle().cycle()
        assert bench.samples()['pumice_breakdowns_total{action="allocate",plugin=""}'] == 2
        note = "[!]deciding: action allocate broke down in the last cycle: ZeroDivisionError: division by zero"
        assert note in bench.reporter.health.ready()[1].splitlines()
    bench.cycle()
    assert "[!]deciding" not in bench.reporter.health.ready()[1]
    assert bench.samples()['pumice_breakdowns_total{action="allocate",plugin=""}'] == 2


def test_a_gang_that_waits_is_counted_until_it_has_what_it_lacks_and_forgotten_with_its_objects():
    bench = Bench()
    group, *pods = gang(3, cpu="3")
    bench.feed(builders.node("n1", cpu="8"), group, *pods)
    bench.cycle().cycle()
    bench.feed(builders.node("n2", cpu="1")).cycle()
    found = bench.samples()
    assert found["volcano_unschedule_job_count"] == 1
    assert found['volcano_unschedule_task_count{job_id="g"}'] == 3
    assert found['volcano_job_retry_counts{job_id="g"}'] == 3
    bench.feed(builders.node("n2", cpu="4"), event="MODIFIED").cycle()
    found = bench.samples()
    assert (found["volcano_unschedule_job_count"], found['volcano_unschedule_task_count{job_id="g"}']) == (0, 0)
    assert found['volcano_job_share{job_id="g",job_ns="a"}'] == pytest.approx(9 / 12)
    bench.feed(group, *pods, event="DELETED").cycle()
    assert not [name for name in bench.samples() if '"g"' in name]


@pytest.mark.parametrize("sharing", ["proportion", "capacity"])
def test_queues_show_what_they_hold_ask_for_and_are_due(sharing):
    bench = Bench(sharing)
    gpu = {"requests": {"nvidia.com/gpu": "1"}}
    group, *pods = gang(2, **gpu)
    gold = {"capability": {"cpu": "6"}, "deserved": {"cpu": "4"}} if sharing == "capacity" else {"weight": 3}
    group["spec"]["queue"] = "gold"
    bench.feed(builders.queue("gold", **gold), builders.node("n1", cpu="8", **{"nvidia.com/gpu": "4"}))
    bench.feed(group, *pods, builders.group("h", 1, queue="gold"), builders.pod("big", "h", cpu="7")).cycle()
    bench.answer()
    bench.cycle()
    found = bench.samples()
    assert found['volcano_queue_allocated_milli_cpu{queue_name="gold"}'] == 4000
    assert found['volcano_queue_allocated_scalar_resources{queue_name="gold",resource="nvidia.com/gpu"}'] == 2000
    assert found['volcano_queue_allocated_scalar_resources{queue_name="gold",resource="pods"}'] == 2
    assert found['volcano_queue_request_milli_cpu{queue_name="gold"}'] == 11000
    assert found['volcano_queue_allocated_milli_cpu{queue_name="default"}'] == 0
    if sharing == "capacity":
        assert found['volcano_queue_deserved_milli_cpu{queue_name="gold"}'] == 4000
        assert found['volcano_queue_capacity_milli_cpu{queue_name="gold"}'] == 6000
        assert found['volcano_queue_real_capacity_milli_cpu{queue_name="gold"}'] == 6000
        assert found['volcano_queue_share{queue_name="gold"}'] == 1
        assert found['volcano_queue_overused{queue_name="gold"}'] == 0
    else:
        assert found['volcano_queue_weight{queue_name="gold"}'] == 3
        assert found['volcano_queue_deserved_milli_cpu{queue_name="gold"}'] == 8000
        assert found['volcano_queue_share{queue_name="gold"}'] == pytest.approx(1)
        assert found['volcano_queue_overused{queue_name="default"}'] == 0


def test_a_resource_once_seen_is_zero_afterwards_and_goes_with_its_queue():
    bench = Bench()
    group, *pods = gang(1, requests={"nvidia.com/gpu": "1"})
    group["spec"]["queue"] = "gold"
    bench.feed(builders.queue("gold"), builders.node("n1", **{"nvidia.com/gpu": "4"}), group, *pods).cycle()
    name = 'volcano_queue_allocated_scalar_resources{queue_name="gold",resource="nvidia.com/gpu"}'
    assert bench.samples()[name] == 1000
    bench.feed(*pods, group, event="DELETED").cycle()
    assert bench.samples()[name] == 0
    bench.feed(builders.queue("gold"), event="DELETED").cycle()
    assert not [name for name in bench.samples() if '"gold"' in name]


def test_preemption_is_counted():
    bench = Bench(actions="enqueue, allocate, preempt", verbosity=3)
    bench.feed(
        builders.priority_class("high", 100),
        builders.node("n1", cpu="4"),
        builders.group("low", 1),
        builders.pod("victim", "low", cpu="3", node="n1", annotations={"volcano.sh/preemptable": "true"}),
        builders.group("g", 1, priorityClassName="high"),
        builders.pod("claimant", "g", cpu="3", priority=100),
    ).cycle()
    found = bench.samples()
    assert found["volcano_total_preemption_attempts"] >= 1
    assert found["volcano_pod_preemption_victims"] == 1
    assert found['volcano_eviction_transactions_total{action="preempt"}'] == 1
    why = "preempt for pod a/claimant of group a/g in queue default by the rules of priority, drf, plan 1"
    assert [(line["pod"], line["reason"]) for line in bench.lines.of("evict")] == [("a/victim", why)]
    labels = 'action="preempt",claimant_queue="default",queue="default"'
    assert found[f"pumice_evictions_total{{{labels}}}"] == 1


def test_new_pods_are_measured_from_their_creation_and_those_of_the_first_list_are_not():
    bench = Bench()
    meter = bench.reporter.meter
    found = decoding.decode(builders.pod("p", "g", cpu="1"))
    assert isinstance(found, core.Pod)
    meter.noticed(kinds.POD, "ADDED", found)
    meter.begun = True
    bench.now += builders.SECOND
    for event in ("ADDED", "MODIFIED"):
        meter.noticed(kinds.POD, event, found)
    meter.noticed(kinds.POD, "ADDED", decoding.decode(builders.pod("q", "g", node="n1")))
    found = bench.samples()
    assert found['volcano_task_scheduling_latency_milliseconds_count{stage="Watched"}'] == 1
    assert found['volcano_task_scheduling_latency_milliseconds_sum{stage="Watched"}'] == 1000


@pytest.mark.parametrize(
    ("stages", "pre_binds", "binds", "pre_bound", "failures"),
    [
        ([("request", False)], 0, 1, 0, 0),
        ([("request", True)], 0, 1, 0, 1),
        ([("volumes", False), ("request", False)], 1, 1, 1, 0),
        ([("volumes", False), ("request", True)], 1, 1, 1, 1),
        ([("volumes", True)], 1, 0, 0, 1),
    ],
)
def test_stages_of_binds_are_measured_and_each_effect_is_counted_once(stages, pre_binds, binds, pre_bound, failures):
    bench = Bench()
    meter = bench.reporter.meter
    bench.feed(builders.node("n"), *gang(1))
    bench.cache.apply(builders.NOW)
    (uid,) = bench.cache.cluster.tasks
    effect = Bind(namespace="a", name="p", uid=uid, node="n", volumes=(CLAIM,))
    meter.sent(effect)
    for stage, failed in stages:
        meter.performed(effect, stage, 0.25, failed=failed)
    meter.performed(Evict(namespace="a", name="p", uid="u", reason="r"), "request", 1.0, failed=False)
    found = bench.samples()
    duration = "volcano_scheduling_stage_duration_milliseconds"
    assert found[f'{duration}_count{{stage="PreBind"}}'] == pre_binds
    assert found[f'{duration}_sum{{stage="PreBind"}}'] == 250 * pre_binds
    assert found[f'{duration}_count{{stage="Bind"}}'] == binds
    assert found[f'{duration}_sum{{stage="Bind"}}'] == 250 * binds
    assert found['volcano_task_scheduling_latency_milliseconds_count{stage="PreBound"}'] == pre_bound
    assert found['pumice_writes_total{verb="bind"}'] == found['pumice_writes_total{verb="evict"}'] == 1
    assert found['pumice_write_failures_total{verb="bind"}'] == failures
    assert found['pumice_write_failures_total{verb="evict"}'] == 0


def test_a_scrape_waits_for_the_deciding_thread_but_not_for_ever(monkeypatch):
    bench = Bench()
    bench.feed(builders.node("n1"), *gang()).cycle()
    thread = threading.Thread(target=lambda: bench.box.serve(bench.decider.steps()))
    thread.start()
    text = asyncio.run(bench.reporter.metrics()).decode()
    bench.box.post(mailbox.Stop("test"))
    thread.join()
    assert 'volcano_queue_allocated_milli_cpu{queue_name="default"} 4000.0' in text

    monkeypatch.setattr(reporting, "PATIENCE", 0.01)
    text = asyncio.run(bench.reporter.metrics()).decode()
    assert 'volcano_queue_allocated_milli_cpu{queue_name="default"} 4000.0' in text
    assert bench.lines.of("a cycle takes long; metrics of jobs and queues are those of the last scrape")


def test_a_queue_that_only_a_group_names_makes_no_long_label():
    bench = Bench()
    bench.feed(builders.group("g", 1, queue="q" * 100_000), builders.pod("p", "g", cpu="1")).cycle()
    assert max(map(len, bench.samples())) < 1000


def test_many_who_scrape_at_once_cost_no_more_than_one(monkeypatch):
    bench = Bench()
    monkeypatch.setattr(reporting, "PATIENCE", waiting.PATIENCE)
    gathered = []

    async def scrapes():
        asked = asyncio.gather(*(bench.reporter.metrics() for _ in range(20)))
        message = await asyncio.to_thread(bench.box.take, time.monotonic() + waiting.PATIENCE)
        gathered.append(message)
        message.reply.set_result(None)
        return await asyncio.wait_for(asked, waiting.PATIENCE)

    texts = asyncio.run(scrapes())
    assert len({id(text) for text in texts}) == 1
    assert len(gathered) == 1
    assert bench.box.take(0) is None


def test_the_text_has_only_series_of_the_table_and_types_that_fit():
    bench = Bench()
    bench.feed(builders.node("n1"), *gang()).cycle()
    bench.reporter.view()
    text = bench.reporter.exposition.text().decode()
    types = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE))
    ours = {name: kind for name, kind in types.items() if name.startswith(("volcano_", "pumice_"))}
    assert set(ours) <= set(series.BY_NAME)
    for name, kind in ours.items():
        assert kind == series.BY_NAME[name].type or (kind == "untyped" and not name.endswith("_total"))
    assert "_created" not in text
    assert "process_resident_memory_bytes" in text


@pytest.mark.parametrize(
    ("name", "first", "last", "number"),
    [
        ("volcano_e2e_scheduling_latency_milliseconds", 1, 5000, 20),
        ("volcano_e2e_job_scheduling_latency_milliseconds", 100, 120_000, 30),
        ("volcano_plugin_scheduling_latency_milliseconds", 0.1, 100, 15),
        ("volcano_action_scheduling_latency_milliseconds", 1, 2000, 20),
        ("volcano_task_scheduling_latency_milliseconds", 50, 60_000, 30),
        ("volcano_scheduling_stage_duration_milliseconds", 0.1, 500, 20),
    ],
)
def test_buckets_are_those_of_the_peer(name, first, last, number):
    bounds = series.bounds(series.BY_NAME[name])
    assert len(bounds) == number
    assert bounds[0] == pytest.approx(first)
    assert bounds[-1] == pytest.approx(last)


class Unordered(Plugin):
    """Breaks down about the order of the tasks of some jobs."""

    name = "unordered"
    points = frozenset({"TaskOrder"})

    def open(self, session):
        session.task_order.add(lambda task: 1 / (task.name != "p0"))


def test_a_fast_way_that_is_left_is_counted_each_time_and_its_cause_is_logged_once():
    known = registry.installed()
    extended = registry.Registry({**known.plugins, "unordered": Unordered}, known.actions)
    bench = Bench(known=extended)
    text = 'actions: "allocate"\ntiers: [{plugins: [{name: gang}, {name: unordered}]}]\n'
    bench.scheduler.reconfigure(configuration.load(text, extended.catalog()))
    bench.feed(builders.node("n1", cpu="8"), *gang())
    bench.cycle().cycle()
    assert bench.samples()['pumice_retreats_total{way="task order"}'] == 2
    told = [line for line in bench.lines.all if "task order" in line["msg"]]
    assert [line["cause"] for line in told] == ["ZeroDivisionError: division by zero"]
