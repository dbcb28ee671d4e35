"""A recording replays bit for bit: whole, from any segment on, and after it was cut anywhere."""

from __future__ import annotations

import gzip
import random
import zlib

import msgspec
import pytest
import recording_rig as rig
from hypothesis import given, settings
from hypothesis import strategies as st

from drawing import FUZZ, drawn, seeds
from pumice.framework import configuration
from pumice.recording import lines, segments, telling, writing
from pumice.recording.effects import Ledger
from pumice.recording.other_policy import OtherPolicy
from pumice.recording.player import Player
from testbed import waiting
from tests.lives import scripts
from tests.lives.stage import KNOWN

CONFIG = 'actions: "enqueue, allocate, backfill"\ntiers:\n- plugins: [{name: priority}, {name: gang}]\n- plugins: [{name: predicates}, {name: nodeorder}]\n'


@settings(max_examples=drawn(12, 4))
@given(seed=st.integers(0, 100_000))
def test_a_random_life_with_faults_and_restarts_is_replayed_bit_for_bit(seed, tmp_path_factory):
    folder = tmp_path_factory.mktemp("recording")
    lived = rig.live(scripts.draw(seed), folder)
    _, played, difference = rig.replay(rig.files(folder))
    assert difference is None, telling.difference(difference)
    assert len(played) == len(lived.life.cycles)


@pytest.mark.parametrize("seed", [3, 11, 27])
def test_after_rotation_at_every_point_each_segment_is_replayed_by_itself(seed, tmp_path):
    lived = rig.live(scripts.draw(seed, cycles=8), tmp_path, every=1)
    paths = rig.files(tmp_path)
    cycles = 0
    for path in paths:
        _, played, difference = rig.replay([path])
        assert difference is None, (path, telling.difference(difference))
        cycles += len(played)
    assert cycles == len(lived.life.cycles)
    assert rig.replay(paths)[2] is None  # and all of them as one run


@pytest.mark.parametrize(("seed", "every"), [(5, 3), (8, 4), (13, 7)])
def test_a_replay_from_any_segment_goes_on_through_those_that_follow(seed, every, tmp_path):
    rig.live(scripts.draw(seed), tmp_path, every=every)
    paths = rig.files(tmp_path)
    for start in range(0, len(paths), 1 if FUZZ else 3):
        _, _, difference = rig.replay(paths[start:])
        assert difference is None, (start, telling.difference(difference))


def test_the_state_that_a_segment_begins_with_is_all_that_was_known(tmp_path):
    """What is restored and what a replay arrives at are the same: values, orders, and what is shared."""
    rig.live(scripts.draw(42, cycles=10), tmp_path, every=3)
    player = Player(rig.files(tmp_path), KNOWN)
    compared = 0
    for step, segment in player.steps():
        if step.cycle % 3 == 1 and step.cycle > 1:
            alone = Player([segment.path], KNOWN)
            next(alone.steps())
            here, there = ([s.cache, s.reservations, s.cycles] for s in (player.scheduler, alone.scheduler))
            assert rig.differences(here, there, rig.NOT_KEPT) == []
            compared += 1
        player.play(step)
    assert compared >= 3


def test_a_recording_that_was_cut_at_any_byte_replays_up_to_there_or_is_refused_by_name(tmp_path):
    rig.live(scripts.draw(4, cycles=2), tmp_path)
    path = rig.files(tmp_path)[0]
    whole = path.read_bytes()
    complete = len(rig.replay([path])[1])
    cut = tmp_path / "cut.jsonl.gz"
    seen, refused = set(), []
    pick = random.Random(7)  # noqa: S311  places to cut, not a secret
    for size in sorted({0, 1, 10, len(whole) - 1, *(pick.randrange(len(whole)) for _ in range(drawn(60, 20)))}):
        cut.write_bytes(whole[:size])
        try:
            player, played, difference = rig.replay([cut])
        except segments.RecordingError as error:
            refused.append(str(error))
            continue
        assert difference is None
        assert player.segments[0].cut
        assert len(played) <= complete
        seen.add(len(played))
    assert len(seen) > 2
    assert refused
    assert all(str(cut) in text for text in refused)


def test_what_was_written_before_a_crash_is_there(tmp_path):
    stage = rig.stage(CONFIG, [], tmp_path)
    for _ in range(5):
        stage.decide()
    writer = stage.recorders[0].writer
    waiting.until(lambda: writer.written)
    path = rig.files(tmp_path)[0]
    text = zlib.decompressobj(31).decompress(path.read_bytes())
    assert text.startswith(b'{"is":"recording"')
    stage.end()


def test_a_decision_that_differs_is_named_with_its_cycle(tmp_path):
    rig.live(scripts.draw(3, cycles=3), tmp_path)
    path = rig.files(tmp_path)[0]
    found = gzip.decompress(path.read_bytes()).splitlines()
    place, step = next(
        (i, s)
        for i, line in enumerate(found)
        if (s := msgspec.json.decode(line)).get("effects") and any(e[0] == "bind" for e in s["effects"])
    )
    bind = next(effect for effect in step["effects"] if effect[0] == "bind")
    node, bind[4] = bind[4], "another-node"
    found[place] = msgspec.json.encode(step)
    other = tmp_path / "other.jsonl.gz"
    other.write_bytes(gzip.compress(b"\n".join(found) + b"\n"))
    _, _, difference = rig.replay([other])
    told = "\n".join(telling.difference(difference))
    assert f"cycle {step['cycle']} at" in told
    assert f"recorded: bind {bind[1]}/{bind[2]} to another-node" in told
    assert f"replayed: bind {bind[1]}/{bind[2]} to {node}" in told


