"""A scenario as records: its cluster, its policy, and one record per kind of step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import msgspec

if TYPE_CHECKING:
    from pumice.scenario.expectations import Expectation
    from pumice.scenario.manifests import Entry
    from pumice.scenario.policies import Policy
    from pumice.scenario.references import Reference

SECOND = 1_000_000

Verb = Literal["bind", "evict", "status"]
Error = Literal["conflict", "refused", "unavailable", "lost-reply"]
VERBS: tuple[Verb, ...] = ("bind", "evict", "status")
ERRORS: tuple[Error, ...] = ("conflict", "refused", "unavailable", "lost-reply")


class Cycles(msgspec.Struct, frozen=True, kw_only=True):
    """Run scheduling cycles."""

    line: int
    count: int


class Until(msgspec.Struct, frozen=True, kw_only=True):
    """Run cycles until an expectation holds; one that holds already needs none."""

    line: int
    expectation: Expectation
    within: int


class Advance(msgspec.Struct, frozen=True, kw_only=True):
    """Let virtual time pass without a cycle, in microseconds."""

    line: int
    duration: int


class Apply(msgspec.Struct, frozen=True, kw_only=True):
    """Create objects or replace them by identity."""

    line: int
    entries: tuple[Entry, ...]


class Patch(msgspec.Struct, frozen=True, kw_only=True):
    """Merge partial manifests into what is there."""

    line: int
    entries: tuple[Entry, ...]


class Delete(msgspec.Struct, frozen=True, kw_only=True):
    """Delete objects: at once, or with a grace period in microseconds."""

    line: int
    references: tuple[Reference, ...]
    grace: int | None = None


class Configure(msgspec.Struct, frozen=True, kw_only=True):
    """Replace the configuration, or demand that the new one is refused."""

    line: int
    policy: Policy
    rejected: bool = False

    @property
    def text(self) -> str:
        """The text of the configuration."""
        return self.policy.text


class Fail(msgspec.Struct, frozen=True, kw_only=True):
    """Let the next matching writes fail; without an object every one matches."""

    line: int
    verb: Verb
    object: Reference | None
    times: int
    error: Error


class Expect(msgspec.Struct, frozen=True, kw_only=True):
    """Demand that something holds now."""

    line: int
    expectation: Expectation


Step = Cycles | Until | Advance | Apply | Patch | Delete | Configure | Fail | Expect


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """One scenario, ready to run; without `config` the scheduler's built-in default applies."""

    name: str
    file: str
    line: int
    policy: Policy | None = None
    config_line: int = 0
    given: tuple[Entry, ...] = ()
    steps: tuple[Step, ...] = ()
    period: int = SECOND
    flags: dict[str, Any] = {}

    @property
    def config(self) -> str | None:
        """The text of the configuration, if there is one."""
        return None if self.policy is None else self.policy.text
