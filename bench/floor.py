"""The floor, which `pumice bench` prints too."""

from pumice.bench.floor import scan_per_pod

__all__ = ["scan_per_pod"]
