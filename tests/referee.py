# SPDX-License-Identifier: Apache-2.0
"""The referee: the loss of a saved plan, recomputed from its file and a table or prior file.

It imports nothing of the package, reads both files by itself, and uses the definitions alone:
sums over all atoms for every output, in 60-digit arithmetic (mpmath) or exact fractions.

    python tests/referee.py PLAN (TABLE | --prior FILE [--prior FILE]...)
"""

import csv
import gzip
import itertools
import json
import math
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import mpmath

DIGITS = 60
#: Outputs times sequences of one person's rows beyond which the worst case stands for the loss.
MOST_WORK = 300_000
#: Values up to which a confidence is proved by a walk.
MOST_WALKED = 300
_PLAIN = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)

Masses = dict[tuple[int, ...], Fraction]


class Refused(Exception):
    """The plan or the table is not what a referee can judge."""


@dataclass(frozen=True)
class Believed:
    """What one adversary believes: for each secret the masses of sequences of atoms, by rows."""

    masses: dict[int, dict[str, Masses]]
    rows: dict[str, int]
    counted: bool


def judge(
    plan_path: Path,
    table: Path | None = None,
    priors: Sequence[Path] = (),
    regions: Sequence[Mapping[str, str] | None] | None = None,
) -> mpmath.mpf:
    """Return the loss of a plan's mechanism, largest over everything that the plan promises.

    ``regions`` are those that the plan is to hold for, where they are known from elsewhere; by
    default those that it names.
    """
    plan = json.loads(plan_path.read_text(encoding="utf-8"))
    if regions is not None:
        plan["regions"] = list(regions)
    atoms = atoms_of(plan["support"])
    check_missing(plan, atoms)
    check_labels(plan, atoms)
    if plan.get("noisy") is not None:
        with mpmath.workdps(DIGITS):
            return from_noisy_counts(plan, atoms)
    if table is not None:
        believed = [from_table(plan, atoms, table)]
    else:
        believed = [from_prior(atoms, path) for path in priors]
    with mpmath.workdps(DIGITS):
        return max(
            (loss_of(plan, atoms, adversary, region, believed) for adversary, region in
             zip(believed, regions_of(plan, len(believed)), strict=True)),
            default=mpmath.mpf(0),
        )  # fmt: skip


def within(loss: mpmath.mpf, plan_path: Path) -> bool:
    """Whether a loss is at most the plan's epsilon, but for the last digits of the arithmetic."""
    plan = json.loads(plan_path.read_text(encoding="utf-8"))
    epsilon = Fraction(str(plan["epsilon"]))
    with mpmath.workdps(DIGITS):
        # Equality is common (theta = W / epsilon): sixty digits leave the last fifteen to rounding.
        allowed = mpmath.mpf(epsilon.numerator) / epsilon.denominator
        return bool(loss <= allowed * (1 + mpmath.mpf(10) ** (15 - DIGITS)))


# What the files say


def atoms_of(support: Mapping[str, Any]) -> list[Fraction | str]:
    """Return the values of a support, or the names of its levels, in order."""
    if "names" in support:
        return list(support["names"])
    step, origin = Fraction(support["step"]), int(support["origin"])
    return [step * (origin + k) for first, last in support["runs"] for k in range(first, last + 1)]


def places(plan: Mapping[str, Any], atoms: Sequence[Fraction | str]) -> list[Fraction]:
    """Return where each atom lies for noise: numbers, or the codes of ordered levels."""
    if any(isinstance(atom, str) for atom in atoms):
        if not plan["support"].get("ordered"):
            raise Refused("noise on levels without an order")
        return [Fraction(k) for k in range(len(atoms))]
    return [Fraction(atom) for atom in atoms]


def regions_of(plan: Mapping[str, Any], adversaries: int) -> list[Mapping[str, str] | None]:
    regions = plan.get("regions") or [None] * adversaries
    if len({json.dumps(region) for region in regions}) == 1:
        return [regions[0]] * adversaries
    raise Refused("adversaries with regions of their own")


def check_missing(plan: Mapping[str, Any], atoms: Sequence[Fraction | str]) -> None:
    """Refuse a text for "missing" that is a value: leaving out its rows would tell the secret."""
    rules = plan.get("cleaning") or {}
    for text in rules.get("missing", ()):
        value = number(text, rules.get("decimal") or ".")
        if canonical(text) in atoms or (value is not None and value in atoms):
            raise Refused(f"{text!r} means a missing value, and is a value")


