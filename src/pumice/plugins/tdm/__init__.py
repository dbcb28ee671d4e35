"""The plugin tdm: some nodes are for batch work in given hours only."""

from pumice.plugins.tdm.plugin import TimeDivision

__all__ = ["TimeDivision"]
