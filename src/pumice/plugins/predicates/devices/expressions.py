"""What selectors say of devices: each expression is compiled once, and asked once about devices of equal content."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from pumice.cel import functions, language

if TYPE_CHECKING:
    from pumice.api import resource
    from pumice.model.devices.offers import Device

_REMEMBERED: Final = 200_000
_MOST_PROGRAMS: Final = 10_000
_LACKING: Final = re.compile(r'Key not found in map : "(.*)"')
_MOST_DOMAINS: Final = 16
UNKNOWN: Final = "a selector of a form that is not known here"


class Expressions:
    """Compiled selectors, and their answers by content of devices."""

    def __init__(self) -> None:
        self._programs: dict[str, language.Program | language.CelError] = {}
        self._answers: dict[tuple[str, bytes], bool | language.CelError] = {}

    def holds(self, expression: str | None, device: Device) -> bool:
        """Tell whether a selector is true of a device, or raise the `CelError` that says why nobody knows."""
        if expression is None:
            raise language.CelError(UNKNOWN)
        key = (expression, device.content)
        answer = self._answers.get(key)
        if answer is None:
            if len(self._answers) >= _REMEMBERED:
                self._answers.clear()
            try:
                answer = self._evaluate(expression, device)
            except language.CelError as error:
                answer = error
            self._answers[key] = answer
        if isinstance(answer, language.CelError):
            raise answer
        return answer

    def _program(self, expression: str) -> language.Program:
        known = self._programs.get(expression)
        if known is None:
            try:
                known = language.over("device").compile(expression)
                if known.returns not in ("bool", "dyn"):
                    known = language.CelError(f"it gives {known.returns}, not bool")
            except language.MissingError:
                raise  # it may be there next time
            except language.CelError as error:
                known = language.CelError(f"CEL compile error: {error}")
            if len(self._programs) >= _MOST_PROGRAMS:
                self._programs.clear()
            self._programs[expression] = known
        if isinstance(known, language.CelError):
            raise known
        return known

    def _evaluate(self, expression: str, device: Device) -> bool:
        """Evaluate; a domain that a device lacks is an empty map to whoever looks into it."""
        program, values = self._program(expression), device_values(device)
        for _ in range(_MOST_DOMAINS):
            try:
                found = program.evaluate({"device": values})
            except language.CelError as error:
                lacking = _LACKING.search(str(error))
                if lacking is None or not _add_domain(values, lacking[1]):
                    raise language.CelError(f"CEL runtime error: {error}") from None
                continue
            if not isinstance(found, bool):
                raise language.CelError("CEL runtime error: it does not give true or false")
            return found
        raise language.CelError(f"CEL runtime error: it names more than {_MOST_DOMAINS} domains that the device lacks")


def _add_domain(values: dict[str, Any], domain: str) -> bool:
    """Add an empty domain where there is none; tells whether there was one to add."""
    lacking = [part for part in ("attributes", "capacity") if domain not in values[part]]
    for part in lacking:
        values[part] = {**values[part], domain: {}}
    return bool(lacking)


def device_values(device: Device) -> dict[str, Any]:
    """Return a device as expressions see it."""
    driver, found = device.id[0], device.object
    return {
        "driver": driver,
        "attributes": _by_domain(driver, {name: _value(each) for name, each in found.attributes.items()}),
        "capacity": _by_domain(
            driver, {name: functions.of_quantity(each.value) for name, each in found.capacity.items()}
        ),
        "allowMultipleAllocations": device.shared,
    }


def _value(attribute: resource.DeviceAttribute) -> Any:
    if attribute.version_value is not None:
        try:
            return functions.of_version(attribute.version_value)
        except ValueError:
            return attribute.version_value
    if attribute.bool_value is not None:
        return attribute.bool_value
    return attribute.int_value if attribute.int_value is not None else attribute.string_value


def _by_domain(driver: str, named: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Sort names into domains; one without belongs to the driver."""
    domains: dict[str, dict[str, Any]] = {}
    for name, value in named.items():
        domain, slash, short = name.rpartition("/")
        domains.setdefault(domain if slash else driver, {})[short] = value
    return domains
