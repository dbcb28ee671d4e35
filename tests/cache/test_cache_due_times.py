"""What is due is found without looking at everybody, and is what looking at everybody finds."""

from hypothesis import given
from hypothesis import strategies as st

from pumice.cache.due_times import SPARE, DueTimes

NAMES = st.sampled_from(["a", "b", "c", "d"])
TIMES = st.integers(0, 9)
STEPS = st.one_of(
    st.tuples(st.just("put"), NAMES, TIMES), st.tuples(st.just("drop"), NAMES), st.tuples(st.just("look"), TIMES)
)


@given(st.lists(STEPS, max_size=60))
def test_those_are_due_whose_time_has_come(steps):
    times, plain = DueTimes(), {}
    for step, *how in steps:
        if step == "put":
            times.put(*how)
            plain[how[0]] = how[1]
        elif step == "drop":
            times.drop(*how)
            plain.pop(*how, None)
        else:
            assert sorted(times.due(*how)) == sorted(name for name, time in plain.items() if time <= how[0])
        assert times.next() == min(plain.values(), default=None)


def test_times_that_count_no_longer_are_not_kept_for_ever():
    times = DueTimes()
    for i in range(10 * SPARE):
        times.put("a", i)
        times.put(f"gone {i}", 10**9)
        times.drop(f"gone {i}")
    assert len(times._heap) <= 2 + SPARE  # noqa: SLF001  how much memory it takes shows nowhere else
    assert times.due(10 * SPARE) == ["a"]


def test_the_earliest_is_found_though_many_times_were_given_up():
    times, plain = DueTimes(), {}
    for i in range(4 * SPARE):
        name = "abcde"[i % 5]
        plain[name] = 1000 - i if i % 3 else 2000 - i
        times.put(name, plain[name])
        assert times.next() == min(plain.values())
        assert times.due(1000) == sorted((n for n, time in plain.items() if time <= 1000), key=plain.__getitem__)
