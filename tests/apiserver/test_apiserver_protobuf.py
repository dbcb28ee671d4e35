"""Bodies in Kubernetes' binary form."""

from __future__ import annotations

import pytest

from pumice.apiserver import protobuf, resources

DESCRIPTION = resources.describe()
KINDS = sorted(
    {
        (f"{each['group']}/{each['version']}" if each.get("group") else each["version"], each["responseKind"]["kind"])
        for each in DESCRIPTION.resources
    }
)


def field(number, data):
    """Write a field of a message that is text, bytes or a message; nothing here is longer than 127 bytes."""
    return bytes([number << 3 | 2, len(data)]) + data


@pytest.mark.parametrize(("api_version", "kind"), KINDS)
def test_every_kind_that_is_served_is_read_in_binary_form(api_version, kind):
    about = field(1, api_version.encode()) + field(2, kind.encode())
    metadata = field(1, b"x")
    whole = protobuf.MAGIC + field(1, about) + field(2, field(1, metadata))
    found = protobuf.Decoder(DESCRIPTION.messages).decode(whole)
    assert (found["apiVersion"], found["kind"], found["metadata"]["name"]) == (api_version, kind, "x")


def test_fields_are_spelt_as_objects_spell_them():
    wrong = []
    for message, fields in DESCRIPTION.messages.items():
        schema = DESCRIPTION.schemas.get("io.k8s." + message.removeprefix("k8s.io."), {})
        known = {name.lower(): name for name in schema.get("properties", {})}
        wrong += [(message, name) for name, *_ in fields.values() if known.get(name.lower(), name) != name]
    assert wrong == []