def check_labels(plan: Mapping[str, Any], atoms: Sequence[Fraction | str]) -> None:
    """Refuse labels that are no stochastic matrix from the published sets to the values."""
    labels, channel = plan.get("labels"), plan.get("channel")
    if labels is None:
        return
    names = (channel or {"outputs": {}})["outputs"].get("names")
    if names is None or len(labels["rows"]) != len(names):
        raise Refused("labels, but not of the sets that a channel publishes")
    if atoms_of(labels["outputs"]) != atoms:
        raise Refused("labels that are not the values of the support")
    if set(names) & set(atoms):
        raise Refused("a set has the name of a level")
    for k, row in enumerate(labels["rows"]):
        places, weights = [y for y, _ in row], [int(text, 16) for _, text in row]
        if len(set(places)) < len(places) or not set(places) <= set(range(len(atoms))):
            raise Refused("labels of values that are none, or twice of one")
        if min(weights, default=0) < 0 or sum(weights) == 0:
            raise Refused("labels whose chances are negative, or none")
        if not all(k in (s for s, _ in channel["rows"][y]) for y in places):
            raise Refused("labels that are drawn from a set without them")


def number(text: str, decimal: str) -> Fraction | None:
    """Return the number that a cell holds, read as it prints."""
    plain = text.replace(",", ".") if decimal == "," else text
    if decimal == "," and "." in text:
        return None
    return Fraction(Decimal(plain)) if _PLAIN.fullmatch(plain) else None


def rows_of(table: Path, delimiter: str | None = None) -> Iterator[dict[str, str]]:
    """Yield the rows of a text file, cells trimmed."""
    opened = gzip.open if table.suffix == ".gz" else open
    with opened(table, "rt", encoding="utf-8-sig", newline="") as file:  # type: ignore[operator]  # gzip.open or open
        header = file.readline()
        found = [mark for mark in ",;\t|" if mark in header]
        file.seek(0)
        reader = csv.reader(file, delimiter=delimiter or (found[0] if found else ","))
        names = [name.strip() for name in next(reader)]
        for row in reader:
            if row:
                yield dict(zip(names, (cell.strip() for cell in row), strict=True))


def from_table(plan: Mapping[str, Any], atoms: Sequence[Fraction | str], table: Path) -> Believed:
    """Count a table by the cleaning of the plan."""
    rules = plan["cleaning"]
    where = {atom: k for k, atom in enumerate(atoms)}
    absent = {"", *rules.get("missing", ())}
    no_secret = {"", *plan.get("secret_missing", ())}
    levels = any(isinstance(atom, str) for atom in atoms)
    decimal = rules.get("decimal") or "."
    absent_numbers = {number(text, decimal) for text in absent} - {None}
    people: dict[Any, list[tuple[str, int]]] = {}
    excluded = set(plan.get("exclude_secrets", ()))
    for at, row in enumerate(rows_of(table)):
        secret, cell = canonical(row[plan["secret"]]), row[rules["column"]]
        if secret in no_secret or secret in excluded:
            continue
        value = number(cell, decimal)
        if cell in absent or canonical(cell) in absent or (not levels and value in absent_numbers):
            if not rules.get("missing_as_level"):
                continue
            atom = where["(missing)"]
        elif levels:
            if canonical(cell) not in where:
                raise Refused(f"{cell!r} is no level of the plan")
            atom = where[canonical(cell)]
        else:
            if value is None:
                raise Refused(f"{cell!r} is no number")
            if rules.get("rounds"):
                step = Fraction(plan["support"]["step"])
                value = step * round(value / step)
            if value not in where:
                raise Refused(f"{cell!r} is no value of the plan")
            atom = where[value]
        person = row[plan["unit"]] if plan.get("unit") else at
        people.setdefault(person, []).append((secret, atom))
    counts: dict[int, dict[str, Counter[tuple[int, ...]]]] = {1: {}}
    single: dict[str, Counter[tuple[int, ...]]] = {}
    for rows in people.values():
        secret = rows[0][0]
        for _, atom in rows:
            single.setdefault(secret, Counter())[(atom,)] += 1
        sequence = tuple(atom for _, atom in rows)
        counts.setdefault(len(rows), {}).setdefault(secret, Counter())[sequence] += 1
    masses = {0: {secret: shares(own) for secret, own in single.items()}}
    if plan.get("unit"):
        masses |= {
            k: {secret: shares(own) for secret, own in by_secret.items()}
            for k, by_secret in counts.items()
            if by_secret
        }
    return Believed(masses, {s: sum(own.values()) for s, own in single.items()}, True)


