"""Fragments and scores as the rules say them, one kind and one card at a time, with fractions and forty digits."""

from decimal import Decimal, localcontext
from fractions import Fraction

from pumice.plugins.fragmentation import typical


def kind(cpu, milli, cards, *models):
    return (cpu, milli, cards, ((("In", models),),) if models else ())


def fragments(kinds, cpu, cards, model=None):
    """F of a node with so much cpu left and these thousandths left of its cards; weights are counts."""
    everything, found = sum(cards), Fraction(0)
    weights = sum(count for _, count in kinds)
    for (need, milli, number, models), count in kinds:
        useless = (
            milli == 0
            or not typical.allows(models, model)
            or cpu < need
            or sum(1 for left in cards if left >= milli) < number
        )
        lost = everything if useless else sum(left for left in cards if left < milli)
        found += Fraction(count, weights) * lost
    return found


def score(before, after):
    """⌊100 ÷ (1 + e^(-(F - F') ÷ 1000))⌋."""
    with localcontext() as exact:
        exact.prec = 40
        difference = before - after
        x = Decimal(difference.numerator) / Decimal(difference.denominator) / 1000
        return int(Decimal(100) / (1 + (-x).exp()))


def placements(cards, number, milli):
    """Every way to put a pod on cards, in the order of their index: each card for a share, the first free ones for whole cards."""
    if not number:
        return [((), list(cards))]
    fitting = [at for at, left in enumerate(cards) if left >= milli]
    if len(fitting) < number:
        return []
    ways = [fitting[:number]] if milli == 1000 else [[at] for at in fitting]
    return [(tuple(way), [left - milli * (at in way) for at, left in enumerate(cards)]) for way in ways]


def best(kinds, cpu, cards, model, pod):
    """The score of a node for a pod (cpu, milli, cards), and the cards it takes; None if it has none for it."""
    need, milli, number = pod
    before = fragments(kinds, cpu, cards, model)
    found = None
    for way, left in placements(cards, number, milli):
        rated = score(before, fragments(kinds, cpu - need, left, model))
        if found is None or rated > found[0]:
            found = rated, way
    return found
