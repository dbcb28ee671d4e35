"""Read how Kubernetes' kinds are written on the wire, from the modules that kubectl was built of: field numbers, types, and which empty values are left out."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

Document = dict[str, Any]
_MODULES = ("k8s.io/api", "k8s.io/apimachinery", "k8s.io/apiextensions-apiserver")
_GO_FIELD = re.compile(r"^\s+(\w+)?\s*(\S+)\s+`[^`]*json:\"([^\"]*)\"[^`]*protobuf:\"[^\"]*name=(\w+)")
_SCALARS = frozenset({"string", "int32", "int64", "bool", "bytes", "double", "uint32", "uint64"})


def messages(schemas: Document) -> Document:
    """Give the messages of the kinds that schemas describe: number -> name, type, how often, and how an empty value is told."""
    found: dict[str, list[list[Any]]] = {}
    plain: dict[tuple[str, str], bool] = {}
    for folder in _folders():
        for path in sorted(folder.rglob("generated.proto")):
            package = re.search(r"^package ([\w.]+);", path.read_text(), re.MULTILINE)
            if package is not None:
                found |= _parsed(path.read_text(), package[1])
                for source in path.parent.glob("*.go"):
                    plain |= _plain(source.read_text(), package[1])
    needed = _reachable(found, schemas)
    return {
        name: {str(f[0]): [_spelt(name, f[1], schemas), *f[2:], _told(name, f, schemas, plain)] for f in found[name]}
        for name in sorted(needed)
    }


def _folders() -> list[Path]:
    module = Path(__file__).parent / "go" / "kubernetes"
    done = subprocess.run(
        ["go", "list", "-m", "-f", "{{.Dir}}", *_MODULES], cwd=module, capture_output=True, text=True, check=True
    )
    return [Path(line) for line in done.stdout.split()]


def _parsed(text: str, package: str) -> dict[str, list[list[Any]]]:
    """Read the messages of one file; each field is number, name, type and `one`, `many` or `map`."""
    found: dict[str, list[list[Any]]] = {}
    current = ""
    for line in text.splitlines():
        if match := re.match(r"^message (\w+) \{", line):
            current = f"{package}.{match[1]}"
            found[current] = []
        elif (match := re.match(r"^\s+(optional|repeated) ([.\w]+) (\w+) = (\d+)", line)) and current:
            often = "many" if match[1] == "repeated" else "one"
            found[current].append([int(match[4]), match[3], _full(match[2], package), often])
        elif (match := re.match(r"^\s+map<string, ([.\w]+)> (\w+) = (\d+)", line)) and current:
            found[current].append([int(match[3]), match[2], _full(match[1], package), "map"])
    return found


def _full(name: str, package: str) -> str:
    if name in _SCALARS:
        return name
    return name.lstrip(".") if name.startswith(".") else f"{package}.{name}"


def _plain(text: str, package: str) -> dict[tuple[str, str], bool]:
    """Find the fields whose empty value says nothing: plain ones, no pointers, that JSON leaves out."""
    found: dict[tuple[str, str], bool] = {}
    current = ""
    for line in text.splitlines():
        if match := re.match(r"^type (\w+) struct \{", line):
            current = f"{package}.{match[1]}"
        elif current and (match := _GO_FIELD.match(line)):
            kind, (name, *flags) = match[2], match[3].split(",")
            found[current, match[4]] = not kind.startswith("*") and (
                "omitempty" in flags or "omitzero" in flags or not name
            )
    return found


def _told(message: str, field: list[Any], schemas: Document, plain: dict[tuple[str, str], bool]) -> str:
    """Say how a field enters an object: `inline` if its own fields do, `drop` if an empty value is left out, else `keep`."""
    schema = schemas.get(schema_name(message), {})
    properties = schema.get("properties")
    if properties is not None and field[1] not in properties and field[2] not in _SCALARS and field[3] == "one":
        return "inline"
    return "drop" if plain.get((message, field[1])) else "keep"


def _spelt(message: str, name: str, schemas: Document) -> str:
    """Give a field's name as objects spell it: capitals may stand elsewhere in a message (`Webhooks`, `uID`, `aPIGroup`)."""
    properties = schemas.get(schema_name(message), {}).get("properties", {})
    return next((each for each in properties if each.lower() == name.lower()), name)


def schema_name(message: str) -> str:
    """Give the name of a message's schema: `k8s.io.api.core.v1.Pod` is `io.k8s.api.core.v1.Pod` there."""
    return "io.k8s." + message.removeprefix("k8s.io.").replace("apiextensions_apiserver", "apiextensions-apiserver")


def _reachable(found: dict[str, list[list[Any]]], schemas: Document) -> set[str]:
    waiting = [name for name in found if schema_name(name) in schemas]
    waiting += [
        name for name in found if name.endswith(("meta.v1.DeleteOptions", "autoscaling.v1.Scale", "policy.v1.Eviction"))
    ]
    reached: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name not in reached and name in found:
            reached.add(name)
            waiting += [field[2] for field in found[name] if field[2] not in _SCALARS]
    return reached
