"""What every Kubernetes object carries, and the base of all wire structs.

Wire structs are frozen, hold only fields that are read or written, and give every field a default. An attribute is the snake-case form of
its JSON name. Quantities and timestamps stay as written; their meaning is worked out where they are used.
"""

import msgspec

ResourceList = dict[str, str | int | float]


class Wire(msgspec.Struct, frozen=True, gc=False, rename="camel", kw_only=True, omit_defaults=True):
    """A piece of a Kubernetes object as it travels."""


class OwnerReference(Wire, frozen=True, kw_only=True):
    """Who an object belongs to."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class ObjectMeta(Wire, frozen=True, kw_only=True):
    """Name, identity, labels and owners of an object."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: tuple[OwnerReference, ...] = ()


class KubeObject(Wire, frozen=True, kw_only=True):
    """The base of every whole object."""

    metadata: ObjectMeta = ObjectMeta()


class LabelSelectorRequirement(Wire, frozen=True, kw_only=True):
    """One line of `matchExpressions`."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class LabelSelector(Wire, frozen=True, kw_only=True):
    """Labels and expressions, all of which must hold; empty means everything, an absent selector nothing."""

    match_labels: dict[str, str] = {}
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()


class ObjectReference(Wire, frozen=True, kw_only=True):
    """A reference to some other object."""

    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""


class Condition(Wire, frozen=True, kw_only=True):
    """One entry of `status.conditions`."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None
    observed_generation: int = 0
