"""HyperNodes from what a UFM fabric manager says about ports: hosts at the same leaf switches are one, and all of these one above.

An answer is a list of ports. One whose description says that it is a computer's links a host (`system_name`) to a leaf switch (`peer_node_name`).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import msgspec

from pumice.controllers.volcano.hyper_nodes import aligning, settings
from pumice.controllers.workloads import manifests

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pumice.controllers.queueing.observed import Observed

PATH: Final = "/ufmRest/resources/ports"
SPINE: Final = "spine-hn"
_LEAF: Final = "leaf-hn-"
_COMPUTER: Final = "Computer"
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", re.ASCII)
_LONGEST_NAME: Final = 253


class _Port(msgspec.Struct, frozen=True):
    description: str | None = None
    system_name: str | None = None
    peer_node_name: str | None = None


_DECODER: Final = msgspec.json.Decoder(list[_Port])


class UfmError(ValueError):
    """An answer that cannot be read."""


class Links(msgspec.Struct, frozen=True, kw_only=True):
    """Which host is at which leaf switch, as one fabric manager has answered; `left_out` are hosts whose names no node can have."""

    endpoint: str
    pairs: tuple[tuple[str, str], ...]
    left_out: int = 0


def parse(endpoint: str, answer: bytes) -> Links:
    """Read an answer."""
    try:
        ports = _DECODER.decode(answer)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UfmError(f"the answer of {endpoint}, {len(answer)} bytes, is no list of ports: {error}") from None
    pairs: dict[tuple[str, str], None] = {}
    left_out: dict[str, None] = {}
    for port in ports:
        host, leaf = port.system_name or "", port.peer_node_name or ""
        if _COMPUTER not in (port.description or "") or not host or not leaf:
            continue
        if len(host) <= _LONGEST_NAME and _NAME.fullmatch(host):
            pairs[host, leaf] = None
        else:
            left_out[host] = None
    return Links(endpoint=endpoint, pairs=tuple(sorted(pairs)), left_out=len(left_out))


def wanted(links: Links, observed: Observed) -> list[aligning.Wanted]:
    """Give the HyperNodes of a fabric: leaves, each with its hosts, and the spine above them."""
    groups = _groups(links.pairs)
    if not groups:
        return []
    present = {manifests.name(each): _members(each) for each in aligning.of_source(settings.UFM, observed)}
    called = _names(groups, present)
    leaves = [
        aligning.Wanted(name=name, tier=1, members=tuple(group), members_are="Node")
        for name, group in zip(called, groups, strict=True)
    ]
    spine = aligning.Wanted(name=SPINE, tier=2, members=tuple(sorted(called)), members_are="HyperNode")
    return [*leaves, spine]


def _groups(pairs: Iterable[tuple[str, str]]) -> list[list[str]]:
    """Give the hosts that are connected through leaf switches that share hosts, the groups by their first host."""
    parent: dict[tuple[str, str], tuple[str, str]] = {}

    def top(each: tuple[str, str]) -> tuple[str, str]:
        parent.setdefault(each, each)
        while parent[each] != each:
            parent[each] = parent[parent[each]]
            each = parent[each]
        return each

    for host, leaf in pairs:
        parent[top(("host", host))] = top(("leaf", leaf))
    groups: dict[tuple[str, str], list[str]] = {}
    for each in sorted(parent):
        if each[0] == "host":
            groups.setdefault(top(each), []).append(each[1])
    return sorted(groups.values())


def _names(groups: Sequence[Sequence[str]], present: dict[str, frozenset[str]]) -> list[str]:
    """Name leaves so that one which is there, and has most of its hosts still, keeps its name."""
    called: list[str | None] = [None] * len(groups)
    home = {host: name for name, members in present.items() if name.startswith(_LEAF) for host in members}
    shared: dict[tuple[str, int], int] = {}
    for place, group in enumerate(groups):
        for host in group:
            if host in home:
                shared[home[host], place] = shared.get((home[host], place), 0) + 1
    used: set[str] = set()
    for (name, place), _ in sorted(shared.items(), key=lambda each: (-each[1], each[0])):
        if called[place] is None and name not in used:
            called[place] = name
            used.add(name)
    number = 0
    for place, name_ in enumerate(called):
        if name_ is None:
            while f"{_LEAF}{number}" in used:
                number += 1
            called[place] = f"{_LEAF}{number}"
            used.add(f"{_LEAF}{number}")
    return [name for name in called if name is not None]


def _members(hyper_node: manifests.Manifest) -> frozenset[str]:
    listed = manifests.items(hyper_node, "spec", "members")
    found = [manifests.mapping(each, "selector", "exactMatch").get("name") for each in listed]
    return frozenset(name for name in found if isinstance(name, str))
