"""The plugin crossquota."""

from pumice.plugins.crossquota.plugin import CrossQuota

__all__ = ["CrossQuota"]
