"""Objects that share their parts are equal to those that do not."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from pumice.api import core, decoding, kinds
from pumice.kube.watches import arrivals
from pumice.kube.watches.sharing import LAST_APPLIED, Sharing

TEXTS = st.sampled_from(["a", "b", "train-1", ""])
AMOUNTS = st.dictionaries(st.sampled_from(["cpu", "memory"]), st.sampled_from(["1", "1.0", 1, 1.0, "2Gi", 2**70]))
MAPS = st.dictionaries(st.sampled_from(["color", "job", LAST_APPLIED]), TEXTS, max_size=3)
SOURCES = [
    {},
    {"projected": {}},
    {"persistentVolumeClaim": {"claimName": "c"}},
    {"ephemeral": {}},
    {"csi": {"driver": "d"}},
]
CONDITIONS = st.lists(st.fixed_dictionaries({"type": TEXTS, "lastTransitionTime": TEXTS}), max_size=2)


@st.composite
def pods(draw):
    owner = st.fixed_dictionaries({"kind": TEXTS, "name": TEXTS, "controller": st.booleans()})
    return {
        "metadata": {
            "name": draw(st.sampled_from(["p", "q"])),
            "namespace": draw(TEXTS),
            "labels": draw(MAPS),
            "annotations": draw(MAPS),
            "creationTimestamp": draw(st.none() | TEXTS),
            "ownerReferences": draw(st.lists(owner, max_size=1)),
        },
        "spec": {
            "nodeName": draw(TEXTS),
            "priority": draw(st.none() | st.integers(0, 2)),
            "containers": [{"name": draw(TEXTS), "resources": {"requests": draw(AMOUNTS)}}],
            "volumes": [
                {"name": draw(TEXTS), **source} for source in draw(st.lists(st.sampled_from(SOURCES), max_size=3))
            ],
        },
        "status": {"phase": draw(TEXTS), "startTime": draw(st.none() | TEXTS), "conditions": draw(CONDITIONS)},
    }


@st.composite
def nodes(draw):
    amounts = draw(AMOUNTS)
    images = st.lists(st.fixed_dictionaries({"names": st.lists(TEXTS, max_size=2), "sizeBytes": st.integers(0, 2)}))
    return {
        "metadata": {"name": "n", "labels": draw(MAPS), "annotations": draw(MAPS)},
        "spec": {"unschedulable": draw(st.booleans())},
        "status": {"allocatable": amounts, "capacity": amounts, "conditions": draw(CONDITIONS), "images": draw(images)},
    }


def read(kind, manifest):
    return decoding.decode_json(kind, msgspec.json.encode(manifest))


def without_what_nobody_reads(found):
    """The same object by a slower and more obvious way."""
    kept = {key: value for key, value in found.metadata.annotations.items() if key != LAST_APPLIED}
    found = structs.replace(found, metadata=structs.replace(found.metadata, annotations=kept))
    if isinstance(found, core.Node):
        return found
    named = [name for name in core.Volume.__struct_fields__ if name != "name"]
    volumes = tuple(v for v in found.spec.volumes if any(getattr(v, name) is not None for name in named))
    return structs.replace(found, spec=structs.replace(found.spec, volumes=volumes))


@given(st.lists(pods(), max_size=6), st.lists(nodes(), max_size=4), st.sampled_from([1, 3, 1000]))
def test_what_is_shared_is_equal_to_what_is_not_however_small_the_tables_are(some_pods, some_nodes, most):
    sharing = Sharing(most)
    found = [(kinds.POD, each) for each in some_pods] + [(kinds.NODE, each) for each in some_nodes]
    for kind, manifest in found:
        plain = read(kind, manifest)
        shared = sharing.share(read(kind, manifest))
        expected = plain if "1180591620717411303424" in str(manifest) else without_what_nobody_reads(plain)
        assert msgspec.json.encode(shared) == msgspec.json.encode(expected)


def test_pods_of_a_job_keep_their_common_parts_once():
    def pod(number):
        return {
            "metadata": {"name": f"p-{number}", "labels": {"job": "a", "index": str(number)}},
            "spec": {
                "nodeName": f"n-{number}",
                "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}],
                "volumes": [{"name": f"token-{number}", "projected": {}}],
            },
            "status": {"phase": "Running", "conditions": [{"type": "Ready", "lastTransitionTime": "t"}]},
        }

    sharing = Sharing()
    raws = [msgspec.Raw(msgspec.json.encode(pod(number))) for number in range(2)]
    one, two = (arrivals.arrival(kinds.POD, raw, keep=False, sharing=sharing).object for raw in raws)
    assert one.spec.containers is two.spec.containers
    assert one.status is two.status
    assert one.metadata.labels["job"] is two.metadata.labels["job"]
    assert (one.spec.node_name, two.spec.node_name) == ("n-0", "n-1")


def test_tables_never_hold_more_than_they_may():
    sharing = Sharing(most=10)
    for number in range(100):
        sharing.share(read(kinds.POD, {"metadata": {"name": "p", "labels": {"index": str(number)}}}))
    tables = sharing._texts, sharing._parts, sharing._maps  # noqa: SLF001  how much memory they take shows nowhere else
    assert max(map(len, tables)) <= 10


def test_an_object_that_cannot_be_read_stays_as_it_is():
    bad = read(kinds.POD, {"metadata": {"name": "p"}, "spec": {"containers": 7}})
    assert isinstance(bad, decoding.Malformed)
    assert Sharing().share(bad) is bad
