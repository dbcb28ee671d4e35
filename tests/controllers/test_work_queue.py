"""The work queue against a slow and obvious one."""

from hypothesis import given
from hypothesis import strategies as st
from pumice.controllers.queueing import work_queue

FIRST, MOST = 100, 1000
OPS = st.lists(
    st.tuples(
        st.sampled_from(("add", "at", "take", "done", "fail", "forgive", "wait")),
        st.integers(0, 3),
        st.integers(0, 400),
    ),
    max_size=60,
)


class Plain:
    """Keeps a list of wishes and looks through all of it each time."""

    def __init__(self):
        self.ready, self.busy, self.again, self.pausing, self.wakes, self.failures = [], set(), set(), {}, {}, {}

    def want(self, key):
        if key in self.busy:
            self.again.add(key)
        elif key not in self.pausing and key not in self.ready:
            self.ready.append(key)

    def due(self, now):
        found = [(at, 0, key) for key, at in self.wakes.items()] + [(at, 1, key) for key, at in self.pausing.items()]
        return sorted(each for each in found if each[0] <= now)


@given(OPS)
def test_a_key_is_with_one_worker_at_a_time_and_no_wish_is_lost(ops):
    queue, plain, now = work_queue.WorkQueue(FIRST, MOST), Plain(), 0
    for op, key, span in ops:
        if op == "add":
            queue.add(key)
            plain.want(key)
        elif op == "at":
            queue.add_at(key, now + span)
            plain.wakes[key] = min(plain.wakes.get(key, now + span), now + span)
        elif op == "forgive":
            queue.forgive(key)
            plain.failures.pop(key, None)
            if plain.pausing.pop(key, None) is not None:
                plain.ready.append(key)
        elif op == "wait":
            now += span
        elif op == "take":
            for _, kind, woken in plain.due(now):
                if kind:
                    del plain.pausing[woken]
                    plain.ready.append(woken)
            for _, kind, woken in plain.due(now):
                if not kind:
                    del plain.wakes[woken]
                    plain.want(woken)
            taken = queue.take(now)
            assert (taken is None) == (not plain.ready)
            if taken is not None:
                assert taken not in plain.busy
                plain.ready.remove(taken)
                plain.busy.add(taken)
        elif plain.busy and op == "done":
            mine = min(plain.busy)
            plain.busy.discard(mine)
            plain.failures.pop(mine, None)
            queue.done(mine)
            if mine in plain.again:
                plain.again.discard(mine)
                plain.ready.append(mine)
        elif plain.busy and op == "fail":
            mine = min(plain.busy)
            plain.busy.discard(mine)
            plain.again.discard(mine)
            count = plain.failures[mine] = plain.failures.get(mine, 0) + 1
            pause = queue.failed(mine, now)
            assert pause == min(MOST, FIRST * 2 ** (count - 1))
            plain.pausing[mine] = now + pause
        waiting = [now] if plain.ready else [*plain.wakes.values(), *plain.pausing.values()]
        assert queue.next_due(now) == (max(now, min(waiting)) if waiting else None)


def test_an_event_does_not_cut_the_pause_after_a_failure_short():
    queue = work_queue.WorkQueue(FIRST, MOST)
    queue.add("a")
    queue.take(0)
    queue.failed("a", 0)
    queue.add("a")
    assert queue.take(FIRST - 1) is None
    assert queue.take(FIRST) == "a"
