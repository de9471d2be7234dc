# SPDX-License-Identifier: Apache-2.0
"""The plain sentence of a certificate: what was proved, how, and where the loss is attained."""

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction

from pufferfish.certificate.record import Certificate
from pufferfish.rationals import show

#: An epsilon whose exact text is longer is shown as a double.
_LONG = 24


def statement_of(certificate: Certificate, adversaries: int) -> str:
    """Return the sentence; every printed number is rounded to the safe side."""
    claim = _claim(certificate, "this is not private")
    how = _how(certificate, "the exact prior")
    return f"{claim[:1].upper()}{claim[1:]}, {how}{_where(certificate, adversaries)}."


def robust_statement_of(certificate: Certificate, adversaries: int, regions: str) -> str:
    """Return the sentence for every prior of a region, with the names of the regions."""
    claim = _claim(certificate, "")
    how = _how(certificate, "the exact ends of the region")
    where = _where(certificate, adversaries)
    return f"For every prior of the region ({regions}) {claim}, {how}{where}."


def off_lattice_statement(noise_step: Fraction, value_step: Fraction) -> str:
    """Return the sentence for noise on a lattice that misses some of the values."""
    return (
        f"Nothing was proved: noise in steps of {show(noise_step)} does not reach every value in "
        f"steps of {show(value_step)}, so the output may give the value away."
    )


def no_row_statement(value: str) -> str:
    """Return the sentence for a channel that does not know what to publish for some value."""
    return (
        f"Nothing was proved: the channel has no row for the value {value}, which a protected "
        "secret can take."
    )


def _claim(certificate: Certificate, refuted: str) -> str:
    """Return what was proved; ``refuted``: what a loss above epsilon means, "" for a region."""
    finite = math.isfinite(certificate.loss)
    shown = shown_up(certificate.loss) if finite else ""
    loss = f"at most {shown}" if finite else "without a finite bound"
    if certificate.epsilon is None:
        return f"the privacy loss is {loss}"
    exact, text = Fraction(certificate.epsilon), certificate.epsilon
    text = text if len(text) <= _LONG else f"about {float(exact)!r}"
    limit = f"epsilon = {text}"
    if certificate.holds:
        # What was proved is at most epsilon, even where the digits shown go beyond it.
        shown = text if Fraction(shown) > exact else shown
        return f"the privacy loss is at most {shown}, within {limit}"
    if certificate.decided:
        least = certificate.loss_at_least
        loss = f"at least {shown_down(least)}" if math.isfinite(least) else "infinite"
        if not refuted:
            return f"it cannot be said that the loss is within {limit}: for some it is {loss}"
        return f"the privacy loss is {loss}, above {limit}: {refuted}"
    return f"it was not decided whether the privacy loss, {loss}, is within {limit}"


def _how(certificate: Certificate, source: str) -> str:
    """Return how it was proved, and from what."""
    error = certificate.error_bound
    if certificate.method == "exact":
        return (
            "in exact rationals, from the integers of the channel and the exact prior (logarithm "
            f"and exponential in ball arithmetic at {certificate.precision} bits)"
        )
    if error is None:
        how = f"in ball arithmetic at {certificate.precision} bits, from {source}"
    else:
        size = f" (error at most {shown_up(error, 2)})" if math.isfinite(error) else ""
        how = (
            f"by a floating-point bound{size} that assumes IEEE-754 doubles, rounding to nearest, "
            "and exp, log and log1p within 4 units in the last place"
        )
    if certificate.method.endswith("+rational"):
        how += ", and in exact rationals where it may equal epsilon"
    return how


def _where(certificate: Certificate, adversaries: int) -> str:
    witness = certificate.witness
    if witness is None:
        return ""
    first, second = witness.pair
    whom = f" under adversary {witness.adversary + 1}" if adversaries > 1 else ""
    return f"; the worst output is {witness.output}, for the pair ({first}, {second}){whom}"


def shown_up(number: float, digits: int = 10) -> str:
    """Return a number as text with so many significant digits, rounded up."""
    return _shown(number, Context(prec=digits, rounding=ROUND_CEILING))


def shown_down(number: float, digits: int = 10) -> str:
    """Return a number as text with so many significant digits, rounded down."""
    return _shown(number, Context(prec=digits, rounding=ROUND_FLOOR))


def _shown(number: float, context: Context) -> str:
    # The nearest double of a decimal of so few digits prints as that decimal.
    return repr(float(context.plus(Decimal(number))))
