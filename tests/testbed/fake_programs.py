"""Stand-ins for programs: shell scripts that print what they are told to."""

from pathlib import Path

FAKE_GO = r"""
case "$1" in
  env) echo "{version}" ;;
  mod) echo "{\"Dir\": \"$MODULE_FOLDER\"}" ;;
  build)
    while [ "$1" != "-o" ]; do shift; done
    echo "example.com/package" >&2
    {behaviour}
    ;;
esac
"""


def program(folder: Path, name: str, body: str = "") -> Path:
    """Write an executable script."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


def programs(folder: Path, *names: str) -> Path:
    """Write executable scripts that do nothing; return their folder."""
    for name in names:
        program(folder, name)
    return folder


def go(folder: Path, version: str = "go1.26.1", behaviour: str = 'echo "$3" > "$2"; chmod +x "$2"') -> Path:
    """Write a Go whose `build` does as told; `$2` is the file to make and `$3` the package."""
    return program(folder, "go", FAKE_GO.replace("{version}", version).replace("{behaviour}", behaviour))
