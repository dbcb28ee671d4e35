"""What the scheduler does when it is itself what is too slow, or is asked too much: what is shed, kept and told, as `docs/scheduler.md` says."""

from __future__ import annotations

import gc

import pytest

from pumice.api import kinds
from pumice.cache.cache import Cache
from pumice.framework import registry
from pumice.framework.engine import Engine
from pumice.recording import recorder, segments, writer
from pumice.recording.player import Player
from pumice.server.health import overdue
from pumice.sim.identity import Key
from tests.storm import life, objects, telling, thinking

CONFIGURATION = Key(kinds.CONFIG_MAP, objects.HOME, objects.CONFIGURATION)


def apart(happen):
    """Let something happen to a world of its own, and give what it says."""
    return telling.apart(lambda folder: happen(life.begun(), folder))


def jobs_bound(made):
    """Give the names of jobs of which a pod has a node."""
    pods = [each for each in made.store.scan(kinds.POD) if each["spec"].get("nodeName")]
    return sorted({each["metadata"]["labels"]["volcano.sh/job-name"] for each in pods})


def at(made, moment, act):
    """Do something at a moment, whoever is in the middle of a cycle then."""
    made.loop.at(moment, act, context=made.api.context)


def holder(made):
    lease = made.store.find(Key(kinds.LEASE, objects.HOME, "volcano"))
    return lease["spec"]["holderIdentity"]


# -- events faster than they can be applied ------------------------------------------------------------------------

PODS, PER_EVENT, ROUNDS = 40, 0.02, 120


def flood(made, _):
    """Change every pod ten times a second, each of which takes the scheduler a fiftieth: eight times what it can bear."""
    made.create(objects.node("n0", 64))
    made.create(objects.job("old", [(PODS, 1, 1000)], PODS))
    made.run_until(8.0)
    program = thinking.leader(made)
    before = holder(made)
    slow = thinking.slow_down(program, per_event=PER_EVENT)
    cache, most = program.process.cache, []
    pods = [each["metadata"]["name"] for each in made.store.scan(kinds.POD)]

    def change(number):
        most.append(cache.waiting)
        for name in pods:
            made.store.patch(Key(kinds.POD, "a", name), {"metadata": {"annotations": {"round": str(number)}}})

    for number in range(ROUNDS):
        at(made, 8.0 + 0.1 * number, lambda number=number: change(number))
    at(made, 8.0 + 0.01 * ROUNDS, lambda: made.api.cluster.ensure(objects.job("new", [(1, 1, 1000)], 1)))
    during = []
    at(made, 8.0 + 0.1 * ROUNDS, lambda: during.extend(jobs_bound(made)))
    made.run_until(20.0 + 0.1 * ROUNDS)
    rounds = {task.pod.metadata.annotations.get("round") for task in cache.cluster.tasks.values() if "old" in task.name}
    return {
        "objects": sum(each.objects for each in program.process.informers.report()),
        "most": max(most),
        "longest": max(slow.cycles),
        "during": during,
        "rounds": sorted(rounds),
        "held": before == holder(made),
        "broken": made.oracle.broken,
    }


def test_of_changes_that_come_faster_than_they_are_taken_in_the_last_of_each_object_is_kept():
    found = apart(flood)
    assert 10 * found["objects"] < ROUNDS * PODS
    assert PODS <= found["most"] <= found["objects"]
    assert found["longest"] <= found["objects"] * PER_EVENT
    assert found["during"] == ["new", "old"]  # who comes meanwhile is not behind what piled up
    assert found["rounds"] == [str(ROUNDS - 1)]
    assert (found["held"], found["broken"]) == (True, [])


# -- a cycle longer than the lease ---------------------------------------------------------------------------------


def watched(made, program, deadline=1000.0):
    """Look at the deciding thread twice a second, as the watchdog does; gives what is found."""
    watch, found = overdue.Watch(), []
    part = program.process.deciding
    part.deadline = deadline
    watch.add(part)

    def look():
        found.extend((each.problem, each.ends, each.over) for each in watch.look(made.loop.now))
        made.loop.call_later(overdue.EVERY, look)

    made.loop.run_in(made.api.context, look)
    return found


