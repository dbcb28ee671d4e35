"""Pages and selectors, against the plain list of what was there."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pumice.api import kinds
from pumice.apiserver import reading, requests, resources, selectors
from pumice.sim.identity import Key
from pumice.sim.store import ObjectStore

REGISTRY = resources.Registry(resources.describe())
PODS = REGISTRY.of_kind("v1", "Pod")
STEPS = st.lists(
    st.tuples(st.sampled_from(["put", "drop"]), st.sampled_from("ab"), st.sampled_from("uvwxyz")), max_size=12
)


def pod(namespace, name, label="x"):
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"namespace": namespace, "name": name, "labels": {"l": label}},
        "spec": {},
    }


def perform(store, steps):
    for number, (step, namespace, name) in enumerate(steps):
        key = Key(kinds.POD, namespace, name)
        if step == "drop":
            if store.find(key) is not None:
                store.remove(key)
        elif store.find(key) is None:
            store.adopt(pod(namespace, name, str(number)), key)
        else:
            store.overwrite(key, pod(namespace, name, str(number)))


@given(STEPS, STEPS, st.integers(1, 4), st.sampled_from(["", "a"]))
def test_every_page_is_of_the_moment_of_the_first(before, after, limit, namespace):
    store = ObjectStore(lambda: 0)
    reader = reading.Reading(store)
    perform(store, before)
    target = requests.Target(resource=PODS, namespace=namespace)
    wanted = sorted(
        (reading.place(each), each)
        for each in store.scan(kinds.POD)
        if namespace in ("", each["metadata"]["namespace"])
    )
    page = reader.page(target, {"limit": str(limit)})
    found = list(page.items)
    while page.following:
        perform(store, after)
        page = reader.page(target, {"limit": str(limit), "continue": page.following})
        found += page.items
    assert found == [each for _, each in wanted]


@given(
    st.dictionaries(st.sampled_from(["a", "b.c/d"]), st.sampled_from(["", "x", "y1"]), max_size=2),
    st.sampled_from(["a", "b.c/d"]),
    st.lists(st.sampled_from(["", "x", "y1"]), min_size=1, max_size=2),
)
def test_a_label_selector_asks_what_its_words_say(labels, key, values):
    manifest = {"metadata": {"labels": labels}}
    listed = ",".join(values)
    cases = {
        f"{key}": key in labels,
        f"!{key}": key not in labels,
        f"{key}={values[0]}": labels.get(key) == values[0],
        f"{key}=={values[0]}": labels.get(key) == values[0],
        f"{key}!={values[0]}": labels.get(key) != values[0],
        f"{key} in ({listed})": labels.get(key) in values,
        f"{key} notin ({listed})": labels.get(key) not in values,
        f"{key},{key}={values[0]}": labels.get(key) == values[0],
    }
    for text, wanted in cases.items():
        assert selectors.labels(text)(manifest) is wanted, text
