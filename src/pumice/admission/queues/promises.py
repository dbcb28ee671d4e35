"""What a queue is promised: guarantee within deserved, deserved within capability."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pumice.admission import laws
from pumice.admission.pod_templates import amounts

if TYPE_CHECKING:
    from pumice.admission.parts import Part


def judge(spec: Part) -> None:
    """Judge the amounts of one queue against each other."""
    spec = spec.under(laws.AMOUNTS)
    capability = amounts.read(spec, "capability", shared=True)
    deserved = amounts.read(spec, "deserved", shared=True)
    guarantee = amounts.read(spec.record("guarantee"), "resource", shared=True)
    for name, (amount, part) in guarantee.items():
        if name not in deserved and spec.record("deserved").part(name).value is None:
            part.breaks(
                laws.PROMISES,
                f"is {part.value}, and deserved does not list {name}: what is guaranteed must be deserved",
            )
        elif name in deserved and amount > deserved[name][0]:
            part.breaks(laws.PROMISES, f"is {part.value}, above deserved ({deserved[name][1].value})")
        if name in capability and amount > capability[name][0]:
            part.breaks(laws.PROMISES, f"is {part.value}, above capability ({capability[name][1].value})")
    for name, (amount, part) in deserved.items():
        if name in capability and amount > capability[name][0]:
            part.breaks(laws.PROMISES, f"is {part.value}, above capability ({capability[name][1].value})")