def long_cycle(made, _, *, away=False, deadline=1000.0):
    """Let a cycle take 40 s before its binds leave, while a node goes and, if it is `away`, the API server for 20 s."""
    made.create(objects.node("n0", 4))
    made.create(objects.node("n1", 4))
    made.run_until(6.0)
    program = thinking.leader(made)
    before, found = holder(made), watched(made, program, deadline)
    thinking.slow_down(program, before_binds=40.0)
    made.create(objects.job("one", [(1, 3, 1000)], 1))
    made.create(objects.job("two", [(1, 3, 1000)], 1))
    bound = {}

    def go():
        made.store.delete(Key(kinds.NODE, "", "n0"))
        if away:
            made.weather.down = True
            made.host.cut_all()

    for moment in (11.9, 31.9, 45.0):
        at(made, moment, lambda moment=moment: bound.update({str(moment): jobs_bound(made)}))
    at(made, 12.0, go)
    at(made, 32.0, lambda: setattr(made.weather, "down", False))
    made.run_until(70.0)
    nodes = sorted(each["spec"].get("nodeName", "") for each in made.store.scan(kinds.POD))
    return {
        "bound": list(bound.values()),
        "held": before == holder(made),
        "told": found,
        "nodes": nodes,
        "broken": made.oracle.broken,
    }


def test_a_cycle_longer_than_the_lease_keeps_it_and_sends_only_what_still_holds():
    found = apart(long_cycle)
    assert found["bound"] == [[], [], []]
    assert found["held"]
    assert found["nodes"] == ["", "n1"]  # nobody is sent to the node that went meanwhile
    assert found["told"] == [["a cycle has been going on for 30s", False, False], ["", False, True]]
    assert found["broken"] == []


def test_a_lease_that_is_lost_in_the_middle_of_a_cycle_keeps_its_binds_from_leaving():
    found = apart(lambda made, folder: long_cycle(made, folder, away=True))
    assert not found["held"]
    assert [len(each) for each in found["bound"]] == [0, 0, 1]  # by the other one, which waits for nobody
    assert found["nodes"] == ["", "n1"]
    assert found["broken"] == []


def test_a_cycle_beyond_its_deadline_is_to_be_ended():
    found = apart(lambda made, folder: long_cycle(made, folder, deadline=20.0))
    assert ["a cycle has been going on for 20s", True, False] in found["told"]


# -- a recording on a slow disk ------------------------------------------------------------------------------------

MOST = 60  # events that may wait to be written, here


class SlowDisk(writer.Writer):
    """Writes a recording in turns on the loop, each of which takes as long as the disk pleases."""

    loop = None
    seconds = 0.2

    def start(self):
        self.turns += 1
        self._arrange()

    def _arrange(self):
        self.loop.call_later(type(self).seconds, self._turn)

    def _turn(self):
        self._drain()
        self._arrange()

    def finish(self):
        """Write what waits, as if the process went on."""
        self._drain()
        self._close()


def recorded(made, folder, *, slow):
    """Give both schedulers jobs for 40 s, and a disk that takes 15 s for one write in the middle of them."""
    for program in made.schedulers:
        program.kill()
        program.flags |= {"record": str(folder)} if slow is not None else {}
        program.start()
    made.run_until(25.0)  # the Lease of those before has to run out
    made.create(objects.node("n0", 16))
    waiting = []
    for number in range(40):
        if number == 10 and slow:
            SlowDisk.seconds = 15.0
        if number == 12:
            SlowDisk.seconds = 0.2
        made.create(objects.job(f"j{number}", [(2, 1, 3)], 2))
        made.run_until(made.loop.now + 1.0)
        if slow is not None:
            written = thinking.leader(made).process.recorder.writer
            waiting.append(written.waiting)
    if slow is None:
        return {"lines": made.lines, "broken": made.oracle.broken}
    written = thinking.leader(made).process.recorder.writer
    thinking.leader(made).process.recorder.close(0.0)
    written.finish()
    return {"lines": made.lines, "broken": made.oracle.broken, "waiting": waiting, "dropped": written.dropped}


