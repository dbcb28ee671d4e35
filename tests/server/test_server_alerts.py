"""Each alert that we ship fires on the metrics of a process that is in the state it is about, and none does on those of one that is well.

A scheduler and controllers without a cluster are driven by hand through half an hour of a clock that is ours, and scraped once a minute as Prometheus would.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from test_server_metrics import Bench, gang

import builders
from promql import Scrapes, evaluate, fires
from pumice.api import kinds
from pumice.cache import effects
from pumice.controllers.queueing import engine
from pumice.framework.record import CycleRecord
from pumice.kube.watches.informers import WatchReport
from pumice.kube.writes.world import Counts, KubeWorld
from pumice.manifests import monitoring
from pumice.recording.writer import Writer
from pumice.server.health import api_silence, overdue
from pumice.server.threads import mailbox

ROOT = Path(__file__).parents[2]
STEP, STEPS = 60, 25  # seconds from one scrape to the next, and how many there are
ALERTS = {alert.name: alert for alert in monitoring.ALERTS}


class Informers:
    synced = True

    def report(self):
        return [
            WatchReport(watch="nodes", kind=kinds.NODE, state="watching", synced=self.synced, objects=1, version="1", last_heard_age=None, lists=1, errors=0, error="")
        ]  # fmt: skip


class Stage:
    """One process with everything that is measured; what happens between two scrapes is up to the test."""

    def __init__(self, folder):
        self.folder = folder
        self.now = 0.0
        self.scrapes, self.restarts = Scrapes(), 0
        self.start()

    def start(self):
        """Start the process, or start it again."""
        self.silence, self.hears = api_silence.ApiSilence(lambda: self.now), True
        self.bench = Bench(now=builders.NOW + int(self.now * 1e6), heard=self.silence, controllers="*")
        self.reporter, self.watch = self.bench.reporter, self.bench.watch
        self.informers = Informers()
        self.reporter.watch(self.informers)
        self.world = KubeWorld(None)
        self.reporter.look_at(self.world, self.bench.cache)
        self.bench.policy.use_default()
        for message in (mailbox.Begin(), mailbox.Stop("it decides")):
            self.bench.box.post(message)
        self.bench.box.serve(self.bench.decider.steps())
        self.deciding = overdue.Part("deciding", "a cycle")
        self.watch.add(self.deciding)
        self.writer = self.reporter.recorder = SimpleNamespace(
            writer=Writer(self.folder, 1 << 20, None, tell=lambda *_: None)
        )
        self.engine = engine.Engine([], tell=lambda _: None, complain=lambda _: None)
        self.reporter.add_controllers().look_at(self.engine)

    def live(self, seconds):
        """Let the process be well for a while: it hears, decides on a gang, and is answered."""
        if self.hears:
            self.silence.heard()
        self.bench.feed(builders.node("n1", cpu="8"), *gang()).cycle()
        self.bench.answer()
        effect = effects.Bind(namespace="default", name="p", uid="u", node="n1")
        for _ in range(20):
            self.reporter.meter.performed(effect, "request", 0.01, failed=False)
        self.deciding.begin("a cycle")
        self.deciding.due(self.now + seconds + 1)

    def pass_time(self, seconds):
        for _ in range(int(seconds / overdue.EVERY)):
            self.now += overdue.EVERY
            self.watch.look(self.now)
        self.bench.now = builders.NOW + int(self.now * 1e6)

    def scrape(self):
        self.reporter.view()
        self.scrapes.add(self.now, "10.0.0.1:8080", self.reporter.exposition.text().decode())

    def run(self, wrong=lambda stage: None, well=True, steps=STEPS):
        """Live through half an hour in which something goes wrong; gives when it was scraped."""
        times = []
        for _ in range(steps):
            if well:
                self.live(STEP)
            wrong(self)
            self.pass_time(STEP)
            self.scrape()
            times.append(self.now)
        return times


def nobody_leads(stage):
    stage.reporter.follow(stage.bench.scheduler, Bench().decider)  # one that was never told to begin


def stalls(stage):
    stage.deciding.due(stage.now)


def runs_for_long(stage):
    if stage.deciding.stand(0).work != "a long cycle":
        stage.deciding.begin("a long cycle")


def restarts(stage):
    stage.restarts += 1
    if stage.restarts in (10, 15, 20):
        stage.start()
        stage.live(STEP)


def binds_are_not_answered(stage):
    task = next(iter(stage.bench.cache.cluster.tasks.values()), None)
    if task is None:
        stage.live(STEP)
        task = next(iter(stage.bench.cache.cluster.tasks.values()))
    if not stage.reporter.meter.oldest_bind():
        stage.reporter.meter.sent(effects.Bind(namespace="default", name="p0", uid=task.uid, node="n1"))


def events_pile_up(stage):
    for number in range(300):
        stage.bench.cache.feed(kinds.NODE, "MODIFIED", builders.node(f"n{number}"))


def writes_pile_up(stage):
    for number in range(300):
        stage.world.send(effects.Bind(namespace="default", name=f"p{number}", uid=f"u{number}", node="n1"))


def objects_pile_up(stage):
    for number in range(300):
        stage.engine.queue.add(("x", "default", f"{stage.now}-{number}"))


def recording_drops(stage):
    stage.writer.writer.missed += 1


def configuration_is_refused(stage):
    assert stage.bench.policy.offer("tiers: [{plugins: [{name: nobody}]}]", "a file") is None


def actions_break_down(stage):
    stage.reporter.broke("allocate", "quiet")


def server_is_silent(stage):
    stage.hears = False


def watch_is_incomplete(stage):
    stage.informers.synced = False


def writes_fail(stage):
    effect = effects.Bind(namespace="default", name="p", uid="u", node="n1")
    for _ in range(10):
        stage.reporter.meter.performed(effect, "request", 0.01, failed=True)


def cycles_are_slow(stage):
    stage.reporter.cycled(CycleRecord(), 4_500_000)


def events_are_dropped(stage):
    dropped = int(stage.now) * 5
    counts = Counts(events=0, events_dropped=dropped, events_waiting=0, waiting=0, in_flight=0)
    stage.reporter.look_at(SimpleNamespace(counts=counts), stage.bench.cache)


STORIES = {  # what goes wrong, and whether everything else goes on
    "PumiceNobodyLeads": (nobody_leads, True),
    "PumiceStalled": (stalls, False),
    "PumiceCycleLong": (runs_for_long, False),
    "PumiceRestarts": (restarts, True),
    "PumiceBindsOverdue": (binds_are_not_answered, False),
    "PumiceChangesPileUp": (events_pile_up, False),
    "PumiceWritesPileUp": (writes_pile_up, True),
    "PumiceControllersPileUp": (objects_pile_up, True),
    "PumiceRecordingIncomplete": (recording_drops, True),
    "PumiceConfigurationRefused": (configuration_is_refused, True),
    "PumiceBreakdowns": (actions_break_down, True),
    "PumiceApiServerSilent": (server_is_silent, True),
    "PumiceWatchIncomplete": (watch_is_incomplete, True),
    "PumiceWritesFail": (writes_fail, True),
    "PumiceCyclesSlow": (cycles_are_slow, True),
    "PumiceEventsDropped": (events_are_dropped, True),
}


def fired(stage, times):
    return {name for name, alert in ALERTS.items() if fires(stage.scrapes, alert.expression, alert.lasts, times)}


def test_every_alert_has_a_state_in_which_it_has_to_fire():
    assert STORIES.keys() == ALERTS.keys()


def test_no_alert_fires_on_a_process_that_is_well(tmp_path):
    stage = Stage(tmp_path)
    times = stage.run()
    assert fired(stage, times) == set()
    assert evaluate(stage.scrapes, "sum(pumice_leading) > 0", times[-1])


@pytest.mark.parametrize("name", STORIES)
def test_an_alert_fires_in_the_state_it_is_about(tmp_path, name):
    stage = Stage(tmp_path)
    wrong, well = STORIES[name]
    before = stage.run(steps=3)
    assert not fires(stage.scrapes, ALERTS[name].expression, ALERTS[name].lasts, before)
    after = stage.run(wrong, well)
    found = fired(stage, after)
    assert name in found
    others = {"PumiceApiServerSilent"} if not well else set()  # nobody of this process hears anything then
    assert found - {name} <= others | KIN.get(name, set())


KIN = {"PumiceBindsOverdue": {"PumiceStalled"}, "PumiceChangesPileUp": {"PumiceStalled"}}
"""Where nothing else goes on, no cycle does."""


# ---- the language


def scraped(*rows):
    found = Scrapes()
    for now, text in rows:
        found.add(now, "a", text.replace(";", "\n") + "\n")
    return found


TWO = 'pumice_x{part="a"} 3;pumice_x{part="b"} 8;pumice_y 2;pumice_n_total 10'  # fmt: skip
LATER = 'pumice_x{part="a"} 4;pumice_x{part="b"} 1;pumice_y 2;pumice_n_total 4'  # fmt: skip


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("pumice_y", [2]),
        ("sum(pumice_x)", [5]),
        ("max by (part) (pumice_x)", [1, 4]),
        ("max by (part) (pumice_x) > 2", [4]),
        ('sum(pumice_x{part="b"})', [1]),
        ("sum(pumice_y) < 1 or absent(pumice_y)", []),
        ("sum(pumice_z) < 1 or absent(pumice_z)", [1]),
        ("sum(pumice_x) / sum(pumice_y) > 2", [2.5]),
        ("increase(pumice_n_total[10m])", [4]),  # it began anew
        ("rate(pumice_n_total[5m])", [4 / 300]),
        ("rate(pumice_n_total[1m])", []),  # one value only
        ("delta(pumice_x[5m])", [-7, 1]),
        ("changes(pumice_x[5m])", [1, 1]),
        ("min_over_time(pumice_x[5m])", [1, 3]),
        ("max by (part) (pumice_x) > 0 and max by (part) (delta(pumice_x[5m])) > 0", [4]),
    ],
)
def test_expressions_mean_what_prometheus_says(expression, expected):
    found = evaluate(scraped((0, TWO), (60, LATER)), expression, 60)
    assert sorted(found.values()) == pytest.approx(expected)


@pytest.mark.parametrize("expression", ["avg(pumice_x)", "sum(pumice_x) >", "sum without (a) (pumice_x)", "pumice_x offset 5m", "up"])  # fmt: skip
def test_what_is_not_understood_is_refused(expression):
    with pytest.raises((AssertionError, ValueError)):
        evaluate(scraped((0, TWO)), expression, 0)


def test_a_quantile_is_found_within_its_bucket():
    one = 'pumice_h_bucket{le="1"} 0;pumice_h_bucket{le="2"} 0;pumice_h_bucket{le="+Inf"} 0'
    two = 'pumice_h_bucket{le="1"} 50;pumice_h_bucket{le="2"} 100;pumice_h_bucket{le="+Inf"} 100'
    rows = scraped((0, f"# TYPE pumice_h histogram;{one};pumice_h_count 0;pumice_h_sum 0"), (60, f"# TYPE pumice_h histogram;{two};pumice_h_count 100;pumice_h_sum 9"))  # fmt: skip
    found = evaluate(rows, "histogram_quantile(0.75, sum by (le) (rate(pumice_h_bucket[5m])))", 60)
    assert list(found.values()) == pytest.approx([1.5])


def test_an_alert_that_has_to_last_does_not_fire_sooner():
    rows = scraped(*((at, "pumice_y 1") for at in range(0, 600, 30)))
    assert not fires(rows, "pumice_y > 0", "5m", range(0, 300, 30))
    assert fires(rows, "pumice_y > 0", "5m", range(0, 330, 30))


def test_the_file_that_is_shipped_has_these_alerts():
    (group,) = yaml.safe_load((ROOT / "deploy/monitoring/alerts.yaml").read_text(encoding="utf-8"))["groups"]
    assert {rule["alert"]: rule["expr"] for rule in group["rules"]} == {name: alert.expression for name, alert in ALERTS.items()}  # fmt: skip
