"""Disruption budgets."""

import msgspec

from pumice.api.meta import KubeObject, LabelSelector, Wire


class PodDisruptionBudgetSpec(Wire, frozen=True, kw_only=True):
    """The pods of a budget and what it protects; counts may be percentages."""

    selector: LabelSelector | None = None
    min_available: int | str | None = None
    max_unavailable: int | str | None = None


class PodDisruptionBudgetStatus(Wire, frozen=True, kw_only=True):
    """How many pods may be disrupted now, and which already are."""

    disruptions_allowed: int = 0
    disrupted_pods: dict[str, str] = msgspec.field(default_factory=dict)
    current_healthy: int = 0
    desired_healthy: int = 0
    expected_pods: int = 0
    observed_generation: int = 0


class PodDisruptionBudget(KubeObject, frozen=True, kw_only=True):
    """A limit on voluntary disruption."""

    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()
