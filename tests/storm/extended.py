"""Resources that nodes offer by a name."""

from __future__ import annotations

GPU = "nvidia.com/gpu"
DEVICE = "example.com/device"  # for which a class stands on nodes whose kubelet reports none
REPORTED = (0, 0, 2, 4)  # GPUs that a kubelet may report
