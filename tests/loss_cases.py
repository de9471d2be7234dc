# SPDX-License-Identifier: Apache-2.0
"""Random cases of `strategies` as objects of the package, and their loss by brute force."""

import warnings
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

import definitions
from pufferfish.errors import PriorWarning
from pufferfish.mechanisms.channel import Channel
from pufferfish.mechanisms.laplace import DiscreteLaplace
from pufferfish.priors.prior import Prior
from pufferfish.priors.scenario import Scenario
from pufferfish.support import make_lattice
from strategies import Case, Released, Robust

ONE = Fraction(1)


def noise(scale: float, step: Fraction = ONE) -> DiscreteLaplace:
    return DiscreteLaplace(scale, step)


def scenario_of(*priors: dict[str, Any], pairs: Any = "all") -> Scenario:
    return Scenario([Prior.from_mapping(prior) for prior in priors], pairs=pairs)


def scenario_of_case(case: Case) -> Scenario:
    return scenario_of(*case.aligned, pairs=case.pairs)


def scenario_of_region(case: Robust) -> Scenario:
    name, value = case.rule
    priors = [Prior.from_counts(rows, support=list(case.support)) for rows in case.counts]
    return Scenario([prior.with_region(**{name: value}) for prior in priors], case.pairs)


#: Masses that doubles cannot hold.
EXTREME = Scenario(
    Prior.from_counts({"a": [1, 10**300, 10**300], "b": [10**300, 1, 10**300]}, support=[0, 1, 2])
)


def kernel_of(made: Any, values: Sequence[Fraction]) -> definitions.Kernel:
    """The likelihoods of a mechanism of the package, by the definitions."""
    if isinstance(made, Channel):
        return definitions.channel(values, made.rows.tolist())
    if made.scale == 0:
        return definitions.unchanged(values)
    return definitions.laplace(values, made.scale, made.step)


def known_people(people: definitions.People, values: Sequence[int], columns: str = "x") -> Scenario:
    """A scenario that knows the rows of each person, of columns with the same values."""
    rows = [
        (f"{s}{number}", s, *row)
        for s, each in people.items()
        for number, own in enumerate(each)
        for row in own
    ]
    table = pa.table(dict(zip(("id", "s", *columns), zip(*rows, strict=True), strict=True)))
    support = dict.fromkeys(columns, values)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PriorWarning)
        prior = Prior.from_table(
            table, secret="s", public=list(columns), unit="id", support=support
        )
    return Scenario(prior)


def package_scenario(case: Released) -> Scenario:
    priors = []
    for rows in case.adversaries:
        counts = {}
        for secret, joint in rows.items():
            array = counts[secret] = np.zeros([len(own) for own in case.columns], dtype=np.int64)
            for values, count in joint.items():
                places = zip(case.columns, values, strict=True)
                array[tuple(own.index(v) for own, v in places)] = count
        support = {f"c{k}": list(values) for k, values in enumerate(case.columns)}
        priors.append(
            Prior.from_counts(counts, support=support if len(support) > 1 else support["c0"])
        )
    return Scenario(priors, case.pairs)


def package_releases(case: Released) -> dict[int, list[Any]]:
    applied: dict[int, list[Any]] = {}
    for k, (at, _) in enumerate(case.releases):
        applied.setdefault(at, []).append(_mechanism(case, k))
    return applied


def _mechanism(case: Released, k: int) -> Any:
    at, how = case.releases[k]
    if isinstance(how, float):
        return noise(how)
    outputs = make_lattice(map(Fraction, range(len(how[0]))))
    return Channel(make_lattice(case.columns[at], ONE), outputs, how)


def true_joint_loss(case: Released, which: Iterable[int] | None = None) -> Any:
    """The loss of all releases, or of some."""
    joints = [
        {s: {v: Fraction(c, sum(own.values())) for v, c in own.items()} for s, own in rows.items()}
        for rows in case.adversaries
    ]
    kernels = []
    for k in range(len(case.releases)) if which is None else which:
        at = case.releases[k][0]
        kernels.append((at, kernel_of(_mechanism(case, k), case.columns[at])))
    return definitions.joint_loss(joints, case.pairs, kernels)
