"""What is sent brings every page to what is there, and the past is what it was."""

from __future__ import annotations

import random

import msgspec
import web_worlds as worlds
from hypothesis import given
from hypothesis import strategies as st

from pumice.web import board as boards
from pumice.web import past
from pumice.web.cluster import Cluster

objects = st.one_of(
    st.builds(worlds.node, st.sampled_from(["n-0", "n-1"]), st.sampled_from(["4", "8"])),
    st.builds(worlds.queue, st.sampled_from(["default", "<script>"])),
    st.builds(
        worlds.group, st.sampled_from(["g-0", "g-1"]), st.just("default"), st.sampled_from(["Pending", "Running"])
    ),
    st.builds(
        worlds.pod, st.sampled_from(["p-0", "p-1"]), st.sampled_from(["", "g-0"]), st.sampled_from(["", "n-0", "n-1"])
    ),
)
batches = st.lists(st.lists(st.tuples(st.booleans(), objects), max_size=6), max_size=6)


def decoded(data):
    return msgspec.json.decode(data)


def played(happened):
    """Give a board that has seen everything, a second apart, what a page made of it, and each scene as it was."""
    cluster = Cluster("x", lambda: worlds.NOW)
    board, page, scenes = cluster.board, None, []
    for second, batch in enumerate(happened):
        for gone, manifest in batch:
            worlds.feed(cluster, "DELETED" if gone else "ADDED", manifest)
        seen = board.version
        board.update(worlds.NOW + second * 1_000_000)
        if page is None:
            page = decoded(board.whole().data())
        else:
            for each in board.since(seen):
                applied(page, decoded(each.data))
        scenes.append((worlds.NOW + second * 1_000_000, decoded(board.whole().data())["rows"]))
    return board, page, scenes


def applied(page, batch):
    for table, rows in batch["rows"].items():
        for key, row in rows.items():
            if row is None:
                del page["rows"][table][key]
            else:
                page["rows"][table][key] = row


@given(batches)
def test_page_that_takes_every_batch_shows_what_is_there(happened):
    board, page, _ = played(happened)
    if page is not None:
        assert page["rows"] == decoded(board.whole().data())["rows"]


@given(batches)
def test_past_is_what_it_was(happened):
    board, _, scenes = played(happened)
    for moment, rows in scenes:
        assert decoded(board.at(moment).data())["rows"] == rows
        assert decoded(board.at(moment + 999_999).data())["rows"] == rows


def test_nothing_new_is_no_batch():
    cluster = worlds.small()
    board = cluster.board
    assert board.update(worlds.NOW + 1) is None
    worlds.feed(cluster, "MODIFIED", worlds.node("n-0"))  # as it was
    assert board.update(worlds.NOW + 2) is None
    assert board.since(board.version) == []


def test_who_was_away_too_long_begins_anew(monkeypatch):
    monkeypatch.setattr(boards, "CATCHING_UP", 2000)
    cluster = worlds.small()
    for number in range(50):
        worlds.feed(cluster, "MODIFIED", worlds.node("n-0", str(number + 1)))
        cluster.board.update(worlds.NOW + number)
    assert cluster.board.since(1) is None
    assert cluster.board.since(cluster.board.version + 1) is None  # of a server that was there before
    assert [each.version for each in cluster.board.since(cluster.board.version - 1)] == [cluster.board.version]


@given(st.lists(st.tuples(st.integers(1, 30), st.integers(0, 60)), max_size=30))
def test_past_holds_what_is_within_its_bounds_and_nothing_else(steps):
    kept, now, all_of_them = past.Past(100, 100), 0, []
    for pause, size in steps:
        now += pause
        kept.remember(now, (now, size), size)
        all_of_them.append((now, size))
    held = list(kept.since(-1))
    assert held == all_of_them[::-1][: len(held)]
    assert kept.size == sum(size for _, size in held) <= 100
    assert all(time >= now - 100 for time, _ in held)
    if len(held) < len(all_of_them):
        first, size = all_of_them[-len(held) - 1]
        assert first == kept.first
        assert kept.size + size > 100 or first < now - 100


