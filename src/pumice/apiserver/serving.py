"""HTTP: requests come in, are read within bounds, and are answered in JSON; whatever goes wrong with one is a Status and disturbs nobody else."""

from __future__ import annotations

import asyncio
import re
import ssl
from typing import TYPE_CHECKING, Any, Final

import msgspec
import yaml
from aiohttp import web

from pumice.apiserver import discovery, protobuf, reading, requests, reviews, statuses, versions, watching
from pumice.apiserver.tables import rendering
from pumice.sim import errors, structure

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pumice.apiserver.authentication import Authenticator, User
    from pumice.apiserver.certificates import Files
    from pumice.apiserver.cluster import Cluster
    from pumice.apiserver.requests import Form, Target

Document = dict[str, Any]
MOST_BYTES: Final = 3 * 1024 * 1024  # as kube-apiserver has it
DEEPEST: Final = 1000
WRITE_SECONDS: Final = 60.0
_PATCHES: Final = {
    "application/json-patch+json": "json",
    "application/merge-patch+json": "merge",
    "application/strategic-merge-patch+json": "strategic",
    "application/apply-patch+yaml": "apply",
    "application/apply-patch+cbor": "",
}
_HEALTH: Final = re.compile(r"/(healthz|livez|readyz)(/.*)?")
_SERVED: Final = ("/api", "/api/v1", "/apis", "/healthz", "/livez", "/openapi/v2", "/openapi/v3", "/readyz", "/version")


