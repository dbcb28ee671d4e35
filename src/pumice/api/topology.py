"""Network topology: nodes grouped by how well they are connected."""

from pumice.api.meta import Condition, KubeObject, LabelSelector, Wire

NO_TIER = -(2**31)  # out of range: the tier is required, and one that is missing must not pass for the closest


class ExactMatch(Wire, frozen=True, kw_only=True):
    """A member by name."""

    name: str = ""


class RegexMatch(Wire, frozen=True, kw_only=True):
    """Members by a pattern on their names."""

    pattern: str = ""


class MemberSelector(Wire, frozen=True, kw_only=True):
    """Which nodes or hyper-nodes are meant; exactly one of the three is set."""

    exact_match: ExactMatch | None = None
    regex_match: RegexMatch | None = None
    label_match: LabelSelector | None = None


class Member(Wire, frozen=True, kw_only=True):
    """Nodes or hyper-nodes inside a hyper-node."""

    type: str = ""
    selector: MemberSelector = MemberSelector()


class HyperNodeSpec(Wire, frozen=True, kw_only=True):
    """Tier and members; a larger tier is farther."""

    tier: int = NO_TIER
    tier_name: str = ""
    members: tuple[Member, ...] = ()


class HyperNodeStatus(Wire, frozen=True, kw_only=True):
    """How many nodes a hyper-node has."""

    node_count: int = 0
    conditions: tuple[Condition, ...] = ()


class HyperNode(KubeObject, frozen=True, kw_only=True):
    """A set of well-connected nodes."""

    spec: HyperNodeSpec = HyperNodeSpec()
    status: HyperNodeStatus = HyperNodeStatus()
