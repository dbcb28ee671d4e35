"""Requests from anybody to the API server's readers: an answer in words, and no more work than its limits allow."""

from __future__ import annotations

import asyncio
import contextlib
import re

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.apiserver import bodies, protobuf, requests, resources, selectors, statuses, subresources
from pumice.apiserver.ownership import places
from pumice.apiserver.patching import json_patch, strategic
from pumice.apiserver.schemas import bounded_patterns, cel, nodes, validating
from pumice.apiserver.tables import json_paths
from pumice.sim import store
from tests import mutations


def _field(number, content):
    """Write a field of a protobuf message: a number, or a text or message with its length."""
    if isinstance(content, int):
        return bytes([number << 3, content])
    return bytes([number << 3 | 2, len(content)]) + content


DIGITS = "9" * 5_000  # more than are read as a number
POD = _field(1, _field(1, b"p") + _field(7, 3) + _field(11, _field(1, b"k") + _field(2, b"v"))) + _field(
    2, _field(2, _field(1, b"c") + _field(6, _field(3, 80))) + _field(4, 30)
)
BODIES = {
    "application/json": b'{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"containers":[{"args":["\\"[{"]}]}}',
    "application/yaml": b"apiVersion: v1\nkind: Pod\nmetadata: {name: p, labels: &l {a: b}}\nspec:\n  nodeSelector: *l\n",
    protobuf.MEDIA: protobuf.MAGIC + _field(1, _field(1, b"v1") + _field(2, b"Pod")) + _field(2, POD),
}


@pytest.fixture(scope="module")
def decoder():
    return protobuf.Decoder(resources.describe().messages)


@pytest.mark.parametrize("media", BODIES)
def test_the_bodies_that_are_changed_below_are_read_as_they_are(media, decoder):
    found = bodies.Body(BODIES[media], media, decoder).decoded()
    assert found["metadata"]["name"] == "p"


@settings(max_examples=10 * mutations.EXAMPLES)
@given(data=st.data(), media=st.sampled_from(list(BODIES)))
def test_a_body_with_other_bytes_is_decoded_or_a_bad_request(data, media, decoder):
    changed = data.draw(mutations.changed_bytes(BODIES[media]))
    try:
        found = bodies.Body(changed, media, decoder).decoded()
    except statuses.Problem as problem:
        refused = problem.code
    else:
        refused = 0
        msgspec.json.encode(found)
    assert refused in (0, 400)


class Request:
    """A request whose body comes in pieces."""

    method = "POST"
    content_length = None

    def __init__(self, data, media, piece):
        self.content_type = media
        self.content = self
        self._pieces = [data[start : start + piece] for start in range(0, len(data), piece)][::-1]

    def at_eof(self):
        return not self._pieces

    async def readany(self):
        await asyncio.sleep(0)
        return self._pieces.pop()


def _read(data, media, decoder, piece=1 << 16):
    return asyncio.run(bodies.read(Request(data, media, piece), decoder))


@pytest.mark.parametrize("media", ["application/json", "application/merge-patch+json"])
def test_json_is_refused_above_two_hundred_levels_and_read_up_to_there(media, decoder):
    deep = b'{"a":' * 200 + b"1" + b"}" * 200
    assert _read(deep, media, decoder).decoded()
    with pytest.raises(statuses.Problem, match="nested deeper than 200 levels"):
        _read(b'{"a":' + deep + b"}", media, decoder)


def test_a_body_that_comes_byte_by_byte_is_the_same_and_too_much_of_it_is_refused(decoder):
    assert _read(BODIES["application/yaml"], "application/yaml", decoder, 1).decoded()["kind"] == "Pod"
    with pytest.raises(statuses.Problem, match="entity too large"):
        _read(b" " * (bodies.MOST_BYTES + 1), "application/json", decoder)


def test_a_large_body_of_yaml_is_decoded_beside_the_loop(decoder, monkeypatch):
    """Whoever else is served meanwhile: the work happens in another thread, and the body is not decoded twice."""
    beside = []
    to_thread = asyncio.to_thread

    async def noted(function, *arguments):
        beside.append(function)
        return await to_thread(function, *arguments)

    monkeypatch.setattr(asyncio, "to_thread", noted)
    body = _read(b"items:\n" + b"- {a: b}\n" * 10_000, "application/yaml", decoder)
    assert len(beside) == 1
    assert body.decoded() is body.decoded()
    assert len(body.decoded()["items"]) == 10_000
    with pytest.raises(statuses.Problem, match="more than 200000 values"):
        _read(b"- \n" * 200_001, "application/yaml", decoder)


