"""What makes claims for devices invalid, with their templates and classes, and what their statuses may say."""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Any, Final

from pumice.api import names
from pumice.apiserver.built_in import wrong
from pumice.cel import language
from pumice.sim import structure

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pumice.apiserver.statuses import Causes

GROUP: Final = "resource.k8s.io"
EFFECTS: Final = ("NoExecute", "NoSchedule", "None")
_ITEMS: Final = 32  # requests, selectors, constraints, configurations and results, each
_SUB_REQUESTS: Final = 8
_CONSUMERS: Final = 256
_LONGEST_SELECTOR: Final = 10240
NO_SUBDOMAIN: Final = f"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '{wrong.SUBDOMAIN}')"  # fmt: skip
_NOT_A_REQUEST: Final = (
    "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
)
_IMMUTABLE: Final = "field is immutable"


def claim(manifest: Mapping[str, Any], old: Mapping[str, Any] | None) -> Causes:
    """Check a claim; what it asks for never changes."""
    spec = structure.mapping(manifest, "spec")
    return claim_spec(spec, "spec") if old is None else wrong.invalid("spec", spec, _IMMUTABLE)


def template(manifest: Mapping[str, Any], old: Mapping[str, Any] | None) -> Causes:
    """Check a template; what its claims ask for never changes."""
    spec = structure.mapping(manifest, "spec")
    found = claim_spec(structure.mapping(spec, "spec"), "spec.spec")
    return found if old is None else wrong.invalid("spec", spec, _IMMUTABLE)


def device_class(manifest: Mapping[str, Any]) -> Causes:
    """Check a class of devices."""
    spec = structure.mapping(manifest, "spec")
    found = _selectors(spec, "spec") + _configurations(spec, "spec", None)
    name = spec.get("extendedResourceName")
    if name is not None and ("/" not in name or "kubernetes.io/" in name or wrong.label_key(name, "")):
        found += wrong.invalid("spec.extendedResourceName", name, "must be a valid extended resource name")
    return found


def claim_spec(spec: Mapping[str, Any], path: str) -> Causes:
    """Check what a claim asks for."""
    devices, field = structure.mapping(spec, "devices"), f"{path}.devices"
    requests = devices.get("requests") or []
    found = too_many(requests, _ITEMS, f"{field}.requests")
    if found:
        return found
    known: set[str] = set()
    for index, request in enumerate(requests):
        where, name = f"{field}.requests[{index}]", request.get("name")
        found += wrong.duplicate(where, name) if name in known else wrong.label_name(name, f"{where}.name")
        found += _request(request, where)
        known |= {name, *(f"{name}/{each.get('name')}" for each in request.get("firstAvailable") or ())}
    constraints = devices.get("constraints") or []
    found += too_many(constraints, _ITEMS, f"{field}.constraints")
    for index, constraint in enumerate(constraints[:_ITEMS]):
        found += _constraint(constraint, f"{field}.constraints[{index}]", known)
    return found + _configurations(devices, field, known)


def _request(request: Mapping[str, Any], where: str) -> Causes:
    exactly, several = request.get("exactly"), request.get("firstAvailable") or []
    either = "exactly one of `exactly` or `firstAvailable` is required"
    if exactly is None and not several:
        return wrong.required(where, either)
    if exactly is not None and several:
        return wrong.invalid(where, None, f"{either}, but multiple fields are set")
    if exactly is not None:
        return _exact(exactly, f"{where}.exactly")
    found = too_many(several, _SUB_REQUESTS, f"{where}.firstAvailable")
    names_seen: set[Any] = set()
    for index, each in enumerate(several if not found else ()):
        field, name = f"{where}.firstAvailable[{index}]", each.get("name")
        found += wrong.duplicate(field, name) if name in names_seen else wrong.label_name(name, f"{field}.name")
        names_seen.add(name)
        found += _exact(each, field)
    return found


