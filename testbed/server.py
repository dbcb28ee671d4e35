"""Start and stop an etcd and a kube-apiserver on loopback."""

from __future__ import annotations

import atexit
import contextlib
import os
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from testbed import calling, certificates, commands, definitions, emptying, old_etcd, processes, provide, waiting

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import TracebackType

_ATTEMPTS = 5


class MissingProgramsError(Exception):
    """There is no kube-apiserver to start."""


class KubectlError(Exception):
    """The command kubectl failed; the message is what it printed."""


class ApiServer:
    """A cluster of one etcd and one kube-apiserver, with nothing else in it: no controllers, no scheduler, no nodes.

    Pods need no service account; a namespace that is deleted stays in `Terminating`, and a bound pod leaves only when somebody plays its kubelet or deletes it
    with a grace period of 0. `arguments` are appended to kube-apiserver's own, so they win: `("--feature-gates=WatchList=false",)`.
    """

    def __init__(self, *, with_old_etcd: bool = False, arguments: Sequence[str] = ()) -> None:
        folder = provide.binaries()
        etcd = old_etcd.find() if with_old_etcd else folder and folder / "etcd"
        if folder is None:
            raise MissingProgramsError(f"there is no real API server: {provide.HOW}")
        if etcd is None:
            raise MissingProgramsError(f"there is no old etcd: {provide.how(old_etcd.NAME)}")
        self._programs = commands.Programs(etcd, folder / "kube-apiserver", folder / "kubectl")
        self._arguments = tuple(arguments)
        self._directory: tempfile.TemporaryDirectory[str] | None = None
        self._etcd: processes.Process | None = None
        self._api: processes.Process | None = None
        self._caller: calling.Caller | None = None
        self._port = 0
        self._defined: dict[Path, Any] = {}
        self.token = secrets.token_hex(16)
        """Authenticates a member of `system:masters`."""

    # ---- where and who

    @property
    def folder(self) -> Path:
        """Return the folder that holds data, keys and logs while the server runs."""
        if self._directory is None:
            raise RuntimeError("the API server is not running: call start() first")
        return Path(self._directory.name)

    @property
    def url(self) -> str:
        """Return the server's address; it stays the same over a restart."""
        return f"https://127.0.0.1:{self._port}"

    @property
    def port(self) -> int:
        """Return the server's port on 127.0.0.1."""
        return self._port

    @property
    def ca_file(self) -> Path:
        """Return the certificate that the server's own is checked against."""
        return self.folder / "pki" / "ca.crt"

    @property
    def client_pair(self) -> certificates.Pair:
        """Return a client certificate of a member of `system:masters`."""
        return certificates.Pair(self.folder / "pki" / "admin.crt", self.folder / "pki" / "admin.key")

    @property
    def kubeconfig(self) -> Path:
        """Return a kubeconfig file with two contexts: `token`, the current one, and `certificate`."""
        return self.folder / "kubeconfig"

    @property
    def log(self) -> Path:
        """Return the file that kube-apiserver writes its log to."""
        return self.folder / "kube-apiserver.log"

    @property
    def pids(self) -> tuple[int, int]:
        """Return the process ids of etcd and kube-apiserver."""
        if self._etcd is None:
            raise RuntimeError("the API server is not running: call start() first")
        return self._etcd.pid, self._up.pid

    # ---- its life

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start both programs; return when the API server is ready."""
        # the parent folder is short on purpose: the path of a socket has at most 107 bytes
        self._directory = tempfile.TemporaryDirectory(prefix="pumice-", dir="/tmp", ignore_cleanup_errors=True)
        atexit.register(self.stop)
        try:
            commands.write_keys(self.folder, self.token)
            self._etcd = processes.Process(
                commands.etcd(self._programs, self.folder), self.folder / "etcd.log", cwd=self.folder
            )
            self._etcd.wait_until(lambda: calling.etcd_is_healthy(commands.socket(self.folder)), waiting.PATIENCE)
            self._start_api_anywhere()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End both programs and remove what they have written."""
        atexit.unregister(self.stop)
        for process in (self._api, self._etcd):
            if process is not None:
                process.stop()
        if self._directory is not None:
            self._directory.cleanup()
        self._api = self._etcd = self._caller = self._directory = None

    @contextlib.contextmanager
    def down(self) -> Iterator[None]:
        """Kill the API server alone, and start it again at the end, at the same address over the same etcd."""
        self._up.stop()
        self._api = None
        try:
            yield
        finally:
            self._start_api_again()

    def restart(self) -> None:
        """Kill the API server alone and start it again."""
        with self.down():
            pass

    @contextlib.contextmanager
    def frozen(self) -> Iterator[None]:
        """Stop the API server in its tracks: connections stay open, and nothing answers."""
        self._up.freeze()
        try:
            yield
        finally:
            self._up.signal(signal.SIGCONT)

    def pause(self, seconds: float) -> None:
        """Freeze the API server for so long."""
        with self.frozen():
            time.sleep(seconds)

    # ---- asking it

    def call(self, method: str, path: str, body: Any = None, **options: Any) -> Any:
        """Send a request as an administrator; return the decoded body, or raise `calling.CallError`."""
        return self._asking.call(method, path, body, **options)

    def answer(self, method: str, path: str, body: Any = None, **options: Any) -> calling.Answer:
        """Send a request as an administrator; return its status with the decoded body, whatever it is."""
        return self._asking.answer(method, path, body, **options)

    def kubectl(self, *arguments: str, input: str | None = None) -> str:  # noqa: A002  # as subprocess names it
        """Run kubectl as an administrator; return what it printed, or raise `KubectlError`."""
        environment = {
            **os.environ,
            "KUBECONFIG": str(self.kubeconfig),
            "KUBECACHEDIR": str(self.folder / "kubectl"),
            "KUBERC": "off",
        }
        command = [str(self._programs.kubectl), *arguments]
        done = subprocess.run(command, input=input, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise KubectlError(f"kubectl {' '.join(arguments)}: {done.stderr.strip() or done.stdout.strip()}")
        return done.stdout

    def new_namespace(self) -> str:
        """Make a namespace; return its name."""
        name: str = self.call("POST", "/api/v1/namespaces", {"metadata": {"generateName": "test-"}})["metadata"]["name"]
        return name

    def crds(self, folder: Path) -> None:
        """Apply the custom resource definitions in a folder or file; return when the server serves them.

        Whoever asks again costs one request, unless a definition, theirs or another one, has been changed, deleted or added since.
        """
        if self._defined.get(folder) == (wanted := _texts(folder), definitions.standing(self._asking)):
            return
        definitions.let_go(self._asking)
        self.kubectl("apply", "--server-side", "--force-conflicts", "-f", str(folder))
        self.kubectl("wait", "--for=condition=Established", "--timeout=240s", "-f", str(folder))
        self._defined[folder] = wanted, definitions.standing(self._asking)

    def drop_crds(self, file: Path) -> None:
        """Remove custom resource definitions with all their objects; kubectl forgets that it has ever seen them."""
        self.kubectl("delete", "-f", str(file))
        shutil.rmtree(self.folder / "kubectl", ignore_errors=True)

    def forget_history(self) -> None:
        """Compact etcd and restart, as the API server has a memory of its own: watches and pages of a list from before answer 410."""
        calling.compact_etcd(commands.socket(self.folder))
        self.restart()

    def empty(self) -> None:
        """Remove pods, nodes, volumes, leases and custom objects, at once and in every namespace but `kube-system`."""
        emptying.empty(self._asking)

    # ----

    @property
    def _up(self) -> processes.Process:
        if self._api is None:
            raise RuntimeError("the API server is down")
        return self._api

    @property
    def _asking(self) -> calling.Caller:
        if self._caller is None:
            raise RuntimeError("the API server is not running: call start() first")
        return self._caller

    def _start_api_anywhere(self) -> None:
        """Start the API server on a free port; on another one if somebody was faster."""
        for attempt in range(1, _ATTEMPTS + 1):
            self._port = processes.free_port()
            self._caller = calling.Caller(self._port, self.token, self.ca_file)
            commands.write_kubeconfig(self.kubeconfig, self.url, self.token)
            try:
                self._start_api()
            except processes.PortTakenError:
                if attempt == _ATTEMPTS:
                    raise
            else:
                return

    def _start_api_again(self) -> None:
        """Start the API server on the port that its clients know; wait for that if somebody sits there."""
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                self._start_api()
            except processes.PortTakenError:
                if attempt == _ATTEMPTS:
                    raise
                time.sleep(1)
            else:
                return

    def _start_api(self) -> None:
        command = [*commands.api_server(self._programs, self.folder, self._port), *self._arguments]
        self._api = processes.Process(command, self.log, cwd=self.folder)
        try:
            self._api.wait_until(self._asking.is_ready, waiting.PATIENCE)
        except BaseException:
            self._api.stop()
            self._api = None
            raise


def _texts(place: Path) -> dict[Path, str]:
    """Return what is written in a file, or in those of a folder."""
    files = place.iterdir() if place.is_dir() else (place,)
    return {file: file.read_text() for file in files}
