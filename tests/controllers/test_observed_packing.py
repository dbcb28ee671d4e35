"""Objects that are kept as JSON are what they were: nobody can tell by what is read."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pumice.api import kinds
from pumice.controllers.queueing.observed import Observed
from pumice.controllers.volcano import trimming

NAMES = st.sampled_from(["a", "b", "c"])
OWNERS = st.sampled_from(["", "u1", "u2"])


def pod(name, owner, version, uid):
    owners = [{"apiVersion": kinds.JOB.api_version, "kind": "Job", "name": "j", "uid": owner, "controller": True}]
    metadata = {"name": name, "namespace": "n", "uid": uid, "resourceVersion": str(version)}
    return {
        "metadata": {**metadata, **({"ownerReferences": owners} if owner else {})},
        "status": {"phase": "Running", "n": version},
    }


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["feed", "gone", "learned", "read", "deleted", "lost"]), NAMES, OWNERS, st.integers(0, 1)
    ),
    max_size=30,
)


def play(observed, steps):
    """Give everything that can be read after each step."""
    seen = []
    for version, (step, name, owner, life) in enumerate(steps, start=1):
        uid = f"{name}-{life}"
        manifest = pod(name, owner, version, uid)
        match step:
            case "feed":
                told = observed.feed(kinds.POD, "MODIFIED", manifest)
            case "gone":
                told = observed.feed(kinds.POD, "DELETED", manifest)
            case "learned" | "read":
                told = observed.learned(kinds.POD, manifest, read=step == "read")
            case "deleted":
                told = observed.deleted(kinds.POD, "n", name, uid)
            case _:
                told = observed.lost(kinds.POD, "n", name)
        owner_object = {"metadata": {"name": "j", "namespace": "n", "uid": "u1"}}
        seen.append(
            (
                told,
                [observed.owned(kinds.POD, each) for each in ("u1", "u2")],
                observed.orphans(kinds.POD, "n"),
                list(observed.inside(kinds.POD, "n")),
                list(observed.all(kinds.POD)),
                observed.vanished(kinds.POD, kinds.JOB, owner_object),
                dict(observed.unconfirmed),
            )
        )
    return seen


@given(STEPS)
def test_what_is_packed_reads_as_what_is_not(steps):
    remembered = [(kinds.JOB, kinds.POD)]
    assert play(Observed(remembered, packed=[kinds.POD]), steps) == play(Observed(remembered), steps)


def owned_by_job(name):
    owner = {"apiVersion": kinds.JOB.api_version, "kind": "Job", "name": "j", "uid": "u", "controller": True}
    return {"metadata": {"name": name, "namespace": "n", "ownerReferences": [owner]}, "data": {"k": "v"}}


def test_of_secrets_nothing_is_kept_and_of_config_maps_those_of_jobs_and_the_one_that_is_named():
    trim = trimming.Trimmer([("n", "named")])
    named, other = ({"metadata": {"name": name, "namespace": "n"}, "data": {"k": "v"}} for name in ("named", "other"))
    assert "data" in trim(kinds.CONFIG_MAP, named)
    assert "data" not in trim(kinds.CONFIG_MAP, other)
    assert "data" in trim(kinds.CONFIG_MAP, owned_by_job("x"))
    assert "data" not in trim(kinds.SECRET, owned_by_job("x"))


def test_what_only_other_programs_read_of_an_object_is_not_kept():
    annotations = {"kubectl.kubernetes.io/last-applied-configuration": "{}", "mine": "1"}
    manifest = {"metadata": {"name": "j", "managedFields": [{}], "annotations": annotations}, "spec": {"a": 1}}
    assert trimming.Trimmer()(kinds.JOB, manifest) == {
        "metadata": {"name": "j", "annotations": {"mine": "1"}},
        "spec": {"a": 1},
    }
    assert "managedFields" in manifest["metadata"]


HEARD = st.lists(
    st.tuples(
        st.sampled_from(["learned", "learned", "echo", "echo", "feed", "gone", "deleted", "lost", "read"]),
        NAMES,
        st.integers(0, 9),
    ),
    max_size=30,
)


def heard(observed, steps, *, shortcut):
    """Give everything that can be read after each step; events that repeat an answer may be taken the short way."""
    seen, answers = [], []
    for version, (step, name, number) in enumerate(steps, start=1):
        manifest = pod(name, "u1", version, f"{name}-{number % 2}")
        told = None
        match step:
            case "learned" | "read":
                told = observed.learned(kinds.POD, manifest, read=step == "read")
                answers.append(manifest)
            case "echo" if answers:
                again = answers[number % len(answers)]
                own = again["metadata"]
                short = shortcut and observed.echoed(kinds.POD, "n", own["name"], own["resourceVersion"])
                told = False if short else observed.feed(kinds.POD, "ADDED", again)
            case "feed":
                told = observed.feed(kinds.POD, "MODIFIED", manifest)
            case "gone":
                told = observed.feed(kinds.POD, "DELETED", manifest)
            case "deleted":
                told = observed.deleted(kinds.POD, "n", name, f"{name}-{number % 2}")
            case "lost":
                told = observed.lost(kinds.POD, "n", name)
        seen.append((told, list(observed.all(kinds.POD)), dict(observed.unconfirmed)))
    return seen


@given(HEARD)
def test_an_event_that_repeats_an_answer_tells_nothing_whichever_way_it_is_taken(steps):
    plain, short = Observed(packed=[kinds.POD]), Observed(packed=[kinds.POD])
    assert heard(plain, steps, shortcut=False) == heard(short, steps, shortcut=True)
