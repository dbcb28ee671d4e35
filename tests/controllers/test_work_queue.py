"""The work queue against a slow and obvious one."""

from hypothesis import given
from hypothesis import strategies as st

from pumice.controllers.queueing import work_queue

FIRST, MOST = 100, 1000
OPS = st.lists(
    st.tuples(
        st.sampled_from(("add", "at", "take", "done", "rest", "fail", "forgive", "wait")),
        st.integers(0, 3),
        st.integers(0, 400),
    ),
    min_size=20,
    max_size=80,
)


class Plain:
    """Does everything twice: to the queue, and to lists that it looks through each time."""

    def __init__(self):
        self.queue, self.now = work_queue.WorkQueue(FIRST, MOST), 0
        self.ready, self.busy, self.again, self.pausing, self.wakes, self.failures = [], set(), set(), {}, {}, {}
        self.resting, self.wanted = {}, set()

    def want(self, key):
        if key in self.busy:
            self.again.add(key)
        elif key in self.resting:
            self.wanted.add(key)
        elif key not in self.pausing and key not in self.ready:
            self.ready.append(key)

    def add(self, key, _):
        self.queue.add(key)
        self.want(key)

    def at(self, key, span):
        self.queue.add_at(key, self.now + span)
        self.wakes[key] = min(self.wakes.get(key, self.now + span), self.now + span)

    def forgive(self, key, _):
        self.queue.forgive(key)
        self.failures.pop(key, None)
        rested = self.resting.pop(key, None) is not None and key in self.wanted
        self.wanted.discard(key)
        if self.pausing.pop(key, None) is not None or rested:
            self.ready.append(key)

    def wait(self, _, span):
        self.now += span

    def take(self, *_):
        for key in [key for key, until in self.resting.items() if until <= self.now]:
            del self.resting[key]
            if key in self.wanted:
                self.wanted.discard(key)
                self.ready.append(key)
        for key in [key for key, at in self.pausing.items() if at <= self.now]:
            del self.pausing[key]
            self.ready.append(key)
        for key in [key for key, at in self.wakes.items() if at <= self.now]:
            del self.wakes[key]
            self.want(key)
        taken = self.queue.take(self.now)
        assert (taken is None) == (not self.ready)
        if taken is not None:
            assert taken not in self.busy
            self.ready.remove(taken)
            self.busy.add(taken)

    def done(self, *_):
        for mine in sorted(self.busy)[:1]:
            self.busy.discard(mine)
            self.failures.pop(mine, None)
            self.queue.done(mine)
            if mine in self.again:
                self.again.discard(mine)
                self.ready.append(mine)

    def rest(self, _, span):
        for mine in sorted(self.busy)[:1]:
            self.busy.discard(mine)
            self.failures.pop(mine, None)
            self.queue.done(mine, self.now + span)
            self.resting[mine] = self.now + span
            if mine in self.again:
                self.again.discard(mine)
                self.wanted.add(mine)

    def fail(self, *_):
        for mine in sorted(self.busy)[:1]:
            self.busy.discard(mine)
            self.again.discard(mine)
            count = self.failures[mine] = self.failures.get(mine, 0) + 1
            pause = self.queue.failed(mine, self.now)
            assert pause == min(MOST, FIRST * 2 ** (count - 1))
            self.pausing[mine] = self.now + pause

    def check(self):
        assert self.queue.load == len(self.ready) + len(self.busy)
        rested = [until for key, until in self.resting.items() if key in self.wanted]
        waiting = [self.now] if self.ready else [*self.wakes.values(), *self.pausing.values(), *rested]
        assert self.queue.next_due(self.now) == (max(self.now, min(waiting)) if waiting else None)


@given(OPS)
def test_a_key_is_with_one_worker_at_a_time_and_no_wish_is_lost(ops):
    plain = Plain()
    for op, key, span in ops:
        getattr(plain, op)(key, span)
        plain.check()


def test_an_event_does_not_cut_the_pause_after_a_failure_short():
    queue = work_queue.WorkQueue(FIRST, MOST)
    queue.add("a")
    queue.take(0)
    queue.failed("a", 0)
    queue.add("a")
    assert queue.take(FIRST - 1) is None
    assert queue.take(FIRST) == "a"


def test_what_is_wanted_in_the_middle_of_its_rest_is_ready_when_the_rest_is_over():
    queue = work_queue.WorkQueue(FIRST, MOST)
    queue.add("a")
    queue.take(0)
    queue.done("a", rest_until=50)
    assert queue.next_due(0) is None
    queue.add("a")
    assert queue.next_due(10) == 50
    assert queue.take(49) is None
    assert queue.take(50) == "a"


def test_whoever_went_well_begins_with_the_first_pause_again():
    queue = work_queue.WorkQueue(FIRST, MOST)
    pauses, now = [], 0
    for goes_well in (False, False, True, False):
        queue.add("a")
        assert queue.take(now) == "a"
        if goes_well:
            queue.done("a")
        else:
            pauses.append(queue.failed("a", now))
            now += pauses[-1]
    assert pauses == [FIRST, 2 * FIRST, FIRST]


def rested(*, wanted=False):
    """Give a queue in which a key rests until 50, and was wanted in its turn or not."""
    queue = work_queue.WorkQueue(FIRST, MOST)
    queue.add("a")
    queue.take(0)
    if wanted:
        queue.add("a")
    queue.done("a", rest_until=50)
    return queue


def test_what_was_wanted_in_its_turn_is_ready_when_its_rest_is_over():
    queue = rested(wanted=True)
    assert [queue.take(49), queue.take(50)] == [None, "a"]


def test_what_is_wanted_after_its_rest_is_ready_at_once():
    queue = rested()
    assert queue.take(50) is None
    queue.add("a")
    assert queue.waiting() == ["a"]


def test_a_time_in_the_middle_of_a_rest_waits_for_its_end():
    queue = rested()
    queue.add_at("a", 20)
    assert [queue.take(20), queue.take(49), queue.take(50)] == [None, None, "a"]


def test_a_pause_doubles_from_the_first_failure_on():
    queue = work_queue.WorkQueue(FIRST, MOST)
    assert [queue.pause(failures) for failures in (0, 1, 2, 4, 5, 10**6)] == [0, FIRST, 200, 800, MOST, MOST]
