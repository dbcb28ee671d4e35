"""pdb: evictions stay within disruption budgets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.api import policy
from pumice.framework.plugin import Plugin
from pumice.framework.points import Reads
from pumice.framework.runs import Step
from pumice.model import selectors

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pumice.framework.runs import Run
    from pumice.framework.session import Session
    from pumice.model.cluster import Cluster
    from pumice.model.task import Task


class DisruptionBudgets(Plugin):
    """Honour PodDisruptionBudgets wherever pods are evicted.

    A budget allows `status.disruptionsAllowed` evictions, less those made here since the object last changed. A pod that several budgets select needs room in each of
    them; one that a budget already lists in `status.disruptedPods` costs it nothing.
    """

    name = "pdb"
    points = frozenset({"Preemptable", "Reclaimable", "Protection"})

    def open(self, session: Session) -> None:
        """Register the rule wherever victims are chosen, and follow evictions."""
        self._cluster = session.cluster
        self._matches: dict[str, list[policy.PodDisruptionBudget]] = {}
        self._by_label: dict[tuple[str, str, str], list[policy.PodDisruptionBudget]] | None = None
        reads = Reads.TASK | Reads.OTHER_NODES
        session.preemptable.add(self.within_budgets, reads=reads, basis=self._basis)
        session.reclaimable.add(self.within_budgets, reads=reads, basis=self._basis)
        session.protection.add(self.protection, reads=reads, basis=self._basis)
        session.add_handler(self.follow)

    def _basis(self) -> object:
        """Return the budgets, and what was used up of them."""
        return list(self._cluster.objects.get("PodDisruptionBudget", {}).values()), dict(self._cluster.disruptions)

    def within_budgets(self, _claimant: object, candidates: Sequence[Task]) -> list[Task]:
        """Keep candidates, in the given order, while their budgets last; a refused one uses up what it asked for."""
        left: dict[str, int] = {}
        kept = []
        for task in candidates:
            budgets = self.budgets_of(task)
            for budget in budgets:
                key = _key(budget)
                left[key] = left.get(key, remaining(self._cluster, budget)) - 1
            if all(left[_key(budget)] >= 0 for budget in budgets):
                kept.append(task)
        return kept

    def protection(self, _claimant: Task | None, victim: Task, _action: str) -> str | None:
        """Protect a pod while one of its budgets is used up."""
        for budget in self.budgets_of(victim):
            if remaining(self._cluster, budget) <= 0:
                allowed = budget.status.disruptions_allowed
                return f"PodDisruptionBudget {_key(budget)} allows {allowed} disruptions, {spent(self._cluster, budget)} are used up"
        return None

    def follow(self, run: Run, direction: int) -> None:
        """Count evictions against the budgets of their pods, and give them back when they are undone."""
        if run.step is not Step.EVICT:
            return
        for task in run.tasks:
            for budget in self.budgets_of(task):
                used = spent(self._cluster, budget) - direction
                self._cluster.disruptions[_key(budget)] = (budget.metadata.resource_version, used)

    def budgets_of(self, task: Task) -> list[policy.PodDisruptionBudget]:
        """Return the budgets that an eviction of a pod would cost."""
        found = self._matches.get(task.uid)
        if found is None:
            found = self._matches[task.uid] = [budget for budget in self._near(task) if selects(budget, task)]
        return found

    def _near(self, task: Task) -> list[policy.PodDisruptionBudget]:
        """Return the budgets that may select a pod: those of its namespace that ask for one of its labels, or for none by its value; there may be as many budgets as jobs."""
        if self._by_label is None:
            self._by_label = {}
            for budget in self._cluster.objects.get("PodDisruptionBudget", {}).values():
                if isinstance(budget, policy.PodDisruptionBudget):
                    self._by_label.setdefault(_label(budget), []).append(budget)
        namespace, asked = task.namespace, self._by_label
        if not asked:
            return []
        labels = [("", ""), *task.pod.metadata.labels.items()]
        return [budget for key, value in labels for budget in asked.get((namespace, key, value), ())]


def _label(budget: policy.PodDisruptionBudget) -> tuple[str, str, str]:
    """Return a label that every pod has which a budget selects, with its namespace; an empty one if it asks for none by its value."""
    selector = budget.spec.selector
    first = next(iter(selector.match_labels.items()), ("", "")) if selector is not None else ("", "")
    return budget.metadata.namespace, *first


def selects(budget: policy.PodDisruptionBudget, task: Task) -> bool:
    """Tell whether evicting a pod costs a budget: same namespace, labels that match, and not disrupted already."""
    metadata = task.pod.metadata
    if budget.metadata.namespace != metadata.namespace or metadata.name in budget.status.disrupted_pods:
        return False
    return bool(metadata.labels) and selectors.matches(budget.spec.selector, metadata.labels)


def spent(cluster: Cluster, budget: policy.PodDisruptionBudget) -> int:
    """Return how many evictions were made here since the budget last changed."""
    version, used = cluster.disruptions.get(_key(budget), ("", 0))
    return used if version == budget.metadata.resource_version else 0


def remaining(cluster: Cluster, budget: policy.PodDisruptionBudget) -> int:
    """Return how many evictions a budget still allows."""
    return budget.status.disruptions_allowed - spent(cluster, budget)


def _key(budget: policy.PodDisruptionBudget) -> str:
    return f"{budget.metadata.namespace}/{budget.metadata.name}"
