"""Ask the webhooks about a write: those that may change it one after another, those that judge it all at once."""

from __future__ import annotations

import base64
import uuid
from typing import TYPE_CHECKING, Any, Final

import msgspec

from pumice.api import kinds
from pumice.apiserver import statuses, versions
from pumice.apiserver.patching import json_patch
from pumice.apiserver.schemas import cel
from pumice.apiserver.webhooks import hooks, places
from pumice.apiserver.webhooks.asking import Call, Outcome
from pumice.sim import structure
from pumice.sim.identity import Key

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pumice.apiserver.access.users import User
    from pumice.apiserver.requests import Target
    from pumice.apiserver.resources import Registry, Resource
    from pumice.apiserver.webhooks.asking import Asking
    from pumice.apiserver.webhooks.hooks import Hook
    from pumice.sim.store import ObjectStore

Document = dict[str, Any]
_DRY: Final = ("None", "NoneOnDryRun")
_ITSELF: Final = {"username": "system:kube-controller-manager", "groups": ["system:authenticated"]}


class Asked(msgspec.Struct, kw_only=True):
    """A write that webhooks are asked about; `kind_name` is that of what comes through a subresource, if that is another."""

    operation: str
    target: Target
    name: str
    new: Document | None = None
    old: Mapping[str, Any] | None = None
    kind: tuple[str, str, str] | None = None
    user: User | None = None
    options: Document = {}
    dry_run: bool = False


