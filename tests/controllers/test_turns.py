"""What the engine tells controllers beside the objects: what vanished, how often they were refused, what matters to them, what is ordered."""

from hypothesis import given
from hypothesis import strategies as st

from pumice.api import kinds
from pumice.cache import effects
from pumice.controllers.queueing import engine, observed, requests

OWNER = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "j", "uid": "u", "controller": True}


def job(version="1", **more):
    metadata = {"name": "j", "namespace": "a", "uid": "u", "resourceVersion": version, **more}
    return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": metadata}


def pod(uid="p", version="2", name="p", owner=None, **more):
    metadata = {"name": name, "namespace": "a", "uid": uid, "resourceVersion": version}
    return {"metadata": {**metadata, "ownerReferences": [owner or OWNER]}, **more}


class Watchful:
    """Remembers pods, obeys Commands, and looks at the phase of pods alone; says what it saw."""

    kind = kinds.JOB
    watched = (kinds.POD, kinds.COMMAND)
    remembered = (kinds.POD,)
    orders = (kinds.COMMAND,)

    def __init__(self, plan=None):
        self.seen = []
        self.plan = plan or (lambda moment: requests.Reconciled())

    def concerns(self, kind, manifest, observed):
        return [("a", "j")]

    def is_same(self, kind, before, after):
        return before.get("phase") == after.get("phase")

    def reconcile(self, namespace, name, observed, moment):
        found = observed.find(self.kind, namespace, name)
        gone = observed.vanished(kinds.POD, self.kind, found) if found else []
        self.seen.append(([each["metadata"]["uid"] for each in gone], moment.refusals))
        return self.plan(moment)


def looked(turns, now=0):
    """Take the turns that are due."""
    while (turn := turns.take(requests.Moment(now))) is not None:
        turns.finish(turn, requests.Moment(now))


def begun(plan=None):
    watchful = Watchful(plan)
    turns = engine.Engine([watchful])
    turns.feed(kinds.JOB, "ADDED", job())
    turns.feed(kinds.POD, "ADDED", pod())
    looked(turns)
    watchful.seen.clear()
    return watchful, turns


def test_what_vanished_is_told_until_a_look_has_ended_well():
    answer = []
    read = [requests.Step(request=effects.Read(kind=kinds.POD, namespace="a", name="x"))]
    watchful, turns = begun(lambda _: requests.Reconciled(steps=read if answer else []))
    answer.append("unavailable")
    turns.feed(kinds.POD, "DELETED", pod(version="3"))
    turn = turns.take(requests.Moment(0))
    (step,) = turns.next_steps(turn)
    turns.answered(turn, step, requests.Answer(code="unavailable"), 0)
    turns.finish(turn, requests.Moment(0))
    answer.clear()
    looked(turns, 10**9)
    turns.feed(kinds.JOB, "MODIFIED", job("9"))
    looked(turns, 10**9)
    assert [gone for gone, _ in watchful.seen] == [["p"], ["p"], []]


def test_nobody_is_told_of_what_belonged_to_another_of_that_name():
    watchful, turns = begun()
    other = {**OWNER, "uid": "other"}
    turns.feed(kinds.POD, "ADDED", pod("q", "3", "q", other))
    turns.feed(kinds.POD, "DELETED", pod("q", "4", "q", other))
    looked(turns)
    assert [gone for gone, _ in watchful.seen] == [[]]
    assert not turns.observed.untold(kinds.JOB, "a", "j")


def test_what_vanished_of_owners_that_nobody_looks_at_is_not_remembered():
    known = observed.Observed([(kinds.JOB, kinds.POD)])
    stranger = {**OWNER, "kind": "ReplicaSet", "apiVersion": "apps/v1"}
    known.feed(kinds.POD, "ADDED", pod(owner=stranger))
    known.feed(kinds.POD, "DELETED", pod(version="3", owner=stranger))
    assert not known.untold(kinds.REPLICA_SET, "a", "j")
    assert not known.untold(kinds.JOB, "a", "j")


def test_what_vanishes_after_its_owner_is_remembered_for_nobody():
    known = observed.Observed([(kinds.JOB, kinds.POD)])
    known.feed(kinds.JOB, "ADDED", job())
    known.feed(kinds.POD, "ADDED", pod())
    known.feed(kinds.JOB, "DELETED", job())
    known.feed(kinds.POD, "DELETED", pod(version="3"))
    assert not known.untold(kinds.JOB, "a", "j")


