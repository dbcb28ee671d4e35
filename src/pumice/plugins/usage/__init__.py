"""The plugin usage: nodes are chosen by how busy they are."""

from pumice.plugins.usage.plugin import Usage

__all__ = ["Usage"]
