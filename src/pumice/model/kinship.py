"""Kinship: what rules about other pods can tell apart, and the counts those rules are judged by.

A pod's *kin* is its namespace, its owner, and its labels as far as some live rule names their keys. Kin is no part of a shape, so labels that no rule names keep
no two pods apart. When a rule names a new key, pods are looked at again, once, before the next cycle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.model import bonds, pickers, selectors
from pumice.model.carriers import Meaning, Register
from pumice.model.counts import Count, DomainCounts
from pumice.model.domains import Topology
from pumice.model.statuses import GOING, Status
from pumice.model.workloads import Workloads, owner_of

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping

    from pumice.api import meta
    from pumice.model.bonds import Bonds
    from pumice.model.carriers import Carriers
    from pumice.model.counts import DomainCount
    from pumice.model.domains import Division
    from pumice.model.nodes import NodeRecord, NodeTable
    from pumice.model.pickers import Hook, Picker
    from pumice.model.shape import ConstraintClass
    from pumice.model.task import Task
    from pumice.model.workloads import Owner

NAMESPACE_NAME = "kubernetes.io/metadata.name"
# How many labels that no rule names any more may stay looked at, beyond as many as are named.
SPARE_KEYS = 64
FEW_COUNTS = 64


class Kin:
    """Pods that no live rule about other pods can tell apart."""

    __slots__ = (
        "bonds",
        "counts",
        "hooks",
        "key",
        "labels",
        "meaning",
        "members",
        "namespace",
        "owner",
        "surroundings",
    )

    def __init__(
        self, namespace: str, labels: Mapping[str, str], owner: Owner | None, surroundings: Mapping[str, str]
    ) -> None:
        self.key: Hashable = (namespace, tuple(labels.items()), owner)
        self.namespace = namespace
        self.labels = labels
        self.owner = owner
        # The labels of the namespace.
        self.surroundings = surroundings
        self.members: dict[str, Task] = {}
        self.bonds: dict[ConstraintClass, Bond] = {}
        self.hooks = tuple(pickers.hooks(namespace, labels))
        # What counts these pods, and whose rules mean them.
        self.counts: dict[Count, None] = {}
        self.meaning = Meaning()

    def is_picked(self, by: Iterable[Picker]) -> bool:
        """Tell whether every picker picks these pods."""
        return all(picker.picks(self.namespace, self.surroundings, self.labels) for picker in by)


class Bond:
    """Pods of one kin and one constraint class: all that rules about other pods need to know of them."""

    __slots__ = ("_signature", "carried", "chooses_nodes", "constraint_class", "kin", "kinship", "rules", "users")

    def __init__(self, kinship: Kinship, kin: Kin, constraint_class: ConstraintClass, rules: Bonds) -> None:
        self.kinship = kinship
        self.kin = kin
        self.constraint_class = constraint_class
        self.rules = rules
        constraints = constraint_class.constraints
        self.chooses_nodes = (
            bool(constraints.node_selector) or selectors.required_terms(constraints.affinity) is not None
        )
        self.carried: tuple[tuple[Carriers, int], ...] = ()
        self.users = 0
        self._signature: tuple[int, Hashable] = (-1, None)

    @property
    def soft(self) -> tuple[bonds.Spread, ...]:
        """The constraints that spreading is scored by: the pod's own, or what follows from its services and its owner."""
        if self.constraint_class.constraints.spread:
            return self.rules.soft
        return self.kinship.workloads.defaults(self.kin.namespace, self.kin.labels, self.kin.owner)

    @property
    def avoided_by(self) -> list[Carriers]:
        """The anti-affinity terms of pods on nodes that mean this one."""
        return [rule for rule in self.kinship.register.meaning(self.kin) if rule.required and rule.anybody]

    @property
    def preferred_by(self) -> list[Carriers]:
        """The preferences of pods on nodes that mean this one."""
        return [rule for rule in self.kinship.register.meaning(self.kin) if not rule.required and rule.anybody]

    def signature(self) -> Hashable:
        """Return what verdicts and scores depend on beside shape and nodes; None if nothing of other pods matters."""
        register = self.kinship.register
        version = register.version + self.kinship.workloads.version
        if self._signature[0] != version:
            found = (self.rules, self.soft, tuple(rule.serial for rule in register.meaning(self.kin)))
            self._signature = (version, None if found == (bonds.NONE, (), ()) else found)
        return self._signature[1]


def bond_of(task: Task) -> Bond | None:
    """Return what rules about other pods need to know of a task; None if it is in no cluster."""
    bond = task.bond
    return bond if isinstance(bond, Bond) else None


