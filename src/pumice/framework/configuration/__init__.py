"""The scheduler's configuration: from text to settings that are sound, or to a list of what is wrong with it.

Here live the file formats, the switches and arguments they may hold, the checks, and the rule that a refused file leaves the last good one
in force. What plugins and actions exist is told by a `Catalog`; nothing here imports one, reads a file, or watches anything.
"""

from pumice.framework.configuration.arguments import Argument
from pumice.framework.configuration.catalog import (
    PEER_ACTIONS,
    PEER_PLUGINS,
    ActionDescription,
    Catalog,
    PluginDescription,
)
from pumice.framework.configuration.loader import default, load
from pumice.framework.configuration.model import (
    ActionSetting,
    Configuration,
    ConfigurationError,
    PluginSetting,
    Problem,
)
from pumice.framework.configuration.objects import QueueLike, object_warnings
from pumice.framework.configuration.reload import ConfigurationHolder, Offer
from pumice.framework.configuration.settings import Configured, Settings
from pumice.framework.configuration.switches import SWITCHES

__all__ = [
    "PEER_ACTIONS",
    "PEER_PLUGINS",
    "SWITCHES",
    "ActionDescription",
    "ActionSetting",
    "Argument",
    "Catalog",
    "Configuration",
    "ConfigurationError",
    "ConfigurationHolder",
    "Configured",
    "Offer",
    "PluginDescription",
    "PluginSetting",
    "Problem",
    "QueueLike",
    "Settings",
    "default",
    "load",
    "object_warnings",
]
