"""Addresses of the web, read as Kubernetes' expressions read them: with a scheme, or an absolute path."""

from __future__ import annotations

import re
from typing import Final
from urllib import parse

_SCHEME: Final = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]*):(.*)", re.DOTALL)
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_HOST: Final = re.compile(r"(?:\[[0-9a-fA-F:.%]*\]|[^\s\[\]:/<>\"\\^`{|}]*)(?::[0-9]*)?")
_BAD_ESCAPE: Final = re.compile(r"%(?![0-9a-fA-F]{2})")
_KEPT: Final = "$&+,/:;=@!'()*~-._"  # what a path may hold as it is
_MOST_QUERIES: Final = 1000


class Parts:
    """The parts of an address."""

    __slots__ = ("host", "path", "query", "scheme")

    def __init__(self, text: str) -> None:
        if not text or _CONTROL.search(text):
            raise ValueError("it is empty, or has control characters")
        found = _SCHEME.fullmatch(text)
        self.query: str
        self.scheme, rest = (found[1].lower(), found[2]) if found else ("", text)
        if not rest.startswith("/"):
            raise ValueError(f"{text:.80} is neither absolute nor an absolute path")
        self.host = ""
        if self.scheme and rest.startswith("//"):
            authority, slash, rest = rest[2:].partition("/")
            authority, mark, query = authority.partition("?")
            rest = f"{slash}{rest}{mark}{query}" if slash or not mark else f"?{query}"
            self.host = authority.rpartition("@")[2]
            if not _HOST.fullmatch(self.host):
                raise ValueError(f"{self.host:.80} is no host")
        path, _, self.query = rest.partition("?")
        if _BAD_ESCAPE.search(path):
            raise ValueError(f"{path:.80} has a percent sign without two digits")
        self.path = path

    @property
    def hostname(self) -> str:
        """The host without its port and brackets."""
        if self.host.startswith("["):
            return self.host[1 : self.host.index("]")]
        return self.host.partition(":")[0]

    @property
    def port(self) -> str:
        """The port, empty if none is named."""
        return self.host.rpartition("]")[2].partition(":")[2]

    @property
    def escaped_path(self) -> str:
        """The path with everything escaped that may not stand in one."""
        return parse.quote(self.path, safe=f"{_KEPT}%")

    @property
    def queries(self) -> dict[str, list[str]]:
        """The values of each key of the query, in their order."""
        return parse.parse_qs(self.query, keep_blank_values=True, max_num_fields=_MOST_QUERIES)
