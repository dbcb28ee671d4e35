"""Devices that drivers offer and claims ask for: the group `resource.k8s.io`."""

from typing import Any

import msgspec

from pumice.api.affinity import NodeSelector, Toleration
from pumice.api.meta import Condition, KubeObject, ObjectMeta, Wire

Amount = str | int | float

# -- what drivers offer ----------------------------------------------------------------------------------------


class ResourcePool(Wire, frozen=True, kw_only=True):
    """Which pool a slice is a part of, which state of the pool it belongs to, and of how many slices that state consists."""

    name: str = ""
    generation: int = 0
    resource_slice_count: int = 0


class DeviceAttribute(Wire, frozen=True, kw_only=True):
    """One value, of exactly one type."""

    int_value: int | None = msgspec.field(default=None, name="int")
    bool_value: bool | None = msgspec.field(default=None, name="bool")
    string_value: str | None = msgspec.field(default=None, name="string")
    version_value: str | None = msgspec.field(default=None, name="version")


class CapacityRange(Wire, frozen=True, kw_only=True):
    """From how much to how much, in which steps."""

    min: Amount | None = None
    max: Amount | None = None
    step: Amount | None = None


class CapacityPolicy(Wire, frozen=True, kw_only=True):
    """How a request for a part of a capacity is rounded."""

    default: Amount | None = None
    valid_values: tuple[Amount, ...] = ()
    valid_range: CapacityRange | None = None


class DeviceCapacity(Wire, frozen=True, kw_only=True):
    """How much a device has of something."""

    value: Amount = 0
    request_policy: CapacityPolicy | None = None


class Counter(Wire, frozen=True, kw_only=True):
    """An amount of something that devices of a pool share."""

    value: Amount = 0


class CounterSet(Wire, frozen=True, kw_only=True):
    """Counters that devices of the pool consume together."""

    name: str = ""
    counters: dict[str, Counter] = msgspec.field(default_factory=dict)


class CounterConsumption(Wire, frozen=True, kw_only=True):
    """What a device takes of a set of counters while it is in use."""

    counter_set: str = ""
    counters: dict[str, Counter] = msgspec.field(default_factory=dict)


class DeviceTaint(Wire, frozen=True, kw_only=True):
    """What keeps claims off a device unless they tolerate it."""

    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: str | None = None


class Device(Wire, frozen=True, kw_only=True):
    """One device of a slice; driver, pool and name together are its identity."""

    name: str = ""
    attributes: dict[str, DeviceAttribute] = msgspec.field(default_factory=dict)
    capacity: dict[str, DeviceCapacity] = msgspec.field(default_factory=dict)
    consumes_counters: tuple[CounterConsumption, ...] = ()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    taints: tuple[DeviceTaint, ...] = ()
    binds_to_node: bool | None = None
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    allow_multiple_allocations: bool | None = None


class ResourceSliceSpec(Wire, frozen=True, kw_only=True):
    """Devices, or counters, and the nodes that reach them."""

    driver: str = ""
    pool: ResourcePool = ResourcePool()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    per_device_node_selection: bool | None = None
    devices: tuple[Device, ...] = ()
    shared_counters: tuple[CounterSet, ...] = ()


class ResourceSlice(KubeObject, frozen=True, kw_only=True):
    """A part of a pool of devices."""

    spec: ResourceSliceSpec = ResourceSliceSpec()


class DeviceTaintSelector(Wire, frozen=True, kw_only=True):
    """Which devices are meant; what is absent is any."""

    driver: str | None = None
    pool: str | None = None
    device: str | None = None


class DeviceTaintRuleSpec(Wire, frozen=True, kw_only=True):
    """A taint, and who has it."""

    device_selector: DeviceTaintSelector | None = None
    taint: DeviceTaint = DeviceTaint()


class DeviceTaintRule(KubeObject, frozen=True, kw_only=True):
    """A taint that an administrator gives to devices."""

    spec: DeviceTaintRuleSpec = DeviceTaintRuleSpec()


# -- what claims ask for ---------------------------------------------------------------------------------------


class CELSelector(Wire, frozen=True, kw_only=True):
    """An expression that must be true of a device."""

    expression: str = ""


class DeviceSelector(Wire, frozen=True, kw_only=True):
    """What must hold of a device; a form that is not known here has no expression."""

    cel: CELSelector | None = None


class OpaqueConfiguration(Wire, frozen=True, kw_only=True):
    """What a driver is told, as written."""

    driver: str = ""
    parameters: Any = None


