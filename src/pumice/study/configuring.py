"""Which configuration and flags a study runs with: those that are given, else those that came with the cluster, else the built-in default."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import yaml

from pumice.api import documents
from pumice.cache.options import Options
from pumice.framework import configuration
from pumice.scenario import manifests, policies
from pumice.study import live
from pumice.study.state import StudyError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pumice.api import core
    from pumice.framework.configuration import Configuration
    from pumice.framework.registry import Registry
    from pumice.study.state import State

PREFIX = "configmap:"


class Policy(msgspec.Struct, frozen=True):
    """A configuration, where it was found, and the flags beside it; `left_out` are plugins and actions of the cluster's own that are not provided here."""

    configuration: Configuration
    source: str
    options: Options
    left_out: tuple[str, ...] = ()


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
        return _own(state, known, options)
    return Policy(configuration.default(known.catalog()), "the built-in default", options)


def _own(state: State, known: Registry, options: Options) -> Policy:
    """Load the configuration that was found on the cluster, as far as it is provided here; what Volcano would merely ignore is ignored too."""
    text, left_out = provided(state.text or "", known)
    source = state.configuration_source
    try:
        return Policy(load(text, known, source), source, options, left_out)
    except StudyError:
        if "compatibility" in text:
            raise
        lenient = load(f"compatibility: volcano\n{text}", known, source)
        return Policy(lenient, f"{source}, by the rules of Volcano", options, left_out)


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
    return _loaded(lambda: policies.load(file, key), given, known)


def load_text(text: str, source: str, known: Registry) -> Configuration:
    """Load the text of such a file."""
    return _loaded(lambda: policies.of_text(text, source), source, known)


def _loaded(read: Callable[[], policies.Policy], given: str, known: Registry) -> Configuration:
    try:
        policy = read()
        return configuration.load(policy.text, known.catalog(), policy.file)
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


def provided(text: str, known: Registry) -> tuple[str, tuple[str, ...]]:
    """Leave out of the configuration that another scheduler runs with what is not provided here, or would ask somebody, and say what that is; one that cannot be read stays as it is."""
    usable = {name for name, plugin in known.plugins.items() if plugin.pure}
    try:
        (document,) = documents.load_all(text, "config")
    except (documents.DocumentError, ValueError):
        return text, ()
    data, left_out = document.data, list[str]()
    if (
        not isinstance(data, dict)
        or not isinstance(data.get("tiers"), list)
        or not isinstance(data.get("actions"), str)
    ):
        return text, ()
    actions = [name.strip() for name in data["actions"].split(",")]
    left_out += [f"action {name}" for name in actions if name and name not in known.actions]
    for tier in data["tiers"]:
        for plugin in manifests.sequence(manifests.dig(tier, "plugins")):
            name = manifests.dig(plugin, "name")
            left_out += [f"plugin {name}"] if isinstance(name, str) and name not in usable else []
    if not left_out:
        return text, ()
    data["actions"] = ", ".join(name for name in actions if name in known.actions)
    for tier in data["tiers"]:
        listed = manifests.sequence(manifests.dig(tier, "plugins"))
        tier["plugins"] = [plugin for plugin in listed if manifests.dig(plugin, "name") in usable]
    data["tiers"] = [tier for tier in data["tiers"] if tier["plugins"]]
    written: str = yaml.safe_dump(data, sort_keys=False)
    return written, tuple(left_out)
