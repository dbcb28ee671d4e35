"""Requests about objects: which method of the cluster each of them is, and in which form its answer is wanted."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec
from aiohttp import web

from pumice.api import kinds
from pumice.apiserver import answers, bodies, reading, requests, resizing, reviews, statuses, versions, watching
from pumice.apiserver.patching import json_patch
from pumice.apiserver.tables import rendering
from pumice.apiserver.webhooks.asking import awaited
from pumice.sim import structure

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from pumice.apiserver.access.users import User
    from pumice.apiserver.authentication import Authenticator
    from pumice.apiserver.bodies import Body
    from pumice.apiserver.cluster import Cluster
    from pumice.apiserver.requests import Form, Options, Target
    from pumice.apiserver.webhooks.asking import Asking

Document = dict[str, Any]
_Result = TypeVar("_Result")
WRITE_SECONDS: Final = 60.0
_WHOLE: Final = ("", "status", resizing.SUBRESOURCE)  # where the object itself is read and written
_VERBS: Final = {"POST": "create", "PUT": "update", "PATCH": "patch"}
_ACCEPTED: Final = (
    "only the following media types are accepted: application/json, application/json;as=Table;v=v1;g=meta.k8s.io"
)


class Call(msgspec.Struct, frozen=True):
    """One request about objects."""

    request: web.BaseRequest
    target: Target
    user: User
    form: Form
    warnings: list[str]

    @property
    def query(self) -> Mapping[str, str]:
        """Its query."""
        return self.request.query

    def not_allowed(self) -> statuses.Problem:
        """Say that this cannot be done to such an object."""
        what = self.target.resource.plural + (f"/{self.target.subresource}" if self.target.subresource else "")
        message = f"the server does not allow this method on the requested resource: {self.request.method} on {what}"
        return statuses.Problem(405, message)


class Objects:
    """Answers requests about objects."""

    def __init__(self, cluster: Cluster, authenticator: Authenticator) -> None:
        self._cluster = cluster
        self._reviews = reviews.Reviews(cluster.authorizer, authenticator)
        self.streams: set[asyncio.Task[Any]] = set()
        self._webhooks = cluster.webhooks
        self._known: tuple[int, dict[str, Target]] = (-1, {})

    async def answer(self, request: web.BaseRequest, user: User, warnings: list[str]) -> web.StreamResponse:
        """Answer one request."""
        target = self._target(request.path)
        form, acceptable = requests.form(request.headers.get("Accept", ""))
        if not acceptable and target.subresource != "log":
            raise statuses.Problem(406, _ACCEPTED)
        if target.resource.deprecation:
            warnings.append(target.resource.deprecation)
        call = Call(request, target, user, form, warnings)
        if request.method in ("GET", "HEAD"):
            return await self._read(call)
        if request.method not in ("POST", "PUT", "PATCH", "DELETE"):
            raise call.not_allowed()
        self._cluster.durable.check_writable()
        body = await bodies.read(request, self._cluster.protobuf)
        return await self._settled(await self._write(call, body))

    def _target(self, path: str) -> Target:
        """Read a path; those of collections come again and again."""
        registry = self._cluster.registry
        if self._known[0] != registry.generation or len(self._known[1]) > 1000:
            self._known = (registry.generation, {})
        found = self._known[1].get(path)
        if found is None:
            found = requests.target(registry, path)
            if not found.name:
                self._known[1][path] = found
        return found

    async def _settled(self, response: web.Response) -> web.Response:
        """Give an answer when what it tells is safe."""
        await self._cluster.durable.wait(int(self._cluster.store.resource_version))
        return response

    async def _shown(self, response: web.Response) -> web.Response:
        """Give what was read when it is safe, or when nothing can be made safe: a full disk stops writes alone."""
        with contextlib.suppress(statuses.Problem):
            await self._cluster.durable.wait(int(self._cluster.store.resource_version))
        return response

    # ---- reading

    async def _read(self, call: Call) -> web.StreamResponse:
        target, query = call.target, call.query
        if target.subresource == "scale":
            return await self._shown(self._scale(call))
        if target.subresource == "log":
            if requests.is_true(query.get("follow")):
                return await self._followed(call)
            return web.Response(text=self._cluster.logs.read(target, query))
        if target.subresource not in _WHOLE:
            raise call.not_allowed()
        verb = "get" if target.name else "watch" if requests.is_true(query.get("watch")) else "list"
        if verb not in target.resource.verbs:
            raise call.not_allowed()
        if verb != "get":
            requests.check_list_options(query, watch=verb == "watch")
        if verb == "watch":
            return await self._watch(call)
        if verb == "list":
            return await self._shown(self._list(call))
        return await self._shown(self._told(call, self._cluster.reading.get(target)))

    def _scale(self, call: Call) -> web.Response:
        scale = self._cluster.subresources.scale(call.target)
        if call.form != "table":
            return answers.json(scale)
        include = call.query.get("includeObject") or "Metadata"
        metadata = {"resourceVersion": scale["metadata"].get("resourceVersion", "")}
        return answers.json(rendering.scale_table(scale, self._cluster.now(), include, metadata))

    def _list(self, call: Call) -> web.Response:
        page = self._cluster.reading.page(call.target, call.query)
        resource = call.target.resource
        listed = reading.of_list(resource, page, [])
        if call.form == "table":
            return self._table(call, page.items, listed["metadata"], 200)
        if call.form == "metadata":
            items: list[Any] = [rendering.partial(each) for each in page.items]
            return answers.json(
                {**listed, "kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "items": items}
            )
        return answers.json({**listed, "items": [versions.told(each, resource) for each in page.items]})

    async def _watch(self, call: Call) -> web.StreamResponse:
        ask = watching.asked(call.target, call.query, call.form, int(self._cluster.store.resource_version))
        watch, first = self._cluster.watching.start(ask)
        await self._cluster.durable.wait(ask.version)
        response = web.StreamResponse(
            headers={"Content-Type": "application/json", "Cache-Control": "no-cache, private"}
        )
        return await self._streamed(call, response, self._cluster.watching.stream(ask, watch, first))

    async def _followed(self, call: Call) -> web.StreamResponse:
        """Send what a container says while it says it."""
        texts = self._cluster.logs.follow(call.target, call.query)
        first = await anext(texts)  # what is wrong with the request is said before the answer begins

        async def batches() -> AsyncIterator[bytes]:
            yield first.encode()
            async for text in texts:
                yield text.encode()

        return await self._streamed(call, web.StreamResponse(headers={"Content-Type": "text/plain"}), batches())

    async def _streamed(
        self, call: Call, response: web.StreamResponse, batches: AsyncIterator[bytes]
    ) -> web.StreamResponse:
        """Send batches as they come, until there are no more or nobody reads them."""
        response.enable_chunked_encoding()
        await response.prepare(call.request)
        task = asyncio.current_task()
        if task is not None:
            self.streams.add(task)
            task.add_done_callback(self.streams.discard)
        try:
            async for batch in batches:
                if call.request.transport is None or call.request.transport.is_closing():
                    return response
                if batch:
                    async with asyncio.timeout(WRITE_SECONDS):
                        await response.write(batch)
            await response.write_eof()
        except (TimeoutError, ConnectionError):
            if call.request.transport is not None:
                call.request.transport.abort()  # nobody reads: what is buffered for it goes with it
        return response

    # ---- writing

    async def _done(self, steps: Asking[_Result]) -> _Result:
        """Carry out a write, waiting for webhooks if there are any to ask."""
        return await awaited(steps, self._webhooks.call)

    async def _write(self, call: Call, body: Body) -> web.Response:
        target, method = call.target, call.request.method
        if method == "DELETE":
            return await self._delete(call, body)
        verb = _VERBS[method]
        if verb == "create" and target.resource.plural.endswith("reviews") and not target.name:
            return answers.json(self._reviews.answer(target, body.decoded(), call.user), 201)
        agent = call.request.headers.get("User-Agent", "")
        options = requests.options(call.query, agent, call.user, verb.title())
        if target.subresource not in _WHOLE:
            return await self._through_subresource(call, body, options)
        allowed = (
            target.resource.subresources[target.subresource]["verbs"] if target.subresource else target.resource.verbs
        )
        if verb not in allowed or (verb == "create") is bool(target.name):
            raise call.not_allowed()
        manifest, code = await self._written(call, verb, body, options)
        self._cluster.definitions.clean()
        return self._told(call, manifest, code)

    async def _written(self, call: Call, verb: str, body: Body, options: Options) -> tuple[Mapping[str, Any], int]:
        """Write an object as asked and give it with the code of the answer."""
        target, writing = call.target, self._cluster.writing
        if verb == "update":
            manifest, created = await self._done(writing.replacing(target, body.decoded(), options, call.warnings))
            return manifest, 201 if created else 200
        if verb == "patch":
            patch = (body.patch_kind, body.decoded())
            if patch[0] == "apply" and not call.query.get("fieldManager"):
                cause = ("FieldValueRequired", "fieldManager", "Required value: is required for apply patch")
                raise statuses.invalid("PatchOptions", "meta.k8s.io", "", [cause])
            manifest, created = await self._done(writing.patching(target, patch, options, call.warnings))
            return manifest, 201 if created else 200
        if target.resource.kind_name == "Binding":
            return await self._bound(call, body, options), 201
        if target.resource.kind is kinds.POD and body.is_json:
            try:
                return await self._done(writing.creating_pod(target, body.data, options, call.warnings)), 201
            except (msgspec.MsgspecError, RecursionError) as error:
                raise bodies.unreadable(error) from None
        return await self._done(writing.creating(target, body.decoded(), options, call.warnings)), 201

    async def _bound(self, call: Call, body: Body, options: Options) -> Document:
        """Bind the pod that a Binding names."""
        subresources, wanted = self._cluster.subresources, body.decoded()
        named = msgspec.structs.replace(call.target, name=structure.mapping(wanted, "metadata").get("name", ""))
        wanted = await self._done(subresources.asking(named, wanted, options, call.warnings))
        return subresources.bind(named, wanted, dry_run=options.dry_run)

    async def _through_subresource(self, call: Call, body: Body, options: Options) -> web.Response:
        subresources, method, target = self._cluster.subresources, call.request.method, call.target
        dry_run = options.dry_run
        match (method, target.subresource):
            case ("POST", "binding"):
                return answers.json(
                    subresources.bind(target, await self._asked(call, body, options), dry_run=dry_run), 201
                )
            case ("POST", "eviction"):
                return answers.json(
                    subresources.evict(target, await self._asked(call, body, options), dry_run=dry_run), 201
                )
            case ("PUT" | "PATCH", "scale"):
                return answers.json(await self._rescaled(call, body, options))
            case ("POST", "token"):
                asked = await self._asked(call, body, options)
                return answers.json(self._cluster.token_requests.issue(target, asked), 201)
            case ("PUT", "finalize"):
                finalizing = subresources.finalizing(target, body.decoded(), options, call.warnings)
                return answers.json(await self._done(finalizing))
        raise call.not_allowed()

    async def _asked(self, call: Call, body: Body, options: Options) -> Any:
        """Give what comes through a subresource as webhooks leave it."""
        subresources = self._cluster.subresources
        return await self._done(subresources.asking(call.target, body.decoded(), options, call.warnings))

    async def _rescaled(self, call: Call, body: Body, options: Options) -> Document:
        subresources, target = self._cluster.subresources, call.target
        wanted = body.decoded() if call.request.method == "PUT" else self._patched_scale(target, body)
        asking = subresources.asking(target, wanted, options, call.warnings, old=subresources.scale(target))
        return subresources.rescale(target, await self._done(asking), options, call.warnings)

    def _patched_scale(self, target: Target, body: Body) -> Document:
        """Patch a scale; its version counts only where the patch names one."""
        present, patch = self._cluster.subresources.scale(target), body.decoded()
        try:
            wanted = json_patch.apply(present, patch) if body.patch_kind == "json" else structure.merged(present, patch)
        except json_patch.PatchError as error:
            raise statuses.Problem(422, f"the patch cannot be applied: {error}") from None
        return {**wanted, "metadata": structure.mapping(patch, "metadata")}

    # ---- deleting

    async def _delete(self, call: Call, body: Body) -> web.Response:
        target, stated = call.target, body.decoded()
        if target.subresource or ("delete" if target.name else "deletecollection") not in target.resource.verbs:
            raise call.not_allowed()
        if not isinstance(stated, dict):
            raise statuses.bad_request(f"DeleteOptions is an object, not {type(stated).__name__}")
        options = requests.options(call.query, "", call.user, "Delete", stated)
        wanted = requests.delete_options(call.query, stated)
        if not target.name:
            return await self._delete_all(call, wanted, options)
        answer = await self._done(self._deleting(call, target, wanted, options))
        self._cluster.definitions.clean()
        return answers.json(answer if answer.get("kind") == "Status" else versions.told(answer, target.resource))

    def _deleting(self, call: Call, target: Target, wanted: Document, options: Options) -> Asking[Mapping[str, Any]]:
        deleting = self._cluster.deleting
        return deleting.deleting(target, wanted, dry_run=options.dry_run, asking=options, warnings=call.warnings)

    async def _delete_all(self, call: Call, wanted: Document, options: Options) -> web.Response:
        target, resource = call.target, call.target.resource
        if resource.namespaced and not target.namespace:
            raise call.not_allowed()
        chosen = self._cluster.reading.selected(target, call.query)
        for each in chosen:
            one = msgspec.structs.replace(target, name=each["metadata"]["name"])
            try:
                await self._done(self._deleting(call, one, wanted, options))
            except statuses.Problem as problem:
                if problem.code != 404:  # it went while webhooks were asked
                    raise
        page = reading.Page(items=chosen, version=self._cluster.store.resource_version)
        return answers.json(reading.of_list(resource, page, [versions.told(each, resource) for each in chosen]))

    # ---- forms

    def _told(self, call: Call, manifest: Mapping[str, Any], code: int = 200) -> web.Response:
        if manifest.get("kind") == "Status":
            return answers.json(manifest, code)
        if call.form == "table":
            metadata = {"resourceVersion": manifest["metadata"].get("resourceVersion", "")}
            return self._table(call, [manifest], metadata, code)
        if call.form == "metadata":
            return answers.json(rendering.partial(manifest), code)
        return answers.raw(self._cluster.watching.encoded(manifest, call.target.resource), code)

    def _table(self, call: Call, items: list[Any], metadata: Document, code: int) -> web.Response:
        include = call.query.get("includeObject") or "Metadata"
        return answers.json(rendering.table(call.target.resource, items, self._cluster.now(), include, metadata), code)