class DeviceConfiguration(Wire, frozen=True, kw_only=True):
    """What a driver is told about the devices of some requests, or of all."""

    requests: tuple[str, ...] = ()
    opaque: OpaqueConfiguration | None = None


class DeviceClassSpec(Wire, frozen=True, kw_only=True):
    """Which devices are of the class, and what drivers are told of them."""

    selectors: tuple[DeviceSelector, ...] = ()
    config: tuple[DeviceConfiguration, ...] = ()
    extended_resource_name: str | None = None


class DeviceClass(KubeObject, frozen=True, kw_only=True):
    """A kind of devices that requests name."""

    spec: DeviceClassSpec = DeviceClassSpec()


class CapacityRequirements(Wire, frozen=True, kw_only=True):
    """How much of its capacities each device must have left."""

    requests: dict[str, Amount] = msgspec.field(default_factory=dict)


class DeviceSubRequest(Wire, frozen=True, kw_only=True):
    """Devices of a class: a number of them, or all."""

    name: str = ""
    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = ""
    count: int = 0
    tolerations: tuple[Toleration, ...] = ()
    capacity: CapacityRequirements | None = None


class ExactDeviceRequest(DeviceSubRequest, frozen=True, kw_only=True):
    """Devices of a class, for whoever administers them too."""

    admin_access: bool | None = None


class DeviceRequest(Wire, frozen=True, kw_only=True):
    """One request of a claim: exactly one thing, or the first of some that can be had."""

    name: str = ""
    exactly: ExactDeviceRequest | None = None
    first_available: tuple[DeviceSubRequest, ...] = ()


class DeviceConstraint(Wire, frozen=True, kw_only=True):
    """An attribute in which the devices of some requests, or of all, are alike, or all differ."""

    requests: tuple[str, ...] = ()
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class DeviceClaim(Wire, frozen=True, kw_only=True):
    """What a claim asks for."""

    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[DeviceConstraint, ...] = ()
    config: tuple[DeviceConfiguration, ...] = ()


class ResourceClaimSpec(Wire, frozen=True, kw_only=True):
    """What a claim asks for; it never changes."""

    devices: DeviceClaim = DeviceClaim()


class ResourceClaimTemplateSpec(Wire, frozen=True, kw_only=True):
    """Labels, annotations and spec of the claims that are made from a template."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceClaimSpec = ResourceClaimSpec()


class ResourceClaimTemplate(KubeObject, frozen=True, kw_only=True):
    """What claims of single pods are made from."""

    spec: ResourceClaimTemplateSpec = ResourceClaimTemplateSpec()


# -- what claims have ------------------------------------------------------------------------------------------


class DeviceResult(Wire, frozen=True, kw_only=True):
    """A device that a claim has, for one of its requests (`r`, or `r/s` for the chosen one of several)."""

    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool | None = None
    tolerations: tuple[Toleration, ...] = ()
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    share_id: str | None = msgspec.field(default=None, name="shareID")
    consumed_capacity: dict[str, Amount] = msgspec.field(default_factory=dict)


class AllocatedConfiguration(DeviceConfiguration, frozen=True, kw_only=True):
    """What a driver is told, and who says so: FromClass or FromClaim."""

    source: str = ""


class DeviceAllocation(Wire, frozen=True, kw_only=True):
    """The devices of a claim."""

    results: tuple[DeviceResult, ...] = ()
    config: tuple[AllocatedConfiguration, ...] = ()


class Allocation(Wire, frozen=True, kw_only=True):
    """What a claim has, and the nodes that reach it; without a selector all do."""

    devices: DeviceAllocation = DeviceAllocation()
    node_selector: NodeSelector | None = None
    allocation_timestamp: str | None = None


class Consumer(Wire, frozen=True, kw_only=True):
    """Who may use what a claim has."""

    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""


class AllocatedDeviceStatus(Wire, frozen=True, kw_only=True):
    """What a driver says of a device of a claim."""

    driver: str = ""
    pool: str = ""
    device: str = ""
    share_id: str | None = msgspec.field(default=None, name="shareID")
    conditions: tuple[Condition, ...] = ()


class ResourceClaimStatus(Wire, frozen=True, kw_only=True):
    """What a claim has, who may use it, and what drivers say of it."""

    allocation: Allocation | None = None
    reserved_for: tuple[Consumer, ...] = ()
    devices: tuple[AllocatedDeviceStatus, ...] = ()


class ResourceClaim(KubeObject, frozen=True, kw_only=True):
    """Devices that pods ask for by a name."""

    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()
