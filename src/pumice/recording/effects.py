"""Effects as a recording writes them, and the numbers by which outcomes name them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pumice.api import kinds
from pumice.cache.effects import Bind, Create, Evict, Note, Patch, Prepare, Read, TakeBack

if TYPE_CHECKING:
    from pumice.cache.effects import Answerable, Effect

Plain = list[Any]

_KINDS: Final = {f"{kind.api_version}/{kind.name}": kind for kind in kinds.KINDS}
_NAMES: Final = {id(kind): name for name, kind in _KINDS.items()}


def plain(effect: Effect) -> Plain:
    """Write an effect as a list: what it is, whom it is about, and the rest."""
    match effect:
        case Bind():
            extra = [effect.annotations, effect.volumes, effect.volume_patience]
            return ["bind", effect.namespace, effect.name, effect.uid, effect.node, *(extra if any(extra) else ())]
        case Prepare():
            return ["prepare", effect.namespace, effect.name, effect.uid, effect.node, effect.preparations]
        case TakeBack():
            return ["take back", effect.namespace, effect.name, effect.uid, effect.preparations]
        case Evict():
            return ["evict", effect.namespace, effect.name, effect.uid, effect.reason, effect.grace_seconds]
        case Note():
            head = ["event", kind_name(effect.kind), effect.namespace, effect.name, effect.uid]
            return [*head, effect.type, effect.reason, effect.message]
        case Patch():
            head = ["patch", kind_name(effect.kind), effect.namespace, effect.name, effect.uid]
            return [*head, effect.body, effect.subresource, effect.strategic]
        case Create():
            return ["create", kind_name(effect.kind), effect.manifest]
        case Read():
            return ["read", kind_name(effect.kind), effect.namespace, effect.name, effect.uid]


def described(effect: Plain) -> str:
    """Say in words what an effect does."""
    verb, *rest = effect
    match verb:
        case "bind":
            return f"bind {rest[0]}/{rest[1]} to {rest[3]}"
        case "prepare":
            return f"prepare {rest[0]}/{rest[1]} for {rest[3]}"
        case "take back":
            return f"take back what was prepared for {rest[0]}/{rest[1]}"
        case "evict":
            return f"evict {rest[0]}/{rest[1]}: {rest[3]}"
        case "event":
            return f"event on {_object(rest)}: {rest[5]}: {rest[6]}"
        case "patch":
            return f"write {_object(rest)}: {_written(rest[4])}"
        case "create":
            return f"create {rest[0].rpartition('/')[2]} {rest[1].get('metadata', {}).get('name', '')}"
    return f"{verb} {_object(rest)}"


def _object(rest: Plain) -> str:
    kind, namespace, name = rest[0].rpartition("/")[2], rest[1], rest[2]
    return f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}"


def _written(body: dict[str, Any]) -> str:
    """Say what a patch writes: the phase, the nomination, and the conditions' messages come first."""
    status = body.get("status", {})
    if not isinstance(status, dict):
        return str(body)
    told = [f"{key} {status[key]}" for key in ("phase", "nominatedNodeName") if status.get(key)]
    told += [
        f"{each.get('type')}={each.get('status')} ({each.get('reason')}: {each.get('message')})"
        for each in status.get("conditions") or ()
    ]
    others = {k: v for k, v in status.items() if k not in ("phase", "nominatedNodeName", "conditions")}
    told += [f"{key} {_listed(value)}" for key, value in others.items() if value]
    return ", ".join(told) or str(body)


def _listed(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {each}" for key, each in value.items()) + "}"
    return str(value)


def kind_name(kind: kinds.Kind) -> str:
    """Write a kind: `v1/Pod`."""
    return _NAMES.get(id(kind)) or f"{kind.api_version}/{kind.name}"


def find_kind(name: str) -> kinds.Kind:
    """Return the kind of a name, or raise a KeyError."""
    return _KINDS[name]


class Ledger:
    """Numbers effects as they are sent, so that an outcome can name its own; the same effects get the same numbers again."""

    def __init__(self) -> None:
        self.sent = 0
        self.open: dict[int, Answerable] = {}
        self.again: dict[int, int] = {}  # how often an effect was sent once more before it was answered
        self._numbers: dict[int, int] = {}

    def send(self, effect: Effect) -> None:
        """Take note of an effect."""
        if isinstance(effect, Note):
            return
        known = self._numbers.get(id(effect))
        if known is not None:
            self.again[known] = self.again.get(known, 0) + 1
            return
        self.sent += 1
        self.open[self.sent] = effect
        self._numbers[id(effect)] = self.sent

    def number(self, effect: Answerable) -> int:
        """Return the number of an effect that is answered now; 0 for one that was not sent here."""
        number = self._numbers.get(id(effect), 0)
        if number:
            self._answer(number)
        return number

    def effect(self, number: int) -> Answerable:
        """Return the effect of a number, which is answered now; raise a KeyError if there is none."""
        effect = self.open[number]
        self._answer(number)
        return effect

    def _answer(self, number: int) -> None:
        left = self.again.get(number, 0)
        if left:
            self.again[number] = left - 1
            return
        self.again.pop(number, None)
        effect = self.open.pop(number)
        del self._numbers[id(effect)]

    def restore(self, sent: int, waiting: dict[int, Answerable], again: dict[int, int]) -> None:
        """Go on from what a state holds."""
        self.sent, self.open, self.again = sent, waiting, again
        self._numbers = {id(effect): number for number, effect in waiting.items()}