def shares(counts: Mapping[tuple[int, ...], int]) -> Masses:
    total = sum(counts.values())
    return {sequence: Fraction(count, total) for sequence, count in counts.items()}


def canonical(text: str) -> str:
    """Return the one text of a secret or a level: plain decimals in their plainest form."""
    if text.lower() in ("true", "false"):
        return text.lower()
    if _PLAIN.fullmatch(text) and not re.match(r"[+]|-?0\d", text):
        value = Fraction(Decimal(text))
        if value.denominator == 1:
            return str(value.numerator)
        return format(Decimal(text).normalize(), "f")
    return text


def from_prior(atoms: Sequence[Fraction | str], path: Path) -> Believed:
    """Read a prior file; sums that miss 1 by rounding are renormalised.

    A file that the tests write may say from how many ``rows`` each secret was counted.
    """
    data = json.loads(path.read_text(encoding="utf-8"))
    where = {atom: k for k, atom in enumerate(atoms)}
    masses: dict[str, Masses] = {}
    for secret, row in data["secrets"].items():
        own: Masses = {}
        for key, text in row.items():
            share = Fraction(str(text))
            if share:
                try:
                    atom = where[key] if key in where else where[Fraction(key)]
                except (KeyError, ValueError):
                    raise Refused(f"{key!r} is no value of the plan") from None
                own[(atom,)] = own.get((atom,), Fraction(0)) + share
        total = sum(own.values())
        masses[secret] = {atom: share / total for atom, share in own.items()}
    rows = data.get("rows", {})
    return Believed({0: masses}, rows, bool(rows))


# The loss, by its definition


def loss_of(
    plan: Mapping[str, Any],
    atoms: Sequence[Fraction | str],
    adversary: Believed,
    region: Mapping[str, str] | None,
    every: Sequence[Believed],
) -> mpmath.mpf:
    """Return the loss under one adversary; single rows, then each number of rows of a person."""
    kernel = kernel_of(plan, atoms)
    pairs = [(i, j) for pair in plan["pairs"] for i, j in (pair, pair[::-1])]
    if walks(plan, region, atoms):
        return walked(plan, atoms, adversary, Fraction(region["confidence"]))
    if region is not None:
        named = {secret for pair in plan["pairs"] for secret in pair}
        cells = len(atoms) * len(named) * sum(own.counted for own in every)
        boxes = {
            s: extremes(region, adversary.masses[0][s], adversary.rows.get(s), len(atoms), cells)
            for s in named
        }
        return max(
            log_ratio(greatest(boxes[i], k), -greatest(boxes[j], [-v for v in k]))
            for k in kernel
            for i, j in pairs
        )
    largest = mpmath.mpf(0)
    numbers = set(adversary.masses) | set(plan.get("rows_per_person") or ())
    for rows in sorted(numbers):
        masses = adversary.masses.get(rows, {})
        for i, j in pairs:
            if rows == 0:
                found = most(masses[i], masses[j], kernel, 1)
            elif i in masses and j in masses:
                found = most(masses[i], masses[j], kernel, rows)
            else:
                found = rows * worst_case(kernel, range(len(atoms)))
            largest = max(largest, found)
    return largest


