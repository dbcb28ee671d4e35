"""Templates of pods: metadata, and the spec as a whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pumice.admission import laws, naming
from pumice.admission.pod_templates import containers, placing, volumes

if TYPE_CHECKING:
    from pumice.admission.parts import Part

_RESTART: Final = ("Always", "OnFailure", "Never")
_DNS: Final = ("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None")
_LARGEST: Final = 2**31 - 1
_LONGEST_ANNOTATIONS: Final = 256 * 1024


def judge(template: Part) -> None:
    """Judge the template of a pod."""
    judge_metadata(template.record("metadata"))
    spec = template.record("spec")
    if not spec:
        spec.refuse("is missing, and must be given")
        return
    judge_spec(spec)


def judge_metadata(metadata: Part) -> None:
    """Judge labels and annotations."""
    judge_labels(metadata, "labels")
    size = 0
    for key, value in metadata.entries("annotations"):
        if problem := naming.key(key.lower()):
            value.refuse(f"is no key of an annotation: {problem}")
        if not isinstance(value.value, str):
            value.refuse("must be a string; put quotes around numbers and true or false")
        size += len(key) + len(str(value.value))
    if size > _LONGEST_ANNOTATIONS:
        metadata.refuse(f"have {size} bytes, and may have at most {_LONGEST_ANNOTATIONS}", "annotations")


def judge_labels(part: Part, name: str) -> None:
    """Judge a map of labels."""
    for key, value in part.entries(name):
        if problem := naming.key(key):
            value.refuse(f"is no key of a label: {problem}")
        if not isinstance(value.value, str):
            value.refuse("must be a string; put quotes around numbers and true or false")
        elif problem := naming.label_value(value.value):
            value.refuse(f"is {value.value!r}, and the value of a label {problem}")


def judge_spec(spec: Part) -> None:
    """Judge the spec of a pod."""
    known = volumes.judge(spec)
    containers.judge(spec, known)
    placing.judge(spec)
    _judge_life(spec)
    _judge_names(spec)
    _judge_identity(spec.record("securityContext"))


def _judge_life(spec: Part) -> None:
    spec.among("restartPolicy", _RESTART)
    policy = spec.among("dnsPolicy", _DNS)
    if policy == "None" and not spec.record("dnsConfig").elements("nameservers"):
        spec.refuse('must list at least one server where dnsPolicy is "None"', "dnsConfig", "nameservers")
    spec.under(laws.TEMPLATE_OF_USE).whole("terminationGracePeriodSeconds", least=0)
    spec.whole("activeDeadlineSeconds", least=1, most=_LARGEST)
    if spec.part("ephemeralContainers").value:
        spec.refuse("cannot be given to a pod that is created", "ephemeralContainers")


def _judge_names(spec: Part) -> None:
    for name, rule in (
        ("hostname", naming.label),
        ("subdomain", naming.label),
        ("serviceAccountName", naming.subdomain),
        ("priorityClassName", naming.subdomain),
        ("runtimeClassName", naming.subdomain),
        ("nodeName", naming.subdomain),
    ):
        value = spec.text(name)
        if value and (problem := rule(value)):
            spec.refuse(f"is {value!r}, and {problem}", name)
    for secret in spec.items("imagePullSecrets"):
        secret.under(laws.TEMPLATE_OF_USE).required("name")
    for alias in spec.items("hostAliases"):
        alias.required("ip")


def _judge_identity(security: Part) -> None:
    for name in ("runAsUser", "runAsGroup", "fsGroup"):
        security.whole(name, least=0, most=_LARGEST)
