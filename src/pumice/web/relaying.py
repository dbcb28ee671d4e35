"""What a scheduler tells the process that serves its page: how to begin, then changes, the policy in force, and how it is doing itself."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from pumice.web.questions import About, Feed

Identity = tuple[str, str, str, str]


class Begin(msgspec.Struct, frozen=True, kw_only=True, tag="begin"):
    """How to serve the page, and to reach the API server; `policy` is the ConfigMap that the policy stands in, `reads_first` where changes before this one are not told any more."""

    address: str
    certificate: str = ""
    key: str = ""
    client_ca: str = ""
    hosts: tuple[str, ...] = ()
    kubeconfig: str = ""
    master: str = ""
    policy: tuple[str, str] = ("", "")
    verbosity: int = 0
    logging_format: str = "text"
    reads_first: bool = False


class Told(msgspec.Struct, frozen=True, tag="told"):
    """Facts for the page."""

    facts: dict[str, Any]


Message = Begin | Feed | About | Told

MESSAGES: Final[msgspec.msgpack.Decoder[Message]] = msgspec.msgpack.Decoder(Message)
