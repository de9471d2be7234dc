# SPDX-License-Identifier: Apache-2.0
"""Random releases of `strategies` as objects of the package, and their loss by brute force."""

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np

import definitions
from pufferfish.mechanisms.channel import Channel
from pufferfish.mechanisms.laplace import DiscreteLaplace
from pufferfish.priors.prior import Prior
from pufferfish.priors.scenario import Scenario
from pufferfish.support import make_lattice
from strategies import Released

ONE = Fraction(1)


def noise(scale: float, step: Fraction = ONE) -> DiscreteLaplace:
    return DiscreteLaplace(scale, step)


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
    for at, how in case.releases:
        own, support = applied.setdefault(at, []), make_lattice(case.columns[at], ONE)
        if isinstance(how, float):
            own.append(noise(how))
        else:
            outputs = make_lattice(map(Fraction, range(len(how[0]))))
            own.append(Channel(support, outputs, how))
    return applied


def true_joint_loss(case: Released, which: Iterable[int] | None = None) -> Any:
    """The loss of all releases, or of some."""
    joints = [
        {s: {v: Fraction(c, sum(own.values())) for v, c in own.items()} for s, own in rows.items()}
        for rows in case.adversaries
    ]
    kernels = []
    for k in range(len(case.releases)) if which is None else which:
        at, how = case.releases[k]
        values = case.columns[at]
        if isinstance(how, float):
            made = definitions.laplace(values, how, ONE) if how else definitions.unchanged(values)
            kernels.append((at, made))
        else:
            kernels.append((at, definitions.channel(values, how)))
    return definitions.joint_loss(joints, case.pairs, kernels)
