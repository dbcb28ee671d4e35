"""Write the reference pages from the code: `python docs/generate.py`, or with `--check` only compare.

Class docstrings, declared arguments and the tables of extension points, flags and metrics are the source. The pages under `docs/reference/` are never edited, nor are the
two rows of the README that say which actions and plugins there are.
"""

from __future__ import annotations

import inspect
import sys
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pumice.admission import laws
from pumice.api import duration
from pumice.controllers.volcano.job_plugins import registry as job_plugins
from pumice.framework import configuration, points, registry
from pumice.framework.configuration import arguments
from pumice.framework.plugin import told
from pumice.server.admission import flags as admission_flags
from pumice.server.flags import controller_flags, flags
from pumice.server.metrics import series

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pumice.framework.configuration import Argument
    from pumice.framework.plugin import Action, Plugin

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "docs"))

import command_pages  # noqa: E402  stands beside this file
import differences  # noqa: E402  stands beside this file
import members  # noqa: E402  stands beside this file
import plugin_types  # noqa: E402  stands beside this file
import simulate_output  # noqa: E402  stands beside this file
import why_output  # noqa: E402  stands beside this file

FLAG_KINDS = {
    "text": "text",
    "list": "a list",
    "whole": "an integer",
    "number": "a number",
    "truth": "true or false",
    "duration": "a duration",
}
NOTICE = "<!-- Written by docs/generate.py from the code; run `make docs` instead of editing. -->"


def pages() -> dict[str, str]:
    """Give every page by its path."""
    known = registry.installed()
    plugins, actions = _ours(known.plugins), _ours(known.actions)
    return {
        "docs/reference/plugins.md": _plugins(plugins),
        "docs/reference/job-plugins.md": _job_plugins(),
        "docs/reference/actions.md": _actions(actions),
        "docs/reference/extension-points.md": _extension_points(plugins),
        "docs/reference/plugin-types.md": _plugin_types(),
        "docs/reference/flags.md": _flags(),
        "docs/reference/commands.md": command_pages.page(NOTICE),
        "docs/reference/controller-flags.md": _controller_flags(),
        "docs/reference/admission-flags.md": _admission_flags(),
        "docs/reference/admission-rules.md": _admission_rules(),
        "docs/reference/metrics.md": _metrics(),
        "README.md": _readme(plugins, actions),
        "docs/why.md": _why(),
        "docs/simulate.md": simulate_output.refreshed(_stored("docs/simulate.md")),
        **simulate_output.plots(),
    }


def outdated() -> list[str]:
    """Name the pages whose file says something else than the code."""
    return [path for path, text in pages().items() if _stored(path) != text]


def main(argv: Sequence[str]) -> int:
    """Write the pages, or complain about those that are out of date."""
    stale = outdated()
    if list(argv) == ["--check"]:
        for path in stale:
            print(f"{path} is out of date; run `make docs`")
        return 1 if stale else 0
    for path in stale:
        (ROOT / path).write_text(pages()[path], encoding="utf-8")
        print(f"{path}: written")
    return 0


def _why() -> str:
    """Bring what kubectl shows of each cause up to date; the rest of the page is written by hand."""
    return why_output.refreshed(_stored("docs/why.md"))


def _readme(plugins: Mapping[str, object], actions: Mapping[str, object]) -> str:
    """Give the README with its two rows about actions and plugins brought up to date."""
    lines = _stored("README.md").split("\n")
    for what, provided, peers in (
        ("actions", actions, configuration.PEER_ACTIONS),
        ("plugins", plugins, configuration.PEER_PLUGINS),
    ):
        missing = ", ".join(name for name in peers if name not in provided)
        row = _row((what, ", ".join(sorted(provided)), missing or "-"))
        lines = [row if line.startswith(f"| {what} |") else line for line in lines]
    return "\n".join(lines)


def _plugins(plugins: Mapping[str, type[Plugin]]) -> str:
    lines = [NOTICE, "# Plugins", "", "A plugin is listed in a tier of the [configuration](../configuration.md)."]
    lines += ["Its functions are registered at [extension points](extension-points.md)."]
    lines += ["", f"**Where they differ from Volcano's** is said under each. {differences.ALWAYS}"]
    for name, plugin in sorted(plugins.items()):
        lines += ["", f"## {name}", "", inspect.getdoc(plugin) or "", "", *_differences(name)]
        lines += [
            f"Extension points: {', '.join(sorted(plugin.points)) or 'none'}.",
            "",
            *_arguments(told(plugin).arguments),
        ]
    missing = [name for name in configuration.PEER_PLUGINS if name not in plugins]
    return _page([*lines, "", *_missing("plugins", missing)])


def _differences(name: str) -> list[str]:
    """Say where a plugin differs from the one of that name in Volcano; one that is not from there differs from nothing."""
    if name not in differences.PLUGINS:
        return []
    found = differences.PLUGINS[name]
    if not found:
        return ["Differs from Volcano's in nothing but what all do.", ""]
    return ["Where it differs from Volcano's:", "", *(f"- {each}" for each in found), ""]