def test_a_late_watch_does_not_bring_back_what_a_read_did_not_find():
    known = observed.Observed([(kinds.JOB, kinds.POD)])
    known.learned(kinds.JOB, job())
    known.learned(kinds.POD, pod(version="5"))
    known.lost(kinds.POD, "a", "p")
    assert not known.feed(kinds.POD, "ADDED", pod(version="5"))
    assert not known.feed(kinds.POD, "MODIFIED", pod(version="6"))
    assert known.find(kinds.POD, "a", "p") is None
    assert not known.feed(kinds.POD, "DELETED", pod(version="7"))
    assert known.untold(kinds.JOB, "a", "j") == ["p"]
    assert known.feed(kinds.POD, "ADDED", pod("new", "8"))


def test_refusals_in_a_row_are_counted_and_forgotten_when_all_is_well_or_the_spec_changes():
    stuck = [True]
    watchful, turns = begun(lambda _: requests.Reconciled(stuck="no" if stuck else ""))
    turns.feed(kinds.JOB, "MODIFIED", job("2"))
    for _ in range(3):
        looked(turns, turns.queue.next_due(0))
    assert [refusals for _, refusals in watchful.seen] == [1, 2, 3]
    turns.feed(kinds.JOB, "MODIFIED", job("3", generation=2))
    looked(turns, turns.queue.next_due(0))
    stuck.clear()
    looked(turns, turns.queue.next_due(0))
    turns.feed(kinds.JOB, "MODIFIED", job("4", generation=2))
    looked(turns, 10**12)
    assert [refusals for _, refusals in watchful.seen][3:] == [0, 1, 0]


def test_an_order_cuts_a_pause_short_and_other_events_do_not():
    watchful, turns = begun(lambda _: requests.Reconciled(stuck="no"))
    turns.feed(kinds.POD, "MODIFIED", pod(version="5", phase="Failed"))
    looked(turns)
    assert not watchful.seen
    command = {"metadata": {"name": "c", "namespace": "a", "uid": "c", "resourceVersion": "6"}}
    turns.feed(kinds.COMMAND, "ADDED", command)
    looked(turns)
    assert len(watchful.seen) == 1


@given(st.lists(st.sampled_from(("Pending", "Running", "Failed")), min_size=1, max_size=8))
def test_changes_that_do_not_matter_to_a_controller_cause_no_look_and_every_other_does(phases):
    watchful, turns = begun()
    turns.feed(kinds.POD, "MODIFIED", pod(version="3", phase="Pending"))
    looked(turns)
    watchful.seen.clear()
    expected, before = 0, "Pending"
    for place, phase in enumerate(phases):
        turns.feed(kinds.POD, "MODIFIED", pod(version=str(10 + place), phase=phase, spec={"number": place}))
        looked(turns)
        expected, before = expected + (phase != before), phase
        assert len(watchful.seen) == expected
    turns.feed(kinds.POD, "DELETED", pod(version="90", phase=before))
    looked(turns)
    assert watchful.seen[expected:] == [(["p"], 0)]


def test_a_pod_in_place_of_another_of_its_name_matters():
    watchful, turns = begun()
    turns.feed(kinds.POD, "MODIFIED", pod("other", "9"))
    looked(turns)
    assert len(watchful.seen) == 1


def test_kinds_are_counted():
    known = observed.Observed()
    for name in ("x", "y"):
        known.feed(kinds.POD, "ADDED", pod(name, name=name))
    assert (known.count(kinds.POD), known.count(kinds.JOB)) == (2, 0)


class Sparing(Watchful):
    """Keeps of pods who they are, and wants only some of them."""

    selectors = {kinds.POD: "x"}  # noqa: RUF012  read and never changed

    def trimmed(self, kind, manifest):
        return {"metadata": manifest["metadata"]} if kind is kinds.POD else manifest


def test_what_a_controller_does_not_read_is_not_kept_unless_another_one_reads_it():
    alone, shared = engine.Engine([Sparing()]), engine.Engine([Sparing(), Watchful()])
    for turns in (alone, shared):
        turns.feed(kinds.POD, "ADDED", pod(spec={"large": True}))
    assert "spec" not in alone.observed.find(kinds.POD, "a", "p")
    assert "spec" in shared.observed.find(kinds.POD, "a", "p")
    assert [turns.selector(kinds.POD) for turns in (alone, shared)] == ["x", ""]
    assert alone.selector(kinds.COMMAND) == ""


class Owner(Watchful):
    """Has Jobs too, and looks at no pods; or has pods, and looks at nothing else."""

    watched = ()

    def __init__(self, kind):
        super().__init__()
        self.kind = kind


