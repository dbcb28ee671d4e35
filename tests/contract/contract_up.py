"""The API server of `pumice up`, with the methods that the testbed's has."""

from __future__ import annotations

import os
import subprocess

from pumice.local_cluster import access_files, api_thread, controlling, options
from testbed import calling, provide


class UpServer:
    """Serves in a thread of this process."""

    def __init__(self, folder, *, controllers_too=False, **wanted):
        self.folder = folder
        self._access = access_files.AccessFiles(folder)
        wanted = options.Options(**{"pools": [], "kubelets": False, **wanted})
        self._thread = api_thread.ApiThread(wanted, self._access, (controlling.run,) if controllers_too else ())
        self._caller = None

    def __enter__(self):
        self._thread.start()
        self._thread.await_ready()
        self._caller = calling.Caller(self._thread.port, self.token, self.ca_file)
        return self

    def __exit__(self, *_):
        self._caller.close()
        self._thread.stop()

    @property
    def token(self):
        return self._access.token

    @property
    def certificates(self):
        return self._access.certificates

    @property
    def ca_file(self):
        return self.certificates.authority

    @property
    def port(self):
        return self._thread.port

    @property
    def url(self):
        return f"https://127.0.0.1:{self._thread.port}"

    @property
    def kubeconfig(self):
        return self._access.kubeconfig

    def call(self, method, path, body=None, **wanted):
        return self._caller.call(method, path, body, **wanted)

    def answer(self, method, path, body=None, **wanted):
        return self._caller.answer(method, path, body, **wanted)

    def kubectl(self, *arguments, input=None, check=True):  # noqa: A002  # as subprocess names it
        environment = {
            **os.environ,
            "KUBECONFIG": str(self.kubeconfig),
            "KUBECACHEDIR": str(self.folder / "kubectl"),
            "KUBERC": "off",
        }
        command = [str(provide.program("kubectl")), *arguments]
        done = subprocess.run(command, input=input, env=environment, capture_output=True, text=True, check=False)
        if check and done.returncode:
            raise AssertionError(f"kubectl {' '.join(arguments)}: {done.stderr.strip() or done.stdout.strip()}")
        return done.stdout if check else done.stdout + done.stderr

    def new_namespace(self):
        return self.call("POST", "/api/v1/namespaces", {"metadata": {"generateName": "test-"}})["metadata"]["name"]

    def crds(self, folder):
        self.kubectl("apply", "--server-side", "--force-conflicts", "-f", str(folder))
