"""Sub-group policies of a PodGroup: which pods belong together inside a job."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pumice.api import meta, names, scheduling
from pumice.model import resources, selectors

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MAX_SUFFIX = 128


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of `spec.subGroupPolicy`."""

    name: str
    size: int
    min_sub_groups: int
    selector: meta.LabelSelector | None
    keys: tuple[str, ...]
    topology: scheduling.NetworkTopology | None


class Match(msgspec.Struct, frozen=True):
    """The policy that captures a pod, and which of its sub-groups the pod is in."""

    policy: Policy
    suffix: str
    index: int


def parse(written: Sequence[scheduling.SubGroupPolicy]) -> tuple[Policy, ...]:
    """Check the policies of a PodGroup."""
    policies = []
    for position, entry in enumerate(written):
        field = f"spec.subGroupPolicy[{position}]"
        size, minimum = entry.sub_group_size, entry.min_sub_groups
        if not 1 <= size < 2**31:
            raise resources.BadValueError(f"{field}.subGroupSize", f"{size} is outside 1..{2**31 - 1}")
        if not 0 <= minimum < 2**31:
            raise resources.BadValueError(f"{field}.minSubGroups", f"{minimum} is outside 0..{2**31 - 1}")
        policies.append(
            Policy(
                name=entry.name,
                size=size,
                min_sub_groups=minimum,
                selector=entry.label_selector,
                keys=tuple(entry.match_label_keys),
                topology=checked_topology(entry.network_topology, f"{field}.networkTopology"),
            )
        )
    return tuple(policies)


def checked_topology(found: scheduling.NetworkTopology | None, field: str) -> scheduling.NetworkTopology | None:
    """Check how far apart members may be."""
    if found is None:
        return None
    if found.mode not in (names.TOPOLOGY_HARD, names.TOPOLOGY_SOFT):
        raise resources.BadValueError(f"{field}.mode", f"{found.mode:.40} is neither hard nor soft")
    tier = found.highest_tier_allowed
    if tier is not None and not 0 <= tier < 2**31:
        raise resources.BadValueError(f"{field}.highestTierAllowed", f"{tier} is outside 0..{2**31 - 1}")
    return found


def match(policies: Sequence[Policy], labels: Mapping[str, str]) -> Match | None:
    """Find the first policy that captures these labels; one without keys captures nothing."""
    for policy in policies:
        if not policy.keys or (policy.selector is not None and not selectors.matches(policy.selector, labels)):
            continue
        values = [labels.get(key, "") for key in policy.keys]
        if all(values):
            suffix = "-".join(values)
            first = values[0]
            index = int(first) if first.isascii() and first.isdigit() and len(first) <= 18 else 0
            return Match(policy, suffix if len(suffix) <= MAX_SUFFIX else f"{fnv32a(suffix):d}", index)
    return None


def fnv32a(text: str) -> int:
    """Hash a text with 32-bit FNV-1a."""
    value = 0x811C9DC5
    for byte in text.encode():
        value = ((value ^ byte) * 0x01000193) & 0xFFFFFFFF
    return value