class Kinship:
    """Keeps kins and counts in step with the tasks of a cluster."""

    def __init__(self, table: NodeTable) -> None:
        self.topology = Topology(table)
        self.workloads = Workloads()
        self.register = Register()
        # Whether anything is counted at all.
        self.counting = False
        self._table = table
        self.domain_counts = DomainCounts()
        # Labels that rules name, with the number of classes that do, and labels that pods are told apart by: these and some that were named before.
        self._keys: dict[str, int] = {}
        self.looked_at: dict[str, None] = {}
        self._classes: dict[ConstraintClass, int] = {}
        self.kins: dict[Hashable, Kin] = {}
        self._kins_by_hook: pickers.Index[Kin] = pickers.Index()
        self.counts: dict[tuple[Picker, ...], Count] = {}
        self._counts_by_hook: pickers.Index[Count] = pickers.Index()
        self._swept = FEW_COUNTS
        self._stale = False
        self._stale_namespaces: dict[str, None] = {}
        self._surroundings: dict[str, Mapping[str, str]] = {}

    # -- tasks -------------------------------------------------------------------------------------------------

    def enter(self, task: Task) -> None:
        """Take a task in; its node and status are set."""
        constraint_class = task.shape.constraint_class
        if constraint_class.concerns_pods:
            users = self._classes.get(constraint_class, 0)
            self._classes[constraint_class] = users + 1
            if not users:
                self._name(bonds.label_keys(constraint_class.constraints))
        self._attach(task)

    def leave(self, task: Task) -> None:
        """Let a task go; its node and status are still set."""
        self._detach(task)
        constraint_class = task.shape.constraint_class
        if constraint_class.concerns_pods:
            users = self._classes[constraint_class] - 1
            if users:
                self._classes[constraint_class] = users
            else:
                del self._classes[constraint_class]
                self._unname(bonds.label_keys(constraint_class.constraints))

    def moved(self, task: Task, record: NodeRecord | None, status: Status) -> None:
        """Count a task elsewhere; its own node and status are still those it had."""
        bond = bond_of(task)
        if bond is None or not (bond.carried or bond.kin.counts):
            return
        if record is not task.node or (status in GOING) != (task.status in GOING):
            if task.node is not None:
                self._add(bond, task.node, -1, going=task.status in GOING)
            if record is not None:
                self._add(bond, record, 1, going=status in GOING)

    @staticmethod
    def _add(bond: Bond, record: NodeRecord, sign: int, *, going: bool) -> None:
        for count in bond.kin.counts:
            count.add(record, sign, going=going)
        for carriers, weight in bond.carried:
            carriers.add(record, sign * weight, going=going)

    def _attach(self, task: Task) -> None:
        kin = self._kin(task)
        constraint_class = task.shape.constraint_class
        bond = kin.bonds.get(constraint_class)
        if bond is None:
            bond = self._bond(kin, constraint_class)
        bond.users += 1
        kin.members[task.uid] = task
        task.bond = bond
        if task.node is not None:
            self._add(bond, task.node, 1, going=task.status in GOING)

    def _detach(self, task: Task) -> None:
        bond = bond_of(task)
        if bond is None:
            return
        if task.node is not None:
            self._add(bond, task.node, -1, going=task.status in GOING)
        task.bond = None
        del bond.kin.members[task.uid]
        bond.users -= 1
        if not bond.users:
            self._dissolve(bond)

    # -- kins and bonds ----------------------------------------------------------------------------------------

    def _kin(self, task: Task) -> Kin:
        """Return the kin of a task, made when it is the first."""
        metadata = task.pod.metadata
        namespace = metadata.namespace
        local = self.workloads.keys(namespace)
        labels: dict[str, str] = {}
        if self.looked_at or local:
            every = sorted(metadata.labels.items())
            labels = {key: value for key, value in every if key in self.looked_at or key in local}
        owner = owner_of(metadata)
        key = (namespace, tuple(labels.items()), owner)
        kin = self.kins.get(key)
        if kin is None:
            kin = self.kins[key] = Kin(namespace, labels, owner, self.surroundings(namespace))
            for hook in kin.hooks:
                self._kins_by_hook.put(hook, kin)
                for count in self._counts_by_hook.get(hook, ()):
                    self._introduce(count, kin)
        return kin

    @staticmethod
    def _introduce(count: Count, kin: Kin) -> None:
        """Let a count know a kin, if it is meant by it."""
        if kin.is_picked(count.pickers):
            count.kins[kin] = None
            kin.counts[count] = None

    def _bond(self, kin: Kin, constraint_class: ConstraintClass) -> Bond:
        rules = bonds.NONE
        if constraint_class.concerns_pods:
            rules = bonds.read(constraint_class.constraints, kin.namespace, kin.labels, kin.surroundings)
        bond = kin.bonds[constraint_class] = Bond(self, kin, constraint_class, rules)
        carried = [(self.register.take(term, required=True), 1) for term in rules.anti]
        carried += [(self.register.take(term, required=False), term.weight) for term in rules.preferred]
        bond.carried = tuple(carried)
        self.counting = self.counting or bool(carried)
        return bond

    def _dissolve(self, bond: Bond) -> None:
        """Drop a bond that holds nobody, the rules nobody else carries, and the kin that is nobody's."""
        kin = bond.kin
        del kin.bonds[bond.constraint_class]
        for carriers, _ in bond.carried:
            if self.register.give_back(carriers):
                self.domain_counts.forget(carriers)
        self.counting = bool(self.counts or len(self.register))
        if not kin.bonds:
            del self.kins[kin.key]
            for hook in kin.hooks:
                self._kins_by_hook.drop(hook, kin)
            for count in kin.counts:
                count.kins.pop(kin, None)

    # -- counts ------------------------------------------------------------------------------------------------

    def count(self, *picked_by: Picker) -> Count:
        """Return the count of the pods that every picker picks."""
        count = self.counts.get(picked_by)
        if count is None:
            count = self.counts[picked_by] = Count(picked_by)
            self.counting = True
            hook = _hook(picked_by)
            self._counts_by_hook.put(hook, count)
            for kin in self._kins_by_hook.get(hook, ()):
                self._introduce(count, kin)
            for counted in count.kins:
                for task in counted.members.values():
                    if task.node is not None:
                        count.add(task.node, 1, going=task.status in GOING)
        count.asked = True
        return count

    def by_domains(
        self, count: Count, division: Division, constraint_class: ConstraintClass | None = None
    ) -> DomainCount:
        """Return a count by domains."""
        domains = self.topology.domains(division, constraint_class)
        return self.domain_counts.of(count, division, domains, self.topology.state)

    # -- what changes between cycles ---------------------------------------------------------------------------

    def _name(self, keys: Iterable[str]) -> None:
        for key in keys:
            users = self._keys.get(key, 0)
            self._keys[key] = users + 1
            self._stale = self._stale or key not in self.looked_at

    def _unname(self, keys: Iterable[str]) -> None:
        """Note that a rule no longer names keys; they stay looked at until pods are looked at again for another reason."""
        for key in keys:
            self._keys[key] -= 1
            if not self._keys[key]:
                del self._keys[key]

    def looks_at(self, namespace: str, keys: Iterable[str]) -> bool:
        """Tell whether pods of a namespace are told apart by some of these labels."""
        local = self.workloads.keys(namespace)
        return any(key in self.looked_at or key in self._keys or key in local for key in keys)

    def surroundings(self, namespace: str) -> Mapping[str, str]:
        """Return the labels of a namespace; every namespace has its name as a label."""
        return self._surroundings.get(namespace) or {NAMESPACE_NAME: namespace}

    def consider(self, kind: str, metadata: meta.ObjectMeta, found: meta.KubeObject | None) -> None:
        """Note that an object that rules look at came, changed or went."""
        if kind == "Namespace":
            self._consider_namespace(metadata.name, found)
        elif self.workloads.consider(kind, metadata, found):
            self._stale_namespaces[metadata.namespace] = None

    def _consider_namespace(self, name: str, found: meta.KubeObject | None) -> None:
        labels = {**(found.metadata.labels if found is not None else {}), NAMESPACE_NAME: name}
        if labels != self.surroundings(name):
            self._surroundings[name] = labels
            if found is None:
                del self._surroundings[name]
            self._stale_namespaces[name] = None
            # Whom rules mean has changed though no row of the table did.
            self._table.restate()

    def prepare(self) -> None:
        """Look at pods again whose kin may have changed, and drop counts that nobody has asked for in a while."""
        if len(self.looked_at) > 2 * len(self._keys) + SPARE_KEYS:
            self._forget_keys()
        if self._stale or self._stale_namespaces:
            self._look_again()
        if len(self.counts) > 2 * self._swept:
            self._drop_counts(lambda count: not count.asked)
            for count in self.counts.values():
                count.asked = False
            self._swept = max(FEW_COUNTS, len(self.counts))

    def _look_again(self) -> None:
        """Find the kin anew of pods that have a label which is looked at only now, or whose namespace changed."""
        some = self._stale_namespaces
        fresh = {key: None for key in self._keys if key not in self.looked_at}
        self._stale, self._stale_namespaces = False, {}
        tasks = [
            task
            for kin in self.kins.values()
            for task in kin.members.values()
            if kin.namespace in some or not fresh.keys().isdisjoint(task.pod.metadata.labels)
        ]
        for task in tasks:
            self._detach(task)
        self.looked_at |= fresh
        for task in tasks:
            self._attach(task)

    def _forget_keys(self) -> None:
        """Stop looking at labels that no rule names any more, and find the kin of all pods anew."""
        tasks = [task for kin in self.kins.values() for task in kin.members.values()]
        for task in tasks:
            self._detach(task)
        forgotten = {key: None for key in self.looked_at if key not in self._keys}
        self.looked_at = {key: None for key in self.looked_at if key in self._keys}
        self._drop_counts(lambda count: any(key in forgotten for picker in count.pickers for key in picker.keys))
        for task in tasks:
            self._attach(task)

    def _drop_counts(self, is_idle: Callable[[Count], bool]) -> None:
        for key, count in list(self.counts.items()):
            if is_idle(count):
                del self.counts[key]
                self._counts_by_hook.drop(_hook(count.pickers), count)
                self.domain_counts.forget(count)
                for kin in count.kins:
                    kin.counts.pop(count, None)
        self.counting = bool(self.counts or len(self.register))


def _hook(picked_by: Iterable[Picker]) -> Hook:
    """Return the narrowest hook of pickers that must all pick."""
    return max((picker.hook for picker in picked_by), key=len, default=pickers.ANY)