def from_noisy_counts(plan: dict[str, Any], atoms: Sequence[Fraction | str]) -> mpmath.mpf:
    """Return the loss of a plan together with the noisy counts that it holds."""
    noisy = plan["noisy"]
    counts = dict(zip(noisy["secrets"], noisy["counts"], strict=True))
    named = {secret for pair in plan["pairs"] for secret in pair}
    if set(counts) != named or any(len(own) != len(atoms) for own in counts.values()):
        raise Refused("the noisy counts are not of the secrets and values of the plan")
    spent, alpha = Fraction(noisy["epsilon1"]), 1 - Fraction(noisy["level"])
    held_out, total = noisy.get("held_out", False), Fraction(str(plan["epsilon"]))
    left = {**plan, "epsilon": str(total if held_out else total - spent)}
    size, a = 1 + math.ceil(math.log2(math.sqrt(noisy["rows"]))), math.exp(-float(spent) / 2)
    bets = [15 / 16, *(2.0**-k for k in range(1, size + 1))]
    if plan["channel"] is None:
        needed = 2 / float(alpha)
        found = walk_of(left, atoms, lambda s, h: mean_bound(counts[s], h, bets, needed, a))
    else:
        needed, boxes = 2 * len(atoms) * len(named) / float(alpha), {}
        for s in named:
            ends = []
            for x in range(len(atoms)):
                h = [float(x == other) for other in range(len(atoms))]
                low = 1 - mean_bound(counts[s], [1 - own for own in h], bets, needed, a)
                ends.append((low, mean_bound(counts[s], h, bets, needed, a)))
            boxes[s] = [low for low, _ in ends], [high - low for low, high in ends], mpmath.mpf(0)
        found = max(
            log_ratio(greatest(boxes[i], k), -greatest(boxes[j], [-v for v in k]))
            for k in kernel_of(plan, atoms)
            for pair in plan["pairs"]
            for i, j in (pair, pair[::-1])
        )
        # Doubles: their last digits may exceed epsilon.
        found *= 1 - mpmath.mpf(10) ** -9
    own = mpmath.mpf(spent.numerator) / spent.denominator
    return max(found, own) if held_out else found + own


def kernel_of(plan: Mapping[str, Any], atoms: Sequence[Fraction | str]) -> list[list[mpmath.mpf]]:
    """Return for each output that matters the likelihood of it at every atom."""
    if plan.get("channel") is None:
        at = places(plan, atoms)
        scale = Fraction(plan["scale"])
        if scale == 0:
            return [[mpmath.mpf(x == y) for x in range(len(at))] for y in range(len(at))]
        memo: dict[Fraction, mpmath.mpf] = {}
        for distance in {abs(y - x) for y in at for x in at}:
            t = distance / scale
            memo[distance] = mpmath.exp(-mpmath.mpf(t.numerator) / t.denominator)
        return [[memo[abs(y - x)] for x in at] for y in at]
    rows = [{y: int(text, 16) for y, text in row} for row in plan["channel"]["rows"]]
    outputs = sorted({y for row in rows for y in row})
    sums = [sum(row.values()) for row in rows]
    return [
        [mpmath.mpf(row.get(y, 0)) / total for row, total in zip(rows, sums, strict=True)]
        for y in outputs
    ]


def log_ratio(top: mpmath.mpf, bottom: mpmath.mpf) -> mpmath.mpf:
    if top <= 0:
        return mpmath.mpf(0)
    return mpmath.inf if bottom <= 0 else mpmath.log(top / bottom)


def most(first: Masses, second: Masses, kernel: list[list[mpmath.mpf]], rows: int) -> mpmath.mpf:
    """Return the largest log-ratio over all outputs of all rows, or k worst cases if too many."""
    work = len(kernel) ** rows * (len(first) + len(second))
    if work > MOST_WORK and rows > 1:
        used = {atom for masses in (first, second) for sequence in masses for atom in sequence}
        return rows * worst_case(kernel, sorted(used))
    weights = [
        [(sequence, mpmath.mpf(p.numerator) / p.denominator) for sequence, p in masses.items()]
        for masses in (first, second)
    ]
    largest = mpmath.mpf(0)
    for outputs in itertools.product(kernel, repeat=rows):
        top, bottom = (
            mpmath.fsum(
                p * math.prod((k[x] for k, x in zip(outputs, sequence, strict=True)), start=one)
                for sequence, p in own
            )
            for own in weights
            for one in (mpmath.mpf(1),)
        )
        largest = max(largest, log_ratio(top, bottom))
    return largest


def worst_case(kernel: list[list[mpmath.mpf]], atoms: Sequence[int]) -> mpmath.mpf:
    """Return the largest log-ratio of one output between any two values."""
    return max(log_ratio(max(k[x] for x in atoms), min(k[x] for x in atoms)) for k in kernel)


