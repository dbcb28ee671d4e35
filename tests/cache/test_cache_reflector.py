import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drawing import drawn
from pumice.api import kinds
from pumice.cache import reflector as reflecting


def node(name, version, uid="u"):
    return {"metadata": {"name": name, "uid": uid, "resourceVersion": version}}


def seen(deliveries):
    return [
        (event_type, manifest["metadata"]["name"], manifest["metadata"]["uid"]) for event_type, manifest in deliveries
    ]


@pytest.fixture
def reflector():
    reflector = reflecting.of_manifests(kinds.NODE)
    reflector.listed([node("a", "5"), node("b", "9")], "10")
    return reflector


def test_a_reflector_begins_with_a_list():
    reflector = reflecting.of_manifests(kinds.NODE)
    assert reflector.must_list
    assert seen(reflector.listed([node("a", "5")], "10")) == [("ADDED", "a", "u")]
    assert not reflector.must_list
    assert reflector.resource_version == "10"
    assert len(reflector) == 1


def test_a_second_list_gives_the_difference_deletions_first(reflector):
    reflector.gone()
    assert reflector.must_list
    deliveries = reflector.listed([node("c", "12"), node("b", "11")], "20")
    assert seen(deliveries) == [("DELETED", "a", "u"), ("ADDED", "c", "u"), ("MODIFIED", "b", "u")]
    assert reflector.resource_version == "20"
    assert reflector.listed([node("c", "12"), node("b", "11")], "21") == []


def test_a_missed_deletion_is_told_by_a_bare_manifest(reflector):
    (_, manifest), *_ = reflector.listed([node("b", "9")], "20")
    assert manifest == {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "a", "uid": "u", "resourceVersion": "5"},
    }


def test_a_list_with_another_uid_is_a_deletion_and_an_addition(reflector):
    deliveries = reflector.listed([node("a", "15", "v"), node("b", "9")], "20")
    assert seen(deliveries) == [("DELETED", "a", "u"), ("ADDED", "a", "v")]


@pytest.mark.parametrize(
    ("event_type", "manifest", "delivered"),
    [
        ("MODIFIED", node("a", "11"), [("MODIFIED", "a", "u")]),
        ("MODIFIED", node("a", "5"), []),
        ("MODIFIED", node("a", "4"), []),
        ("ADDED", node("a", "5"), []),
        ("ADDED", node("a", "11"), [("MODIFIED", "a", "u")]),
        ("ADDED", node("c", "11"), [("ADDED", "c", "u")]),
        ("MODIFIED", node("c", "11"), [("ADDED", "c", "u")]),
        ("ADDED", node("c", "10"), []),
        ("MODIFIED", node("c", "9"), []),
        ("MODIFIED", node("a", "11", "v"), [("DELETED", "a", "u"), ("ADDED", "a", "v")]),
        ("ADDED", node("a", "4", "v"), []),
        ("DELETED", node("a", "11"), [("DELETED", "a", "u")]),
        ("DELETED", node("a", "5"), [("DELETED", "a", "u")]),
        ("DELETED", node("a", "4"), []),
        ("DELETED", node("a", "4", "older"), []),
        ("DELETED", node("a", "11", "v"), [("DELETED", "a", "u")]),
        ("DELETED", node("c", "11"), []),
        ("MODIFIED", node("b", "10"), [("MODIFIED", "b", "u")]),
    ],
)
def test_events_are_delivered_once_and_never_stale(reflector, event_type, manifest, delivered):
    assert seen(reflector.event(event_type, manifest)) == delivered
    assert event_type == "DELETED" or reflector.event(event_type, manifest) == []


def test_a_list_that_is_not_completed_changes_nothing(reflector):
    reflector.listing().add(node("c", "12"))
    assert len(reflector) == 2
    assert seen(reflector.event("MODIFIED", node("a", "11"))) == [("MODIFIED", "a", "u")]


def test_a_list_may_correct_itself_until_it_is_complete(reflector):
    listing = reflector.listing()
    for manifest in (node("a", "6"), node("b", "9"), node("c", "12"), node("a", "5")):
        listing.add(manifest)
    listing.remove(node("c", "13"))
    assert reflector.complete(listing, "13") == []
    assert len(reflector) == 2
    assert seen(reflector.event("ADDED", node("c", "14"))) == [("ADDED", "c", "u")]


def test_a_deletion_shows_the_object_as_it_was_at_last_unless_it_is_about_another(reflector):
    last = {**node("a", "11"), "status": {}}
    assert reflector.event("DELETED", last) == [("DELETED", last)]
    ((_, buried),) = reflector.event("DELETED", {**node("b", "11", "v"), "status": {}})
    assert buried["metadata"] == node("b", "9")["metadata"]
    assert "status" not in buried


def test_versions_that_are_no_numbers_only_tell_same_from_different():
    reflector = reflecting.of_manifests(kinds.NODE)
    reflector.listed([node("a", "x")], "x")
    assert reflector.event("MODIFIED", node("a", "x")) == []
    assert seen(reflector.event("MODIFIED", node("a", "w"))) == [("MODIFIED", "a", "u")]


def test_the_version_to_resume_from_never_goes_back(reflector):
    reflector.bookmark("30")
    reflector.bookmark("29")
    reflector.event("MODIFIED", node("a", "28"))
    assert reflector.resource_version == "30"


@settings(max_examples=drawn(100), deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.booleans()), max_size=12),
    st.lists(st.integers(0, 12), max_size=12),
)
def test_events_repeated_late_change_nothing(writes, repeats):
    """A world of two names, each created and deleted in turn; then events of the past arrive once more."""
    reflector, world, log = reflecting.of_manifests(kinds.NODE), {}, []
    reflector.listed([], "0")
    for version, (name, modify) in enumerate(writes, start=1):
        if name not in world:
            world[name] = (f"uid-{version}", version)
            log.append(("ADDED", node(name, str(version), f"uid-{version}")))
        elif modify:
            world[name] = (world[name][0], version)
            log.append(("MODIFIED", node(name, str(version), world[name][0])))
        else:
            log.append(("DELETED", node(name, str(version), world.pop(name)[0])))
    known = {}

    def follow(deliveries):
        for event_type, manifest in deliveries:
            metadata = manifest["metadata"]
            assert (event_type == "ADDED") == (metadata["name"] not in known)
            if event_type == "DELETED":
                del known[metadata["name"]]
            else:
                known[metadata["name"]] = (metadata["uid"], int(metadata["resourceVersion"]))

    for event in log:
        follow(reflector.event(*event))
    assert known == world
    for index in repeats:
        if index < len(log):
            follow(reflector.event(*log[index]))
    assert known == world


@pytest.mark.parametrize(
    ("version", "known", "expected"),
    [
        ("10", "9", True),
        ("9", "10", False),
        ("9", "9", False),
        ("007", "7", False),
        ("9" * 5000, "1", True),
        ("1", "9" * 5000, False),
    ],
)
def test_versions_are_compared_as_whole_numbers_of_any_length(version, known, expected):
    assert reflecting.newer(version, known) == expected
    assert reflecting.follows(version, known) == expected


@pytest.mark.parametrize(("version", "known"), [("x", "5"), ("5", "x"), ("5", ""), ("", "5"), ("x", "y")])
def test_of_versions_that_are_no_numbers_none_follows_another(version, known):
    assert not reflecting.follows(version, known)
    assert reflecting.newer(version, known)
