"""Virtual GPUs: the node's agent lists its cards in an annotation, pods ask by container for a number of cards, memory and cores of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from pumice.api import names, quantity
from pumice.plugins.deviceshare import cards, geometries
from pumice.plugins.deviceshare.cards import Card, Choice, Held, Rate, Share, State

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pumice.api import core

MIG: Final = "mig"
HAMI: Final = "hami-core"
_FIELDS: Final = 6
_MOST_CARDS: Final = 64
ALL_CORES: Final = 100
_KIND: Final = "NVIDIA"
RULE: Final = "rule "
"""How the names of rules begin that keep pods off each other's cards."""


class RegisterError(ValueError):
    """What an agent wrote and cannot be."""


class Register(msgspec.Struct, frozen=True):
    """The cards of a node, how they are shared, and by how much memory that is asked for is multiplied where they are cut."""

    cards: tuple[Card, ...] = ()
    mode: str = HAMI
    factor: int = 1


class Asked(msgspec.Struct, frozen=True):
    """What one container asks for of each of some cards; without memory it is a percentage of the card."""

    number: int
    memory: int
    percentage: int
    cores: int


class Request(msgspec.Struct, frozen=True):
    """What a pod asks for, container by container, and which cards it will have or not."""

    containers: tuple[Asked, ...]
    mode: str = ""
    use_ids: frozenset[str] = frozenset()
    avoid_ids: frozenset[str] = frozenset()
    use_types: tuple[str, ...] = ()
    avoid_types: tuple[str, ...] = ()
    named: tuple[str, ...] = ()  # names that it brings along, and of which no card that it uses may have one already


def register_of(node: core.Node, known: geometries.Geometries = geometries.NONE) -> Register:
    """Read the cards of a node, with the ways to cut them, or raise a `RegisterError`."""
    text = node.metadata.annotations.get(names.NODE_VGPU_REGISTER, "")
    offered = node.status.allocatable
    if not text or not all(
        _units(offered.get(name, 0)) for name in (names.VGPU_NUMBER, names.VGPU_CORES, names.VGPU_MEMORY)
    ):
        return Register()
    found: list[Card] = []
    mode = HAMI
    for entry in text.strip().strip(":").split(":"):
        fields = [field.strip() for field in entry.split(",")]
        if len(fields) < _FIELDS:
            raise RegisterError(
                f"{names.NODE_VGPU_REGISTER}: {entry[:60]!r} has {len(fields)} fields, {_FIELDS} are needed"
            )
        name, slots, memory, kind, health, mode = fields[:_FIELDS]
        if not (slots.isascii() and slots.isdigit() and memory.isascii() and memory.isdigit()):
            raise RegisterError(
                f"{names.NODE_VGPU_REGISTER}: slots {slots[:20]!r} and memory {memory[:20]!r} are whole numbers"
            )
        if len(found) >= _MOST_CARDS:
            raise RegisterError(f"{names.NODE_VGPU_REGISTER}: more than {_MOST_CARDS} cards")
        well = health.lower() in ("true", "1", "t")
        found.append(Card(name, int(memory[:12]), int(slots[:6]), kind, well, known.of(kind)))
    if mode != MIG:  # the last card's is the node's
        return Register(tuple(msgspec.structs.replace(card, groups=()) for card in found))
    return Register(tuple(found), MIG, known.factor)


def _units(text: Any) -> int:
    try:
        return max(0, quantity.whole(text))
    except quantity.QuantityError:
        return 0


def request_of(pod: core.Pod) -> Request:
    """Read what a pod asks for."""
    notes = pod.metadata.annotations
    return Request(
        containers=tuple(_asked(container.resources) for container in pod.spec.containers),
        mode=notes.get(names.VGPU_MODE, ""),
        use_ids=frozenset(_listed(notes.get(names.VGPU_USE_UUID, ""))),
        avoid_ids=frozenset(_listed(notes.get(names.VGPU_NO_USE_UUID, ""))),
        use_types=tuple(word.lower() for word in _listed(notes.get(names.USE_GPU_TYPE, ""))),
        avoid_types=tuple(word.lower() for word in _listed(notes.get(names.NO_USE_GPU_TYPE, ""))),
    )


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _asked(resources: core.ResourceRequirements) -> Asked:
    def units(name: str) -> int:
        return _units(resources.limits.get(name, resources.requests.get(name, 0)))

    memory, percentage = units(names.VGPU_MEMORY), units(names.VGPU_MEMORY_PERCENTAGE)
    number = _units(resources.limits.get(names.VGPU_NUMBER, 0)) or (1 if memory else 0)
    return Asked(number, memory, 0 if memory else percentage or 100, units(names.VGPU_CORES))


def choose(register: Register, state: State, request: Request, policy: str, rate: Rate | None = None) -> Choice:
    """Choose cards for one container after the other; the same card may serve several of them."""
    if request.mode and request.mode != register.mode:
        return Choice(refusal=f"its cards are shared by {register.mode}, and the pod asks for {request.mode}")
    shares: list[Share] = []
    score = 0.0
    for index, asked in enumerate(request.containers):
        found = [
            msgspec.structs.replace(share, container=index)
            for share in _for_container(register, state, request, asked, policy if rate is None else rate)
        ]
        if len(found) < asked.number:
            return _shortage(register, asked, len(found))
        score += sum(_score(register.cards[each.position], state[each.position], each, policy) for each in found)
        state = cards.taken(state, tuple(found))
        shares += found
    return Choice(tuple(shares), score)


