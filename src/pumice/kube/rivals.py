"""Who else serves the same pods, or runs the same controllers: the Leases of other installations, and whether their holders live.

```
  look ──▶ nobody ──▶ take the Lease, which tells others ──▶ look again ──▶ nobody ──▶ lead
     └──▶ somebody, alive or not ──▶ wait ──▶ the Lease was renewed: refuse │ unchanged for as long as it lasts: nobody
```

Each Lease names what its holder serves: scheduler names, or controllers (an `Office` says which). Whoever leads has written its own Lease before it looked at the others', so of two that begin at once at
least one sees the other. As with our own Lease no clock of others is read: a holder lives if its Lease changes while we look, and is gone if it stays the same for a
whole lease.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec

from pumice.api import kinds, names
from pumice.kube import errors, lease

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

PAUSE: Final = 1.0
_FORBIDDEN: Final = 403


class LeaseList(Protocol):
    """The request that a look makes."""

    async def list_page(
        self, kind: kinds.Kind, *, namespace: str = "", query: Mapping[str, str | int | bool] | None = None
    ) -> bytes:
        """Read a list."""


def grouping(scheduler_names: Sequence[str]) -> tuple[str, ...]:
    """Name the work of grouping the pods of these schedulers, as Leases of controllers name it."""
    return tuple(f"{names.COMPANION_CONTROLLER}:{name}" for name in scheduler_names)


class ServedError(Exception):
    """Somebody else, who lives, serves the same pods."""


class Office(msgspec.Struct, frozen=True, kw_only=True):
    """What a kind of Lease is for: the label and the annotation of ours, and the name of Volcano's, which says nothing of what its holder serves."""

    label: str
    annotation: str
    volcanos: str
    volcano_serves: tuple[str, ...]
    noun: str
    verb: str
    remedy: str

    @property
    def queries(self) -> tuple[dict[str, str], dict[str, str]]:
        """The selectors by which its Leases are found."""
        return {"labelSelector": f"{self.label}=true"}, {"fieldSelector": f"metadata.name={self.volcanos}"}


SCHEDULING: Final = Office(
    label=names.LEASE_OF_SCHEDULER,
    annotation=names.LEASE_SERVES,
    volcanos=names.LEASE_OF_VOLCANO,
    volcano_serves=(names.SCHEDULER,),
    noun="scheduler name",
    verb="served",
    remedy="give this one another --scheduler-name",
)
CONTROLLING: Final = Office(
    label=names.LEASE_OF_CONTROLLERS,
    annotation=names.LEASE_RUNS,
    volcanos=names.CONTROLLER_MANAGER,
    volcano_serves=(*names.CONTROLLERS, f"{names.COMPANION_CONTROLLER}:{names.SCHEDULER}"),
    noun="controller",
    verb="run",
    remedy="choose others for this one with --controllers",
)


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """A Lease, with what its holder serves and the text that changes with every renewal."""

    namespace: str
    name: str
    holder: str = ""
    renewed: str = ""
    serves: tuple[str, ...] = ()
    lasts: int = lease.Timing().lease

    @classmethod
    def read(cls, manifest: dict[str, Any], office: Office = SCHEDULING) -> Claim:
        """Read a Lease as the API server gave it."""
        metadata, spec = (lease.fields(manifest.get(field)) for field in ("metadata", "spec"))
        name = str(metadata.get("name", ""))
        said = lease.fields(metadata.get("annotations")).get(office.annotation)
        seconds = spec.get("leaseDurationSeconds")
        return cls(
            namespace=str(metadata.get("namespace", "")),
            name=name,
            holder=str(spec.get("holderIdentity") or ""),
            renewed=str(spec.get("renewTime") or ""),
            serves=tuple(said.split(","))
            if isinstance(said, str)
            else office.volcano_serves * (name == office.volcanos),
            lasts=seconds * lease.SECOND if isinstance(seconds, int) else lease.Timing().lease,
        )

    @property
    def place(self) -> str:
        """Where the Lease is."""
        return f"{self.namespace}/{self.name}"


