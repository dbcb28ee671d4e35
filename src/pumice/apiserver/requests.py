"""What a request asks: target, options and representation, read from its path, query, headers and body."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from pumice.apiserver import statuses

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pumice.apiserver.access.users import User
    from pumice.apiserver.resources import Registry, Resource

Form = Literal["object", "table", "metadata"]
REFUSED: Final = {
    "attach": "attach needs a container that runs; pods here are simulated, read what they say with kubectl logs",
    "exec": "exec needs a container that runs; pods here are simulated, read what they say with kubectl logs",
    "portforward": "port-forward needs a container that runs; pods here are simulated and listen on no port",
    "proxy": "nothing listens behind this cluster's services, pods and nodes: they are simulated",
    "ephemeralcontainers": "ephemeral containers need a pod that runs; pods here are simulated",
}
_TRUE: Final = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,18}")
_NAME: Final = re.compile(r"[^/%]+")


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """The object, collection or subresource that a path names."""

    resource: Resource
    namespace: str = ""
    name: str = ""
    subresource: str = ""


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """How a write is to be done."""

    manager: str
    dry_run: bool = False
    validation: str = "Warn"
    force: bool = False
    user: User | None = None  # who asks; nobody is the server itself
    asks: bool = True  # webhooks, if there are any about it
    through: str = ""  # the subresource that a write of the object itself came through


def is_true(text: str | None) -> bool:
    """Read a truth of a query, in any of the ways that Go takes one."""
    return text in _TRUE


def target(registry: Registry, path: str) -> Target:
    """Read a path below /api or /apis; one that names nothing is answered as kube-apiserver does."""
    parts = path.strip("/").split("/")
    group, version, rest = ("", parts[1], parts[2:]) if parts[0] == "api" else (parts[1], parts[2], parts[3:])
    if parts[0] == "apis" and not group:
        raise statuses.unknown_path()
    if any(part in ("", ".", "..") or not _NAME.fullmatch(part) for part in rest):
        raise statuses.bad_request(f"the path {path[:200]!r} names no object: a part of it is empty, '.' or '..'")
    namespace = ""
    # /namespaces/NAME/status is a namespace, /namespaces/NAME/pods are pods
    own = group == "" and len(rest) == 3 and rest[2] in ("status", "finalize")
    if len(rest) > 2 and rest[0] == "namespaces" and not own:
        namespace, rest = rest[1], rest[2:]
    resource = registry.find(group, version, rest[0]) if rest else None
    if resource is None or len(rest) > 3:
        if len(rest) > 3 and resource is not None and rest[2] in REFUSED:
            raise statuses.Problem(501, REFUSED[rest[2]], reason="NotImplemented")
        raise statuses.unknown_path()
    if bool(namespace) and not resource.namespaced:
        raise statuses.unknown_path()
    found = Target(
        resource=resource,
        namespace=namespace,
        name=rest[1] if len(rest) > 1 else "",
        subresource=rest[2] if len(rest) > 2 else "",
    )
    if found.subresource and found.subresource not in resource.subresources:
        if found.subresource in REFUSED:
            raise statuses.Problem(501, REFUSED[found.subresource], reason="NotImplemented")
        raise statuses.unknown_path()
    if found.name and resource.namespaced and not namespace:
        raise statuses.unknown_path()
    return found


def check_list_options(query: Mapping[str, str], *, watch: bool) -> None:
    """Refuse what a list or a watch may not be asked for, in the words of kube-apiserver."""
    number(query, "timeoutSeconds")
    version, match = query.get("resourceVersion", ""), query.get("resourceVersionMatch", "")
    send = query.get("sendInitialEvents")
    causes: statuses.Causes = []
    if match not in ("", "Exact", "NotOlderThan"):
        text = f'Unsupported value: {json.dumps(match[:100])}: supported values: "Exact", "NotOlderThan", ""'
        causes.append(("FieldValueNotSupported", "resourceVersionMatch", text))
    elif watch and send is not None and match != "NotOlderThan":
        causes.append(_forbidden_match("sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"))
    elif watch and send is None and match:
        why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
        causes.append(_forbidden_match(why))
    elif not watch and match and not version:
        causes.append(_forbidden_match("resourceVersionMatch is forbidden unless resourceVersion is provided"))
    elif not watch and match == "Exact" and version == "0":
        causes.append(_forbidden_match('resourceVersionMatch "exact" is forbidden for resourceVersion "0"'))
    if not watch and send is not None:
        text = "Forbidden: sendInitialEvents is forbidden for list"
        causes.append(("FieldValueForbidden", "sendInitialEvents", text))
    if causes:
        raise statuses.invalid("ListOptions", "meta.k8s.io", "", causes)


def _forbidden_match(why: str) -> tuple[str, str, str]:
    return "FieldValueForbidden", "resourceVersionMatch", f"Forbidden: {why}"


def options(
    query: Mapping[str, str], agent: str, user: User, verb: str = "Create", stated: Mapping[str, Any] | None = None
) -> Options:
    """Read the options of a write."""
    stated = stated or {}
    dry = query.get("dryRun", "") or (stated.get("dryRun") or "")
    dry = dry[0] if isinstance(dry, list) and dry else dry
    if dry not in ("", "All", []):
        text = f'Unsupported value: ["{dry}"]: supported values: "All"'
        raise statuses.invalid(f"{verb}Options", "meta.k8s.io", "", [("FieldValueNotSupported", "dryRun", text)])
    validation = query.get("fieldValidation") or "Warn"
    if validation not in ("Ignore", "Warn", "Strict"):
        raise statuses.bad_request(
            f'fieldValidation: Unsupported value: "{validation}": supported values: "Ignore", "Strict", "Warn"'
        )
    manager = query.get("fieldManager") or agent.partition("/")[0] or "unknown"
    if len(manager) > 128 or not manager.isprintable():
        raise statuses.bad_request(
            f'fieldManager: Invalid value: "{manager[:128]}": may not be more than 128 printable characters'
        )
    return Options(
        manager=manager, dry_run=dry == "All", validation=validation, force=is_true(query.get("force")), user=user
    )


def number(query: Mapping[str, str], name: str, *, signed: bool = True) -> int | None:
    """Read a whole number; None if none is given."""
    text = query.get(name, "")
    if not text:
        return None
    if not _WHOLE.fullmatch(text):
        named = "" if signed else f"{name}: "  # kube-apiserver names those of options of all kinds not
        raise statuses.bad_request(f'{named}strconv.ParseInt: parsing "{text[:40]}": invalid syntax')
    if int(text) < 0 and not signed:
        raise statuses.bad_request(f"{name}: Invalid value: {text}: it must not be negative")
    return int(text)


def delete_options(query: Mapping[str, str], stated: Mapping[str, Any]) -> dict[str, Any]:
    """Read how a deletion is to be done: what the query says counts before what the body says."""
    wanted = dict(stated)
    if query.get("propagationPolicy"):
        wanted["propagationPolicy"] = query["propagationPolicy"]
    if (seconds := number(query, "gracePeriodSeconds")) is not None:
        wanted["gracePeriodSeconds"] = seconds
    if query.get("orphanDependents"):
        wanted["orphanDependents"] = is_true(query["orphanDependents"])
    return wanted


def form(accept: str) -> tuple[Form, bool]:
    """Say in which form an answer is wanted, and whether JSON will do at all."""
    if not accept or accept == "*/*":
        return "object", True
    known = False
    for part in accept.split(","):
        kind, *parameters = (each.strip() for each in part.split(";"))
        if kind not in ("application/json", "application/*", "*/*", "text/plain"):
            continue
        known = True
        asked = dict(each.partition("=")[::2] for each in parameters)
        if asked.get("as") == "Table" and asked.get("v") == "v1":
            return "table", True
        if asked.get("as", "").startswith("PartialObjectMetadata") and asked.get("v") == "v1":
            return "metadata", True
        if "as" not in asked:
            return "object", True
    return "object", known