def _job_plugins() -> str:
    lines = [
        NOTICE,
        "# Job plugins",
        "",
        "What `spec.plugins` of a [Job](../jobs.md) of Volcano may name, each with a list of arguments.",
    ]
    for name, plugin in job_plugins.OURS.items():
        made = ", ".join(kind.name for kind in plugin.makes) or "nothing"
        lines += ["", f"## {name}", "", inspect.getdoc(plugin) or "", "", f"Makes: {made}."]
    return _page(lines)


def _actions(actions: Mapping[str, type[Action]]) -> str:
    lines = [NOTICE, "# Actions", "", "The steps of a cycle, in the order in which the configuration lists them."]
    for name, action in sorted(actions.items()):
        lines += ["", f"## {name}", "", inspect.getdoc(action) or "", "", *_arguments(told(action).arguments)]
    missing = [name for name in configuration.PEER_ACTIONS if name not in actions]
    return _page([*lines, "", *_missing("actions", missing)])


def _extension_points(plugins: Mapping[str, type[Plugin]]) -> str:
    lines = [NOTICE, "# Extension points", ""]
    lines += [
        "Where plugins take part. `session.ATTRIBUTE.add(function)` in `Plugin.open` registers a function there; one that does not take what its",
        "point asks with is refused, with the name of the plugin. Points without a plugin are asked like the others and wait for one of yours. Functions",
        "about nodes answer for many at once, or [one at a time](../plugins.md#one-node-at-a-time).",
        "",
    ]
    rows = []
    for point in points.POINTS:
        users = ", ".join(name for name, plugin in sorted(plugins.items()) if point.name in plugin.points)
        switch = " or ".join(f"`{name}`" for name in point.switches) or "-"
        function = f"`{_cell(point.signature)}`"
        rows.append(
            (point.name, f"`{point.attribute}`", function, point.says, point.kind.combines, switch, users or "-")
        )
    lines += _table(("point", "attribute", "function", "what it does", "answers combine", "switch", "plugins"), rows)
    return _page(lines)


def _plugin_types() -> str:
    lines = [NOTICE, "# What plugins see", ""]
    lines += [
        "The types that functions of a [plugin](../plugins.md) are asked with. `Matrix` is an array of int64 with a row for each node, job or queue and a column for each",
        "resource, `Vector` one row of it, `Mask` an array of bool. Amounts are integers: thousandths of a core for `cpu`, bytes for `memory`, pods for `pods`,",
        "thousandths of anything else; times are microseconds. Everything here is there to be read; changing it breaks the cycle.",
    ]
    for kind, (described, left_out) in plugin_types.TYPES.items():
        lines += ["", f"## {kind.__name__}", "", f"`{kind.__module__}`. {inspect.getdoc(kind) or ''}", ""]
        rows = [(f"`{name}`", f"`{_cell(what)}`", _cell(meaning)) for name, (what, meaning) in described.items()]
        rows += [
            (f"`{_cell(members.shown(kind, name))}`", *members.told(kind, name))
            for name in chosen(kind, described, left_out.split())
        ]
        lines += _table(("name", "type", "meaning"), rows)
    return _page(lines)


def chosen(kind: type[Any], described: Mapping[str, object], listed: list[str]) -> list[str]:
    """Choose the properties and methods to show, and refuse a list that does not fit the code."""
    few = listed[:1] == ["only"]
    named = [*described, *listed[few:]]
    if unknown := [name for name in named if name not in members.public(kind)]:
        raise LookupError(f"docs/plugin_types.py: {kind.__name__} has no {', '.join(unknown)}")
    if not few and (missing := [name for name in members.attributes(kind) if name not in named]):
        raise LookupError(f"docs/plugin_types.py: say what {', '.join(missing)} of {kind.__name__} means")
    return [name for name in members.documented(kind) if (name in listed) == few]


def _flags() -> str:
    lines = [NOTICE, "# Flags of `pumice scheduler`", ""]
    lines += [
        "Written as Go programs take them: `--flag=value`, `--flag value`, switches alone or as `--flag=false`. Lists are repeated"
    ]
    lines += [
        "or separated by commas. Unknown flags are refused, words that are no flags are not read. Those marked ○ may also stand"
    ]
    lines += ["under `flags` of a [scenario](../scenarios.md)."]
    return _page([*lines, *_flag_tables(flags.FLAGS)])


def _admission_flags() -> str:
    lines = [NOTICE, "# Flags of `pumice admission`", ""]
    lines += [
        "Written as those of [`pumice scheduler`](flags.md); what they are for is in [admission](../admission.md)."
    ]
    return _page([*lines, *_flag_tables(admission_flags.FLAGS)])


