"""The schemas of the custom resources against the structs that read them."""

from __future__ import annotations

import datetime as dt
import re
import types
from typing import Union, get_args, get_origin

import msgspec
import pytest

from pumice.api import kinds, scheduling
from pumice.manifests import resources

READ = {
    kinds.POD_GROUP: scheduling.PodGroup,
    kinds.QUEUE: scheduling.Queue,
    kinds.HYPER_NODE: kinds.HYPER_NODE.struct,
    kinds.INCUBATOR_POD_GROUP: scheduling.OlderPodGroup,
    kinds.SIGS_POD_GROUP: scheduling.OlderPodGroup,
    kinds.INCUBATOR_QUEUE: scheduling.OlderQueue,
    kinds.SIGS_QUEUE: scheduling.OlderQueue,
}
PLAIN = {str: "string", int: "integer", bool: "boolean", dt.datetime: "string"}
KEEP = "x-kubernetes-preserve-unknown-fields"
DECLARED = {"properties", "additionalProperties"}
ALL = (*resources.CURRENT, *resources.KUBE_BATCH)


def schema_of(resource):
    (version,) = resources.definition(resource)["spec"]["versions"]
    return version["schema"]["openAPIV3Schema"]


def mismatches(struct, schema, path):
    """Name the fields of a struct that the schema lacks or describes otherwise."""
    properties = schema.get("properties", {})
    for field in msgspec.structs.fields(struct):
        where = f"{path}.{field.encode_name}"
        if field.encode_name == "metadata":
            continue
        if field.encode_name not in properties:
            yield f"{where} is not described"
        else:
            yield from differences(field.type, properties[field.encode_name], where)


def differences(kind, schema, path):
    if get_origin(kind) in (Union, types.UnionType):
        parts = [each for each in get_args(kind) if each is not type(None)]
        if len(parts) > 1:  # a quantity
            if not schema.get("x-kubernetes-int-or-string"):
                yield f"{path} is no quantity"
            return
        (kind,) = parts
    origin = get_origin(kind) or kind
    if origin is dict:
        yield from differences(get_args(kind)[1], schema.get("additionalProperties", {}), f"{path}.*")
    elif origin is tuple:
        yield from differences(get_args(kind)[0], schema.get("items", {}), f"{path}[]")
    elif isinstance(origin, type) and issubclass(origin, msgspec.Struct):
        yield from mismatches(origin, schema, path)
    elif schema.get("type") != PLAIN[origin]:
        yield f"{path} is {schema.get('type')}, not {PLAIN[origin]}"


def nodes(schema, path=""):
    """Walk a schema, every part with its path."""
    yield path, schema
    for name, part in schema.get("properties", {}).items():
        yield from nodes(part, f"{path}.{name}")
    for name in ("items", "additionalProperties"):
        if name in schema:
            yield from nodes(schema[name], f"{path}[]")


@pytest.mark.parametrize("resource", [each for each in ALL if each.kind in READ], ids=lambda each: each.name)
def test_every_field_that_is_read_is_described_with_its_type(resource):
    assert not list(mismatches(READ[resource.kind], schema_of(resource), ""))


@pytest.mark.parametrize(
    "resource", [each for each in resources.SCHEDULING if each.kind in READ], ids=lambda each: each.name
)
def test_defaults_are_what_an_absent_field_is_read_as(resource):
    """A group may name no queue: the scheduler then uses its default queue, which is a flag, and the server its own."""
    empty = msgspec.convert({}, READ[resource.kind])
    for path, schema in nodes(schema_of(resource)):
        if "default" not in schema or "[]" in path or "networkTopology" in path or path == ".spec.queue":
            continue
        value = empty
        for name in path.split(".")[1:]:
            value = getattr(value, next(f.name for f in msgspec.structs.fields(value) if f.encode_name == name))
        assert value == schema["default"], path


@pytest.mark.parametrize("resource", ALL, ids=lambda each: each.name)
def test_nothing_that_is_not_declared_is_kept_but_the_templates_of_pods(resource):
    for path, schema in nodes(schema_of(resource)):
        if path.endswith("tasks[].template"):
            assert schema[KEEP] is True
        else:
            assert KEEP not in schema, path
            assert schema.get("type") != "object" or path == ".metadata" or DECLARED & schema.keys(), path


@pytest.mark.parametrize("resource", ALL, ids=lambda each: each.name)
def test_every_field_has_a_text_that_kubectl_explain_shows(resource):
    fields = [
        (path, schema) for path, schema in nodes(schema_of(resource)) if not path.endswith("[]") and path != ".metadata"
    ]
    assert not [path for path, schema in fields if not schema.get("description", "").endswith(".")]


@pytest.mark.parametrize("resource", ALL, ids=lambda each: each.name)
def test_every_column_shows_one_field_that_the_schema_has(resource):
    known = {path for path, _ in nodes(schema_of(resource))}
    for column in resource.columns:
        field = re.sub(r"\[\?.*?\]", "[]", column.path)
        parent = field.rpartition(".")[0]
        assert field in known or f"{parent}[]" in known or parent == ".metadata", column.path


def test_every_kind_is_defined_that_volcano_installs():
    later = {kinds.COLOCATION_CONFIGURATION, kinds.HYPER_JOB, kinds.DATA_SOURCE, kinds.DATA_SOURCE_CLAIM}
    volcano = {kind for kind in kinds.KINDS if kind.group.endswith("volcano.sh")} - later
    assert {each.kind for each in resources.CURRENT} == volcano


WORK = ["Phase", "Running", "Minimum", "Queue", "Age", "Reason"]
SHARE = ["Parent", "Weight", "State", "Allocated CPU", "Allocated Memory", "Pending", "Running", "Age"]


@pytest.mark.parametrize(
    ("kind", "status_apart", "short", "columns"),
    [
        (kinds.POD_GROUP, False, ("pg", "podgroup-v1beta1"), WORK),
        (kinds.QUEUE, True, ("q", "queue-v1beta1"), SHARE),
        (kinds.JOB, True, ("vcjob", "vj"), WORK),
        (kinds.CRON_JOB, True, ("cronvcjob", "cronvj"), ["Schedule", "Suspend", "Last", "Age"]),
        (kinds.COMMAND, False, (), []),
        (kinds.JOB_FLOW, True, ("jf",), ["Status", "Age"]),
        (kinds.JOB_TEMPLATE, True, ("jt",), []),
        (kinds.HYPER_NODE, True, ("hn",), ["Tier", "TierName", "NodeCount", "Age"]),
        (kinds.NUMATOPOLOGY, False, ("numatopo",), []),
        (kinds.NODE_SHARD, True, ("nsh",), ["Age"]),
    ],
    ids=lambda each: each.name if isinstance(each, kinds.Kind) else None,
)
def test_names_and_subresources_are_volcanos_and_columns_what_people_ask_for(kind, status_apart, short, columns):
    (resource,) = [each for each in resources.CURRENT if each.kind is kind]
    assert (resource.status_apart, resource.short) == (status_apart, short)
    assert [column.name for column in resource.columns] == columns
