"""The rules that pods carry about others, anti-affinity terms and preferences: who carries each, and whom each means.

Whom rules mean is worked out only for pods that are asked about, and brought up to date by the rules that are new: where every rule means
almost everybody (one job per rack, say), a full table of rules and pods would be too large.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from pumice.model import pickers
from pumice.model.counts import Count

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pumice.model.bonds import Term
    from pumice.model.pickers import Hook, Picker

LOG_LIMIT = 1024


class Carriers(Count):
    """The pods that carry one rule: an anti-affinity term, each counting 1, or a preference, each counting its weight."""

    __slots__ = ("required", "serial", "topology", "users")

    def __init__(self, term: Term, serial: int, *, required: bool) -> None:
        super().__init__((term.picker,))
        self.topology = term.topology
        self.required = required
        self.serial = serial
        # How many bonds carry the rule; one that nobody carries any more never comes back.
        self.users = 0


class Meaning:
    """The live rules that mean one kin, in the order of their serial numbers, as of some version."""

    __slots__ = ("rules", "serial", "version")

    def __init__(self) -> None:
        self.rules: tuple[Carriers, ...] = ()
        self.serial = 0
        self.version = -1


class Meant(Protocol):
    """Pods that rules mean alike (`kinship.Kin`)."""

    hooks: tuple[Hook, ...]
    meaning: Meaning

    def is_picked(self, by: Iterable[Picker]) -> bool:
        """Tell whether every picker picks these pods."""


class Register:
    """All live rules."""

    def __init__(self) -> None:
        self.known: dict[tuple[Picker, str, bool], Carriers] = {}
        self._by_hook: pickers.Index[Carriers] = pickers.Index()
        self._serial = 0
        # The newest rules, oldest first.
        self._log: list[Carriers] = []
        self.version = 0

    def __len__(self) -> int:
        return len(self.known)

    def take(self, term: Term, *, required: bool) -> Carriers:
        """Return the carriers of a rule, with one user more."""
        key = (term.picker, term.topology, required)
        carriers = self.known.get(key)
        if carriers is None:
            self._serial += 1
            self.version += 1
            carriers = self.known[key] = Carriers(term, self._serial, required=required)
            self._by_hook.put(term.picker.hook, carriers)
            self._log.append(carriers)
            if len(self._log) > 2 * LOG_LIMIT:
                del self._log[:LOG_LIMIT]
        carriers.users += 1
        return carriers

    def give_back(self, carriers: Carriers) -> bool:
        """Count one user less, and tell whether that was the last."""
        carriers.users -= 1
        if carriers.users:
            return False
        picker = carriers.pickers[0]
        del self.known[picker, carriers.topology, carriers.required]
        self._by_hook.drop(picker.hook, carriers)
        self.version += 1
        return True

    def meaning(self, kin: Meant) -> tuple[Carriers, ...]:
        """Return the rules that mean a kin."""
        meaning = kin.meaning
        if meaning.version != self.version:
            fresh = self._serial - meaning.serial
            if 0 <= fresh <= len(self._log) and meaning.version >= 0:
                found = [rule for rule in meaning.rules if rule.users]
                found += [r for r in self._log[len(self._log) - fresh :] if r.users and kin.is_picked(r.pickers)]
            else:
                found = [
                    rule for hook in kin.hooks for rule in self._by_hook.get(hook, ()) if kin.is_picked(rule.pickers)
                ]
                found.sort(key=lambda rule: rule.serial)
            meaning.rules, meaning.serial, meaning.version = tuple(found), self._serial, self.version
        return meaning.rules
