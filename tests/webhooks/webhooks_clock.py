"""The present moment, for certificates that a TLS library compares with its own clock."""

from __future__ import annotations

import datetime as dt


def now() -> dt.datetime:
    return dt.datetime.now(dt.UTC)