def test_another_controller_reads_what_it_has_and_nothing_that_it_does_not_look_at():
    for other, is_kept in ((kinds.JOB, False), (kinds.POD, True)):
        turns = engine.Engine([Sparing(), Owner(other)])
        turns.feed(kinds.POD, "ADDED", pod(spec={"large": True}))
        assert ("spec" in turns.observed.find(kinds.POD, "a", "p")) is is_kept


def test_answers_are_trimmed_like_events():
    sparing = Sparing(lambda _: requests.Reconciled(steps=[_creation()]))
    turns = engine.Engine([sparing])
    turns.feed(kinds.JOB, "ADDED", job())
    turn = turns.take(requests.Moment(0))
    (step,) = turns.next_steps(turn)
    turns.answered(turn, step, requests.Answer(object=pod("new", "7", spec={"large": True})), 0)
    assert turns.observed.find(kinds.POD, "a", "p") == {"metadata": pod("new", "7")["metadata"]}


def _creation():
    return requests.Step(request=effects.Create(kind=kinds.POD, manifest=pod("", "")))


# ---- how many creations go side by side


def _creations(count, kind=kinds.POD):
    made = [{"metadata": {"name": f"{kind.plural}-{number}", "namespace": "a"}} for number in range(count)]
    return [requests.Step(request=effects.Create(kind=kind, manifest=each)) for each in made]


def _stages(turns, answers, now):
    """Take one turn, and give how many requests went side by side each time; `answers` gives the code of each."""
    turn, found = turns.take(requests.Moment(now)), []
    while turn.left:
        steps = turns.next_steps(turn)
        found.append(len(steps))
        for step in steps:
            turns.answered(turn, step, requests.Answer(code=answers(step)), now)
    turns.finish(turn, requests.Moment(now))
    return found


