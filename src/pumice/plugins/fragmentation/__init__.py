"""fragmentation: keep what is left of GPUs usable."""

from pumice.plugins.fragmentation.plugin import Fragmentation

__all__ = ["Fragmentation"]
