"""The plugin deviceshare: accelerators that are shared, or given out one by one."""

from pumice.plugins.deviceshare.plugin import DeviceShare

__all__ = ["DeviceShare"]