# -- patches -------------------------------------------------------------------------------------------------------


def test_a_json_patch_cannot_double_a_document_without_an_end():
    doubling = [{"op": "copy", "from": "", "path": "/a"}, {"op": "copy", "from": "/a", "path": "/b"}] * 40
    with pytest.raises(json_patch.PatchError, match=r"operation \d+ \(copy /[ab]\): with it \d+ bytes are copied"):
        json_patch.apply({"text": "x" * 1_000}, doubling)


def test_a_json_patch_cannot_nest_a_document_without_an_end():
    nesting = [{"op": "add", "path": "/b", "value": {}}, {"op": "move", "from": "/a", "path": "/b/a"}, {"op": "move", "from": "/b", "path": "/a"}]  # fmt: skip
    assert json_patch.apply({"a": 1}, nesting * 100)
    with pytest.raises(json_patch.PatchError, match="nested deeper than 200 levels"):
        json_patch.apply({"a": 1}, nesting * 201)


PATCHES = [
    {"op": "add", "path": "/spec/a", "value": [1]},
    {"op": "copy", "from": "/spec", "path": "/spec/a/0"},
    {"op": "move", "from": "/spec/a", "path": "/b"},
    {"op": "test", "path": "/b/1", "value": 1},
    {"op": "replace", "path": "/b/0", "value": {}},
    {"op": "remove", "path": "/b"},
]


@settings(max_examples=5 * mutations.EXAMPLES)
@given(mutations.changed_value(PATCHES))
def test_a_changed_json_patch_is_applied_or_refused(operations):
    document = {"spec": {"x": [1, 2]}}
    with contextlib.suppress(json_patch.PatchError):
        json_patch.apply(document, operations)
    assert document == {"spec": {"x": [1, 2]}}


STRATEGIC = {
    "$retainKeys": ["containers", "tolerations"],
    "$setElementOrder/containers": [{"name": "c"}, {"name": "d"}],
    "containers": [{"name": "c", "image": "x"}, {"name": "d", "$patch": "delete"}],
    "$deleteFromPrimitiveList/finalizers": ["a"],
    "tolerations": [{"$patch": "replace"}, {"key": "a"}],
}


@pytest.fixture(scope="module")
def pod_spec():
    description = resources.describe()
    return nodes.Compiler(description.schemas).named("io.k8s.api.core.v1.PodSpec")


@settings(max_examples=5 * mutations.EXAMPLES)
@given(patch=mutations.changed_value(STRATEGIC))
def test_a_changed_strategic_patch_is_applied_or_refused(patch, pod_spec):
    with contextlib.suppress(strategic.PatchError):
        strategic.apply({"containers": [{"name": "c"}], "finalizers": ["a"]}, patch, pod_spec)


@pytest.mark.parametrize("patch", [
    {"containers": [{"name": str(n)} for n in range(2_100)]},
    {"containers": [], "$setElementOrder/containers": [{"name": "c"}] * 2_000_001},
], ids=["items", "order"])  # fmt: skip
def test_lists_that_nobody_could_compare_are_refused(patch, pod_spec):
    with pytest.raises(strategic.PatchError, match="items cannot be"):
        strategic.apply({"containers": [{"name": "a"}, {"name": "b"}]}, patch, pod_spec)


def _naive(items, element):
    """Find an item as the rules say it, by looking at each."""
    wanted = msgspec.json.decode(element[2:])
    if element[0] == "v":
        return next((place for place, item in enumerate(items) if item == wanted), None)
    return next(
        (
            place
            for place, item in enumerate(items)
            if isinstance(item, dict)
            and all(item.get(key, value if key == "protocol" else None) == value for key, value in wanted.items())
        ),
        None,
    )


_SCALARS = st.sampled_from(["a", "b", 1, 2, None, "TCP"])
_ITEMS = st.lists(_SCALARS | st.dictionaries(st.sampled_from(["name", "port", "protocol"]), _SCALARS), max_size=6)


