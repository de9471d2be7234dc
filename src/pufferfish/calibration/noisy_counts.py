# SPDX-License-Identifier: Apache-2.0
"""Noisy counts of a table, from which a plan that may be published is computed.

Nothing else is taken from the table: secrets, values and cleaning are declared beforehand (theory,
section 5). The counts of all cells of all secrets carry discrete Laplace noise, exactly drawn.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from random import SystemRandom
from typing import Any

import numpy as np
import pyarrow as pa

from pufferfish.errors import InputError, SeededWarning, counted, listed, warn_user
from pufferfish.files import PRIVATE, PendingFile, checked_target, writing
from pufferfish.mechanisms.entropy import seeded_entropy
from pufferfish.mechanisms.laplace import DiscreteLaplace
from pufferfish.numbers import Number, canonical, parse_number, text_of
from pufferfish.priors.ambiguity import NoisyCounts, noise_epsilon, parse_level
from pufferfish.priors.scenario import Scenario, scenario_of_noise
from pufferfish.support import Product
from pufferfish.tables.frames import FrameTable, known
from pufferfish.tables.rules import Rules, make_rules
from pufferfish.tables.source import open_table
from pufferfish.tables.table import arrow, one_array

#: A secret whose noisy rows are fewer than so many standard deviations may have none.
_FEW = 3


def noisy_counts(
    table: str | Path | Any, epsilon: Number, *, secret: str, public: str,
    pairs: Iterable[Sequence[Any]], order: Sequence[Any] | str | None = None,
    levels: Sequence[Any] | None = None, support: Iterable[Any] | None = None,
    step: Number | None = None, missing: Iterable[str] = (), missing_as_level: bool = False,
    decimal: str = ".", confidence: Number = "0.95",
    hold_out: Number | None = None, rest: str | Path | None = None, force: bool = False,
    seed: int | None = None,
) -> Scenario:  # fmt: skip
    """Count a table with noise: what is computed from that may be published.

    Every call draws new noise, and costs ``epsilon`` again.

    Parameters
    ----------
    table : path, dataframe or None
        Each row is one person's. None: nothing is drawn, and all counts are 0, to try options.
    epsilon : number
        Replacing a row changes the chances of the noisy counts by a factor of e^epsilon at most.
    secret, public : str
        The columns of the secret and of the value to be published.
    pairs : sequence of (str, str)
        The pairs of secrets, declared: those of the table are not used.
    order, levels, support : optional
        The values that may occur, declared as in :meth:`Prior.from_table`: a list of levels or
        numbers. A value of the table that is none of them is an error.
    step, missing, missing_as_level, decimal : optional
        As in :meth:`Prior.from_table`.
    confidence : number
        How sure it is that a plan holds for the distributions that the rows were drawn from.
    hold_out, rest, force : number, path and bool, optional
        Count this share of the rows, drawn at random, and write all others to the file ``rest``,
        to be released alone: epsilon is then the larger of both, and not their sum.
    seed : int, optional
        For tests only; the noise is then not private, and a SeededWarning says so.

    Returns
    -------
    Scenario
        What :func:`calibrate` makes plans of, each for an epsilon that includes that of the counts.
    """
    rules = _declared(
        secret=secret, public=public, order=order, levels=levels, support=support, step=step,
        missing=missing, missing_as_level=missing_as_level, decimal=decimal,
    )  # fmt: skip
    spent, named = noise_epsilon(epsilon), _pairs(pairs, rules.missing)
    level, values = parse_level(confidence), rules.columns[0].support
    held = table if isinstance(table, HeldOut) else None
    if hold_out is not None or rest is not None:
        table = held = HeldOut(table, (hold_out, rest), force)
    if seed is not None:
        warn_user("counts with noise from a seed are for tests only", SeededWarning)
    from pufferfish.tables.count import count_table  # slow to import

    secrets = tuple(dict.fromkeys(name for pair in named for name in pair))
    if table is None and values is not None:
        *none, others = [(0,) * values.size] * (len(secrets) + 1)
        rule = NoisyCounts(secrets, tuple(none), others, 0, spent, level)
        return scenario_of_noise(rule, Product((public,), (values,)), named)
    if held is not None:  # a value that was not declared is refused wherever it is
        count_table(held.whole, rules, secrets=(*secrets, ""))
    # All rows are counted: no secret is called "", so the last ones are those of any other or none.
    found = count_table(table, rules, secrets=(*secrets, ""))
    # Its a is e^(-epsilon / 2) exactly: it depends on the ratio of step and scale alone.
    noise = DiscreteLaplace(2.0, spent)
    drawn = noise.noise(found.counts.size, None if seed is None else seeded_entropy(seed))
    noisy = found.counts + drawn.reshape(found.counts.shape)
    rows = found.report.rows_read - found.report.rows_missing[0]
    *counts, others = map(tuple, noisy.tolist())
    rule = NoisyCounts(secrets, tuple(counts), others, rows, spent, level, held is not None)
    rule.check(named, found.product.size)
    few = _FEW * math.sqrt(noisy.shape[1]) * noise.std / float(spent)
    lost = listed(name for name, own in zip(secrets, counts, strict=True) if sum(own) < few)
    why = "is it spelt so, and the epsilon of the counts large enough?"
    notes = (f"the noisy counts show hardly a row with {lost}; {why}",) * bool(lost)
    notes += ("the noise is from a seed, for tests only: THIS IS NOT PRIVATE",) * (seed is not None)
    notes += ("release the other rows alone; those held out must be in no output",) * bool(held)
    with nullcontext() if held is None or rest is None else held.written():
        return scenario_of_noise(
            rule, found.product, named, rules=rules, codings=found.codings, notes=notes
        )


class HeldOut(FrameTable):
    """Random rows of a table, to be counted; all others, ``left``, are to be released."""

    def __init__(self, source: Any, split: Any, force: bool) -> None:
        from pufferfish.release.sinks import sink_for  # slow to import

        (share, rest), table = split, open_table(source)
        part, self._sink = parse_number(share, "the share to hold out"), sink_for(rest)
        self._file = PendingFile(checked_target(rest, force, table.inputs), force, PRIVATE)
        batches = list(table.batches(table.columns))
        rows = sum(map(len, batches))
        if not 0 < part < 1 or rows < 2 or len({*table.columns}) < len(table.columns):
            raise InputError(
                f"a share between 0 and 1 of two rows or more can be held out, in columns that all "
                f"have names, but {share} of {counted(rows, 'row')} of {table.name} was asked for"
            )
        # Their number alone decides; they were read once, so that none is on both sides.
        own = np.zeros(rows, dtype=np.int8)
        own[SystemRandom().sample(range(rows), min(max(round(part * rows), 1), rows - 1))] = 1
        whole = pa.Table.from_batches(batches)
        held, self.left = (whole.filter(arrow(x).cast(pa.bool_())) for x in (own, 1 - own))
        super().__init__(known(held))
        self.name, self.textual = f"the held-out rows of {table.name}", table.textual
        self.whole = FrameTable(known(whole))
        self.whole.name, self.whole.textual = table.name, table.textual

    @contextmanager
    def written(self) -> Iterator[None]:
        """Write the rows to release as they are; whatever fails then removes a new file."""
        new = not self._file.target.exists()
        with self._file as file, writing(file.target):
            with closing(self._sink(file.file, self.left.column_names)) as sink:
                sink.write({name: one_array(self.left[name]) for name in sink.columns})
            file.publish()
        try:
            yield
        except BaseException:
            if new:
                file.target.unlink()
            raise


def _declared(**given: Any) -> Rules:
    """Return the rules of a table, or refuse what would be taken from it."""
    if not isinstance(given["public"], str):
        raise InputError("noisy counts are of one public column")
    rules = make_rules(**given)
    if given["order"] == "appearance" or rules.columns[0].order == "appearance":
        raise InputError(
            "the order of appearance is taken from the table; declare it with --order V1,V2,... "
            "(order=[...])"
        )
    if rules.columns[0].support is None:
        raise InputError(
            "which values occur would be taken from the table; declare all that may occur with "
            "--levels V1,V2,... or --range LO HI and --step G (levels=[...], support=[...])"
        )
    return rules


def _pairs(pairs: Any, missing: Sequence[str]) -> tuple[Any, ...]:
    """Return declared pairs, their names as in a table."""
    given = () if isinstance(pairs, str) or not isinstance(pairs, Iterable) else tuple(pairs)
    if not given:
        raise InputError(
            "which secrets there are would be taken from the table; declare each pair with "
            "--pair A B (pairs=[(A, B), ...])"
        )
    named = tuple(tuple(canonical(text_of(name)) for name in pair) for pair in given)
    absent = [name for pair in named for name in pair if name in ("", *missing)]
    if absent:
        raise InputError(f"{absent[0]!r} means a missing secret; no pair can name it")
    return named