# Sets of priors


def extremes(
    region: Mapping[str, str], masses: Masses, rows: int | None, size: int, cells: int
) -> tuple[list[mpmath.mpf], list[mpmath.mpf], mpmath.mpf]:
    """Return the least masses, the room above them, and the mass that may lie in any one cell."""
    centre = [masses.get((x,), Fraction(0)) for x in range(size)]
    if "tv_radius" in region:
        radius = Fraction(region["tv_radius"])
        least = [mpmath.mpf(0)] * size
        room = [mpmath.mpf(p.numerator) / p.denominator for p in centre]
        return least, room, mpmath.mpf(radius.numerator) / radius.denominator
    if rows is None:
        raise Refused("a confidence needs counts")
    alpha = (1 - Fraction(region["confidence"])) / cells
    tail = mpmath.mpf(alpha.numerator) / alpha.denominator / 2
    ends = [clopper_pearson(int(p * rows), rows, tail) for p in centre]
    return [low for low, _ in ends], [high - low for low, high in ends], mpmath.mpf(0)


def greatest(
    region: tuple[list[mpmath.mpf], list[mpmath.mpf], mpmath.mpf], k: Sequence[mpmath.mpf]
) -> mpmath.mpf:
    """Return the largest <P, k> over the set: fill the cells of the largest k first."""
    least, room, free = region
    order = sorted(range(len(k)), key=lambda x: -k[x])
    left = 1 - sum(least) - free
    total = mpmath.fsum(p * v for p, v in zip(least, k, strict=True)) + free * k[order[0]]
    for x in order:
        poured = min(left, room[x])
        total += poured * k[x]
        left -= poured
    return total


# The walk: doubles do, for their errors are far below what is granted them


def walks(
    plan: Mapping[str, Any], region: Mapping[str, str] | None, atoms: Sequence[Fraction | str]
) -> bool:
    """Whether a plan holds by a walk, and not by a box."""
    confident = region is not None and "confidence" in region and "region" not in region
    return confident and plan.get("channel") is None and len(atoms) <= MOST_WALKED


def walked(
    plan: Mapping[str, Any], atoms: Sequence[Fraction | str], adversary: Believed, level: Fraction
) -> mpmath.mpf:
    """Return the bound of the loss where a walk down to the plan's scale ends; inf: not there."""
    named = {secret for pair in plan["pairs"] for secret in pair}
    counts = {
        s: [int(adversary.masses[0][s].get((x,), 0) * adversary.rows[s]) for x in range(len(atoms))]
        for s in named
    }
    needed = 2 / float(1 - level)
    size = 1 + math.ceil(math.log2(math.sqrt(sum(map(sum, counts.values())))))
    bets = [15 / 16, *(2.0**-k for k in range(1, size + 1))]
    return walk_of(plan, atoms, lambda s, h: mean_bound(counts[s], h, bets, needed))


def walk_of(
    plan: Mapping[str, Any], atoms: Sequence[Fraction | str],
    mean: Callable[[str, Sequence[float]], float],
) -> mpmath.mpf:  # fmt: skip
    """Return the same, given the bound of the mean of a function under a secret."""
    at = places(plan, atoms)
    named = {secret for pair in plan["pairs"] for secret in pair}
    epsilon, step = Fraction(str(plan["epsilon"])), Fraction(plan["support"].get("step", 1))
    pairs = [(i, j) for pair in plan["pairs"] for i, j in (pair, pair[::-1])]
    theta, bound = (at[-1] - at[0]) / epsilon, float(epsilon)
    while Fraction(plan["scale"]) < theta and theta >= Fraction(201, 200) * step / 32:
        theta /= Fraction(201, 200)
        bound = 0.0
        for y in at:
            k = [math.exp(-abs(y - x) / theta) for x in at]
            low = min(k)
            h = [(own - low) / (1 - low) for own in k]
            upper, lower = {}, {}
            for s in named:
                upper[s] = low + (1 - low) * mean(s, h)
                mirrored = mean(s, [1 - x for x in h])
                lower[s] = low + (1 - low) * (1 - mirrored)
            bound = max([bound, *(math.log(upper[i] / lower[j]) for i, j in pairs)])
        if bound > float(epsilon) * (1 + 1e-9):
            return mpmath.inf
    reached = Fraction(plan["scale"]) >= theta * (1 - Fraction(1, 10**15))
    return mpmath.mpf(min(bound, float(epsilon))) if reached else mpmath.inf


