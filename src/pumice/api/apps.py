"""Workload owners, as far as spreading and companion groups need them."""

from pumice.api.meta import KubeObject, LabelSelector, Wire


class ReplicaSetSpec(Wire, frozen=True, kw_only=True):
    """The pods of a replica set; absent replicas mean one."""

    replicas: int | None = None
    selector: LabelSelector | None = None


class ReplicaSet(KubeObject, frozen=True, kw_only=True):
    """A replica set."""

    spec: ReplicaSetSpec = ReplicaSetSpec()


class StatefulSetSpec(Wire, frozen=True, kw_only=True):
    """The pods of a stateful set; absent replicas mean one."""

    replicas: int | None = None
    selector: LabelSelector | None = None


class StatefulSet(KubeObject, frozen=True, kw_only=True):
    """A stateful set."""

    spec: StatefulSetSpec = StatefulSetSpec()
