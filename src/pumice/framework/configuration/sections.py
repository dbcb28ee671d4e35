"""The parts that are the same in every format: the list of actions, their arguments, the metrics source."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pumice.api import documents, duration
from pumice.framework.configuration import catalog, documented, model
from pumice.framework.configuration.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pumice.framework.configuration.reading import Draft

METRICS: Final = dict.fromkeys(
    (
        "type",
        "address",
        "interval",
        "tls.insecureSkipVerify",
        "elasticsearch.index",
        "elasticsearch.username",
        "elasticsearch.password",
        "elasticsearch.hostnameFieldName",
    )
)
_METRICS_TYPES: Final = dict.fromkeys(("prometheus", "prometheus_adaptor", "elasticsearch"))
_SECTIONS: Final = ("tls", "elasticsearch")
_ENTRY: Final = dict.fromkeys(("name", "arguments"))


def read_actions(draft: Draft, default: str | None = None) -> tuple[model.ActionSetting, ...]:
    """Read `actions` together with what `configurations` says about them."""
    path: documents.Path = ("actions",)
    if "actions" not in draft.document.data:
        if default is None:
            draft.refuse(path, 'is missing; write for example actions: "enqueue, allocate, backfill"')
            return ()
        names = [name.strip() for name in default.split(",")]
    else:
        names = draft.names_at(path, "action")
    given = _read_configurations(draft, names)
    line = draft.document.line_of(path)
    settings = []
    for name in names:
        if name in documented.ACTIONS and name not in draft.catalog.actions:
            draft.warn(path, f"{documents.quoted(name)}: {documented.remark(documented.ACTIONS[name])}")
            continue
        if refusal := draft.catalog.action_refusal(name):
            draft.refuse(path, refusal)
            continue
        values = given.get(name) or _argument_defaults(draft, name)
        made = draft.catalog.actions[name].settings(values) if not draft.problems else Settings()
        settings.append(model.ActionSetting(name, dict(values), line, made))
    return tuple(settings)


def read_metrics(draft: Draft) -> dict[str, str]:
    """Read the source of node usage; values are never shown, one of them is a password."""
    values: dict[str, str] = {}
    path: documents.Path = ("metrics",)
    for where, key, value in _flattened(draft.map_at(path)):
        if key not in METRICS:
            draft.refuse((*path, *where), f"unknown key {documents.quoted(key)}{catalog.suggestion(key, METRICS)}")
        if not isinstance(value, str):
            draft.refuse((*path, *where), f"expected a string, found {_type_name(value)}; put the value in quotes")
        elif key in METRICS:
            values[key] = value
    kind = values.get("type")
    if kind in documented.METRICS_TYPES:
        values["type"] = documented.METRICS_TYPES[kind]
        draft.warn(
            (*path, "type"),
            f"{documents.quoted(kind)} is read as {documents.quoted(values['type'])}, which is the source's name",
        )
    elif kind is not None and kind not in _METRICS_TYPES:
        hint = catalog.suggestion(kind, _METRICS_TYPES)
        draft.warn((*path, "type"), f"unknown source of metrics {documents.quoted(kind)}{hint}")
    if "interval" in values:
        try:
            duration.parse(values["interval"])
        except duration.DurationError as error:
            draft.refuse((*path, "interval"), f'expected a duration such as "30s": {error}')
    return values


def _flattened(written: dict[str, Any]) -> Iterator[tuple[documents.Path, str, Any]]:
    """Give keys with their values; `tls` and `elasticsearch` may be maps, as the documentation has it, or the beginnings of keys, as the code does."""
    for key, value in written.items():
        if key in _SECTIONS and isinstance(value, dict):
            yield from (((key, inner), f"{key}.{inner}", each) for inner, each in value.items())
        else:
            yield (key,), key, value


def _read_configurations(draft: Draft, listed: list[str]) -> dict[str, dict[str, Any]]:
    given: dict[str, dict[str, Any]] = {}
    lines: dict[str, int] = {}
    root: documents.Path = ("configurations",)
    for index in range(len(draft.list_at(root))):
        path: documents.Path = (*root, index)
        entry = draft.item_at(path)
        if entry is None:
            continue
        draft.keys_within(path, entry, _ENTRY)
        name = entry.get("name")
        if not isinstance(name, str) or not name:
            draft.refuse((*path, "name"), f"expected the name of an action, found {documents.described(name)}")
            continue
        listed_as = documented.CONFIGURATIONS.get(name) or documented.ACTIONS.get(name)
        if listed_as is not None and name not in draft.catalog.actions:
            draft.warn((*path, "name"), f"{documents.quoted(name)}: {documented.remark(listed_as)}")
            continue
        if refusal := draft.catalog.action_refusal(name):
            draft.refuse((*path, "name"), refusal)
            continue
        declared = draft.catalog.actions[name].arguments
        values = draft.arguments_at((*path, "arguments"), f"action {documents.quoted(name)}", declared)
        if name in given:
            draft.warn((*path, "name"), f'action "{name}" is configured already on line {lines[name]}, which wins')
            continue
        given[name], lines[name] = values, draft.document.line_of((*path, "name"))
        if name not in listed:
            draft.warn((*path, "name"), f'action "{name}" is not among the actions, so its arguments have no effect')
    return given


def _argument_defaults(draft: Draft, name: str) -> dict[str, Any]:
    return {
        argument.name: argument.default for argument in draft.catalog.actions[name].arguments if not argument.is_pattern
    }


def _type_name(value: Any) -> str:
    if value is None:
        return "nothing"
    names = {bool: "a boolean", int: "an integer", float: "a number", list: "a list", dict: "a map"}
    return names.get(type(value), "another type")