def test_memory_is_bounded_in_bytes_and_in_time():
    cluster = Cluster("x", lambda: worlds.NOW, past.Bounds(memory=60_000_000, rows=5_000))
    board = cluster.board
    for number in range(100):
        worlds.feed(cluster, "MODIFIED", worlds.node("n-0", str(number + 1)))
        board.update(worlds.NOW + number * 1_000_000)
    assert worlds.NOW < board.first < board.time
    (row,) = decoded(board.at(board.first).data())["rows"]["nodes"].values()
    assert row["allocatable"]["cpu"] == 1000 * ((board.first - worlds.NOW) // 1_000_000 + 1)
    # what is before that is shown as the first moment that is known
    assert decoded(board.at(0).data())["rows"] == decoded(board.at(board.first).data())["rows"]


def test_phases_of_a_job_are_remembered_with_when_they_began():
    cluster = worlds.small()
    for second, phase in enumerate(("Running", "Running", "Completed"), start=1):
        worlds.feed(cluster, "MODIFIED", worlds.group("waits", "research", phase, 2))
        cluster.board.update(worlds.NOW + second)
    assert cluster.board.moments("a/waits") == [(worlds.NOW + 1, "Running"), (worlds.NOW + 3, "Completed")]
    worlds.feed(cluster, "DELETED", worlds.group("waits"))
    cluster.board.update(worlds.NOW + 9)
    assert cluster.board.moments("a/waits") == []


# -- what happened to single jobs and pods -----------------------------------------------------------------------------


def test_room_that_is_held_and_pods_that_are_made_again_are_moments_of_a_life():
    cluster = worlds.small()
    board, moment = cluster.board, [worlds.NOW]

    def then(event_type, *manifests):
        moment[0] += 1_000_000
        worlds.feed(cluster, event_type, *manifests)
        board.update(moment[0])

    held = worlds.pod("waits-0", "waits", cpu="9")
    held["status"]["nominatedNodeName"] = "n-1"
    then("MODIFIED", held)
    assert cluster.tracker.job(("a", "waits")).nominated == 1
    then("MODIFIED", worlds.pod("waits-0", "waits", "n-1"))
    then("DELETED", worlds.pod("waits-0", "waits", "n-1"))
    then("ADDED", worlds.pod("waits-0", "waits"))
    row = cluster.tracker.job(("a", "waits"))
    assert (row.nominated, row.restarts) == (0, 1)
    assert board.moments("a/waits") == [
        (worlds.NOW + 1_000_000, "HeldRoom"),
        (worlds.NOW + 4_000_000, "Restarted"),
    ]
    then("DELETED", worlds.group("waits"))
    then("ADDED", worlds.group("waits"))
    assert cluster.tracker.job(("a", "waits")).restarts == 0  # another one of the same name


def test_pods_of_a_moment_are_those_of_that_moment():
    cluster = worlds.small()
    board, tracker = cluster.board, cluster.tracker
    rng = random.Random(5)  # noqa: S311  the same in every run
    known = []
    names = [f"p-{number}" for number in range(6)]
    for second in range(1, 40):
        moment = worlds.NOW + second * 1_000_000
        for name in rng.sample(names, 2):
            place = rng.choice(("", "n-0", "n-1"))
            event = rng.choice(("ADDED", "MODIFIED", "DELETED"))
            worlds.feed(cluster, event, worlds.pod(name, rng.choice(("runs", "waits")), place))
        board.update(moment)
        known.append((moment, list(tracker.pods_of(group=("a", "runs"))), list(tracker.pods_of(node="n-1"))))
    for moment, of_job, of_node in known:
        for when in (moment, moment + 999_999):
            before = board.pods_at(when)
            assert list(tracker.pods_then(before, group=("a", "runs"))) == of_job
            assert list(tracker.pods_then(before, node="n-1")) == of_node
