"""Custom resources: what their schemas and rules refuse, in the same words on `pumice up` and on a real API server."""

from __future__ import annotations

import pytest

UNCHECKED = "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
NAMED = {"rule": "self.metadata.name.startsWith('w') || self.metadata.name.size() > 2", "message": "a w"}
SPEC = {
    "type": "object",
    "x-kubernetes-validations": [
        {"rule": "!has(self.n) || self.n != 5", "message": "not five"},
        {"rule": "!has(self.n) || self.n != 6"},
        {"rule": "!has(self.n) || self.n != 7", "reason": "FieldValueForbidden", "message": "no seven"},
    ],
    "properties": {
        "n": {"type": "integer"},
        "a": {
            "type": "array",
            "maxItems": 2,
            "minItems": 1,
            "items": {"type": "string", "maxLength": 3, "minLength": 2, "pattern": "^a"},
        },
        "m": {"type": "object", "maxProperties": 1, "additionalProperties": {"type": "string"}},
        "d": {"type": "integer", "default": 1},
        "e": {"type": "integer", "nullable": True},
        "t": {"type": "string", "format": "date-time"},
        "k": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["k"],
            "items": {
                "type": "object",
                "required": ["k"],
                "properties": {"k": {"type": "string"}, "l": {"type": "integer"}},
            },
        },
    },
}


def definition(plural, kind, spec=SPEC):
    def version(name, **more):
        schema = {"type": "object", "properties": {"spec": spec}, "x-kubernetes-validations": [NAMED]}
        scale = {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n"}
        return {"name": name, "served": True, "schema": {"openAPIV3Schema": schema}, "subresources": {"scale": scale}, **more}  # fmt: skip

    versions = [version("v1", storage=True), version("v1beta1", storage=False, deprecated=True)]
    names = {"plural": plural, "kind": kind, "singular": kind.lower()}
    stated = {"group": "words.example.com", "scope": "Namespaced", "names": names, "versions": versions}
    return {"metadata": {"name": f"{plural}.words.example.com"}, "spec": stated}


@pytest.fixture
def words(server):
    """Where the objects of the definition are."""
    path = "/apis/words.example.com/v1/namespaces/default/words"
    server.answer("POST", DEFINITIONS, definition("words", "Word"))
    served = (server.answer("GET", path).status == 200 for _ in range(500))
    assert any(served)  # a real server begins to serve a kind a moment later
    return path


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ({"a": ["ab", "ab", "ab"]}, f"[spec.a: Too many: 3: must have at most 2 items, {UNCHECKED}]"),
        ({"a": []}, "spec.a: Invalid value: 0: spec.a in body should have at least 1 items"),
        ({"a": ["a"]}, 'spec.a[0]: Invalid value: "a": spec.a[0] in body should be at least 2 chars long'),
        ({"a": ["bbbb"]}, f"[spec.a[0]: Too long: may not be more than 3 bytes, {UNCHECKED}]"),
        ({"a": ["bb"]}, "spec.a[0]: Invalid value: \"bb\": spec.a[0] in body should match '^a'"),
        ({"m": {"a": "b", "c": "d"}}, f"[spec.m: Too many: 2: must have at most 1 item, {UNCHECKED}]"),
        ({"t": "x"}, f'[spec.t: Invalid value: "x": spec.t in body must be of type date-time: "x", {UNCHECKED}]'),
        ({"k": [{"k": "a"}, {"k": "a"}]}, 'spec.k[1]: Duplicate value: {"k":"a"}'),
        ({"n": 5}, "spec: Invalid value: not five"),
        ({"n": 6}, "spec: Invalid value: failed rule: !has(self.n) || self.n != 6"),
        ({"n": 7}, "spec: Forbidden: no seven"),
    ],
)
def test_what_a_schema_or_a_rule_refuses_is_told_in_the_same_words(server, words, spec, told):
    body = {"apiVersion": "words.example.com/v1", "kind": "Word", "metadata": {"name": "w"}, "spec": spec}
    found = server.answer("POST", f"{words}?dryRun=All", body)
    assert (found.status, found.body["message"]) == (422, f'Word.words.example.com "w" is invalid: {told}')


def test_null_says_nothing_where_a_field_cannot_be_null(server, words):
    spec = {"n": None, "a": None, "m": {"x": None, "y": "z"}, "k": [{"k": "a", "l": None}], "d": None, "e": None}
    body = {"apiVersion": "words.example.com/v1", "kind": "Word", "metadata": {"name": "w"}, "spec": spec}
    found = server.answer("POST", f"{words}?dryRun=All", body)
    assert (found.status, found.body["spec"]) == (201, {"m": {"y": "z"}, "k": [{"k": "a"}], "d": 1, "e": None})


def test_a_rule_of_the_whole_object_knows_its_name(server, words):
    body = {"apiVersion": "words.example.com/v1", "kind": "Word", "metadata": {"name": "v"}}
    found = server.answer("POST", f"{words}?dryRun=All", body)
    assert (found.status, found.body["message"]) == (
        422,
        'Word.words.example.com "v" is invalid: <nil>: Invalid value: a w',
    )


def test_a_scale_is_a_table_of_what_is_wanted_and_what_is_there(server, words):
    path, name = words, f"s-{server.new_namespace()}"
    body = {"apiVersion": "words.example.com/v1", "kind": "Word", "metadata": {"name": name}, "spec": {"n": 4}}
    server.call("POST", path, body)
    found = server.answer("GET", f"{path}/{name}/scale", accept="application/json;as=Table;v=v1;g=meta.k8s.io").body
    assert [each["name"] for each in found["columnDefinitions"]] == ["Name", "Desired", "Available", "Age"]
    assert found["rows"][0]["cells"][:3] == [name, 4, 0]


@pytest.mark.parametrize(
    ("rule", "field"),
    [
        ("self.nobody == 1", "nobody"),
        ("has(self.n) && self.m.size() > 0 && oldSelf.gone", "gone"),
        ("self.a.all(each, each != 'self.text')", ""),
        ("self.m.anything == 'x'", ""),
    ],
)
def test_a_rule_about_a_field_that_is_not_there_is_refused_with_its_definition(server, rule, field):
    stated = {**SPEC, "x-kubernetes-validations": [{"rule": rule}]}
    stated["properties"] = {name: {**each, "maxItems": 2} if each["type"] == "array" else each for name, each in SPEC["properties"].items()}  # fmt: skip
    found = server.answer("POST", f"{DEFINITIONS}?dryRun=All", definition("rules", "Rule", stated))
    if field:
        assert found.status == 422
        assert f"undefined field '{field}'" in found.body["message"]
    else:
        assert found.status == 201


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("labelSelector=a%3Db%3Dc", "unable to parse requirement: found '=', expected: ',' or 'end of string'"),
        ("fieldSelector=nope%3D1", '"nope" is not a known field selector: only "metadata.name", "metadata.namespace"'),
        ("fieldSelector=a", "invalid selector: 'a'; can't understand 'a'"),
    ],
)
def test_a_selector_that_cannot_be_read_is_told_in_the_same_words(server, query, told):
    found = server.answer("GET", f"/api/v1/namespaces/default/configmaps?{query}")
    assert found.status == 400
    assert found.body["message"].removeprefix("unable to parse requirement: ") == told.removeprefix("unable to parse requirement: ")  # fmt: skip
