"""Options of a command from a table of flags, written as Go programs take them.

`--flag`, `--flag=false`, `--flag 3` and `--flag=3`; `_` in a name counts as `-`; a switch never takes the next word, nor does a flag that means something without a value; lists are repeated or separated by
commas; single letters have one dash (`-v 3`, `-v=3`, `-v3`). Words that are no flags are let through: charts append shell text such as `2>&1`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from pumice.api import duration
from pumice.cli import completing

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pumice.server.flags.flags import Flag

_TRUE = frozenset({"1", "t", "true"})
_FALSE = frozenset({"0", "f", "false"})


_METAVARS = {
    "text": "TEXT",
    "list": "TEXT,…",
    "whole": "N",
    "number": "N",
    "truth": "[=true|false]",
    "duration": "DURATION",
}


_NAMES = {
    "kubeconfig": completing.files,
    "scheduler-conf": completing.configurations,
    "default-queue": completing.queues,
    "leader-elect-resource-namespace": completing.namespaces,
    "lock-object-namespace": completing.namespaces,
    "plugins-dir": completing.folders,
    "cache-dump-dir": completing.folders,
}


class GoCommand(click.Command):
    """A command whose options come from a table; its callback gets those that were given, by flag name."""

    def __init__(self, name: str, table: Sequence[Flag], **more: Any) -> None:
        super().__init__(name, params=[*map(_option, table), _rest()], **more)
        self._table = {flag.name: flag for flag in table}

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Bring Go's spelling into click's."""
        return super().parse_args(ctx, list(normalised(args, self._table)))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:  # noqa: ARG002  click's signature
        """Complete flags, those without effect aside."""
        return [
            CompletionItem(f"{'-' * min(len(flag.name), 2)}{flag.name}", help=flag.help)
            for flag in self._table.values()
            if not flag.ignored and f"{'-' * min(len(flag.name), 2)}{flag.name}".startswith(incomplete or "--")
        ]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the flags section by section."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for flag in self._table.values():
            dashes = "-" if len(flag.name) == 1 else "--"
            metavar = f"[={_METAVARS[flag.kind]}]" if flag.bare else _METAVARS[flag.kind]
            space = "" if flag.kind == "truth" or flag.bare else " "
            default = shown(flag)
            text = flag.help + (f"  [default: {default}]" if default and not flag.ignored else "")
            sections.setdefault(flag.section, []).append((f"{dashes}{flag.name}{space}{metavar}", text))
        for section, rows in sections.items():
            with formatter.section(section):
                formatter.write_dl(rows)
        with formatter.section("Other"):
            formatter.write_dl([record for param in self.get_params(ctx) if (record := param.get_help_record(ctx))])


def given(context: click.Context, table: Iterable[Flag]) -> dict[str, Any]:
    """Return the flags that were written on the command line, by name; lists are taken apart."""
    found: dict[str, Any] = {}
    for flag in table:
        if context.get_parameter_source(flag.field) is not click.core.ParameterSource.COMMANDLINE:
            continue
        try:
            found[flag.name] = converted(flag, context.params[flag.field])
        except ValueError as error:
            raise click.BadParameter(
                str(error), context, param_hint=f"{'-' * min(len(flag.name), 2)}{flag.name}"
            ) from None
    return found


def converted(flag: Flag, value: Any) -> Any:
    """Read a word (of a list: the words) as what its flag holds, or raise a ValueError."""
    match flag.kind:
        case "list":
            return tuple(part.strip() for each in value for part in each.split(",") if part.strip())
        case "truth":
            if value.lower() not in _TRUE | _FALSE:
                raise ValueError(f"{value!r} is neither true nor false")
            return value.lower() in _TRUE
        case "whole" | "number":
            try:
                return int(value) if flag.kind == "whole" else float(value)
            except ValueError:
                raise ValueError(f"{value!r} is no {'whole ' if flag.kind == 'whole' else ''}number") from None
        case "duration":
            return duration.parse(value)
    return value


def normalised(args: Iterable[str], table: dict[str, Flag]) -> Iterable[str]:
    """Rewrite each word as click understands it."""
    words = iter(args)
    for word in words:
        if word == "--":
            yield word
            yield from words
            return
        name, equals, value = word.partition("=")
        long = f"--{name[2:].replace('_', '-')}" if name.startswith("--") else name
        flag = table.get(long.lstrip("-")) if long.startswith("-") else None
        if flag is None and word[:1] == "-" and word[1:2] in table and len(word) > len("-v"):
            flag, equals, value = table[word[1]], "=", word[2:]
        if flag is None:
            yield word if not name.startswith("--") else long + equals + value
        elif flag.kind == "truth":
            yield f"--{flag.name}={value if equals else 'true'}"
        elif equals:
            yield f"--{flag.name}={value}"
        else:
            yield f"--{flag.name}={flag.bare}" if flag.bare else f"--{flag.name}"


def shown(flag: Flag) -> str:
    """Write the default of a flag as one would on the command line."""
    match flag.default:
        case None:
            return ""
        case bool():
            return str(flag.default).lower()
        case tuple():
            return ",".join(flag.default)
        case int() if flag.kind == "duration":
            return duration.format_duration(flag.default)
        case float():
            return f"{flag.default:g}"
    return str(flag.default)


def _option(flag: Flag) -> click.Option:
    return click.Option(
        [f"--{flag.name}", flag.field],
        multiple=flag.kind == "list",
        default=None,
        hidden=True,
        shell_complete=_NAMES.get(flag.name),
    )


def _rest() -> click.Argument:
    return click.Argument(["ignored_words"], nargs=-1, metavar="")