class Server:
    """Answers requests out of a cluster."""

    def __init__(
        self, cluster: Cluster, authenticator: Authenticator, log: Callable[[str, Exception], None] | None = None
    ) -> None:
        self._cluster = cluster
        self._authenticator = authenticator
        self._log = log
        self._runner: web.ServerRunner | None = None
        self._streams: set[asyncio.Task[Any]] = set()
        self.requests = 0

    # ---- its life

    async def start(self, host: str, port: int, files: Files | None) -> int:
        """Listen; returns the port."""
        server = web.Server(self._answer, access_log=None, keepalive_timeout=75.0)
        self._runner = web.ServerRunner(server)
        await self._runner.setup()
        site = web.TCPSite(self._runner, host, port, ssl_context=_tls(files) if files else None, backlog=2048)
        await site.start()
        address = self._runner.addresses[0]
        return int(address[1])

    async def stop(self) -> None:
        """End watches and stop listening."""
        for task in list(self._streams):
            task.cancel()
        if self._runner is not None:
            await self._runner.cleanup()

    # ---- one request

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        self.requests += 1
        warnings: list[str] = []
        try:
            user = self._authenticator.identify(request)
            response = await self._dispatch(request, user, warnings)
        except statuses.Problem as problem:
            response = _problem(problem)
        except errors.ApiError as error:
            response = _problem(statuses.of_store(error))
        except (asyncio.CancelledError, ConnectionError):
            raise
        except Exception as error:  # noqa: BLE001  one request that breaks down must not take others along
            if self._log is not None:
                self._log(f"{request.method} {request.path}", error)
            response = _problem(statuses.Problem(500, f"Internal error occurred: {type(error).__name__}: {error}"))
        for text in warnings[:50]:
            response.headers.add("Warning", f'299 - "{_quoted(text)}"')
        return response

    async def _dispatch(self, request: web.BaseRequest, user: User, warnings: list[str]) -> web.StreamResponse:
        path = request.rel_url.raw_path
        if "/../" in f"{path}/" or "/./" in f"{path}/" or "%2e" in path.lower() or "%2f" in path.lower():
            raise statuses.bad_request(
                f"the path {path[:200]!r} is refused: it must not contain '.', '..' or an encoded '/'"
            )
        parts = request.path.strip("/").split("/")
        if (parts[0] == "api" and len(parts) > 2) or (parts[0] == "apis" and len(parts) > 3):
            return await self._resource(request, user, warnings)
        if request.method not in ("GET", "HEAD"):
            raise statuses.Problem(
                405, f"the server does not allow {request.method} on {request.path}; it is there to be read"
            )
        return await self._page(request, parts)

    # ---- what is not an object

    async def _page(self, request: web.BaseRequest, parts: list[str]) -> web.StreamResponse:
        registry = self._cluster.registry
        path, accept = request.path.rstrip("/"), request.headers.get("Accept", "")
        if path in ("/api", "/apis") and discovery.wants_aggregated(accept):
            document = discovery.aggregated(registry, core=path == "/api")
            return web.Response(
                body=msgspec.json.encode(document), headers={"Content-Type": discovery.AGGREGATED, "Vary": "Accept"}
            )
        if _HEALTH.fullmatch(path):
            verbose = "verbose" in request.query
            return web.Response(text="[+]ping ok\n[+]store ok\nhealthz check passed\n" if verbose else "ok")
        if path == "/openapi/v2":
            return _raw(self._cluster.documents.version2())
        if path == "/openapi/v3":
            return _raw(self._cluster.documents.index())
        if path.startswith("/openapi/v3/"):
            found = self._cluster.documents.version3(path.removeprefix("/openapi/v3/"))
            if found is None:
                raise statuses.unknown_path()
            return _raw(found)
        document = self._document(path, parts)
        if document is None:
            raise statuses.unknown_path()
        return _json(document)

    def _document(self, path: str, parts: list[str]) -> Document | None:
        registry = self._cluster.registry
        if path == "":
            groups = [f"/apis/{group}" for group in registry.groups() if group]
            return {"paths": sorted({*_SERVED, *groups, *(each.path for each in registry)})}
        if path == "/api":
            return discovery.versions()
        if path == "/apis":
            return discovery.groups(registry)
        if path == "/version":
            return version_of(registry.description.version)
        if parts[0] == "api" and len(parts) == 2:
            return discovery.resources(registry, "", parts[1])
        if parts[0] == "apis" and len(parts) == 2:
            return discovery.group(registry, parts[1])
        if parts[0] == "apis" and len(parts) == 3:
            return discovery.resources(registry, parts[1], parts[2])
        return None

    # ---- objects

    async def _resource(self, request: web.BaseRequest, user: User, warnings: list[str]) -> web.StreamResponse:
        target = requests.target(self._cluster.registry, request.path)
        form, acceptable = requests.form(request.headers.get("Accept", ""))
        if not acceptable and target.subresource != "log":
            raise statuses.Problem(
                406,
                "only the following media types are accepted: application/json, application/json;as=Table;v=v1;g=meta.k8s.io",
            )
        if target.resource.deprecation:
            warnings.append(target.resource.deprecation)
        match request.method:
            case "GET" | "HEAD":
                return await self._read(request, target, form)
            case "POST" | "PUT" | "PATCH" | "DELETE":
                self._cluster.durable.check_writable()
                body = await self._body(request)
                return await self._write(request, target, user, body, form, warnings)
            case method:
                raise _not_allowed(method, target)

    async def _read(self, request: web.BaseRequest, target: Target, form: Form) -> web.StreamResponse:
        query, resource = request.query, target.resource
        if target.subresource in ("", "status"):
            verb = "get" if target.name else "watch" if query.get("watch") in ("true", "1") else "list"
            if verb not in resource.verbs:
                raise _not_allowed("GET", target)
            if verb == "watch":
                return await self._watch(request, target, form)
            if verb == "list":
                return await self._list(target, query, form)
            manifest = self._cluster.reading.get(target)
            return await self._told(target, manifest, form, query)
        if target.subresource == "scale":
            return await self._settled(_json(self._cluster.subresources.scale(target)))
        if target.subresource == "log":
            return web.Response(text=self._cluster.subresources.text(target, query))
        raise _not_allowed("GET", target)

    async def _list(self, target: Target, query: Mapping[str, str], form: Form) -> web.StreamResponse:
        page = self._cluster.reading.list(target, query)
        resource = target.resource
        listed = reading.of_list(resource, page, [])
        if form == "table":
            table = rendering.table(
                resource, page.items, self._cluster.now(), query.get("includeObject") or "Metadata", listed["metadata"]
            )
            return await self._settled(_json(table))
        if form == "metadata":
            items: list[Any] = [rendering.partial(each) for each in page.items]
            listed |= {"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "items": items}
            return await self._settled(_json(listed))
        listed["items"] = [versions.told(each, resource) for each in page.items]
        return await self._settled(_json(listed))

    async def _watch(self, request: web.BaseRequest, target: Target, form: Form) -> web.StreamResponse:
        ask = watching.asked(target, request.query, form, int(self._cluster.store.resource_version))
        watch, first = self._cluster.watching.start(ask)
        await self._cluster.durable.wait(ask.version)
        response = web.StreamResponse(
            headers={"Content-Type": "application/json", "Cache-Control": "no-cache, private"}
        )
        response.enable_chunked_encoding()
        await response.prepare(request)
        task = asyncio.current_task()
        if task is not None:
            self._streams.add(task)
        try:
            async for batch in self._cluster.watching.stream(ask, watch, first):
                async with asyncio.timeout(WRITE_SECONDS):
                    await response.write(batch)
            await response.write_eof()
        except (TimeoutError, ConnectionError):
            if request.transport is not None:
                request.transport.abort()  # nobody reads: what is buffered for it goes with it
        finally:
            if task is not None:
                self._streams.discard(task)
        return response

    async def _write(self, request: web.BaseRequest, target: Target, user: User, body: Any, form: Form, warnings: list[str]) -> web.StreamResponse:  # fmt: skip
        verb = {
            "POST": "create",
            "PUT": "update",
            "PATCH": "patch",
            "DELETE": "delete" if target.name else "deletecollection",
        }[request.method]
        if (
            target.resource.verbs == ("create",)
            and verb == "create"
            and not target.name
            and "reviews" in target.resource.plural
        ):
            return _json(reviews.answer(target, body, user), 201)
        agent = request.headers.get("User-Agent", "")
        stated = body if verb in ("delete", "deletecollection") and isinstance(body, dict) else None
        options = requests.options(request.query, agent, user.name, stated)
        if target.subresource not in ("", "status"):
            return await self._door(request, target, body, options, warnings)
        if verb not in (target.resource.doors["status"]["verbs"] if target.subresource else target.resource.verbs):
            raise _not_allowed(request.method, target)
        writing = self._cluster.writing
        created = False
        match verb:
            case "create":
                if target.name:
                    raise _not_allowed("POST", target)
                if target.resource.kind_name == "Binding":
                    bound = type(target)(
                        resource=target.resource,
                        namespace=target.namespace,
                        name=structure.mapping(body, "metadata").get("name", ""),
                    )
                    return await self._settled(
                        _json(self._cluster.subresources.bind(bound, body, dry_run=options.dry_run), 201)
                    )
                manifest, created = writing.create(target, body, options, warnings), True
            case "update":
                manifest, created = writing.replace(target, body, options, warnings)
            case "patch":
                manifest, created = writing.patch(target, (self._patch_kind(request), body), options, warnings)
            case "delete":
                return await self._delete(request, target, stated or {}, options.dry_run)
            case _:
                return await self._delete_all(request, target, stated or {}, options.dry_run)
        self._cluster.definitions.clean()
        return await self._told(target, manifest, form, request.query, 201 if created else 200)

    async def _door(self, request: web.BaseRequest, target: Target, body: Any, options: requests.Options, warnings: list[str]) -> web.StreamResponse:  # fmt: skip
        doors, method, name = self._cluster.subresources, request.method, target.subresource
        if method == "POST" and name == "binding":
            return await self._settled(_json(doors.bind(target, body, dry_run=options.dry_run), 201))
        if method == "POST" and name == "eviction":
            return await self._settled(_json(doors.evict(target, body, dry_run=options.dry_run), 201))
        if name == "scale" and method in ("PUT", "PATCH"):
            wanted = body
            if method == "PATCH":
                kind = self._patch_kind(request)
                if kind == "json":
                    from pumice.apiserver.patching import json_patch  # noqa: PLC0415

                    wanted = json_patch.apply(doors.scale(target), body)
                else:
                    wanted = structure.merged(doors.scale(target), body)
                wanted = {**wanted, "metadata": structure.mapping(body, "metadata") if isinstance(body, dict) else {}}
            return await self._settled(_json(doors.rescale(target, wanted, options, warnings)))
        if name == "finalize" and method == "PUT":
            return await self._settled(_json(doors.finalize(target, body)))
        raise _not_allowed(method, target)

    async def _delete(
        self, request: web.BaseRequest, target: Target, stated: Mapping[str, Any], dry_run: bool
    ) -> web.StreamResponse:
        answer = self._cluster.deleting.delete(target, _delete_options(request.query, stated), dry_run=dry_run)
        self._cluster.definitions.clean()
        return await self._settled(
            _json(versions.told(answer, target.resource) if answer.get("kind") != "Status" else answer)
        )

    async def _delete_all(
        self, request: web.BaseRequest, target: Target, stated: Mapping[str, Any], dry_run: bool
    ) -> web.StreamResponse:
        resource = target.resource
        if resource.namespaced and not target.namespace:
            raise _not_allowed("DELETE", target)
        options = _delete_options(request.query, stated)
        chosen = self._cluster.reading.selected(target, request.query)
        for each in chosen:
            metadata = each["metadata"]
            one = type(target)(resource=resource, namespace=metadata.get("namespace", ""), name=metadata["name"])
            self._cluster.deleting.delete(one, options, dry_run=dry_run)
        page = reading.Page(items=chosen, version=self._cluster.store.resource_version)
        listed = reading.of_list(resource, page, [versions.told(each, resource) for each in chosen])
        return await self._settled(_json(listed))

    # ---- bodies and answers

    async def _body(self, request: web.BaseRequest) -> Any:
        """Read a body, at most as much as is accepted."""
        kind = request.content_type
        if kind in ("application/cbor", "application/apply-patch+cbor"):
            raise statuses.Problem(415, f"the body is {kind}, and only JSON, YAML and protobuf are read here")
        if request.content_length is not None and request.content_length > MOST_BYTES:
            raise _too_large(request.content_length)
        data = bytearray()
        async for piece in request.content.iter_any():
            data += piece
            if len(data) > MOST_BYTES:
                raise _too_large(len(data))
        if kind == protobuf.MEDIA:
            try:
                return self._cluster.protobuf.decode(bytes(data)) if data else {}
            except (protobuf.WireError, msgspec.MsgspecError, UnicodeDecodeError) as error:
                raise statuses.bad_request(f"the body cannot be read as {kind}: {error}") from None
        return decode(bytes(data), kind) if data else {}

    def _patch_kind(self, request: web.BaseRequest) -> str:
        kind = _PATCHES.get(request.content_type, "")
        if not kind:
            raise statuses.Problem(
                415,
                f"the body of the request was in an unknown format - accepted media types include: {', '.join(list(_PATCHES)[:4])}",
            )
        return kind

    async def _told(
        self, target: Target, manifest: Mapping[str, Any], form: Form, query: Mapping[str, str], code: int = 200
    ) -> web.StreamResponse:
        resource = target.resource
        if form == "table":
            metadata = {"resourceVersion": manifest["metadata"].get("resourceVersion", "")}
            table = rendering.table(
                resource, [manifest], self._cluster.now(), query.get("includeObject") or "Metadata", metadata
            )
            return await self._settled(_json(table, code))
        if form == "metadata":
            return await self._settled(_json(rendering.partial(manifest), code))
        return await self._settled(_json(versions.told(manifest, resource), code))

    async def _settled(self, response: web.Response) -> web.Response:
        """Give an answer when what it tells is safe."""
        await self._cluster.durable.wait(int(self._cluster.store.resource_version))
        return response


def decode(data: bytes, kind: str) -> Any:
    """Read JSON, or YAML where that is allowed."""
    try:
        if "yaml" in kind and data.lstrip()[:1] != b"{":
            return yaml.load(data, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506  safe loaders both
        return msgspec.json.decode(data)
    except (msgspec.MsgspecError, yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise statuses.bad_request(f"couldn't get version/kind; json parse error: {error}") from None


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


def _delete_options(query: Mapping[str, str], stated: Mapping[str, Any]) -> Document:
    options = dict(stated)
    if query.get("propagationPolicy"):
        options["propagationPolicy"] = query["propagationPolicy"]
    if query.get("gracePeriodSeconds", "").lstrip("-").isdecimal():
        options["gracePeriodSeconds"] = int(query["gracePeriodSeconds"])
    if query.get("orphanDependents"):
        options["orphanDependents"] = query["orphanDependents"] == "true"
    return options


def _not_allowed(method: str, target: Target) -> statuses.Problem:
    what = target.resource.plural + (f"/{target.subresource}" if target.subresource else "")
    return statuses.Problem(405, f"the server does not allow this method on the requested resource: {method} on {what}")


def _too_large(size: int) -> statuses.Problem:
    return statuses.Problem(
        413, f"Request entity too large: limit is {MOST_BYTES} bytes, and the body has {size} or more"
    )


def _problem(problem: statuses.Problem) -> web.Response:
    response = _json(problem.status(), problem.code)
    if problem.code == 401:
        response.headers["WWW-Authenticate"] = "Bearer"
    if problem.code == 413:
        response.force_close()
    if problem.code == 429 or "retryAfterSeconds" in (problem.details or {}):
        response.headers["Retry-After"] = "1" if problem.code != 429 else "10"
    return response


def _json(document: Mapping[str, Any], code: int = 200) -> web.Response:
    return web.Response(body=msgspec.json.encode(document), status=code, content_type="application/json")


def _raw(data: bytes) -> web.Response:
    return web.Response(body=data, content_type="application/json")


def _quoted(text: str) -> str:
    return (
        "".join(char if char.isprintable() and ord(char) < 127 else "?" for char in text)
        .replace("\\", "\\\\")
        .replace('"', '\\"')[:1000]
    )


def _tls(files: Files) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(files.server, files.server_key)
    context.load_verify_locations(files.authority)
    context.verify_mode = ssl.CERT_OPTIONAL  # a token will do
    context.set_alpn_protocols(["http/1.1"])
    return context