@settings(max_examples=10 * mutations.EXAMPLES)
@given(
    _ITEMS,
    st.lists(st.dictionaries(st.sampled_from(["name", "port", "protocol"]), _SCALARS, min_size=1), max_size=4),
    _SCALARS,
)
def test_an_item_is_found_where_looking_at_each_finds_it(items, keys, value):
    known = places.Places()
    for element in [f"k:{msgspec.json.encode(key).decode()}" for key in keys] + [
        f"v:{msgspec.json.encode(value).decode()}"
    ]:
        assert known.find(items, element) == _naive(items, element)


def test_a_long_list_is_looked_through_once_however_many_items_are_asked_for():
    class Counted(dict):
        asked = 0

        def get(self, *arguments):
            Counted.asked += 1
            return super().get(*arguments)

    items = [Counted(name=f"x{n}") for n in range(2_000)]
    known = places.Places()
    assert [known.find(items, f'k:{{"name":"x{n}"}}') for n in range(2_000)] == list(range(2_000))
    assert Counted.asked == 2_000


def test_the_rules_of_one_object_share_what_they_may_spend():
    schema = {
        "type": "object",
        "properties": {"a": {"type": "array", "items": {"type": "string"}}},
        "x-kubernetes-validations": [{"rule": "self.a.all(x, self.a.all(y, x == y))"}] * 1_000,
    }
    node = nodes.Compiler({}).compile(schema)
    spent = []
    budget = cel.budget

    def counted():
        spent.append(budget())
        return spent[-1]

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(cel, "budget", counted)
        found = validating.causes({"a": ["x"] * 200}, node)
    assert len(spent) == 1
    assert spent[0][0] < 0
    assert found


# -- rules, patterns, selectors --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("'x' * self[0] == 'x'", "no matching overload"),
        ("self.all(a, self.all(b, self.all(c, self.all(d, a - b - c - d < 1000))))", "udget exceeded"),
        ("self.map(a, self.map(b, self.map(c, self))).size() > 0", "udget exceeded"),
        ("9223372036854775807 * 9223372036854775807 > 0", "integer overflow"),
        ("'a'.matches('(' + string(self[0])) == true", "missing )"),
        ("-self == 'b'", "overload"),
    ],
)
def test_a_rule_that_would_take_long_or_grow_is_a_violation_with_why(rule, said):
    ((_, text),) = cel.violations([{"rule": rule}], list(range(100)), None)
    assert said in text


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("(" * 1_900 + "1" + ")" * 1_900, "recursion"),
        ("1+" * 3_000 + "1", "recursion"),
        ("x" * 20_000, "bytes; at most 10240"),
        ("9" * 5_000 + " > 1", "invalid int literal"),
        ("'x' * 1000000000 == 'x'", "no matching overload"),
        ("[1] * 1000000000 == [1]", "no matching overload"),
        ("['a']" + ".map(x, x + x + x)" * 9 + " == []", "too large"),
    ],
)
def test_a_rule_that_is_too_long_or_too_deep_is_refused_when_it_is_read(rule, said):
    with pytest.raises(cel.CelError, match=said):
        cel.parse(rule)


@settings(max_examples=10 * mutations.EXAMPLES)
@given(
    mutations.changed_bytes(
        b"self.a.all(x, has(x.b) && x.b.matches('^[a-z]+$') || size(x.c) > 2 ? x in [1, 2] : !(x == -3.5))"
    )
)
def test_a_changed_rule_is_refused_or_gives_an_answer(rule):
    rules = [{"rule": rule.decode("utf-8", "replace")}]
    with contextlib.suppress(cel.CelError):
        cel.violations(rules, {"a": [{"b": "x", "c": [1]}]}, None)


@pytest.mark.parametrize("pattern", ["^(a+)+$", "^(a|aa)+$", "^(a*)*b$", "(x+x+)+y", "^(([a-z])+.)+[A-Z]([a-z])+$"])
@pytest.mark.parametrize("length", [40, 253, 5_000, 3_000_000])
def test_a_pattern_that_python_would_try_for_years_is_held_against_a_value_at_once(pattern, length):
    """The states that are followed are bounded; a test of this that fails does not end."""
    value = ("x" if pattern.startswith("(x") else "a") * length + "!"
    assert not bounded_patterns.compiled(pattern).search(value)


@pytest.mark.parametrize(
    ("pattern", "good", "bad"),
    [
        ("^[a-z]+$", "abc" * 500, "ab\n"),
        (r"^\d{1,3}(\.\d{1,3}){3}$", "10.0.0.1", "10.0.0"),
        ("^$|^a$", "a", "b"),
        ("b", "a" * 5_000 + "b", "a" * 5_000),
    ],
)
def test_long_and_short_values_are_matched_as_the_pattern_says(pattern, good, bad):
    assert bounded_patterns.compiled(pattern).search(good)
    assert not bounded_patterns.compiled(pattern).search(bad)


