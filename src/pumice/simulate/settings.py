"""What is to be simulated, as plain values: they travel to other processes, which read the same files."""

from __future__ import annotations

from typing import Literal

import msgspec

Format = Literal["swf", "openb", "jobs", "recording"]
Estimates = Literal["trace", "exact", "modal", "none"]


class PolicyFile(msgspec.Struct, frozen=True, kw_only=True):
    """A policy by name: the text of its configuration (empty: the default one) and the file it stands in."""

    name: str
    text: str = ""
    file: str = ""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that the figures depend on."""

    trace: str
    policies: tuple[PolicyFile, ...]
    cluster: str = ""
    format: Format | None = None
    form: Literal["pod", "gang"] = "pod"
    first: int = 0
    load: float = 0.0
    stay: bool = False
    seed: int = 42
    shake: int = 0
    estimates: Estimates = "trace"
    typical: Literal["history", "trace"] = "history"
    node_order: Literal["seeded", "name"] = "seeded"
    period: int = 0
    isolated: bool = False
