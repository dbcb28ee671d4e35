"""The schemas of the custom resources against the structs that read them."""

from __future__ import annotations

import datetime as dt
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
def test_no_object_loses_fields_that_are_not_known(resource):
    for path, schema in nodes(schema_of(resource)):
        if schema.get("type") == "object" and path != ".metadata" and "additionalProperties" not in schema:
            assert schema["x-kubernetes-preserve-unknown-fields"] is True, path


def test_every_kind_is_defined_that_volcano_installs():
    later = {kinds.COLOCATION_CONFIGURATION, kinds.HYPER_JOB, kinds.DATA_SOURCE, kinds.DATA_SOURCE_CLAIM}
    volcano = {kind for kind in kinds.KINDS if kind.group.endswith("volcano.sh")} - later
    assert {each.kind for each in resources.CURRENT} == volcano


@pytest.mark.parametrize(
    ("kind", "status_apart", "short", "columns"),
    [
        (kinds.POD_GROUP, False, ("pg", "podgroup-v1beta1"), ["STATUS", "minMember", "RUNNINGS", "AGE", "QUEUE"]),
        (kinds.QUEUE, True, ("q", "queue-v1beta1"), ["PARENT"]),
        (kinds.JOB, True, ("vcjob", "vj"), ["STATUS", "minAvailable", "RUNNINGS", "AGE", "QUEUE"]),
        (kinds.CRON_JOB, True, ("cronvcjob", "cronvj"), []),
        (kinds.COMMAND, False, (), []),
        (kinds.JOB_FLOW, True, ("jf",), ["Status", "Age"]),
        (kinds.JOB_TEMPLATE, True, ("jt",), []),
        (kinds.HYPER_NODE, True, ("hn",), ["Tier", "TierName", "NodeCount", "Age"]),
        (kinds.NUMATOPOLOGY, False, ("numatopo",), []),
        (kinds.NODE_SHARD, True, ("nsh",), ["AGE"]),
    ],
    ids=lambda each: each.name if isinstance(each, kinds.Kind) else None,
)
def test_names_subresources_and_columns_are_volcanos(kind, status_apart, short, columns):
    (resource,) = [each for each in resources.CURRENT if each.kind is kind]
    assert (resource.status_apart, resource.short) == (status_apart, short)
    assert [column.name for column in resource.columns] == columns
