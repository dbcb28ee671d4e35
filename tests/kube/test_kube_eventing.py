from __future__ import annotations

import asyncio

from kube_fakes import FakeApi, until

from pumice.api import kinds
from pumice.cache import effects
from pumice.cache.budgets import Budget
from pumice.kube import errors
from pumice.kube.writes import eventing

SECOND = 1_000_000
START = 1_767_225_600 * SECOND  # 2026-01-01


class Clock:
    def __init__(self):
        self.now = START

    def __call__(self):
        return self.now


def note(name="p", message="hello", *, kind=kinds.POD, namespace="a", uid="u1", reason="Scheduled", weight="Normal"):
    return effects.Note(kind=kind, namespace=namespace, name=name, uid=uid, type=weight, reason=reason, message=message)


def recorder(api=None, **options):
    api, clock = api or FakeApi(), Clock()
    return api, clock, eventing.EventRecorder(api, clock, "volcano", **options)


def send_all(events):
    async def run():
        while (told := events.take()) is not None:
            await events.send(told)

    asyncio.run(run())


def stored(api):
    return [manifest for (plural, _, _), manifest in api.objects.items() if plural == "events"]


def test_an_event_says_who_what_and_when():
    api, _, events = recorder()
    events.put(note())
    send_all(events)
    (event,) = stored(api)
    assert event["involvedObject"] == {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": "p",
        "namespace": "a",
        "uid": "u1",
    }
    assert event["metadata"]["namespace"] == "a"
    assert event["metadata"]["name"].startswith("p.")
    assert (event["type"], event["reason"], event["message"], event["count"]) == ("Normal", "Scheduled", "hello", 1)
    assert event["firstTimestamp"] == event["lastTimestamp"] == "2026-01-01T00:00:00Z"
    assert event["source"] == {"component": "volcano"}
    assert event["reportingComponent"] == "volcano"


def test_an_object_without_namespace_is_told_about_in_default():
    api, _, events = recorder()
    events.put(note(kind=kinds.QUEUE, namespace="", name="q"))
    send_all(events)
    (event,) = stored(api)
    assert event["metadata"]["namespace"] == "default"
    assert "namespace" not in event["involvedObject"]


def test_names_are_unique_and_no_longer_than_a_name_may_be():
    api, _, events = recorder()
    for n in range(50):
        events.put(note(name="x" * 253, uid=str(n)))
    send_all(events)
    names = {event["metadata"]["name"] for event in stored(api)}
    assert len(names) == 50
    assert max(map(len, names)) <= 253


def test_long_messages_are_cut_between_two_characters():
    api, _, events = recorder()
    events.put(note(message="é" * 2000))
    send_all(events)
    message = stored(api)[0]["message"]
    assert 1000 < len(message.encode()) <= 1024
    assert message.endswith("é…")


def test_what_waits_and_what_is_remembered_is_cut_already():
    _, _, events = recorder()
    events.put(note(message="x" * 250_000))
    remembered = events._told  # noqa: SLF001  how much memory it takes shows nowhere else
    assert max(len(part) for key in remembered for part in key) <= 1024
    assert len(events.take().note.message) <= 1024


def test_a_message_gives_no_orders_to_a_terminal():
    api, _, events = recorder()
    events.put(note(message="PodGroup a/\x1b[2Jx does not exist"))
    send_all(events)
    assert stored(api)[0]["message"] == "PodGroup a/\\x1b[2Jx does not exist"


def test_an_event_that_cannot_even_be_asked_for_costs_nobody_else_anything():
    class Broken(FakeApi):
        async def create(self, _kind, _manifest):
            raise ValueError("'..' is not a name of an object")

    _, _, events = recorder(Broken())
    events.put(note())
    send_all(events)
    assert (events.sent, events.dropped) == (0, 1)


def test_the_same_again_counts_up_the_event_that_is_there():
    api, clock, events = recorder()
    events.put(note())
    send_all(events)
    clock.now += 60 * SECOND
    events.put(note())
    send_all(events)
    (event,) = stored(api)
    assert event["count"] == 2
    assert event["firstTimestamp"] == "2026-01-01T00:00:00Z"
    assert event["lastTimestamp"] == "2026-01-01T00:01:00Z"
    assert events.sent == 2


