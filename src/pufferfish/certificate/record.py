# SPDX-License-Identifier: Apache-2.0
"""Certificate: what was proved about the privacy loss, how, and under which assumptions."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from typing import Any

from pufferfish.errors import InputError
from pufferfish.rationals import show
from pufferfish.scenario import Pair

#: A pair of secrets under the adversary at this position in the scenario.
Case = tuple[int, Pair]


@dataclass(frozen=True)
class Finding:
    """What one evaluation of the loss found out; the common answer of all methods.

    Attributes
    ----------
    lower, upper : float
        Proven bounds of the loss, rounded outwards; ``upper`` may be inf.
    case : (int, (str, str)) or None
        The adversary and the pair at which the loss is attained.
    atom : int or None
        The atom of the support at which it is attained.
    refuted : bool
        Whether the loss was proved to exceed epsilon.
    undecided : frozenset of (int, (str, str))
        The cases whose loss was not proved to be at most epsilon; empty: proved.
    """

    lower: float
    upper: float
    case: Case | None = None
    atom: int | None = None
    refuted: bool = False
    undecided: frozenset[Case] = field(default_factory=frozenset)


@dataclass(frozen=True)
class Witness:
    """Where the loss is attained.

    Attributes
    ----------
    output : str
        The value of the output, as text (for levels: the level whose code it is).
    pair : (str, str)
        The two secrets that this output tells apart best.
    adversary : int
        Position of the prior in the scenario, counted from 0.
    """

    output: str
    pair: Pair
    adversary: int


@dataclass(frozen=True)
class Certificate:
    """A proven statement about the privacy loss of a mechanism in a scenario.

    It does not hold the mechanism: whoever keeps its scale or channel does so in one place only.

    Attributes
    ----------
    method : str
        For additive noise ``ball`` or ``float-bound``, with ``+rational`` where exact rationals
        decided a case; for a channel ``exact``, or ``ball`` where there is a region; ``none`` where
        nothing could be proved.
    loss : float
        A proven upper bound of the loss, rounded up; may be inf. Where the certificate holds, it
        is at most the double nearest to epsilon, which stands for epsilon itself.
    loss_at_least : float
        A proven lower bound of the loss, rounded down.
    epsilon : str or None
        The exact epsilon it was compared with.
    holds : bool
        Whether loss <= epsilon was proved.
    decided : bool
        Whether loss <= epsilon was either proved or refuted.
    witness : Witness or None
        Where the loss is attained (where that is known).
    precision : int or None
        Bits of the ball arithmetic.
    error_bound : float or None
        For ``float-bound``: the bound of its error in the loss.
    statement : str
        One plain sentence for people.
    """

    method: str
    loss: float
    loss_at_least: float
    epsilon: str | None
    holds: bool
    decided: bool
    witness: Witness | None
    precision: int | None
    error_bound: float | None
    statement: str

    @classmethod
    def of_nothing(cls, epsilon: Fraction | None, statement: str) -> "Certificate":
        """Return the certificate that proves nothing, with a sentence that says why."""
        return cls(
            method="none",
            loss=math.inf,
            loss_at_least=0.0,
            epsilon=None if epsilon is None else show(epsilon),
            holds=False,
            decided=False,
            witness=None,
            precision=None,
            error_bound=None,
            statement=statement,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return a dict for JSON; infinity is the text ``inf``."""
        data = asdict(self)
        if self.witness is not None:
            data["witness"]["pair"] = list(self.witness.pair)
        return {
            key: "inf" if isinstance(value, float) and math.isinf(value) else value
            for key, value in data.items()
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Certificate":
        """Read what :meth:`to_dict` wrote.

        Raises
        ------
        InputError
            If an entry is missing or of the wrong kind.
        """
        seen = _Reader(data)
        place = seen.take("witness", (Mapping, type(None)))
        witness = None
        if place is not None:
            inner = _Reader(place)
            pair = inner.take("pair", (list, tuple))
            if len(pair) != 2 or not all(isinstance(secret, str) for secret in pair):
                raise InputError(f"the certificate's pair must be two secrets, but is {pair!r}")
            witness = Witness(
                inner.take("output", (str,)), (pair[0], pair[1]), inner.take("adversary", (int,))
            )
        bound = seen.take("error_bound", (int, float, str, type(None)))
        return cls(
            method=seen.take("method", (str,)),
            loss=seen.real("loss"),
            loss_at_least=seen.real("loss_at_least"),
            epsilon=seen.take("epsilon", (str, type(None))),
            holds=seen.take("holds", (bool,)),
            decided=seen.take("decided", (bool,)),
            witness=witness,
            precision=seen.take("precision", (int, type(None))),
            error_bound=None if bound is None else seen.real("error_bound"),
            statement=seen.take("statement", (str,)),
        )


class _Reader:
    """Reads the entries of a mapping, with one clear line where one is not as it should be."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        if not isinstance(data, Mapping):
            raise InputError(
                f"a certificate must be a mapping, but {type(data).__name__} was given"
            )
        self.data = data

    def take(self, key: str, kinds: tuple[Any, ...]) -> Any:
        if key not in self.data:
            raise InputError(f"the certificate has no entry {key!r}")
        value = self.data[key]
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            raise InputError(f"the certificate's entry {key!r} cannot be {value!r}")
        return value

    def real(self, key: str) -> float:
        value = self.take(key, (int, float, str))
        if isinstance(value, str) and value != "inf":
            raise InputError(f"the certificate's entry {key!r} cannot be {value!r}")
        number = float(value)
        if math.isnan(number) or number < 0:
            raise InputError(f"the certificate's entry {key!r} cannot be {value!r}")
        return number
