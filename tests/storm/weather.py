"""What goes wrong on the way: drawn by the seed, request by request and connection by connection, while the weather is bad.

Each fault is counted, so that it is known how many a life has borne.
"""

from __future__ import annotations

import collections
import json

CALM = 0.0
EXEMPT = ("user",)  # whose requests are what happens, not what is tested
_REFUSALS = (
    (409, "Conflict", ""),
    (410, "Expired", ""),
    (422, "Invalid", ""),
    (429, "TooManyRequests", "1"),
    (500, "InternalError", ""),
    (503, "ServiceUnavailable", "1"),
    (503, "ServiceUnavailable", ""),
    (504, "Timeout", ""),
)


class Weather:
    """How bad it is, and what it does: `rough` is the share of requests that something happens to."""

    def __init__(self, rng):
        self._rng = rng
        self.rough = CALM
        self.cut_off = {}  # processes whose bytes do not arrive, by direction: "up", "down" or both
        self.down = False  # nobody listens
        self.expired = False  # the certificate that the API server shows
        self.counts = collections.Counter()

    def go_on_with(self, rng):
        """Draw from another source from now on."""
        self._rng = rng

    def count(self, what):
        self.counts[what] += 1

    def delay(self, process=""):
        """Seconds that bytes take; now and then they take long."""
        base = 0.0003 + 0.002 * self._rng.random()
        if process in EXEMPT:
            return base
        if self.rough and self._rng.random() < self.rough / 4:
            self.count("late")
            return base + self._rng.choice((0.05, 0.5, 3.0, 12.0)) * self._rng.random()
        return base

    def blocked(self, process, direction):
        """Tell whether a partition keeps bytes of a process from passing."""
        return direction in self.cut_off.get(process, "")

    def refuses_to_dial(self, process):
        if self.down:
            return True
        if process not in EXEMPT and self.rough and self._rng.random() < self.rough / 2:
            self.count("dial refused")
            return True
        return False

    def distrusts(self, process):
        """Tell whether a process that opens a connection cannot trust what it is shown."""
        return self.expired and process not in EXEMPT

    def earlier(self, version):
        """Give a version that a server has which is behind."""
        return max(1, version - self._rng.randint(1, 40))

    def fate(self, process, *, watch):
        """Say what happens to a request: nothing, or one of the names below."""
        if process in EXEMPT or not self.rough or self._rng.random() >= self.rough:
            return ""
        choices = (
            ("stalls", "ends", "refused", "bookmarks", "replays", "old revision")
            if watch
            else ("lost", "answered in vain", "cut", "refused", "page of a proxy", "twice")
        )
        fate = self._rng.choice(choices)
        self.count(fate)
        return fate

    def fate_of_review(self):
        """Say what happens to a question for a webhook."""
        if not self.rough or self._rng.random() >= self.rough / 2:
            return ""
        fate = self._rng.choice(("hangs", "refused"))
        self.count(f"review {fate}")
        return fate

    def one_of(self, several):
        return self._rng.choice(several)

    def refusal(self, *, watch):
        """An answer that a proxy or an overloaded server gives instead of doing anything."""
        code, reason, after = self._rng.choice(_REFUSALS)
        status = {
            "kind": "Status",
            "apiVersion": "v1",
            "status": "Failure",
            "code": code,
            "reason": reason,
            "message": f"storm: {reason}",
        }
        body = json.dumps(status).encode()
        retry = f"Retry-After: {after}\r\n" if after else ""
        return _answer(code, "application/json", body, retry)

    def page(self):
        return _answer(502, "text/html", b"<html><body><h1>502 Bad Gateway</h1></body></html>")

    def position(self, length):
        """Where an answer is cut."""
        return self._rng.randrange(1, max(2, length))


def _answer(code, kind, body, more=""):
    return f"HTTP/1.1 {code} Storm\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n{more}\r\n".encode() + body