def mean_bound(
    counts: Sequence[int], h: Sequence[float], bets: Sequence[float], needed: float, a: float = 0
) -> float:
    """Return the least mean of h at which the wealth of all bets together is as large as needed.

    Noise on the counts has P(z) in proportion to a^|z|.
    """
    total = sum(counts)
    if len(counts) == 2 and not a:
        count = counts[0] if h[0] > h[1] else counts[1]
        return float(clopper_pearson(count, total, mpmath.mpf(1 / needed))[1])
    number = len(bets)
    if a:
        bets = [b for b in bets if (1 - b) / a > 1 and rises(total, h, b, a)]
    if not bets:
        return 1.0
    gains = [sum(n * math.log1p(-b * x) for n, x in zip(counts, h, strict=True)) for b in bets]

    def enough(m: float) -> bool:
        logs = [
            g - total * math.log1p(-b * m) - (sum(log_moment(b, x, m, a) for x in h) if a else 0)
            for b, g in zip(bets, gains, strict=True)
        ]
        top = max(logs)
        wealth = top + math.log(sum(math.exp(own - top) for own in logs) / number)
        return wealth >= math.log(needed)

    if not enough(1.0):
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def log_moment(b: float, x: float, m: float, a: float) -> float:
    """Return ln E e^(g Z) of the noise, g = ln((1 - b x) / (1 - b m))."""
    ratio = (1 - b * x) / (1 - b * m)
    return 2 * math.log1p(-a) - math.log1p(-a * ratio) - math.log1p(-a / ratio)


def rises(total: int, h: Sequence[float], b: float, a: float) -> bool:
    """Whether the wealth of a bet rises with the mean up to 1."""
    ratios = [(1 - b * x) / (1 - b) for x in h]
    return total >= sum(a * r / (1 - a * r) - a / r / (1 - a / r) for r in ratios)


def clopper_pearson(count: int, rows: int, tail: mpmath.mpf) -> tuple[mpmath.mpf, mpmath.mpf]:
    """Return the interval of a binomial chance, by bisection on the incomplete beta function."""
    low = mpmath.mpf(0) if count == 0 else quantile(count, rows - count + 1, tail)
    high = mpmath.mpf(1) if count == rows else 1 - quantile(rows - count, count + 1, tail)
    return low, high


def quantile(a: int, b: int, tail: mpmath.mpf) -> mpmath.mpf:
    """Return the p below its mean at which the incomplete beta function is the tail."""
    low, high = mpmath.mpf(0), mpmath.mpf(a) / (a + b)
    for _ in range(110):
        middle = (low + high) / 2
        low, high = (middle, high) if incomplete_beta(a, b, middle) < tail else (low, middle)
    return low


def incomplete_beta(a: int, b: int, p: mpmath.mpf) -> mpmath.mpf:
    """Return I_p(a, b) for p below a / (a + b): its continued fraction, from the front."""
    odds = p / (1 - p)
    log = (
        mpmath.loggamma(a + b) - mpmath.loggamma(a + 1) - mpmath.loggamma(b)
        + a * mpmath.log(p) + (b - 1) * mpmath.log(1 - p)
    )  # fmt: skip
    # Sum of t_0 = 1, t_k = t_{k-1} odds (b - k) / (a + k): the binomial tail over its first term.
    total = term = mpmath.mpf(1)
    for k in range(1, b):
        term *= odds * (b - k) / (a + k)
        total += term
        if term < total * mpmath.mpf(10) ** -DIGITS:
            break
    return mpmath.exp(log) * total


def main() -> None:
    words = sys.argv[1:]
    priors = [Path(words[k + 1]) for k, word in enumerate(words) if word == "--prior"]
    plan = Path(words[0])
    loss = judge(plan, None if priors else Path(words[1]), priors)
    print(mpmath.nstr(loss, 20), "within epsilon" if within(loss, plan) else "ABOVE epsilon")
    sys.exit(0 if within(loss, plan) else 1)


if __name__ == "__main__":
    main()
