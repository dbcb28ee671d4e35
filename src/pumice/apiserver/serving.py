"""HTTP: requests come in and are answered; whatever goes wrong with one is a Status and disturbs nobody else."""

from __future__ import annotations

import asyncio
import re
import ssl
from typing import TYPE_CHECKING, Any, Final

import msgspec
from aiohttp import web

from pumice import client_faults
from pumice.apiserver import answers, discovery, objects, openapi, statuses
from pumice.apiserver.access import attributes, impersonation
from pumice.sim import errors

if TYPE_CHECKING:
    from collections.abc import Callable

    from pumice.apiserver.access.users import User
    from pumice.apiserver.authentication import Authenticator
    from pumice.apiserver.certificates import Files
    from pumice.apiserver.cluster import Cluster

Document = dict[str, Any]
_HEALTH: Final = re.compile(r"/(healthz|livez|readyz)(/.*)?")
_SERVED: Final = ("/api", "/api/v1", "/apis", "/healthz", "/livez", "/openapi/v2", "/openapi/v3", "/readyz", "/version")


class Server:
    """Answers requests out of a cluster."""

    def __init__(
        self, cluster: Cluster, authenticator: Authenticator, log: Callable[[str, Exception], None] | None = None
    ) -> None:
        self._cluster = cluster
        self._authenticator = authenticator
        self._objects = objects.Objects(cluster, authenticator)
        self._log = log
        self._runner: web.ServerRunner | None = None
        self.requests = 0

    # ---- its life

    async def start(self, host: str, port: int, files: Files | None) -> int:
        """Listen; returns the port."""
        client_faults.leave_out()
        self._runner = web.ServerRunner(
            # Bodies are not inflated: a few bytes would become as much as anybody likes while others wait, and no client deflates them.
            web.Server(self.answer, access_log=None, keepalive_timeout=75.0, auto_decompress=False)
        )
        await self._runner.setup()
        site = web.TCPSite(self._runner, host, port, ssl_context=_tls(files) if files else None, backlog=2048)
        await site.start()
        return int(self._runner.addresses[0][1])

    async def stop(self) -> None:
        """End watches and stop listening."""
        for task in list(self._objects.streams):
            task.cancel()
        if self._runner is not None:
            await self._runner.cleanup()
        await self._cluster.webhooks.close()

    # ---- one request

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer a request."""
        self.requests += 1
        warnings: list[str] = []
        try:
            user = impersonation.acting(request, self._authenticator.identify(request), self._cluster.authorizer)
            if not user.is_master:
                wanted = attributes.of_request(request.method, request.path, request.query)
                self._cluster.authorizer.check(user, wanted)
            response = await self._dispatch(request, user, warnings)
        except statuses.Problem as problem:
            response = answers.problem(problem)
        except errors.ApiError as error:
            response = answers.problem(statuses.of_store(error))
        except (asyncio.CancelledError, ConnectionError):
            raise
        except RecursionError:
            response = answers.problem(statuses.bad_request("the body is nested too deeply to be an object"))
        except Exception as error:  # noqa: BLE001  one request that breaks down must not take others along
            if self._log is not None:
                self._log(f"{request.method} {request.path}", error)
            message = f"Internal error occurred: {type(error).__name__}: {error}"
            response = answers.problem(statuses.Problem(500, message))
        if warnings:
            answers.warn(response, warnings)
        return response

    async def _dispatch(self, request: web.BaseRequest, user: User, warnings: list[str]) -> web.StreamResponse:
        path = request.rel_url.raw_path
        if "/." in path or "%" in path:
            check_path(path)
        parts = request.path.strip("/").split("/")
        if (parts[0] == "api" and len(parts) > 2) or (parts[0] == "apis" and len(parts) > 3):
            return await self._objects.answer(request, user, warnings)
        if request.method not in ("GET", "HEAD"):
            raise statuses.Problem(
                405, f"the server does not allow {request.method} on {request.path}; it is there to be read"
            )
        return self._page(request, parts)

    # ---- what is not an object

    def _page(self, request: web.BaseRequest, parts: list[str]) -> web.Response:
        registry, documents = self._cluster.registry, self._cluster.documents
        path, accept = request.path.rstrip("/"), request.headers.get("Accept", "")
        if path in ("/api", "/apis") and discovery.wants_aggregated(accept):
            document = discovery.aggregated(registry, core=path == "/api")
            headers = {"Content-Type": discovery.AGGREGATED, "Vary": "Accept"}
            return web.Response(body=msgspec.json.encode(document), headers=headers)
        if _HEALTH.fullmatch(path):
            return web.Response(
                text="[+]ping ok\n[+]store ok\nhealthz check passed\n" if "verbose" in request.query else "ok"
            )
        if path == "/openapi/v2" and openapi.PROTOBUF in accept:
            return web.Response(body=documents.version2_header(), headers={"Content-Type": openapi.PROTOBUF_TYPE})
        if path == "/openapi/v2":
            return answers.raw(documents.version2())
        if path == "/openapi/v3":
            return answers.raw(documents.index())
        if path.startswith("/openapi/v3/") and (described := documents.version3(path.removeprefix("/openapi/v3/"))):
            return answers.raw(described)
        found = self._document(parts)
        if found is None:
            raise statuses.unknown_path()
        return answers.json(found)

    def _document(self, parts: list[str]) -> Document | None:
        registry = self._cluster.registry
        match parts:
            case [""]:
                groups = [f"/apis/{group}" for group in registry.groups() if group]
                return {"paths": sorted({*_SERVED, *groups, *(each.path for each in registry)})}
            case ["version"]:
                return version_of(registry.description.version)
            case ["api"]:
                return discovery.versions()
            case ["apis"]:
                return discovery.groups(registry)
            case ["api", version]:
                return discovery.resources(registry, "", version)
            case ["apis", group]:
                return discovery.group(registry, group)
            case ["apis", group, version]:
                return discovery.resources(registry, group, version)
        return None


def check_path(path: str) -> None:
    """Refuse a path that would mean another one after cleaning."""
    lower = f"{path.lower()}/"
    if "/../" in lower or "/./" in lower or "%2e" in lower or "%2f" in lower or "%00" in lower:
        message = f"the path {path[:200]!r} is refused: it must not contain '.', '..' or an encoded '/'"
        raise statuses.bad_request(message)


def version_of(text: str) -> Document:
    """Give the document at /version."""
    major, minor, _ = text.removeprefix("v").split(".", 2)
    return {
        "major": major,
        "minor": minor,
        "gitVersion": f"{text}+pumice",
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "",
        "platform": "",
    }


def _tls(files: Files) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(files.server, files.server_key)
    context.load_verify_locations(files.authority)
    context.verify_mode = ssl.CERT_OPTIONAL  # a token will do
    context.set_alpn_protocols(["http/1.1"])
    return context
