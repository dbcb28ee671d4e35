"""The certificates that programs show: read again when the client's own rules say so, and known by nothing but their bytes."""

from __future__ import annotations

import json

from pumice.kube.access.tls import Pem, Tls

FIRST = b"certificate-0"
_BODY = json.dumps({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 401, "reason": "Unauthorized"})
UNAUTHORIZED = (
    f"HTTP/1.1 401 Unauthorized\r\nContent-Type: application/json\r\nContent-Length: {len(_BODY)}\r\n\r\n{_BODY}"
).encode()


class File(Pem):
    """What is in the file of a program."""

    def __init__(self, world):
        super().__init__("client-certificate")
        self._world = world

    def __bool__(self):
        return True

    def read(self):
        return self._world.certificate


class Certificates(Tls):
    """Certificates of which connections are made without TLS."""

    def __init__(self, world):
        super().__init__(certificate=File(world), key=File(world), now=world.loop.time)

    def _build(self, authority, pair):
        return pair.certificate