def _shortage(register: Register, asked: Asked, found: int) -> Choice:
    of = register.cards
    memory = f"{asked.memory} MiB" if asked.memory else f"{asked.percentage}% of its memory"
    unknown = sorted({card.type for card in of if register.mode == MIG and not card.groups})
    if unknown:
        why = f"its cards are cut into MIG instances, and no geometry of {', '.join(unknown)} is known"
        return Choice(refusal=why, cause=cards.UNCUT)
    have = "an instance of" if register.mode == MIG else "have"
    left = f"{found} of its {len(of)} cards {have} {memory} and {asked.cores} cores left, {asked.number} are asked for"
    return Choice(refusal=left + cards.ill(of))


def _for_container(register: Register, state: State, request: Request, asked: Asked, by: str | Rate) -> list[Share]:
    """Choose cards for one container by a policy, of which the first will do, or by how they are rated."""
    rate = None if isinstance(by, str) else by
    found: list[Share] = []
    cut = register.mode == MIG
    # Rules are about cards that are not cut: instances keep pods apart.
    named = tuple(name for name in request.named if not name.startswith(RULE)) if cut else request.named
    for position in _order(state, by) if isinstance(by, str) else range(len(state)):
        if len(found) == asked.number and rate is None:
            break
        card, held = register.cards[position], state[position]
        need, instance = asked.memory or card.memory * asked.percentage // 100, ""
        if cut:
            fit = geometries.choose(card.groups, held.instances, need * register.factor)
            if fit is None:
                continue
            instance, need = fit
        apart = not any(name in held.names for name in named)
        if apart and _takes(card, held, request, asked.cores, 0 if cut else need):
            found.append(Share(position, need, asked.cores, named, instance=instance))
    return cards.best_first(found, rate)[: asked.number]


def _order(state: State, policy: str) -> list[int]:
    """Order cards: the last first, the fullest first, or the one that fewest use."""
    positions = range(len(state))
    if policy == "binpack":
        return sorted(positions, key=lambda at: (-state[at].memory, at))
    if policy == "spread":
        return sorted(positions, key=lambda at: (state[at].users, at))
    return list(reversed(positions))


def _takes(card: Card, held: Held, request: Request, cores: int, need: int) -> bool:
    """Tell whether a card takes one more share; how much memory an instance has is looked at before."""
    if not card.well or card.id in request.avoid_ids or (request.use_ids and card.id not in request.use_ids):
        return False
    kind = card.type.lower()
    if request.use_types:
        if not any(word in kind for word in request.use_types):
            return False
    elif any(word in kind for word in request.avoid_types):
        return False
    alone = cores == ALL_CORES and held.users > 0
    full = cores == 0 and held.cores >= ALL_CORES
    fits = (
        (not need or held.memory + need <= card.memory) and held.cores + cores <= ALL_CORES and held.users < card.slots
    )
    return fits and not alone and not full


def _score(card: Card, held: Held, share: Share, policy: str) -> float:
    """Rate a card with the share on it: how full it is, or whether it was free before."""
    if policy == "binpack":
        return 100.0 * (held.memory + share.memory) / max(1, card.memory)
    return 100.0 if policy == "spread" and not held.users else 0.0


def written(of: tuple[Card, ...], choice: Choice, containers: int) -> str:
    """Write down which container has which part of which card."""
    parts = [
        "".join(
            f"{of[share.position].id}{f'[{share.instance}]' if share.instance else ''},{_KIND},{share.memory},{share.cores}:"
            for share in choice.shares
            if share.container == index
        )
        for index in range(containers)
    ]
    return ";".join(parts)


def held_by(text: str, of: tuple[Card, ...], named: tuple[str, ...]) -> tuple[Share, ...]:
    """Read what a pod holds; cards that are gone, and parts that cannot be read, hold nothing."""
    positions = {card.id: position for position, card in enumerate(of)}
    return tuple(_read(text, positions, named))


def _read(text: str, positions: Mapping[str, int], named: tuple[str, ...]) -> Iterable[Share]:
    for index, container in enumerate(text.split(";")):
        for part in container.split(":"):
            fields = part.split(",")
            card, _, instance = fields[0].partition("[")
            if len(fields) == 4 and card in positions and fields[2].isdecimal() and fields[3].isdecimal():
                shared = named if not instance else tuple(name for name in named if not name.startswith(RULE))
                amounts = int(fields[2][:12]), int(fields[3][:6])
                yield Share(positions[card], *amounts, shared, index, instance.rstrip("]"))


def stamps(node: str, of: tuple[Card, ...], choice: Choice, containers: int, now: int) -> Mapping[str, str]:
    """Return the annotations that tell the device plugin of a node what a pod has."""
    text, seconds = written(of, choice, containers), str(now // 1_000_000)
    return {
        names.VGPU_NODE: node,
        names.VGPU_TIME: seconds,
        names.VGPU_IDS: text,
        names.DEVICES_TO_ALLOCATE: text,
        names.BIND_PHASE: "allocating",
        names.BIND_TIME: seconds,
    }