def _admission_rules() -> str:
    lines = [NOTICE, "# Rules of admission", ""]
    lines += [
        (
            "Every rule that [admission](../admission.md), `pumice up` and [`pumice vet`](../vet.md) judge objects by, and who refuses an object that breaks it: "
            "Volcano's webhooks, Kubernetes (which Volcano asks about templates of pods) or the schema of the kind. What only Pumice finds wrong is admitted "
            "with a warning, and refused by `--strict`; what nobody refuses is only told."
        ),
        "",
    ]
    rows = [(f"`{law.name}`", law.kinds, law.says, law.refused_by) for law in laws.ALL]
    return _page([*lines, *_table(("rule", "kinds", "what is asked", "refused by"), rows)])


def _controller_flags() -> str:
    lines = [NOTICE, "# Flags of `pumice controllers`", ""]
    lines += [
        "Written as those of [`pumice scheduler`](flags.md); what they are for is in [controllers](../controllers.md)."
    ]
    return _page([*lines, *_flag_tables(controller_flags.FLAGS)])


def _flag_tables(table: Sequence[flags.Flag]) -> list[str]:
    lines: list[str] = []
    for section in dict.fromkeys(flag.section for flag in table):
        lines += ["", f"## {section}", ""]
        rows = []
        for flag in table:
            if flag.section == section:
                name = f"`{'-' if len(flag.name) == 1 else '--'}{flag.name}`{' ○' if flag.shapes else ''}"
                rows.append((name, FLAG_KINDS[flag.kind], _value(flag.default, flag.kind), _cell(flag.help)))
        lines += _table(("flag", "type", "default", "meaning"), rows)
    return lines


def _metrics() -> str:
    lines = [
        NOTICE,
        "# Metrics",
        "",
        "What `/metrics` of a [running scheduler](../scheduler.md) gives, beside those of its process",
    ]
    lines += [
        "(`process_*`, `python_*`). Names that start with `volcano_` mean what they mean in Volcano. Series of jobs and queues go with their objects.",
        "",
    ]
    lines += _series(series.SERIES)
    lines += ["", "## Controllers", ""]
    lines += [
        "Of [controllers](../controllers.md), in a process of their own or beside the scheduler. In a process of their own there are also "
        + ", ".join(f"`{name}`" for name in series.SHARED)
        + ".",
        "",
    ]
    return _page([*lines, *_series(series.CONTROLLERS)])


def _series(table: Sequence[series.Series]) -> list[str]:
    rows = []
    for each in table:
        buckets = f" ({each.buckets[2]} buckets, {each.buckets[0]:g} to {each.buckets[1]:g})" if each.buckets else ""
        labels = ", ".join(f"`{label}`" for label in each.labels) or "-"
        rows.append((f"`{each.name}`", each.type + buckets, labels, _cell(each.help)))
    return _table(("name", "type", "labels", "meaning"), rows)


def _arguments(declared: Iterable[Argument]) -> list[str]:
    rows = _argument_rows(declared)
    return _table(("argument", "type", "default", "meaning"), rows) if rows else ["No arguments."]


def _argument_rows(declared: Iterable[Argument], within: str = "") -> list[tuple[str, str, str, str]]:
    """Give a row for each argument, what may stand in a map following it."""
    rows = []
    for argument in declared:
        name = f"{within}{argument.name}"
        default = "-" if argument.is_pattern and argument.default is None else _value(argument.default, argument.kind)
        meaning = argument.help + _bounds(argument)
        rows.append((f"`{name}`", _cell(arguments.EXPECTED[argument.kind]), default, _cell(meaning)))
        rows += _argument_rows(argument.fields, f"{name}: ")
    return rows


def _bounds(argument: Argument) -> str:
    if argument.choices:
        return f"; {' or '.join(argument.choices)}"
    match argument.minimum, argument.maximum:
        case None, None:
            return ""
        case least, None:
            return f"; at least {least}"
        case None, most:
            return f"; at most {most}"
    return f"; {argument.minimum} to {argument.maximum}"


def _value(value: Any, kind: str = "") -> str:
    match value:
        case None | () | "":
            return "-"
        case dict():
            return f"`{_flow(value)}`"
        case bool():
            return f"`{str(value).lower()}`"
        case int() if kind == "duration":
            return f"`{duration.format_duration(value)}`"
        case Fraction():
            return f"`{float(value):g}`"
        case tuple():
            return f"`{', '.join(map(str, value))}`"
    return f"`{value}`"


def _flow(value: object) -> str:
    """Write a map as one would in a configuration file, in one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_flow(each)}" for key, each in value.items()) + "}"
    return str(value)


def _missing(what: str, missing: list[str]) -> list[str]:
    return (
        [f"Known from Volcano and not provided yet: {', '.join(missing)}."]
        if missing
        else [f"All {what} of Volcano are provided."]
    )


def _ours(found: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out what other installed packages bring."""
    return {name: each for name, each in found.items() if each.__module__.startswith("pumice.")}


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [_row(heads), _row(["---"] * len(heads)), *map(_row, rows)]


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _page(lines: Sequence[str]) -> str:
    return "\n".join(lines).rstrip() + "\n"


def _stored(path: str) -> str:
    file = ROOT / path
    return file.read_text(encoding="utf-8") if file.exists() else ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