def _exact(request: Mapping[str, Any], where: str) -> Causes:
    found = [] if request.get("deviceClassName") else wrong.required(f"{where}.deviceClassName")
    mode, count = request.get("allocationMode"), request.get("count")
    if mode not in (None, "ExactCount", "All"):
        found += wrong.unsupported(f"{where}.allocationMode", mode, ("All", "ExactCount"))
    elif mode == "All" and count:
        found += wrong.invalid(f"{where}.count", count, "must not be specified when allocationMode is 'All'")
    elif mode != "All" and isinstance(count, int) and count <= 0:
        found += wrong.invalid(f"{where}.count", count, "must be greater than zero")
    found += _selectors(request, where)
    for index, each in enumerate(request.get("tolerations") or ()):
        field = f"{where}.tolerations[{index}]"
        if each.get("operator") not in (None, "", "Equal", "Exists"):
            found += wrong.unsupported(f"{field}.operator", each["operator"], ("Equal", "Exists"))
        if each.get("operator") == "Exists" and each.get("value"):
            found += wrong.invalid(f"{field}.value", each["value"], "must be empty for operator `Exists`")
        if each.get("effect") and each["effect"] not in EFFECTS:
            found += wrong.unsupported(f"{field}.effect", each["effect"], EFFECTS)
    return found


def _selectors(parent: Mapping[str, Any], where: str) -> Causes:
    selectors = parent.get("selectors") or []
    found = too_many(selectors, _ITEMS, f"{where}.selectors")
    for index, each in enumerate(selectors if not found else ()):
        field, expression = f"{where}.selectors[{index}].cel", structure.mapping(each, "cel").get("expression")
        if each.get("cel") is None:
            found += wrong.required(field)
        elif not expression:
            found += wrong.invalid(f"{field}.expression", "", "compilation failed: the expression is empty")
        elif len(expression) > _LONGEST_SELECTOR:
            found.append(
                (
                    "FieldValueTooLong",
                    f"{field}.expression",
                    f"Too long: may not be more than {_LONGEST_SELECTOR} bytes",
                )
            )
        else:
            found += _compiled(expression, f"{field}.expression")
    return found


def _compiled(expression: str, field: str) -> Causes:
    """Refuse an expression that is none, or gives something else than a truth; without an evaluator none is."""
    try:
        returns = _returns(expression)
    except language.MissingError:
        return []
    except language.CelError as error:
        return wrong.invalid(field, expression, f"compilation failed: ERROR: <input>:{error}")
    if returns in ("bool", "dyn"):
        return []
    return wrong.invalid(field, expression, f"must evaluate to bool or the unknown type, not {returns}")


@functools.lru_cache(maxsize=1024)
def _returns(expression: str) -> str:
    return language.over("device").compile(expression).returns


def _constraint(constraint: Mapping[str, Any], where: str, known: set[str]) -> Causes:
    found: Causes = []
    for index, name in enumerate(constraint.get("requests") or ()):
        found += [] if name in known else wrong.invalid(f"{where}.requests[{index}]", name, _NOT_A_REQUEST)
    stated = [field for field in ("matchAttribute", "distinctAttribute") if constraint.get(field)]
    if not stated:
        either = 'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set'
        return found + wrong.required(where, either)
    if "/" not in constraint[stated[0]]:
        why = "a fully qualified name must be a domain and a name separated by a slash"
        found += wrong.invalid(f"{where}.{stated[0]}", constraint[stated[0]], why)
    return found


def _configurations(parent: Mapping[str, Any], where: str, known: set[str] | None) -> Causes:
    configurations = parent.get("config") or []
    found = too_many(configurations, _ITEMS, f"{where}.config")
    for index, each in enumerate(configurations if not found else ()):
        field = f"{where}.config[{index}]"
        for place, name in enumerate(each.get("requests") or () if known is not None else ()):
            found += (
                [] if known and name in known else wrong.invalid(f"{field}.requests[{place}]", name, _NOT_A_REQUEST)
            )
        opaque = each.get("opaque")
        found += wrong.required(f"{field}.opaque") if opaque is None else driver(opaque, f"{field}.opaque.driver")
    return found


# -- statuses --------------------------------------------------------------------------------------------------


