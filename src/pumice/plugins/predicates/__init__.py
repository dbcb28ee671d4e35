"""The plugin predicates: a pod goes only where Kubernetes would let it run."""

from pumice.plugins.predicates.plugin import Predicates

__all__ = ["Predicates"]
