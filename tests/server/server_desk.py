"""What tests of the process share: a log to look at, and settings."""

from __future__ import annotations

import io
import json

from pumice.server.flags import settings
from pumice.server.logs import logs


class Lines:
    """A log whose lines can be read."""

    def __init__(self, verbosity=0):
        self.stream = io.StringIO()
        self.log = logs.Log(verbosity, "json", self.stream)

    @property
    def all(self):
        return [json.loads(line) for line in self.stream.getvalue().splitlines()]

    def of(self, message):
        return [line for line in self.all if line["msg"] == message]


def read(**given):
    return settings.read({name.replace("_", "-"): value for name, value in given.items()})