def claim_status(manifest: Mapping[str, Any], old: Mapping[str, Any] | None) -> Causes:
    """Check what is said of a claim: devices are given once, and only to who may have them."""
    status, before = structure.mapping(manifest, "status"), structure.mapping(old, "status")
    if old is None or structure.same(status, before):
        return []
    allocation, given = status.get("allocation"), before.get("allocation")
    if allocation is not None and given is not None and not structure.same(allocation, given):
        return wrong.invalid("status.allocation", allocation, _IMMUTABLE)
    found = _results(manifest, allocation) if allocation is not None and given is None else []
    return found + _consumers(manifest, status, before)


def _results(manifest: Mapping[str, Any], allocation: Mapping[str, Any]) -> Causes:
    results = structure.mapping(allocation, "devices").get("results") or []
    path = "status.allocation.devices.results"
    found = too_many(results, _ITEMS, path)
    requests = structure.mapping(manifest, "spec", "devices").get("requests") or []
    known = {request.get("name") for request in requests}
    known |= {f"{r.get('name')}/{each.get('name')}" for r in requests for each in r.get("firstAvailable") or ()}
    for index, each in enumerate(results if not found else ()):
        where = f"{path}[{index}]"
        if each.get("request") not in known:
            found += wrong.invalid(f"{where}.request", each.get("request"), _NOT_A_REQUEST)
        found += driver(each, f"{where}.driver")
        found += [] if each.get("pool") else wrong.required(f"{where}.pool")
        device = each.get("device", "")
        if not re.fullmatch(wrong.LABEL, device):
            found += wrong.invalid(f"{where}.device", device, wrong.NO_LABEL)
    return found


def _consumers(manifest: Mapping[str, Any], status: Mapping[str, Any], before: Mapping[str, Any]) -> Causes:
    consumers, path = status.get("reservedFor") or [], "status.reservedFor"
    found = too_many(consumers, _CONSUMERS, path)
    if found:
        return found
    seen: set[Any] = set()
    for index, each in enumerate(consumers):
        where, uid = f"{path}[{index}]", each.get("uid")
        if uid in seen:
            found += wrong.duplicate(where, uid)
        seen.add(uid)
        found += [
            cause for f in ("resource", "name", "uid") if not each.get(f) for cause in wrong.required(f"{where}.{f}")
        ]
    if consumers and status.get("allocation") is None:
        found += wrong.forbidden(path, "may not be specified when `allocated` is not set")
    known = {each.get("uid") for each in before.get("reservedFor") or ()}
    if manifest["metadata"].get("deletionTimestamp") and seen - known:
        found += wrong.forbidden(
            path, "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"
        )
    return found


# -- namespaces ------------------------------------------------------------------------------------------------


def admin_access(manifest: Mapping[str, Any], labels: Mapping[str, Any]) -> Causes:
    """Refuse access to devices that others use, unless the namespace is meant for it."""
    if labels.get(names.ADMIN_ACCESS) == "true":
        return []
    spec, path = structure.mapping(manifest, "spec"), "spec"
    if manifest.get("kind") == "ResourceClaimTemplate":
        spec, path = structure.mapping(spec, "spec"), "spec.spec"
    why = f"admin access to devices requires the `{names.ADMIN_ACCESS}: true` label on the containing namespace"
    return [
        cause
        for index, request in enumerate(structure.mapping(spec, "devices").get("requests") or ())
        if structure.mapping(request, "exactly").get("adminAccess")
        for cause in wrong.forbidden(f"{path}.devices.requests[{index}].adminAccess", why)
    ]


def driver(parent: Mapping[str, Any], field: str) -> Causes:
    """Refuse what is no name of a driver."""
    name = parent.get("driver", "")
    if not name:
        return wrong.required(field)
    good = len(name) <= 63 and re.fullmatch(wrong.SUBDOMAIN, name)
    return [] if good else wrong.invalid(field, name, NO_SUBDOMAIN)


def too_many(items: Sequence[Any] | Mapping[str, Any], most: int, field: str) -> Causes:
    """Refuse a list that is too long."""
    if len(items) <= most:
        return []
    return [("FieldValueTooMany", field, f"Too many: {len(items)}: must have at most {most} items")]
