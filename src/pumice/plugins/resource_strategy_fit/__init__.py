"""The plugin resource-strategy-fit: spread some resources and pack others, and keep scarce devices usable."""

from pumice.plugins.resource_strategy_fit.plugin import ResourceStrategyFit

__all__ = ["ResourceStrategyFit"]
