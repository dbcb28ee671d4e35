"""A webhook on loopback that says what a test tells it to, and remembers what it was asked."""

from __future__ import annotations

import base64
import datetime as dt
import http.server
import json
import ssl
import threading

from pumice.server.admission import certificates


class Webhook:
    """Serves HTTPS in threads; `answers` are functions from a request of a review to the rest of its response, by path."""

    def __init__(self, folder, *names):
        self.answers = {}
        self.asked = []
        self.going_on = threading.Event()
        bundle = certificates.make(["127.0.0.1", *names], dt.datetime.now(dt.UTC))
        self.authorities = base64.b64encode(bundle.authorities).decode()
        (folder / "hook.crt").write_bytes(bundle.certificate)
        (folder / "hook.key").write_bytes(bundle.key)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "hook.crt", folder / "hook.key")
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self.going_on.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def url(self, path):
        return {"url": f"https://127.0.0.1:{self.port}{path}", "caBundle": self.authorities}

    def hang(self, _):
        """Answer only when the test has ended."""
        self.going_on.wait()
        return {"allowed": True}

    def requests(self, path):
        return [request for where, request in list(self.asked) if where == path]

    def _handler(self):
        webhook = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                path = self.path.partition("?")[0]
                webhook.asked.append((path, body["request"]))
                said = webhook.answers.get(path, lambda _: {"allowed": True})(body["request"])
                if isinstance(said, bytes):
                    data = said
                else:
                    response = {"uid": body["request"]["uid"], **said}
                    data = json.dumps({k: body[k] for k in ("apiVersion", "kind")} | {"response": response}).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_):
                pass

        return Handler


def patch(*operations):
    """Allow with a patch."""
    text = base64.b64encode(json.dumps(list(operations)).encode()).decode()
    return {"allowed": True, "patchType": "JSONPatch", "patch": text}


def hook(name, client, *, rules=None, **more):
    """One webhook of a configuration."""
    every = {"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
    return {
        "name": name,
        "clientConfig": client,
        "rules": rules or [every],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        **more,
    }


def configuration(name, *hooks, mutating=False):
    kind = "MutatingWebhookConfiguration" if mutating else "ValidatingWebhookConfiguration"
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": name},
        "webhooks": list(hooks),
    }