def test_the_same_again_while_it_waits_is_one_event():
    api, _, events = recorder()
    for _ in range(5):
        events.put(note())
    assert events.waiting == 1
    send_all(events)
    assert stored(api)[0]["count"] == 5
    assert api.verbs() == ["create"]


def test_the_same_again_while_it_is_sent_is_counted_afterwards():
    api, _, events = recorder()

    async def run():
        api.hold["create"] = asyncio.Event()
        events.put(note())
        sending = asyncio.create_task(events.send(events.take()))
        await until(lambda: api.verbs() == ["create"])
        events.put(note())
        assert events.take() is None
        api.hold["create"].set()
        await sending
        await events.send(events.take())

    asyncio.run(run())
    assert stored(api)[0]["count"] == 2


def test_another_reason_object_or_a_late_repetition_is_another_event():
    api, clock, events = recorder()
    for each in (note(), note(reason="y"), note(uid="u2"), note(namespace="b")):
        events.put(each)
    send_all(events)
    clock.now += 3600 * SECOND
    events.put(note())
    send_all(events)
    assert len(stored(api)) == 5


def test_another_message_of_the_same_cause_is_the_same_event_with_the_latest_message():
    api, clock, events = recorder()
    for number in range(7):
        events.put(note(message=f"{number} of 7"))
        send_all(events)
        clock.now += SECOND
    (event,) = stored(api)
    assert (event["count"], event["message"]) == (7, "6 of 7")


def test_each_deed_is_an_event_of_its_own_and_a_warning_says_the_latest():
    api, clock, events = recorder(deeds=True)
    for message in ("AbortJob", "ResumeJob", "AbortJob"):
        for weight in ("Normal", "Warning"):
            events.put(note(message=message, weight=weight))
        send_all(events)
        clock.now += SECOND
    found = sorted((event["type"], event["message"], event["count"]) for event in stored(api))
    assert found == [("Normal", "AbortJob", 2), ("Normal", "ResumeJob", 1), ("Warning", "AbortJob", 3)]


def test_what_is_said_of_one_object_beyond_its_budget_is_dropped_and_counted_and_costs_no_other_object():
    api, clock, events = recorder(of_one_object=Budget(burst=3, pause=60 * SECOND))
    for _ in range(10):
        events.put(note())
        send_all(events)
    assert (events.sent, events.dropped, events.waiting) == (3, 7, 0)
    events.put(note(uid="u2"))
    send_all(events)
    assert events.sent == 4
    clock.now += 60 * SECOND
    events.put(note())
    send_all(events)
    assert max(event["count"] for event in stored(api)) == 11  # what was dropped happened, too


def test_what_is_said_beyond_the_overall_budget_is_dropped_and_counted_and_never_queued():
    api, clock, events = recorder(overall=Budget(burst=5, pause=SECOND))
    for number in range(100):
        events.put(note(uid=str(number)))
    assert (events.waiting, events.dropped) == (5, 95)
    clock.now += 2 * SECOND
    for number in range(100):
        events.put(note(uid=str(number)))
    send_all(events)
    assert len(stored(api)) == 5 + 2


def test_an_event_that_has_expired_is_written_anew():
    api, _, events = recorder()
    events.put(note())
    send_all(events)
    api.objects.clear()
    events.put(note())
    send_all(events)
    assert stored(api)[0]["count"] == 2


def test_what_finds_no_room_is_dropped_and_counted():
    api, _, events = recorder(capacity=3)
    for n in range(5):
        events.put(note(uid=str(n)))
    assert (events.waiting, events.dropped) == (3, 2)
    send_all(events)
    assert len(stored(api)) == 3


def test_the_memory_is_bounded():
    _, _, events = recorder(memory=10)
    for n in range(100):
        events.put(note(uid=str(n)))
    assert len(events._told) == 10  # noqa: SLF001  as above


def test_a_failure_drops_the_event_and_the_next_one_has_another_name():
    api, _, events = recorder()
    api.fail["create"] = [errors.UnknownOutcomeError("x")]
    events.put(note())
    send_all(events)
    assert (events.sent, events.dropped) == (0, 1)
    events.put(note())
    send_all(events)
    assert events.sent == 1
    first, second = (call[2] for call in api.calls)
    assert first != second
