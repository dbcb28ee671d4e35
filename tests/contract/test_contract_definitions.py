"""Definitions that contradict themselves: the API server of `pumice up` and a real one refuse them, with the same field and in the same words."""

from __future__ import annotations

import itertools

import pytest

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
LIST_KEYS = "x-kubernetes-list-map-keys"
KEYED = {"type": "object", "properties": {"k": {"type": "string"}}}
_numbers = itertools.count()

# what is said of one field, the part that is refused, and why
REFUSED = [
    ({"type": "integer", "default": "x"}, "default", 'Invalid value: "string":  in body must be of type integer'),
    ({"type": "integer", "minimum": 5, "default": 1}, "default", "should be greater than or equal to 5"),
    ({"type": "string", "enum": ["a"], "default": "b"}, "default", 'Unsupported value: "b"'),
    ({"type": "string", "pattern": "^a$", "default": "b"}, "default", "should match '^a$'"),
    ({"properties": {"b": {"type": "string"}}}, "type", "Required value: must not be empty for specified object"),
    ({"type": "text"}, "type", 'Unsupported value: "text"'),
    ({"type": "array"}, "items", "Required value: must be specified"),
    ({**KEYED, "additionalProperties": {"type": "string"}}, "additionalProperties", "mutual exclusive"),
    ({"type": "string", "pattern": "("}, "pattern", "must be a valid regular expression"),
    (
        {"type": "array", "x-kubernetes-list-type": "map", "items": KEYED},
        LIST_KEYS,
        "Required value: must not be empty",
    ),
    (
        {"type": "array", "x-kubernetes-list-type": "map", LIST_KEYS: ["z"], "items": KEYED},
        LIST_KEYS,
        "entries must all be names of item properties",
    ),
    (
        {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "object"}},
        "items.x-kubernetes-map-type",
        "must be atomic as item of a list",
    ),
    ({"type": "array", "uniqueItems": True, "items": {"type": "string"}}, "uniqueItems", "Forbidden: uniqueItems"),
    ({"type": "object", "allOf": [{"type": "string"}]}, "allOf[0].type", "Forbidden: must be empty to be structural"),
    ({"type": "string", "not": {"default": "a"}}, "not.default", "Forbidden: must be undefined to be structural"),
    ({"$ref": "#/definitions/x"}, "$ref", "Forbidden: $ref is not supported"),
    ({"type": "string", "x-kubernetes-embedded-resource": True}, "type", "must be object if x-kubernetes-embedded"),
    (
        {"type": "object", "x-kubernetes-preserve-unknown-fields": False},
        "x-kubernetes-preserve-unknown-fields",
        "Invalid value: false: must be true or undefined",
    ),
]


def definition(schema):
    name = f"refused{next(_numbers)}"
    names = {"plural": f"{name}s", "singular": name, "kind": name.title(), "listKind": f"{name.title()}List"}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{name}s.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]},
    }


def asked(server, schema):
    """Send a definition; gives the answer whatever it is."""
    return server.answer("POST", DEFINITIONS, definition(schema))


def causes(server, schema):
    """Give what is refused as pairs of a place in the schema and a reason."""
    answer = asked(server, schema)
    assert answer.status == 422, answer.body
    found = answer.body["details"]["causes"]
    return {each["field"].partition("openAPIV3Schema.")[2]: each["message"] for each in found}


@pytest.mark.parametrize(("field", "place", "why"), REFUSED, ids=[f"{case[1]}: {case[2][:20]}" for case in REFUSED])
def test_a_schema_that_contradicts_itself_is_refused_with_the_field(server, field, place, why):
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"a": field}}}}
    found = causes(server, schema)
    assert why in found[f"properties[spec].properties[a].{place}"]


def test_the_root_is_an_object_and_its_metadata_has_no_default(server):
    assert "must be object at the root" in causes(server, {"type": "string"})["type"]
    metadata = {"type": "object", "default": {"labels": {}}}
    found = causes(server, {"type": "object", "properties": {"metadata": metadata}})
    assert "must not be set in top-level metadata" in found["properties[metadata].default"]


def test_a_number_or_a_text_may_be_written_as_either_of_two_types(server):
    either = {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]}
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"a": either}}}}
    made = asked(server, schema)
    assert made.status == 201
    server.call("DELETE", f"{DEFINITIONS}/{made.body['metadata']['name']}")