@pytest.mark.parametrize("pattern", [f"a{{{'9' * 50}}}", f"a{{{DIGITS}}}", f"a{{1,{DIGITS}}}", "(" * 5_000])
def test_a_pattern_that_nobody_can_compile_is_refused_as_one(pattern):
    with pytest.raises(re.error):
        bounded_patterns.compiled(pattern)


@settings(max_examples=5 * mutations.EXAMPLES)
@given(mutations.changed_bytes(rb"^([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\.)+(com|[^\d\W]+)$"))
def test_a_changed_pattern_is_refused_or_matched(pattern):
    with contextlib.suppress(re.error):
        bounded_patterns.compiled(pattern.decode("utf-8", "replace")).search("a.b-c.com")


@settings(max_examples=10 * mutations.EXAMPLES)
@given(mutations.changed_bytes(b"a in (b, c),!d,e!=f,g,h notin (),i>5"))
def test_a_changed_selector_is_read_or_a_bad_request(text):
    try:
        matches = selectors.labels(text.decode("utf-8", "replace")[:8_000])
    except statuses.Problem as problem:
        refused = problem.code
    else:
        refused = 0
        matches({"metadata": {"labels": {"a": "b", "g": "", "i": "7"}}})
    assert refused in (0, 400)


@pytest.mark.parametrize("given", ["--5", "5-", "x", "²", "1.5", "1e3", DIGITS, f"-{DIGITS}"])
@pytest.mark.parametrize("field", ["gracePeriodSeconds", "timeoutSeconds", "limit", "tailLines"])
def test_what_is_no_number_in_a_query_is_a_bad_request_in_the_words_of_kube_apiserver(field, given):
    with pytest.raises(statuses.Problem, match=r"strconv\.ParseInt: parsing .*: invalid syntax") as refused:
        requests.number({field: given}, field)
    assert refused.value.code == 400
    assert len(str(refused.value)) < 200


def test_a_negative_number_is_refused_where_none_can_be_meant():
    assert requests.number({"timeoutSeconds": "-1"}, "timeoutSeconds") == -1
    with pytest.raises(statuses.Problem, match="limit: Invalid value: -1: it must not be negative"):
        requests.number({"limit": "-1"}, "limit", signed=False)


@pytest.mark.parametrize(("query", "seconds"), [({}, 7), ({"gracePeriodSeconds": ""}, 7)] + [({"gracePeriodSeconds": each}, int(each)) for each in ("0", "30", "-1", "+5")])  # fmt: skip
def test_the_seconds_of_a_query_count_before_those_of_the_body(query, seconds):
    assert requests.delete_options(query, {"gracePeriodSeconds": 7}) == {"gracePeriodSeconds": seconds}
    requests.check_list_options({"timeoutSeconds": str(seconds)}, watch=False)


@pytest.mark.parametrize("least", ["50%", "2", 2, "²%", f"{DIGITS}%", DIGITS, "-1%", "x", None, True])
@pytest.mark.parametrize("field", ["minAvailable", "maxUnavailable"])
def test_a_budget_that_says_something_like_a_number_is_counted_as_well_as_it_can_be(field, least):
    budget = {"metadata": {"name": "b", "namespace": "a"}, "spec": {"selector": {}, field: least}}
    found = subresources.budget_figures(budget, store.ObjectStore(lambda: 0))
    assert found["disruptionsAllowed"] == 0


@pytest.mark.parametrize(
    ("path", "found"),
    [(".a[0]", [1]), (".a[-1]", [2]), (".a[7]", []), (f".a[{'9' * 9}]", []), (".a[:1]", [1]), (".a[1:]", [2])],
)
def test_a_place_in_a_list_is_found_if_it_is_there(path, found):
    assert json_paths.find({"a": [1, 2]}, path) == found


@pytest.mark.parametrize("path", [f".a[{DIGITS}]", f".a[{DIGITS}:]", f".a[:-{DIGITS}]"])
def test_a_column_of_a_kind_that_asks_for_an_endless_place_breaks_no_table(path):
    assert json_paths.find({"a": [1, 2]}, path) == []
