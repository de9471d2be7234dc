# SPDX-License-Identifier: Apache-2.0
"""How well do numbers come back? A table of the noise that several mechanisms put on estimates.

The noise is the variance of the best unbiased estimates from a release, summed over what is
estimated (all frequencies, or the mean), times the number of rows. The counts are of UCI Census
Income (Becker and Kohavi, 1996; https://doi.org/10.24432/C5XW20, CC BY 4.0): those of the paper for
two marital statuses, otherwise those of adult.data.

Run: python examples/estimates.py
"""

import numpy as np

import pufferfish as pf
from pufferfish.errors import PufferfishError
from pufferfish.paper import block

STATUS = {  # work class by marital status, the levels in alphabetical order
    "Divorced": [184, 168, 369, 1, 3119, 100, 292, 210, 0],
    "Married": [636, 471, 1023, 1, 9732, 837, 1680, 588, 8],
    "Never": [766, 245, 530, 5, 8186, 125, 409, 413, 4],
    "Separated": [66, 26, 63, 0, 754, 20, 53, 43, 0],
    "Widowed": [153, 36, 86, 0, 588, 29, 74, 26, 1],
}
HOURS = {  # hours a week by sex, in steps of 5
    "Female": "70 165 259 412 831 456 741 1173 5095 541 515 139 215 37 54 13 31 1 4 19",
    "Male": "75 148 260 315 734 371 746 1007 10740 1960 2521 702 1304 240 311 70 151 19 30 86",
}


def noise(matrix, mu, wanted):
    """Return tr D (J^-1 - diag mu) with D = F F^T for the statistics F; None if one is lost."""
    used = matrix[:, matrix.any(axis=0)]
    information = used / (mu @ used) @ used.T
    solved = np.linalg.lstsq(information, wanted, rcond=1e-10)[0]
    if np.abs(information @ solved - wanted).max() > 1e-6 * np.abs(wanted).max():
        return None
    return float((wanted * solved).sum() - mu @ (wanted**2).sum(axis=1))


def laplace(scale, size):
    """Return the chances of the values 0, 1, ..., and of all beyond them, with Laplace noise."""
    a = np.exp(-1 / scale)
    distance = np.abs(np.subtract.outer(np.arange(size), np.arange(size)))
    matrix = (1 - a) / (1 + a) * a**distance
    matrix[:, [0, -1]] /= 1 - a  # the outermost outputs stand for all beyond
    return matrix


def kept(scenario, epsilon, mu, wanted):
    """Return the least noise of channels that keep the most values, by how often each is kept."""
    found = []
    for share in (None, ".3", ".4", ".5", ".6", ".7", ".8", ".9"):
        try:
            plan = pf.calibrate(scenario, epsilon, "channel", cost="hamming", min_keep=share)
        except PufferfishError:  # there is none
            continue
        found.append(noise(plan.channel.matrix, mu, wanted))
    return min((n for n in found if n is not None), default=None)


def row(title, counts, epsilon, best_for="frequencies", levels=None, confidence=None):
    """Return a line of the table; without levels the values are numbers."""
    size = len(next(iter(counts.values())))
    support = range(size) if levels is None else levels
    prior = pf.Prior.from_counts(counts, support=support, confidence=confidence)
    total = dict(zip(map(str, support), np.sum(list(counts.values()), axis=0), strict=True))
    mu = np.array([total[prior.support.name(x)] for x in range(size)])
    mu = mu / mu.sum()
    wanted = np.eye(size) if best_for == "frequencies" else np.arange(size)[:, None] * 1.0
    plan = pf.calibrate(prior, epsilon, "channel", best_for=best_for)
    labels, other = plan.labels and plan.channel.then(plan.labels), None
    if levels is None:
        other = noise(laplace(pf.calibrate(prior, epsilon).scale, size), mu, wanted)
    figures = (
        noise(plan.channel.matrix, mu, wanted),
        plan.objective_bound - mu @ (wanted**2).sum(axis=1),
        labels and noise(labels.matrix, mu, wanted),
        kept(prior, epsilon, mu, wanted),
        other,
    )
    return [title, epsilon, *("-" if f is None else shown(f) for f in figures)]


def shown(figure):
    """Return a figure with three digits, or whole."""
    return f"{figure:.0f}" if figure >= 100 else f"{figure:#.3g}"


def main():
    """Print the table."""
    census = block("census")
    work, levels = {secret: census.counts[secret] for secret in census.pair}, census.order
    known, few = sorted(levels), (".1", ".5")
    hours = {sex: list(map(int, counts.split())) for sex, counts in HOURS.items()}
    three = {s: STATUS[s] for s in ("Divorced", "Married", "Never")}
    lines = [row("work class", work, e, levels=levels) for e in (*few, "1")]
    lines += [
        row("the same, 95 % confidence", work, e, levels=levels, confidence=0.95)
        for e in (*few, "1")
    ]
    lines += [row("the same, 3 statuses", three, ".1", levels=known)]
    lines += [row("the same, 5 statuses", STATUS, ".1", levels=known)]
    lines += [row("hours a week", hours, e) for e in few]
    lines += [row("mean of the hours", hours, e, "mean") for e in few]
    head = ["", "epsilon", "best for it", "bound", "labels alone", "most kept", "Laplace"]
    for line in (head, ["---"] * len(head), *lines):
        print("| " + " | ".join(line) + " |")


if __name__ == "__main__":
    main()