class Consulting:
    """Asks webhooks."""

    def __init__(self, store: ObjectStore, registry: Registry) -> None:
        self._store = store
        self._hooks = hooks.Hooks(store, registry)

    def concerns(self, operation: str, target: Target) -> bool:
        """Tell whether a webhook may have to be asked about such a write."""
        where = (operation, target.resource, target.subresource)
        return bool(self._hooks.about(hooks.MUTATING, *where) or self._hooks.about(hooks.VALIDATING, *where))

    # ---- those that change it

    def changed(self, asked: Asked, warnings: list[str]) -> Asking[bool]:
        """Let webhooks change what is written; tells whether one did. Those that want to see later changes are asked once more."""
        found = self._hooks.about(hooks.MUTATING, asked.operation, asked.target.resource, asked.target.subresource)
        asked_before: list[Hook] = []
        again: list[Hook] = []
        touched = False
        for hook, resource in found:
            if not self._fits(hook, asked):
                continue
            changed = yield from self._change(hook, resource, asked, warnings)
            if changed:
                touched = True
                again += [each for each in asked_before if each not in again]
            if hook.reinvoked:
                asked_before.append(hook)
        for hook, resource in found:
            if hook in again:
                yield from self._change(hook, resource, asked, warnings)
        return touched

    def _change(self, hook: Hook, resource: Resource, asked: Asked, warnings: list[str]) -> Asking[bool]:
        answer = yield from self._one(hook, resource, asked, warnings)
        if answer is None or not answer.get("patch"):
            return False
        try:
            operations = msgspec.json.decode(base64.b64decode(answer["patch"]))
        except (ValueError, TypeError, msgspec.MsgspecError) as error:
            return _failed(hook, f"received undecodable patch in webhook response: {error}")
        if not operations:
            return False
        if asked.new is None:
            why = f'admission webhook "{hook.name}" attempted to modify the object, which is not supported for this operation'
            raise _internal(why)
        before = _shown(asked.new, resource, asked)
        try:
            after = json_patch.apply(before, operations)
        except json_patch.PatchError as error:
            raise _internal(str(error)) from None
        if not isinstance(after, dict) or not isinstance(after.get("metadata"), dict):
            raise _internal(f'the patch of the webhook "{hook.name}" leaves no object')
        if structure.same(before, after):
            return False
        asked.new = {**after, "apiVersion": asked.new.get("apiVersion"), "kind": asked.new.get("kind")}
        return True

    # ---- those that judge it

    def judged(self, asked: Asked, warnings: list[str]) -> Asking[None]:
        """Let webhooks judge what is written, all at once; the first that refuses is told."""
        where = (asked.operation, asked.target.resource, asked.target.subresource)
        found = [each for each in self._hooks.about(hooks.VALIDATING, *where) if self._fits(each[0], asked)]
        if not found:
            return
        prepared = [(hook, *self._prepared(hook, resource, asked)) for hook, resource in found]
        calls = [call for _, _, call in prepared if isinstance(call, Call)]
        outcomes = iter((yield calls) if calls else [])
        problems = []
        for hook, uid, call in prepared:
            outcome = next(outcomes) if isinstance(call, Call) else call
            try:
                self._answer(hook, uid, outcome, warnings)
            except statuses.Problem as problem:
                problems.append(problem)
        if problems:
            raise problems[0]

    # ---- one of them

    def _one(self, hook: Hook, resource: Resource, asked: Asked, warnings: list[str]) -> Asking[Document | None]:
        """Ask one; gives its answer, or nothing from one that could not be asked and is passed over."""
        uid, call = self._prepared(hook, resource, asked)
        outcome = (yield [call])[0] if isinstance(call, Call) else call
        return self._answer(hook, uid, outcome, warnings)

    def _prepared(self, hook: Hook, resource: Resource, asked: Asked) -> tuple[str, Call | Outcome]:
        """Write what is asked; where nobody can be reached that is the outcome."""
        if asked.dry_run and hook.side_effects not in _DRY:
            raise statuses.bad_request(f'admission webhook "{hook.name}" does not support dry run')
        uid = str(uuid.uuid4())
        try:
            place = places.of_client(hook.client, self._store)
        except places.PlaceError as error:
            return uid, Outcome(failure=f"failed to call webhook: {error}")
        call = Call(
            webhook=hook.name,
            url=place.url,
            address=place.address,
            server_name=place.server_name,
            authorities=hook.client.get("caBundle") or "",
            seconds=hook.seconds,
            body=msgspec.json.encode(_review(hook, resource, asked, uid)),
        )
        return uid, call

    def _answer(self, hook: Hook, uid: str, outcome: Outcome, warnings: list[str]) -> Document | None:
        """Read an answer; a refusal is raised."""
        failure = outcome.failure or _flaw(hook, uid, outcome.answer)
        if failure:
            _failed(hook, failure)
            return None
        answer: Document = outcome.answer["response"]
        warnings += [str(each) for each in answer.get("warnings") or ()]
        if not answer.get("allowed"):
            raise _denied(hook, structure.mapping(answer, "status"))
        return answer

    # ---- whom it concerns

    def _fits(self, hook: Hook, asked: Asked) -> bool:
        """Tell whether a webhook wants to be asked about these very objects."""
        present = [each for each in (asked.new, asked.old) if each]
        if not hooks.selects(hook, self._labels(asked), present):
            return False
        return all(_holds(hook, each, asked) for each in hook.conditions)

    def _labels(self, asked: Asked) -> Mapping[str, Any] | None:
        """Give the labels that a selector of namespaces is held against; nothing for what is in none."""
        if asked.target.resource.kind is kinds.NAMESPACE and not asked.target.subresource:
            return structure.mapping(asked.new or asked.old, "metadata", "labels")
        if not asked.target.resource.namespaced:
            return None
        found = self._store.find(Key(kinds.NAMESPACE, "", asked.target.namespace))
        return structure.mapping(found, "metadata", "labels")


def _holds(hook: Hook, condition: Mapping[str, Any], asked: Asked) -> bool:
    resource = asked.target.resource
    scope = {
        "object": asked.new,
        "oldObject": asked.old,
        "request": _request(resource, asked) | {"object": asked.new, "oldObject": asked.old},
    }
    try:
        return cel.condition(str(condition.get("expression")), scope)
    except cel.CelError as error:
        if hook.lenient:
            return False
        message = f'failed to evaluate match condition "{condition.get("name")}" of webhook "{hook.name}": {error}'
        raise statuses.forbidden(resource.plural, resource.group, asked.name, message) from None


