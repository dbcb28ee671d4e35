"""Which configuration and flags a study runs with: those that are given, else those that came with the cluster, else the built-in default."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pumice.cache.options import Options
from pumice.framework import configuration
from pumice.scenario import policies
from pumice.study import live
from pumice.study.state import StudyError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pumice.api import core
    from pumice.framework.configuration import Configuration
    from pumice.framework.registry import Registry
    from pumice.study.state import State

PREFIX = "configmap:"


class Policy(msgspec.Struct, frozen=True):
    """A configuration, where it was found, and the flags beside it."""

    configuration: Configuration
    source: str
    options: Options


def choose(
    state: State,
    known: Registry,
    *,
    given: str = "",
    scheduler_names: tuple[str, ...] = (),
    pods: Iterable[core.Pod] = (),
    access: live.Access | None = None,
) -> Policy:
    """Return what a scheduler of this cluster would run with."""
    flags = dict(state.flags)
    if scheduler_names or "scheduler-name" not in flags:
        flags["scheduler-name"] = list(scheduler_names or state.scheduler_names(pods))
    try:
        options = Options.from_flags(flags)
    except ValueError as error:
        raise StudyError(str(error)) from error
    if given:
        return Policy(_given(given, known, access), given, options)
    if state.configuration is not None:
        return Policy(state.configuration, state.configuration_source, options)
    if state.text is not None:
        return Policy(load(state.text, known, state.configuration_source), state.configuration_source, options)
    return Policy(configuration.default(known.catalog()), "the built-in default", options)


def _given(given: str, known: Registry, access: live.Access | None) -> Configuration:
    if given.startswith(PREFIX):
        parts = given.removeprefix(PREFIX).split("/")
        if not 2 <= len(parts) <= 3 or not all(parts):
            raise StudyError(f"--config {given}: write configmap:NAMESPACE/NAME or configmap:NAMESPACE/NAME/KEY")
        return load(live.config_map(access or live.Access(), *parts), known, given)
    return load_file(given, known)


def load_file(given: str, known: Registry) -> Configuration:
    """Load FILE, or FILE#KEY of a ConfigMap in it."""
    file, _, key = given.partition("#")
    try:
        policy = policies.load(file, key)
        return configuration.load(policy.text, known.catalog(), file)
    except policies.PolicyError as error:
        raise StudyError(str(error)) from error
    except configuration.ConfigurationError as error:
        told = "\n".join(policy.told(problem, "") for problem in error.problems)
        raise StudyError(f"{given} is refused:\n{told}") from error


def load(text: str, known: Registry, source: str) -> Configuration:
    """Load a text, or say where it came from and what is wrong with it."""
    try:
        return configuration.load(text, known.catalog(), source)
    except configuration.ConfigurationError as error:
        told = "\n".join(str(problem) for problem in error.problems)
        raise StudyError(f"the configuration in {source} is refused:\n{told}") from error
