"""How objects are written: created, replaced, patched, applied. Every way ends in the store, and an object that is refused leaves no trace."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, Final

import msgspec

from pumice.api import kinds, timestamp
from pumice.apiserver import conformity, kind_rules, passing, pod_specs, resizing, statuses, versions
from pumice.apiserver.access.attributes import Attributes
from pumice.apiserver.built_in import defaults, validity
from pumice.apiserver.ownership import applying, managed
from pumice.apiserver.passing import Write
from pumice.apiserver.patching import json_patch, strategic
from pumice.apiserver.webhooks.asking import at_once
from pumice.sim import structure
from pumice.sim.identity import Key

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pumice.apiserver.access.authorization import Authorizer
    from pumice.apiserver.admission import Admission
    from pumice.apiserver.requests import Options, Target
    from pumice.apiserver.resources import Resource
    from pumice.apiserver.webhooks.asking import Asking
    from pumice.apiserver.webhooks.consulting import Consulting
    from pumice.sim.store import ObjectStore

Document = dict[str, Any]
_SUFFIX: Final = "bcdfghjklmnpqrstvwxz2456789"
_ATTEMPTS: Final = 8
_SERVER_OWNED: Final = ("uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation", "selfLink", "managedFields")  # fmt: skip
_STATUS_AT_CREATION: Final = frozenset({"Node", "PersistentVolume"})  # a kubelet registers its node with what it offers
Patch = tuple[str, Any]  # the content type and what was sent


class _ChangedError(Exception):
    """An object is no longer what it was when webhooks were asked about it."""


class Writing:
    """Writes objects: what they are made of a request, and how they are stored once they have passed."""

    def __init__(
        self,
        store: ObjectStore,
        admission: Admission,
        now: Callable[[], int],
        authorizer: Authorizer,
        consulting: Consulting,
    ) -> None:
        self._store = store
        self.rules = kind_rules.KindRules(store)
        self.passing = passing.Passing(self.rules, authorizer, consulting)
        self._authorizer = authorizer
        self._admission = admission
        self._now = now
        self.specs = pod_specs.PodSpecs()
        self._stamped = (0, "")  # the last second that was asked for, and how it is written

    # ---- creating

    def create(self, target: Target, body: Any, options: Options, warnings: list[str]) -> Mapping[str, Any]:
        """Create an object that no webhook is asked about, and give it as it is stored."""
        return at_once(self.creating(target, body, options, warnings))

    def creating(
        self,
        target: Target,
        body: Any,
        options: Options,
        warnings: list[str],
        *,
        applied: bool = False,
        raw: bytes = b"",
    ) -> Asking[Mapping[str, Any]]:
        """Create an object and give it as it is stored."""
        resource = target.resource
        new, namespace, generated = self._begun(target, body, options, warnings, defaulted=not applied)
        if resource.has_status and resource.kind_name not in _STATUS_AT_CREATION:
            new.pop("status", None)
        filled = managed.filled_by_server(new, resource.kind_name)
        writer = self._writer(resource, options, "")
        if applied:
            applying.created(new, resource.node, writer)
        self.rules.default(new, resource)
        if (volcano_rules := self.passing.volcano_rules) is not None:
            new = volcano_rules.completed(new, resource, namespace)
        asks = self.passing.asks("CREATE", target, options)
        if asks:
            self._admission.check_namespace(new, resource, namespace)

        def shape(new: Document) -> Document:
            if not applied:
                managed.after_create(new, resource.node, writer, filled)
            return new

        def complete(new: Document) -> None:
            if raw and not warnings and not asks:
                known = (options.validation, raw)
                self.specs.keep(known, new["spec"], new["status"]["qosClass"], resource.node, filled)
            self._admission.complete(new, resource, namespace)

        write = Write(operation="CREATE", target=target, options=options, warnings=warnings)
        new = yield from self.passing.passed(write, new, shape=shape, complete=complete)
        if asks:
            self._admission.check_namespace(new, resource, namespace)
        self._admission.charge(new, resource, namespace)
        return self._adopt(versions.stored(new, resource), resource, namespace, options, generated=generated)

    def _adopt(
        self, new: Document, resource: Resource, namespace: str, options: Options, *, generated: bool
    ) -> Mapping[str, Any]:
        for attempt in range(_ATTEMPTS):
            name = new["metadata"]["name"]
            key = Key(resource.kind, namespace, name)
            if self._store.find(key) is None:
                break
            if not generated or attempt == _ATTEMPTS - 1:
                prefix = new["metadata"].get("generateName", "")
                raise statuses.already_exists(resource.plural, resource.group, name, prefix)
            new["metadata"]["name"] = generate(new["metadata"]["generateName"])
        if resource.kind is kinds.POD:
            defaults.mark_gated(new, self.stamp())
        if options.dry_run:
            metadata = new["metadata"]
            metadata |= {
                "uid": "00000000-0000-0000-0000-000000000000",
                "creationTimestamp": self.stamp(),
                "generation": 1,
            }
            return new
        new["metadata"]["creationTimestamp"] = self.stamp()
        if resource.kind.namespaced and not namespace:
            raise statuses.bad_request("an empty namespace may not be set during creation")
        self._store.adopt(new, key)
        return self._store.peek(key)

    def _home(self, metadata: Document, target: Target) -> str:
        if not target.resource.namespaced:
            metadata.pop("namespace", None)
            return ""
        stated = metadata.get("namespace") or target.namespace
        if stated != target.namespace:
            raise statuses.bad_request(
                "the namespace of the provided object does not match the namespace sent on the request"
            )
        metadata["namespace"] = target.namespace
        return target.namespace

    def _begun(self, target: Target, body: Any, options: Options, warnings: list[str], *, defaulted: bool = True) -> tuple[Document, str, bool]:  # fmt: skip
        """Read what is to be created, without what only the server writes; returns it with its name, its namespace, and whether the name was made up."""
        return self._started(target, conformity.decoded(body, target.resource, options, warnings, defaulted=defaulted))

    def _started(self, target: Target, new: Document) -> tuple[Document, str, bool]:
        metadata = new["metadata"]
        if metadata.get("resourceVersion"):
            raise statuses.bad_request("resourceVersion should not be set on objects to be created")
        for field in _SERVER_OWNED:
            metadata.pop(field, None)
        namespace = self._home(metadata, target)
        return new, namespace, self._name(metadata, target)

    def _name(self, metadata: Document, target: Target) -> bool:
        """Name a new object; tells whether the name was made up, so that another one may be if it is taken."""
        if target.name:
            metadata["name"] = target.name
        if metadata.get("name") or not metadata.get("generateName"):
            return False
        metadata["name"] = generate(metadata["generateName"])
        return True

    def create_pod(self, target: Target, data: bytes, options: Options, warnings: list[str]) -> Mapping[str, Any]:
        """Create a pod out of JSON that no webhook is asked about."""
        return at_once(self.creating_pod(target, data, options, warnings))

    def creating_pod(
        self, target: Target, data: bytes, options: Options, warnings: list[str]
    ) -> Asking[Mapping[str, Any]]:
        """Create a pod out of JSON; one whose spec was seen before, by a client as strict, is not read again."""
        body, raw = pod_specs.split(data)
        known = self.specs.find((options.validation, raw)) if self._may_share(target, options) else None
        if known is None:
            spec = msgspec.json.decode(raw) if raw else None
            whole = {**body, "spec": spec} if spec is not None else body
            return (yield from self.creating(target, whole, options, warnings, raw=raw))
        resource = target.resource
        if pod_specs.is_plain(body):
            new, namespace, generated = self._started(target, conformity.plain(body, resource))
        else:
            new, namespace, generated = self._begun(target, body, options, warnings)
        metadata = new["metadata"]
        new |= {"spec": known.spec, "status": {"phase": "Pending", "qosClass": known.quality}}
        if found := validity.metadata(new, "Pod") + kind_rules.owner_problems(new):
            raise statuses.invalid("Pod", "", metadata.get("name", ""), found)
        self._admission.complete(new, resource, namespace)
        self._admission.charge(new, resource, namespace)
        fields = known.fields(metadata, resource.node)
        metadata["managedFields"] = [self._writer(resource, options, "").entry("Update", fields, shared=True)]
        return self._adopt(new, resource, namespace, options, generated=generated)

    def _may_share(self, target: Target, options: Options) -> bool:
        """Tell whether nobody but the server has a say about a new pod; whoever else has one is asked about each."""
        kind = (target.resource.group, target.resource.kind_name)
        rules = self.passing.volcano_rules
        others = rules is not None and rules.concerns(target.resource.kind, target.namespace)
        others = others or self.passing.asks("CREATE", target, options)
        return kind not in self.rules.judges and kind not in self.rules.completes and not others

    # ---- replacing

    def replacing(
        self, target: Target, body: Any, options: Options, warnings: list[str]
    ) -> Asking[tuple[Mapping[str, Any], bool]]:
        """Replace an object, or what a subresource opens of it; tells whether it was created."""
        return (yield from self._tried(target, warnings, lambda said: self._replace(target, body, options, said)))

    def _replace(
        self, target: Target, body: Any, options: Options, warnings: list[str]
    ) -> Asking[tuple[Mapping[str, Any], bool]]:
        resource = target.resource
        body = structure.copied(body) if self.passing.asks("UPDATE", target, options) else body
        new = conformity.decoded(body, resource, options, warnings)
        self._check_identity(new["metadata"], target)
        key = Key(resource.kind, target.namespace, target.name)
        if self._store.find(key) is None:
            raise statuses.not_found(resource.plural, resource.group, target.name)
        self._check_stated(key, resource, new["metadata"])
        return (yield from self._overwrite(key, target, new, options, warnings)), False

    def patch(
        self, target: Target, patch: Patch, options: Options, warnings: list[str]
    ) -> tuple[Mapping[str, Any], bool]:
        """Patch an object that no webhook is asked about."""
        return at_once(self.patching(target, patch, options, warnings))

    def patching(
        self, target: Target, patch: Patch, options: Options, warnings: list[str]
    ) -> Asking[tuple[Mapping[str, Any], bool]]:
        """Patch an object; an applied one that is not there is created."""
        return (yield from self._tried(target, warnings, lambda said: self._patch(target, patch, options, said)))

    def _tried(
        self,
        target: Target,
        warnings: list[str],
        write: Callable[[list[str]], Asking[tuple[Mapping[str, Any], bool]]],
    ) -> Asking[tuple[Mapping[str, Any], bool]]:
        """Write an object; one that others have changed while webhooks were asked is begun anew."""
        for _ in range(_ATTEMPTS):
            said: list[str] = []
            try:
                return (yield from write(said))
            except _ChangedError:
                said.clear()
            finally:
                warnings += said
        why = "the object has been modified; please apply your changes to the latest version and try again"
        raise statuses.conflict(target.resource.plural, target.resource.group, target.name, why)

    def _patch(
        self, target: Target, patch: Patch, options: Options, warnings: list[str]
    ) -> Asking[tuple[Mapping[str, Any], bool]]:
        resource = target.resource
        key = Key(resource.kind, target.namespace, target.name)
        old = self._store.find(key)
        kind, body = patch
        if kind == "apply":
            return (yield from self._apply(target, key, old, body, options, warnings))
        if old is None:
            raise statuses.not_found(resource.plural, resource.group, target.name)
        shown = versions.told(old, resource)
        new = self._patched(shown, kind, body, resource)
        if not isinstance(new, dict) or not isinstance(new.get("metadata"), dict):
            raise statuses.bad_request("the patch leaves no object: metadata is gone or is no object")
        new = conformity.decoded(structure.copied(new), resource, options, warnings)
        self._check_identity(new["metadata"], target)
        self._check_stated(key, resource, new["metadata"])
        return (yield from self._overwrite(key, target, new, options, warnings)), False

    def _patched(self, shown: Mapping[str, Any], kind: str, body: Any, resource: Resource) -> Any:
        try:
            if kind == "json":
                return json_patch.apply(shown, body)
            if not isinstance(body, dict):
                raise statuses.bad_request(f"a {kind} patch is an object, not {type(body).__name__}")
            if kind == "merge":
                return structure.merged(shown, body)
            if resource.custom:
                raise statuses.Problem(415, "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml")  # fmt: skip
            return strategic.apply(dict(shown), body, resource.node)
        except (json_patch.PatchError, strategic.PatchError) as error:
            raise statuses.Problem(
                422, f"the server rejected our request due to an error in our request: {error}", reason="Invalid"
            ) from None

    def _apply(self, target: Target, key: Key, old: Mapping[str, Any] | None, body: Any, options: Options, warnings: list[str]) -> Asking[tuple[Mapping[str, Any], bool]]:  # noqa: PLR0917  # fmt: skip
        resource = target.resource
        asks = self.passing.asks("CREATE", target, options) or self.passing.asks("UPDATE", target, options)
        body = structure.copied(body) if asks else body
        wanted = conformity.decoded(body, resource, options, warnings, defaulted=False)
        if wanted["metadata"].get("managedFields"):
            raise statuses.bad_request("metadata.managedFields must be nil")
        wanted["metadata"].setdefault("name", target.name)
        self._check_identity(wanted["metadata"], target)
        if old is None:
            if target.subresource:
                raise statuses.not_found(resource.plural, resource.group, target.name)
            if wanted["metadata"].get("uid"):
                raise statuses.conflict(resource.plural, resource.group, target.name, f"uid mismatch: the provided object specified uid {wanted['metadata']['uid']}, and no existing object was found")  # fmt: skip
            self._check_creation(target, options)
            return (yield from self.creating(target, wanted, options, warnings, applied=True)), True
        self._check_stated(key, resource, wanted["metadata"])
        writer = self._writer(resource, options, target.subresource)
        merged = applying.apply(versions.told(old, resource), wanted, resource.node, writer, force=options.force)
        owners = merged["metadata"]["managedFields"]
        merged = structure.copied(
            {**merged, "metadata": {k: v for k, v in merged["metadata"].items() if k != "managedFields"}}
        )
        return (yield from self._overwrite(key, target, merged, options, warnings, owners=owners)), False

    def _check_creation(self, target: Target, options: Options) -> None:
        """Refuse whoever may patch and would create."""
        if options.user is not None:
            where = {"namespace": target.namespace, "name": target.name}
            wanted = Attributes(verb="create", group=target.resource.group, resource=target.resource.plural, **where)
            self._authorizer.check(options.user, wanted)

    def _overwrite(  # noqa: PLR0917  what is written, how, and what is said about it
        self,
        key: Key,
        target: Target,
        new: Document,
        options: Options,
        warnings: list[str],
        owners: list[Any] | None = None,
    ) -> Asking[Mapping[str, Any]]:
        """Write what replaces an object, after all that may be said against it."""
        resource = target.resource
        stored = self._store.peek(key)
        old = versions.told(stored, resource)
        new = self._opened(target, old, new)
        self.rules.default(new, resource)
        self.rules.finish(new, resource)
        _keep_owned(new, old)
        asks = self.passing.asks("UPDATE", target, options)

        def shape(new: Document) -> Document:
            if asks:
                new = self._opened(target, old, new)
                _keep_owned(new, old)
            return new

        write = Write(operation="UPDATE", target=target, options=options, warnings=warnings, old=old)
        new = yield from self.passing.passed(write, new, shape=shape)
        if asks and self._store.find(key) is not stored:
            raise _ChangedError
        if target.subresource == resizing.SUBRESOURCE:
            self._admission.resize(new, old, target)
        if owners is not None:
            new["metadata"]["managedFields"] = owners
        else:
            managed.after_update(old, new, resource.node, self._writer(resource, options, target.subresource))
        new = versions.stored(new, resource)
        if options.dry_run:
            return new
        self._store.overwrite(key, new)
        return self._store.find(key) or new

    def _opened(self, target: Target, old: Mapping[str, Any], new: Document) -> Document:
        """Keep the half of an object that a subresource, or the lack of one, does not open."""
        if target.subresource == "status":
            meta = {**old["metadata"]}
            if target.resource.kind_name == "Node" or not target.resource.custom:
                meta |= {
                    field: new["metadata"][field] for field in ("labels", "annotations") if field in new["metadata"]
                }
            kept: Document = structure.copied({**old, "metadata": meta})
            kept.pop("status", None)
            return {**kept, "status": new["status"]} if "status" in new else kept
        if target.subresource == resizing.SUBRESOURCE:
            return resizing.opened(old, new)
        if target.resource.has_status:
            new.pop("status", None)
            return {**new, "status": structure.copied(old["status"])} if "status" in old else new
        return new

    # ---- what all of them share

    def _check_identity(self, metadata: Document, target: Target) -> None:
        """Refuse a writer that states another name or namespace than the path has, or no name."""
        self._home(metadata, target)
        name = metadata.get("name")
        if not name:
            raise statuses.bad_request(
                f"the name of the object ({target.name} based on URL) was undeterminable: name must be provided"
            )
        if name != target.name:
            raise statuses.bad_request(
                f"the name of the object ({name}) does not match the name on the URL ({target.name})"
            )

    def _check_stated(self, key: Key, resource: Resource, metadata: Mapping[str, Any]) -> None:
        """Refuse a writer that states another uid or version than the present one."""
        old = self._store.peek(key)["metadata"]
        uid, version = metadata.get("uid"), metadata.get("resourceVersion")
        if uid and uid != old["uid"]:
            why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {old['uid']}"
            raise statuses.conflict(resource.plural, resource.group, key.name, why)
        if version and version != old["resourceVersion"]:
            why = "the object has been modified; please apply your changes to the latest version and try again"
            raise statuses.conflict(resource.plural, resource.group, key.name, why)

    def _writer(self, resource: Resource, options: Options, subresource: str) -> managed.Writer:
        return managed.Writer(
            manager=options.manager,
            api_version=resource.api_version,
            subresource=subresource or options.through,
            time=self.stamp(),
        )

    def stamp(self) -> str:
        """Give the present second as objects state it."""
        second = self._now() // 1_000_000
        if second != self._stamped[0]:
            self._stamped = (second, timestamp.format_timestamp(second * 1_000_000))
        return self._stamped[1]


def _keep_owned(new: Document, old: Mapping[str, Any]) -> None:
    """Leave as it was what only the server writes."""
    for field in _SERVER_OWNED[:-1]:
        new["metadata"].pop(field, None)
        if field in old["metadata"]:
            new["metadata"][field] = old["metadata"][field]


def generate(prefix: Any) -> str:
    """Make up a name."""
    return str(prefix)[:58] + "".join(random.choices(_SUFFIX, k=5))  # noqa: S311  a name, not a secret