def _review(hook: Hook, resource: Resource, asked: Asked, uid: str) -> Document:
    """Write the review that a webhook is sent."""
    shown = {field: _shown(each, resource, asked) for field, each in (("object", asked.new), ("oldObject", asked.old))}
    request = {"uid": uid, **_request(resource, asked), **shown, "options": asked.options or None}
    return {"kind": "AdmissionReview", "apiVersion": f"admission.k8s.io/{hook.review_version}", "request": request}


def _request(resource: Resource, asked: Asked) -> Document:
    own, subresource = asked.target.resource, asked.target.subresource
    found: Document = {
        "kind": _kind(resource, asked),
        "resource": {"group": resource.group, "version": resource.version, "resource": resource.plural},
        "requestKind": _kind(own, asked),
        "requestResource": {"group": own.group, "version": own.version, "resource": own.plural},
        "name": asked.name,
        "operation": asked.operation,
        "userInfo": asked.user.told() if asked.user is not None else _ITSELF,
        "dryRun": asked.dry_run,
    }
    found |= {"subResource": subresource, "requestSubResource": subresource} if subresource else {}
    namespace = asked.name if own.kind is kinds.NAMESPACE else asked.target.namespace
    return found | ({"namespace": namespace} if namespace else {})


def _kind(resource: Resource, asked: Asked) -> Document:
    group, version, kind = asked.kind or (resource.group, resource.version, resource.kind_name)
    return {"group": group, "version": version, "kind": kind}


def _shown(manifest: Mapping[str, Any] | None, resource: Resource, asked: Asked) -> Mapping[str, Any] | None:
    """Give an object in the version that a webhook wants to see."""
    return manifest if manifest is None or asked.kind is not None else versions.told(manifest, resource)


def _flaw(hook: Hook, uid: str, answer: Any) -> str:
    """Say why an answer is none, or nothing."""
    stated = (structure.mapping(answer).get("apiVersion"), structure.mapping(answer).get("kind"))
    wanted = (f"admission.k8s.io/{hook.review_version}", "AdmissionReview")
    if stated != wanted and not (hook.review_version == "v1beta1" and stated == (None, None)):
        return f"received invalid webhook response: expected webhook response of {wanted[0]}, Kind={wanted[1]}, got {stated[0]}, Kind={stated[1]}"  # fmt: skip
    response = structure.mapping(answer).get("response")
    if not isinstance(response, dict):
        return "received invalid webhook response: webhook response was absent"
    if hook.review_version == "v1" and response.get("uid") != uid:
        return f'received invalid webhook response: expected response.uid="{uid}", got "{response.get("uid", "")}"'
    if hook.judging and (response.get("patch") or response.get("patchType")):
        return "received invalid webhook response: validating webhook may not return response.patch"
    if response.get("patch") and response.get("patchType") != "JSONPatch" and hook.review_version == "v1":
        return f'received invalid webhook response: webhook returned invalid response.patchType of "{response.get("patchType", "")}"'  # fmt: skip
    return ""


def _failed(hook: Hook, why: str) -> bool:
    """Refuse a write whose webhook could not be asked, unless it is passed over then."""
    if hook.lenient:
        return False
    raise _internal(f'failed calling webhook "{hook.name}": {why}')


def _internal(why: str) -> statuses.Problem:
    return statuses.Problem(500, f"Internal error occurred: {why}", details={"causes": [{"message": why}]})


def _denied(hook: Hook, status: Mapping[str, Any]) -> statuses.Problem:
    """Say that a webhook refuses, with what it says about it."""
    code = status.get("code")
    code = code if isinstance(code, int) and 400 <= code < 600 else 400
    why = status.get("message") or status.get("reason")
    denied = f'admission webhook "{hook.name}" denied the request'
    message = f"{denied}: {why}" if why else f"{denied} without explanation"
    details = status.get("details")
    problem = statuses.Problem(code, message, details=details if isinstance(details, dict) else None)
    problem.reason = str(status.get("reason") or "")
    return problem