class Rivals:
    """Judges the Leases of others, without a clock or a network of its own."""

    def __init__(self, own: str, serves: tuple[str, ...], office: Office = SCHEDULING) -> None:
        self._own = own
        self.serves = serves
        self.office = office
        self._seen: dict[str, tuple[Claim, int]] = {}

    def judge(self, found: Iterable[Claim], now: int) -> Claim | None:
        """Return somebody who serves the same pods and may live, None if there is nobody; raise `ServedError` for one who does live."""
        for claim in found:
            self._note(claim, now)
        alive = (claim for claim, seen_at in self._seen.values() if now < seen_at + claim.lasts)
        return next(alive, None)

    def _note(self, claim: Claim, now: int) -> None:
        if claim.place == self._own or not claim.holder or not self._shared(claim):
            self._seen.pop(claim.place, None)
            return
        known = self._seen.get(claim.place)
        if known is None:
            self._seen[claim.place] = claim, now
        elif (known[0].holder, known[0].renewed) != (claim.holder, claim.renewed):
            raise ServedError(self.said(claim))

    def _shared(self, claim: Claim) -> list[str]:
        return [one for one in self.serves if any(_overlap(one, other) for other in claim.serves)]

    def said(self, claim: Claim) -> str:
        """Say whose pods these are, and what to do about it."""
        office, shared = self.office, self._shared(claim)
        many = f"{office.noun}{'' if len(shared) == 1 else 's'}"
        volcanos = claim.name == office.volcanos
        what = "take its place with pumice install --replace-volcano" if volcanos else "end it"
        return (
            f"{many} {', '.join(shared)} {office.verb} by {claim.holder}, who holds Lease {claim.place}: "
            f"{office.remedy}, or {what}"
        )


class Lookout:
    """Looks at the Leases of all namespaces."""

    def __init__(self, client: LeaseList, rivals: Rivals, monotonic: Callable[[], int]) -> None:
        self._client = client
        self._rivals = rivals
        self._monotonic = monotonic

    @property
    def marks(self) -> dict[str, dict[str, str]]:
        """Labels and annotations of our own Lease, by which others find it."""
        return {
            "labels": {self._rivals.office.label: "true"},
            "annotations": {self._rivals.office.annotation: ",".join(self._rivals.serves)},
        }

    def misplaced(self, manifest: dict[str, Any]) -> str:
        """Say so if whoever holds our own Lease serves other names than we do: it would be waited for in vain."""
        holder = Claim.read(manifest, self._rivals.office)
        if not holder.serves or set(holder.serves) & set(self._rivals.serves):
            return ""
        return (
            f", who serves {', '.join(holder.serves)} and not {', '.join(self._rivals.serves)}: "
            "give this one a Lease of its own with --leader-elect-resource-name"
        )

    async def look(self) -> str:
        """Say who may serve the same pods, an empty text if nobody does; raise `ServedError` for one who surely does."""
        found: list[Claim] = []
        for query in self._rivals.office.queries:
            found += _claims(await self._client.list_page(kinds.LEASE, query=query), self._rivals.office)
        claim = self._rivals.judge(found, self._monotonic())
        return "" if claim is None else f"{self._rivals.said(claim)}; waiting to see whether it lives"

    async def wait(self, tell: Callable[[str], None]) -> None:
        """Wait until nobody serves the same pods, for one who takes no Lease; whoever may not look is told so and goes on."""
        told = ""
        while True:
            try:
                text = await self.look()
            except errors.KubeError as error:
                text = f"the Leases of other schedulers: {error}"
                if isinstance(error, errors.ApiError) and error.status == _FORBIDDEN:
                    tell(text)
                    return
            if not text:
                return
            if text != told:
                tell(told := text)
            await asyncio.sleep(PAUSE)


def parted(scheduler_names: tuple[str, ...], member: str, members: int) -> tuple[str, ...]:
    """Name what one of several schedulers serves that divide pods by a hash of their names."""
    return tuple(f"{name}#{member.rpartition('-')[2]}/{members}" for name in scheduler_names)


def _overlap(one: str, other: str) -> bool:
    """Tell whether two claim the same pods: equal names, unless both serve different parts of the same division."""
    (name, _, part), (other_name, _, other_part) = one.partition("#"), other.partition("#")
    if name != other_name:
        return False
    if not part or not other_part or part.partition("/")[2] != other_part.partition("/")[2]:
        return True
    return part == other_part


async def served(client: LeaseList) -> tuple[tuple[str, ...], ...]:
    """Read which scheduler names are served together, those of the Lease first that was renewed last; nothing where that may not be read."""
    try:
        page = await client.list_page(kinds.LEASE, query=SCHEDULING.queries[0])
    except errors.ApiError:
        return ()
    held = sorted((claim for claim in _claims(page) if claim.holder), key=lambda claim: claim.renewed, reverse=True)
    return tuple(tuple(dict.fromkeys(name.partition("#")[0] for name in claim.serves)) for claim in held)


def _claims(page: bytes, office: Office = SCHEDULING) -> list[Claim]:
    try:
        items = msgspec.json.decode(page, type=dict[str, Any]).get("items")
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise errors.BrokenConnectionError(f"the list of Leases, of {len(page)} bytes, is no JSON object") from None
    return [Claim.read(item, office) for item in items or () if isinstance(item, dict)]
