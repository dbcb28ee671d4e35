"""How something wrong is said of a field, in the words of kube-apiserver: one cause for each, and texts that several kinds share."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from pumice.api import quantity

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from pumice.apiserver.statuses import Causes

LABEL: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
SUBDOMAIN: Final = rf"{LABEL}(\.{LABEL})*"
_QUALIFIED: Final = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_PERCENT: Final = re.compile(r"[0-9]+%")
NOT_NEGATIVE: Final = "must be greater than or equal to 0"
NO_LABEL: Final = f"a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '{LABEL}')"  # fmt: skip
NO_SUBDOMAIN: Final = f"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '{SUBDOMAIN}')"  # fmt: skip
_NO_KEY: Final = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"  # fmt: skip
_NO_VALUE: Final = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"  # fmt: skip
_NO_PERCENT: Final = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"  # fmt: skip


def invalid(field: str, value: Any, why: str) -> Causes:
    """Say that a value is wrong."""
    return [("FieldValueInvalid", field, f"Invalid value: {shown(value)}: {why}")]


def required(field: str, why: str = "") -> Causes:
    """Say that a value is missing."""
    return [("FieldValueRequired", field, f"Required value: {why}" if why else "Required value")]


def forbidden(field: str, why: str) -> Causes:
    """Say that a value must not be there."""
    return [("FieldValueForbidden", field, f"Forbidden: {why}")]


def duplicate(field: str, value: Any) -> Causes:
    """Say that a value was given before."""
    return [("FieldValueDuplicate", field, f"Duplicate value: {shown(value)}")]


def unsupported(field: str, value: Any, supported: Iterable[str]) -> Causes:
    """Say that a value is none of those that are known."""
    listed = ", ".join(json.dumps(each) for each in supported)
    return [("FieldValueNotSupported", field, f"Unsupported value: {shown(value)}: supported values: {listed}")]


def shown(value: Any) -> str:
    """Write a value as it stands in a message, cut if it is long."""
    text = json.dumps(value, separators=(",", ":"))
    return text if len(text) <= 200 else text[:197] + "..."


def negative(value: Any, field: str) -> Causes:
    """Refuse a number below 0."""
    return invalid(field, value, NOT_NEGATIVE) if isinstance(value, int) and value < 0 else []


def port(value: Any, field: str) -> Causes:
    """Refuse a number that is no port."""
    good = isinstance(value, int) and 1 <= value <= 65535
    return [] if good else invalid(field, value, "must be between 1 and 65535, inclusive")


def label_name(value: Any, field: str) -> Causes:
    """Refuse a name that is no label of DNS."""
    if not value:
        return required(field)
    if len(value) > 63:
        return invalid(field, value, "must be no more than 63 characters")
    return [] if re.fullmatch(LABEL, value) else invalid(field, value, NO_LABEL)


def subdomain(value: Any, field: str) -> Causes:
    """Refuse a name that is no subdomain of DNS."""
    if not isinstance(value, str) or len(value) > 253:
        return invalid(field, value, "must be no more than 253 characters")
    return [] if re.fullmatch(SUBDOMAIN, value) else invalid(field, value, NO_SUBDOMAIN)


def label_key(key: str, field: str) -> Causes:
    """Refuse what is no key of a label."""
    prefix, slash, name = key.rpartition("/")
    good = len(name) <= 63 and _QUALIFIED.fullmatch(name) and (not slash or re.fullmatch(SUBDOMAIN, prefix))
    return [] if good else invalid(field, key, _NO_KEY)


def label_value(value: Any, field: str) -> Causes:
    """Refuse what is no value of a label."""
    good = isinstance(value, str) and len(value) <= 63 and (not value or _QUALIFIED.fullmatch(value))
    return [] if good else invalid(field, value, _NO_VALUE)


def labels(stated: Mapping[str, Any] | None, field: str) -> Causes:
    """Refuse keys and values that are none of labels."""
    found: Causes = []
    for key, value in (stated or {}).items():
        found += label_key(key, field) + label_value(value, field)
    return found


def share(value: Any, field: str, *, bounded: bool = True) -> Causes:
    """Refuse what is neither a count nor a percentage, and a percentage above 100 if it is of a whole."""
    if isinstance(value, str):
        if not _PERCENT.fullmatch(value):
            return invalid(field, value, _NO_PERCENT)
        return invalid(field, value, "must not be greater than 100%") if bounded and int(value[:-1]) > 100 else []
    return negative(value, field)


def selector(stated: Any, field: str) -> Causes:
    """Refuse requirements on labels that cannot be read."""
    found: Causes = labels((stated or {}).get("matchLabels"), f"{field}.matchLabels")
    for index, each in enumerate((stated or {}).get("matchExpressions") or ()):
        found += requirement(each, f"{field}.matchExpressions[{index}]", ("In", "NotIn", "Exists", "DoesNotExist"))
    return found


def requirement(stated: Mapping[str, Any], field: str, operators: Collection[str]) -> Causes:
    """Refuse a requirement on a label whose values do not go with its operator."""
    operator, values = stated.get("operator"), stated.get("values") or []
    found = label_key(stated.get("key") or "", f"{field}.key")
    if operator in ("In", "NotIn") and not values:
        found += required(f"{field}.values", "must be specified when `operator` is 'In' or 'NotIn'")
    elif operator in ("Exists", "DoesNotExist") and values:
        found += forbidden(f"{field}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
    elif operator in ("Gt", "Lt") and operator in operators and len(values) != 1:
        found += required(f"{field}.values", "must be specified single value when `operator` is 'Lt' or 'Gt'")
    elif operator not in operators:
        found += invalid(f"{field}.operator", operator, "not a valid selector operator")
    return found


def amount(value: Any) -> Any:
    """Read an amount exactly, None if it is none: that is told elsewhere."""
    try:
        return quantity.parse(str(value))
    except quantity.QuantityError:
        return None


def written(value: Any) -> str:
    """Write an amount as Kubernetes does: whole, or in thousandths."""
    found = amount(value)
    return str(value) if found is None or found == int(found) else f"{int(found * 1000)}m"