@pytest.fixture
def recording(monkeypatch, tmp_path):
    """Live with a recording, or without one, and give what is said and the folder."""
    monkeypatch.setattr(recorder, "Writer", SlowDisk)
    monkeypatch.setattr(writer, "MOST_WAITING", MOST)

    def live(*, slow):
        def happen(made, _):
            SlowDisk.loop = made.loop
            return recorded(made, tmp_path, slow=slow)

        return apart(happen), tmp_path

    return live


def test_a_recording_that_cannot_be_written_in_time_has_a_gap_and_costs_no_decision(recording):
    (plain, _), (found, folder) = recording(slow=None), recording(slow=True)
    assert found["lines"] == plain["lines"]
    assert (found["broken"], plain["broken"]) == ([], [])
    assert max(found["waiting"]) < 2 * MOST
    assert found["dropped"] > 0
    paths = segments.listed(folder)
    player, steps = Player(paths, registry.installed()), 0
    for step, _ in player.steps():
        assert player.play(step).problem == ""
        steps += 1
    assert steps > 20
    assert len(player.started) > 1  # the run goes on in a new file after the gap


def test_a_recording_on_a_disk_that_keeps_up_has_no_gap(recording):
    found, folder = recording(slow=False)
    assert found["dropped"] == 0
    assert len(segments.listed(folder)) == 2  # one of each scheduler


# -- a thousand configuration changes ------------------------------------------------------------------------------


def reconfigured(made, _):
    """Write a thousand configurations, a third of them bad, thirty a second and then one in three seconds."""
    made.create(objects.node("n0", 8))
    made.create(objects.job("old", [(4, 1, 1000)], 4))
    made.run_until(8.0)
    program = thinking.leader(made)
    texts = [*objects.GOOD, *objects.BAD[:4]]
    loads, sizes = [program.process.policy.loads], []
    for number in range(1000):
        conf = objects.configuration(f"{texts[number % len(texts)]}\n# {number}")["data"]
        made.store.patch(CONFIGURATION, {"data": conf})
        if number == 990:
            made.create(objects.job("new", [(1, 1, 1000)], 1))
        made.run_until(made.loop.now + (0.03 if number < 600 else 3.0))
        if number in (599, 799, 999):
            gc.collect()
            loads.append(program.process.policy.loads)
            sizes.append(sum(isinstance(each, Engine | Cache) for each in gc.get_objects()))
    made.store.patch(CONFIGURATION, {"data": objects.configuration(objects.GOOD[0])["data"]})
    made.run_until(made.loop.now + 10.0)
    events = [each for each in made.store.scan(kinds.EVENT) if each["reason"] == "ConfigurationRefused"]
    return {
        "loads": loads,
        "sizes": sizes,
        "actions": list(program.process.policy.current.action_names),
        "bound": jobs_bound(made),
        "events": len(events),
        "told": sum(each.get("count", 1) for each in events),
        "lines": sum("configuration" in line for line in program.said().splitlines()),
        "broken": made.oracle.broken,
    }


@pytest.mark.long
def test_of_a_thousand_configurations_those_are_used_that_are_there_when_it_is_looked():
    found = apart(reconfigured)
    burst, slowly = found["loads"][1] - found["loads"][0], found["loads"][3] - found["loads"][1]
    assert burst <= 18 / 5 + 1  # 600 of them in 18 s
    assert 100 < slowly <= 1200 / 5 + 1
    assert found["actions"] == ["enqueue", "allocate", "backfill"]
    assert found["bound"] == ["new", "old"]
    assert len(set(found["sizes"])) == 1  # nothing is left of those that were in force before
    assert found["events"] <= 26 + 20  # 25 at once, then one a minute
    assert found["lines"] <= 1218 / 5 + 5
    assert found["broken"] == []
