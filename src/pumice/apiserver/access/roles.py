"""Rules of roles: what one of them allows, and whether it allows all that another does."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, Final

import msgspec

from pumice.apiserver import statuses
from pumice.sim import structure

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pumice.apiserver.access.attributes import Attributes

Document = dict[str, Any]
MOST_PARTS: Final = 100_000


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """One rule of a role; what it leaves empty it does not speak of."""

    verbs: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()

    def allows(self, wanted: Attributes) -> bool:
        """Tell whether it allows something."""
        if wanted.path:
            return _has(self.verbs, wanted.verb) and any(_covers_path(each, wanted.path) for each in self.paths)
        return self.speaks_of(wanted) and (not self.names or wanted.name in self.names)

    def speaks_of(self, wanted: Attributes) -> bool:
        """Tell whether it allows something to some object of a resource, whatever its name is."""
        return (
            _has(self.verbs, wanted.verb)
            and _has(self.groups, wanted.group)
            and any(_covers_resource(each, wanted.full_resource) for each in self.resources)
        )

    def covers(self, small: Rule) -> bool:
        """Tell whether it allows all that a rule does which speaks either of resources or of paths."""
        if not _has_all(self.verbs, small.verbs):
            return False
        if small.paths:
            return all(any(_covers_path(mine, each) for mine in self.paths) for each in small.paths)
        return (
            _has_all(self.groups, small.groups)
            and all(any(_covers_resource(mine, each) for mine in self.resources) for each in small.resources)
            and (not self.names or (bool(small.names) and set(small.names) <= set(self.names)))
        )

    def document(self) -> Document:
        """Give it as roles state it."""
        found = {
            "verbs": self.verbs,
            "apiGroups": self.groups,
            "resources": self.resources,
            "resourceNames": self.names,
            "nonResourceURLs": self.paths,
        }
        return {field: list(values) for field, values in found.items() if values or field == "verbs"}

    def told(self) -> str:
        """Give it as refusals name it."""
        fields = (
            ("APIGroups", self.groups),
            ("Resources", self.resources),
            ("NonResourceURLs", self.paths),
            ("ResourceNames", self.names),
            ("Verbs", self.verbs),
        )
        listed = (f"{name}:[{_quoted(values)}]" for name, values in fields if values)
        return "{" + ", ".join(listed) + "}"

    @property
    def size(self) -> int:
        """How many rules of one verb on one thing it comes to."""
        things = len(self.groups) * len(self.resources) * max(1, len(self.names))
        return len(self.verbs) * (things + len(self.paths))

    def parts(self) -> Iterator[Rule]:
        """Give it in rules of one verb on one thing."""
        for path, verb in itertools.product(self.paths, self.verbs):
            yield Rule(verbs=(verb,), paths=(path,))
        names: Iterable[tuple[str, ...]] = [(each,) for each in self.names] or [()]
        for group, resource, verb, name in itertools.product(self.groups, self.resources, self.verbs, names):
            yield Rule(verbs=(verb,), groups=(group,), resources=(resource,), names=name)


def of_role(manifest: Mapping[str, Any]) -> tuple[Rule, ...]:
    """Read the rules of a role."""
    stated = manifest.get("rules")
    return tuple(_rule(each) for each in stated if isinstance(each, dict)) if isinstance(stated, list) else ()


def _rule(stated: Mapping[str, Any]) -> Rule:
    return Rule(
        verbs=_texts(stated, "verbs"),
        groups=_texts(stated, "apiGroups"),
        resources=_texts(stated, "resources"),
        names=_texts(stated, "resourceNames"),
        paths=_texts(stated, "nonResourceURLs"),
    )


def missing(held: tuple[Rule, ...], wanted: Iterable[Rule]) -> list[Rule]:
    """Give what some rules allow and none of those that are held does, in rules of one verb on one thing."""
    # Most rules are held as they are; what speaks of resources and of paths at once is taken apart.
    open_rules = [
        rule
        for rule in map(_once, wanted)
        if (rule.paths and rule.resources) or not any(each.covers(rule) for each in held)
    ]
    if (count := sum(rule.size for rule in open_rules)) > MOST_PARTS:
        raise statuses.bad_request(f"the rules allow {count} single things; at most {MOST_PARTS} can be checked")
    parts = dict.fromkeys(part for rule in open_rules for part in rule.parts())
    return [part for part in parts if not any(rule.covers(part) for rule in held)]


def _once(rule: Rule) -> Rule:
    """Leave out what a rule lists twice."""
    fields = {name: tuple(dict.fromkeys(getattr(rule, name))) for name in rule.__struct_fields__}
    return Rule(**fields)


def merged(parts: Iterable[Rule]) -> list[Rule]:
    """Put rules together that differ in their verbs alone."""
    verbs: dict[Rule, list[str]] = {}
    for part in parts:
        verbs.setdefault(msgspec.structs.replace(part, verbs=()), []).extend(part.verbs)
    return [msgspec.structs.replace(rule, verbs=tuple(dict.fromkeys(found))) for rule, found in verbs.items()]


def selects(selector: Mapping[str, Any], labels: Mapping[str, Any]) -> bool:
    """Tell whether a label selector fits labels."""
    if any(labels.get(key) != value for key, value in structure.mapping(selector, "matchLabels").items()):
        return False
    return all(_meets(each, labels) for each in selector.get("matchExpressions") or ())


def _meets(requirement: Mapping[str, Any], labels: Mapping[str, Any]) -> bool:
    key, values = str(requirement.get("key")), requirement.get("values") or ()
    match requirement.get("operator"):
        case "In":
            return key in labels and labels[key] in values
        case "NotIn":
            return key not in labels or labels[key] not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
    return False


def _texts(stated: Mapping[str, Any], field: str) -> tuple[str, ...]:
    found = stated.get(field)
    return tuple(each for each in found if isinstance(each, str)) if isinstance(found, list) else ()


def _has(listed: tuple[str, ...], wanted: str) -> bool:
    return wanted in listed or "*" in listed


def _has_all(listed: tuple[str, ...], wanted: tuple[str, ...]) -> bool:
    return "*" in listed or all(each in listed for each in wanted)


def _covers_resource(stated: str, wanted: str) -> bool:
    """Tell whether a resource in a rule stands for another: `*` for all, `*/scale` for that subresource of all."""
    if stated in ("*", wanted):
        return True
    _, slash, below = wanted.partition("/")
    return bool(slash) and stated == f"*/{below}"


def _covers_path(stated: str, wanted: str) -> bool:
    return stated == wanted or (stated.endswith("*") and wanted.startswith(stated.rstrip("*")))


def _quoted(values: tuple[str, ...]) -> str:
    return " ".join(f'"{each}"' for each in values)