@given(st.integers(1, 300), st.integers(0, 3))
def test_the_first_pod_is_sent_ahead_and_the_others_follow_side_by_side(count, services):
    steps = _creations(services, kinds.SERVICE) + _creations(count)
    _, turns = begun(lambda _: requests.Reconciled(steps=steps))
    turns.feed(kinds.JOB, "MODIFIED", job("2"))
    found = _stages(turns, lambda _: "", 0)
    ahead = [1, services - 1] if services > 1 else [1] * services
    rest = count - 1
    assert found == [*ahead, 1, *[64] * (rest // 64), *([rest % 64] if rest % 64 else [])]


@given(st.integers(1, 300))
def test_of_pods_that_are_all_refused_one_is_tried_and_then_one_each_time(count):
    _, turns = begun(lambda _: requests.Reconciled(steps=_creations(count)))
    turns.feed(kinds.JOB, "MODIFIED", job("2"))
    assert [_stages(turns, lambda _: "refused", turns.queue.next_due(0)) for _ in range(3)] == [[1], [1], [1]]


@given(st.integers(1, 300), st.integers(1, 300))
def test_who_was_refused_something_goes_on_in_numbers_that_double_until_all_is_well(room, count):
    _, turns = begun(lambda _: requests.Reconciled(steps=_creations(count)))
    turns.feed(kinds.JOB, "MODIFIED", job("2"))
    _stages(turns, lambda _: "refused", turns.queue.next_due(0))
    accepted = iter(range(room))
    found = _stages(turns, lambda _: "" if next(accepted, None) is not None else "refused", turns.queue.next_due(0))
    assert found[:-1] == [1, 2, 4, 8, 16, 32, *[64] * 9][: len(found) - 1]
    assert sum(found) - min(room, count) <= room + 1  # hardly more are refused than were accepted
    assert sum(found[:-1]) <= room


# ---- what waits until there is little to do


class Patient:
    """Puts off what it has to do about its objects while there is much to do, at most for an hour."""

    kind = kinds.JOB
    watched = ()

    def __init__(self):
        self.done = []

    def concerns(self, kind, manifest, observed):
        return []

    def reconcile(self, namespace, name, observed, moment):
        if moment.busy:
            return requests.Reconciled(again=moment.now + HOUR, patient=True)
        self.done.append(name)
        return requests.Reconciled()


HOUR = 3600 * 1_000_000


def named(name, version="1"):
    return {"metadata": {"name": name, "namespace": "a", "uid": name, "resourceVersion": version}}


@given(st.integers(1, 100))
def test_who_puts_something_off_is_looked_at_as_soon_as_there_is_little_to_do(count):
    patient = Patient()
    turns = engine.Engine([patient])
    names = [f"j{number}" for number in range(count)]
    for name in names:
        turns.feed(kinds.JOB, "ADDED", named(name))
    looked(turns)
    assert sorted(patient.done) == sorted(names)
    at_once = min(count, engine.MUCH_TO_DO)
    assert patient.done[:at_once] == names[-at_once:]  # those that came when little was left


def test_who_puts_something_off_is_looked_at_when_its_time_has_come_however_much_there_is_to_do():
    patient = Patient()
    turns = engine.Engine([patient])
    turns.feed(kinds.JOB, "ADDED", named("j"))
    turn = turns.take(requests.Moment(0, busy=True))
    assert turn is None
    for number in range(100):
        turns.queue.add(engine.Key(0, "a", f"x{number}"))
        turns.queue.take(0)
    assert turns.take(requests.Moment(HOUR - 1, busy=True)) is None
    looks = turns.turns
    assert turns.take(requests.Moment(HOUR, busy=True)) is None
    assert turns.turns == looks + 1


# -- who stands by ---------------------------------------------------------------------------------------------------


def a_job(name, version):
    metadata = {"name": name, "namespace": "a", "uid": f"u-{name}", "resourceVersion": str(version)}
    return {"apiVersion": OWNER["apiVersion"], "kind": "Job", "metadata": metadata}


def of(name, number):
    owner = {**OWNER, "name": name, "uid": f"u-{name}"}
    return pod(uid=f"{name}-{number}", version=str(number), name=f"{name}-{number}", owner=owner)


class Counting(Watchful):
    """Tells which Jobs had a turn, and who had vanished."""

    def concerns(self, kind, manifest, observed):
        return [("a", manifest["metadata"]["ownerReferences"][0]["name"])]

    def reconcile(self, namespace, name, observed, moment):
        found = observed.find(self.kind, namespace, name)
        gone = observed.vanished(kinds.POD, self.kind, found) if found else []
        self.seen.append((name, [each["metadata"]["uid"] for each in gone]))
        return requests.Reconciled()


def stood_by(jobs):
    """Let many Jobs come and go, each with a pod, while one of them stays, which loses its pods again and again."""
    counting = Counting()
    turns = engine.Engine([counting])
    turns.feed(kinds.JOB, "ADDED", a_job("stays", 1))
    for number in range(2, 10 * jobs, 10):
        name = f"j{number}"
        turns.feed(kinds.JOB, "ADDED", a_job(name, number))
        for owner in (name, "stays"):
            turns.feed(kinds.POD, "ADDED", of(owner, number + 1))
            turns.feed(kinds.POD, "DELETED", of(owner, number + 1))
        turns.feed(kinds.JOB, "MODIFIED", a_job("stays", number + 3))
        turns.feed(kinds.JOB, "DELETED", a_job(name, number + 4))
        turns.feed(kinds.POD, "ADDED", of(name, number + 5))  # which the garbage collector takes after its owner
        turns.feed(kinds.POD, "DELETED", of(name, number + 5))
    return counting, turns


def test_who_stands_by_keeps_nothing_of_what_has_gone_and_looks_at_all_that_is_there_when_it_leads():
    counting, turns = stood_by(1200)
    assert len(turns.queue) <= engine.FEW_WAITING + 1
    assert turns.observed._vanished == {}  # noqa: SLF001  memory that is given back shows nowhere else
    turns.feed(kinds.POD, "ADDED", of("stays", 100_000))
    turns.feed(kinds.POD, "DELETED", of("stays", 100_000))
    looked(turns)
    assert dict(counting.seen)["stays"] == ["stays-100000"]  # what nobody else can have dealt with yet


def test_who_stands_by_looks_at_all_that_is_there_when_it_leads_however_many_there_are():
    counting = Counting()
    turns, many = engine.Engine([counting]), 2 * engine.FEW_WAITING
    for number in range(many):
        turns.feed(kinds.JOB, "ADDED", a_job(f"j{number}", number + 1))
    while len(turns.queue):
        looked(turns)
    assert [name for name, _ in counting.seen] == [f"j{number}" for number in range(many)]


def test_who_leads_looks_at_what_has_gone():
    _, turns = stood_by(1)
    looked(turns)
    for number in range(2 * engine.FEW_WAITING):
        turns.feed(kinds.JOB, "ADDED", a_job(f"k{number}", 1000 + 2 * number))
        turns.feed(kinds.JOB, "DELETED", a_job(f"k{number}", 1001 + 2 * number))
    assert len(turns.queue) == 2 * engine.FEW_WAITING
