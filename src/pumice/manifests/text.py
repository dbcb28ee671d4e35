"""Manifests as YAML text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from pumice.api import documents

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class _Dumper(yaml.SafeDumper):
    """Indents lists inside mappings, writes texts of several lines as blocks, and never refers back to an earlier value."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002  PyYAML's signature
        super().increase_indent(flow, indentless=False)

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002  PyYAML's signature
        return True


def _write_string(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    """Write a text; kubectl takes more words for booleans and numbers than PyYAML does, a plain `n` among them."""
    style = "|" if "\n" in value else None if isinstance(documents.plain_scalar(value), str) else "'"
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(str, _write_string)


def dump(value: Any) -> str:
    """Write one value."""
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, width=120, allow_unicode=True)


def stream(manifests: Iterable[Mapping[str, Any]]) -> str:
    """Write manifests one after another, as `kubectl apply -f -` reads them."""
    return "".join(f"---\n{dump(manifest)}" for manifest in manifests)
