"""Ray's dashboard, for KubeRay to ask: containers of `pumice up` are simulated, and nothing answers in them.

KubeRay asks under names that only a cluster's own name service knows, so this is a proxy that answers everything itself: each job has succeeded.
"""

from __future__ import annotations

import contextlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class _Dashboard(BaseHTTPRequestHandler):
    def do_GET(self) -> None:  # as the base class calls it
        submitted = self.path.rpartition("/")[2]
        answer = {"submission_id": submitted, "status": "SUCCEEDED", "message": "done", "type": "SUBMISSION"}
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing: what is asked is in the operator's own log."""


@contextlib.contextmanager
def answering():
    """Give the settings with which a program asks here."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Dashboard)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield {"HTTP_PROXY": f"http://127.0.0.1:{server.server_port}"}
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