@pytest.mark.parametrize("seed", [*seeds(40, 9, 17, 31), 198, 246])  # in the last two pods are evicted
def test_the_same_policy_parts_nowhere(seed, tmp_path):
    script = scripts.draw(seed)
    rig.live(script, tmp_path)
    other = OtherPolicy(configuration.load(script.policy.text, KNOWN.catalog(), "config"))
    assert _partings(other, rig.files(tmp_path)) == []


def test_another_policy_parts_where_it_decides_differently(tmp_path):
    given = [_node("n1", "4"), _node("n2", "4"), *_gang("g", 2, "1")]
    stage = rig.stage(CONFIG, given, tmp_path)
    for _ in range(3):
        stage.decide()
        stage.wait()
    stage.end()
    packed = CONFIG.replace("nodeorder", "binpack")
    found = _partings(OtherPolicy(configuration.load(packed, KNOWN.catalog(), "config")), rig.files(tmp_path))
    assert [(each.subject, each.recorded, each.other) for each in found] == [("pod a/g-1", "bind to n2", "bind to n1")]


def test_a_configuration_that_was_reloaded_is_in_force_in_the_replay_from_then_on(tmp_path):
    stage = rig.stage(
        CONFIG.replace("enqueue, allocate, backfill", "enqueue"), [_node("n1", "4"), *_gang("g", 2, "1")], tmp_path
    )
    stage.decide()
    stage.configure(CONFIG)
    stage.wait()
    stage.decide()
    stage.end()
    _, played, difference = rig.replay(rig.files(tmp_path))
    assert difference is None
    assert [[e[0] for e in each.repeated].count("bind") for each in played] == [0, 2]


def test_what_a_standby_took_in_is_taken_in_again(tmp_path):
    stage = rig.stage(CONFIG, [_node("n1", "4"), *_gang("g", 2, "1")], tmp_path)
    stage.cluster.pump()
    stage.cache.apply(stage.cluster.clock.now(), standby=True)
    stage.wait()
    stage.decide()
    stage.end()
    _, played, difference = rig.replay(rig.files(tmp_path))
    assert difference is None
    assert [each.step.cycle for each in played] == [0, 1]


def test_events_that_overtake_a_bind_are_looked_at_again_in_the_same_place(tmp_path):
    """A node goes while the cycle decides: the gang is withheld, and so it is in the replay."""
    stage = rig.stage(CONFIG, [_node("n1", "4"), *_gang("g", 2, "1")], tmp_path)
    cache = stage.cache
    plain = cache.overtaken

    def overtaken(tasks):
        stage.delete(["node/n1"])
        stage.cluster.pump()
        return plain(tasks)

    cache.overtaken = overtaken
    stage.decide()
    cache.overtaken = plain
    stage.wait()
    stage.decide()
    stage.end()
    _, played, difference = rig.replay(rig.files(tmp_path))
    assert difference is None
    assert not any(effect[0] == "bind" for each in played for effect in each.repeated)
    assert len(played[0].step.events) > 1


def test_numbers_of_effects_are_the_same_again_whatever_is_sent_twice():
    one, two = Ledger(), Ledger()
    from pumice.cache.effects import Bind

    effect, same = Bind(namespace="a", name="p", uid="u", node="n"), Bind(namespace="a", name="q", uid="v", node="n")
    for ledger in (one, two):
        for each in (effect, same, effect):
            ledger.send(each)
    numbers = [one.number(effect), one.number(same), one.number(effect)]
    assert [two.effect(number) for number in numbers] == [effect, same, effect]
    assert one.open == two.open == {}
    assert one.number(effect) == 0


def _partings(other, paths):
    player, found = Player(paths, KNOWN), []
    for step, _ in player.steps():
        sent = other.decide(player, step) if step.cycle and not step.skipped else None
        played = player.play(step)
        assert not played.problem
        if sent is not None:
            found += other.compare(step, played.recorded, msgspec.json.decode(writing.sent(sent)))
    assert not other.broke
    return found


def _node(name, cpu):
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "status": {"allocatable": {"cpu": cpu, "memory": "8Gi"}},
    }


def _gang(name, size, cpu):
    group = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "a"},
        "spec": {"minMember": size},
    }
    pods = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"{name}-{i}",
                "namespace": "a",
                "annotations": {"scheduling.k8s.io/group-name": name},
            },
            "spec": {
                "schedulerName": "volcano",
                "containers": [{"name": "c", "image": "x", "resources": {"requests": {"cpu": cpu}}}],
            },
        }
        for i in range(size)
    ]
    return [group, *pods]


def test_every_kind_of_line_comes_back_as_it_was_written():
    for line in (
        lines.End(last=True),
        lines.Configured(now=1, source="s", text="t"),
        lines.Step(cycle=1, now=2, skipped=True),
    ):
        assert msgspec.json.encode(lines.decode(writing.encode(line))) == msgspec.json.encode(line)
