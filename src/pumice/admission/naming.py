"""How things may be called: each function says what is wrong with a name, or nothing."""

from __future__ import annotations

import re
from typing import Final

from pumice.api import documents

_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN: Final = re.compile(rf"{_LABEL.pattern}(\.{_LABEL.pattern})*")
_QUALIFIED: Final = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_PORT: Final = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")
_VARIABLE: Final = re.compile(r"[ -<>-~]+")  # anything printable but "="
LONGEST_LABEL: Final = 63
LONGEST_SUBDOMAIN: Final = 253

_LABEL_RULE: Final = "lower-case letters, digits and -, and begins and ends with a letter or digit"
_SUBDOMAIN_RULE: Final = "lower-case letters, digits, - and ., and begins and ends with a letter or digit"
_QUALIFIED_RULE: Final = "letters, digits, -, _ and ., and begins and ends with a letter or digit"


def label(name: str) -> str:
    """Judge a name that is part of a host name, such as that of a container."""
    return _judge(name, _LABEL, LONGEST_LABEL, _LABEL_RULE)


def subdomain(name: str) -> str:
    """Judge a name such as that of a ConfigMap."""
    return _judge(name, _SUBDOMAIN, LONGEST_SUBDOMAIN, _SUBDOMAIN_RULE)


def qualified(name: str) -> str:
    """Judge the part of a key that stands behind its prefix."""
    return _judge(name, _QUALIFIED, LONGEST_LABEL, _QUALIFIED_RULE)


def key(name: str) -> str:
    """Judge the key of a label, an annotation or a resource: an optional prefix, a slash, a name."""
    prefix, slash, last = name.rpartition("/")
    if slash and (problem := subdomain(prefix)):
        return f"{documents.quoted(name)}: its prefix {problem}"
    return f"{documents.quoted(name)}: it {problem}" if (problem := qualified(last)) else ""


def label_value(value: str) -> str:
    """Judge the value of a label."""
    return qualified(value) if value else ""


def port(name: str) -> str:
    """Judge the name of a port."""
    if (problem := _judge(name, _PORT, 15, _LABEL_RULE)) or ("--" not in name and re.search("[a-z]", name)):
        return problem
    return "must hold a letter, and no two - in a row"


def variable(name: str) -> str:
    """Judge the name of an environment variable."""
    return "" if _VARIABLE.fullmatch(name) else "may hold printable ASCII characters other than ="


def _judge(name: str, pattern: re.Pattern[str], longest: int, rule: str) -> str:
    if len(name) > longest:
        return f"has {len(name)} characters, and may have at most {longest}"
    return "" if pattern.fullmatch(name) else f"may hold {rule}"
