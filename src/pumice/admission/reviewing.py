"""AdmissionReview v1: what an API server asks, and the answer, without the server around it."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, Final

import msgspec

from pumice.admission import patches, remarks
from pumice.admission.requests import Operation, Request

if TYPE_CHECKING:
    from pumice.admission.requests import RuleSettings
    from pumice.admission.rules import Rule
    from pumice.admission.surroundings import Surroundings

Document = dict[str, Any]
API_VERSION: Final = "admission.k8s.io/v1"
KIND: Final = "AdmissionReview"
MOST_WARNINGS: Final = 20
LONGEST_WARNING: Final = 250  # what kube-apiserver passes on whole; beyond 4096 characters altogether it cuts
_JSON: Final = msgspec.json.Encoder()


class ReviewError(ValueError):
    """A body that is no review; the message says what is wrong with it."""


class _Wire(msgspec.Struct, rename="camel", kw_only=True):
    """What is read of a review; a deletion may come without an object."""

    uid: str
    operation: Operation
    name: str = ""
    namespace: str = ""
    object: Document | None = None
    old_object: Document | None = None
    sub_resource: str = ""


class _Review(msgspec.Struct, rename="camel", kw_only=True):
    api_version: str
    kind: str
    request: _Wire


_DECODER: Final = msgspec.json.Decoder(_Review)


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """A review that was read: its uid goes back with the answer."""

    uid: str
    request: Request


def read(body: bytes) -> Question:
    """Read a review."""
    try:
        review = _DECODER.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ReviewError(f"the body is no {KIND}: {error}") from None
    if (review.api_version, review.kind) != (API_VERSION, KIND):
        raise ReviewError(f"the body is {review.api_version} {review.kind}, and must be {API_VERSION} {KIND}")
    asked = review.request
    return Question(
        uid=asked.uid,
        request=Request(
            operation=asked.operation,
            object=asked.object or {},
            old=asked.old_object or {},
            namespace=asked.namespace,
            name=asked.name,
        ),
    )


def answer(rule: Rule, question: Question, around: Surroundings, settings: RuleSettings) -> Document:
    """Ask a rule, and give the review that goes back."""
    request = question.request
    if request.operation not in rule.operations:
        return allowed(question.uid)
    if rule.complete is not None:
        completed = rule.complete(request, around, settings)
        return allowed(question.uid, patches.difference(request.object, completed))
    found = remarks.Remarks(strict=settings.strict)
    if rule.judge is not None:
        rule.judge(request, found, around, settings)
    response = allowed(question.uid)
    if found.refusals:
        response["response"] |= {"allowed": False, "status": status(rule, request, found)}
    if told := warnings(found):
        response["response"]["warnings"] = told
    return response


def allowed(uid: str, operations: list[patches.Operation] | None = None) -> Document:
    """Let an object in, with changes if there are any."""
    response: Document = {"uid": uid, "allowed": True}
    if operations:
        response |= {"patchType": "JSONPatch", "patch": base64.b64encode(_JSON.encode(operations)).decode()}
    return {"apiVersion": API_VERSION, "kind": KIND, "response": response}


def warnings(found: remarks.Remarks) -> list[str]:
    """Give what clients are told beside the verdict, each line as long as is passed on whole."""
    return [str(each)[:LONGEST_WARNING] for each in found.warnings[:MOST_WARNINGS]]


def status(rule: Rule, request: Request, found: remarks.Remarks) -> Document:
    """Give the Status of a refusal: a client such as kubectl writes one line for each cause."""
    causes = [{"reason": "FieldValueInvalid", "field": each.field, "message": each.message} for each in found.refusals]
    about = {"name": request.name, "group": rule.kind.group, "kind": rule.kind.name}
    details = {**{key: value for key, value in about.items() if value}, "causes": causes}
    return {"code": 422, "reason": "Invalid", "message": remarks.listed(found.refusals), "details": details}
