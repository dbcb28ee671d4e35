"""What the serving process and the studying one tell each other, and how it travels: a length, then MessagePack."""

from __future__ import annotations

import struct
from typing import Any, Final

import msgspec

from pumice.study.naming import What  # noqa: TC001  msgspec reads the annotations at run time
from pumice.web.sight import EVERYTHING, Sight

LARGEST: Final = 1 << 30
_LENGTH: Final = struct.Struct(">I")


class Explain(msgspec.Struct, frozen=True, tag="explain"):
    """Why something stands as it does, and, if a search is wanted too, the smallest change that would start it."""

    what: What
    name: str
    search: bool = True


class Shares(msgspec.Struct, frozen=True, tag="shares"):
    """How all queues stand, and which hyper-nodes nodes are in."""


class Policy(msgspec.Struct, frozen=True, tag="policy"):
    """Which configuration is in force."""


class WhatIf(msgspec.Struct, frozen=True, kw_only=True, tag="what-if"):
    """What a change would do: manifests to apply, nodes to drain, another configuration."""

    manifests: str = ""
    drain: tuple[str, ...] = ()
    config: str = ""


Question = Explain | Shares | Policy | WhatIf


class Feed(msgspec.Struct, frozen=True, tag="feed"):
    """Objects that changed: apiVersion, kind, what happened, and their JSON."""

    changes: list[tuple[str, str, str, bytes]]


class About(msgspec.Struct, frozen=True, kw_only=True, tag="about"):
    """What is known of the cluster beside its objects; `denied` are kinds that may not be listed, with the server's words.

    `since` is when the configuration came into force, or was last written; 0 if nobody knows.
    """

    source: str
    text: str | None = None
    configuration: str = ""
    since: int = 0
    given: str = ""
    plugins: str = ""
    schedulers: tuple[str, ...] = ()
    denied: tuple[tuple[str, str, str], ...] = ()
    notes: tuple[str, ...] = ()
    flags: dict[str, Any] = {}


class Then(msgspec.Struct, frozen=True):
    """A moment that is past: the changes that lead back to it, and what was known beside the objects."""

    changes: list[tuple[str, str, str, bytes]]
    about: About


class Ask(msgspec.Struct, frozen=True, tag="ask"):
    """A question at a moment, to be answered within so many seconds, for somebody who may see so much; of the cluster as it is, or as it was then."""

    question: Question
    now: int
    seconds: float
    sight: Sight = EVERYTHING
    then: Then | None = None


Message = Feed | About | Ask


class Answer(msgspec.Struct, frozen=True):
    """JSON that a page takes, or why there is none."""

    body: bytes = b""
    problem: str = ""


MESSAGES: Final[msgspec.msgpack.Decoder[Message]] = msgspec.msgpack.Decoder(Message)
ANSWERS: Final = msgspec.msgpack.Decoder(Answer)


def packed(message: msgspec.Struct) -> bytes:
    """Write a message as it travels."""
    body = msgspec.msgpack.encode(message)
    return _LENGTH.pack(len(body)) + body


def length(head: bytes) -> int:
    """Read how long a message is; what is too long is no message of ours."""
    (found,) = _LENGTH.unpack(head)
    if found > LARGEST:
        raise ValueError(f"a message of {found} bytes, and at most {LARGEST} are taken")
    return int(found)


HEAD: Final = _LENGTH.size
