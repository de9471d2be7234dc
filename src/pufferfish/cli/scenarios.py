# SPDX-License-Identifier: Apache-2.0
"""From options to a scenario: a table, or prior files."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pufferfish.cli import signals
from pufferfish.cli.files import check_there
from pufferfish.cli.options import Source, check_given, one_text
from pufferfish.errors import InputError, did_you_mean, listed

if TYPE_CHECKING:
    from pufferfish.prior import Prior
    from pufferfish.scenario import Scenario

_KEYS = ("secrets", "pairs")


@dataclass(frozen=True)
class PriorFile:
    """What a prior file holds, its numbers still as they were written.

    Attributes
    ----------
    path : str
        The file.
    secrets : mapping
        ``{secret: {value: probability}}``.
    pairs : list of pairs, or None
        None where the file does not name any.
    """

    path: str
    secrets: Mapping[str, Any]
    pairs: Sequence[Any] | None


def read_prior_file(path: str) -> PriorFile:
    """Read ``{"secrets": {"a": {"0": ".52", "1": ".48"}, ...}, "pairs": [["a", "b"], ...]}``.

    Raises
    ------
    InputError
        If the file cannot be read, is not strictly valid JSON, or is not of this shape.
    """
    try:
        check_there(path, "prior file")
    except InputError as error:
        raise InputError(f"{error}{one_text('--prior', [path], path)}") from None
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InputError(f"cannot read the prior file {path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise InputError(f"the prior file {path} is not UTF-8 text") from None
    try:
        # Numbers stay text, so that each is the decimal that it prints.
        data = json.loads(
            text,
            object_pairs_hook=_without_repetitions,
            parse_float=str,
            parse_int=str,
            parse_constant=_refuse_constant,
        )
    except json.JSONDecodeError as error:
        raise InputError(
            f"the prior file {path} is not valid JSON: {error.msg} (line {error.lineno}, "
            f"column {error.colno})"
        ) from None
    except InputError as error:
        raise InputError(f"the prior file {path}: {error}") from None
    except RecursionError:
        raise InputError(f"the prior file {path} is nested too deeply") from None
    shape = '{"secrets": {"a": {"0": ".5", "1": ".5"}, "b": {...}}, "pairs": [["a", "b"]]}'
    if not isinstance(data, Mapping) or not isinstance(data.get("secrets"), Mapping):
        found = f"; its keys are {listed(data)}" if isinstance(data, Mapping) and data else ""
        raise InputError(f"the prior file {path} needs an object 'secrets', as in {shape}{found}")
    for key in data:
        if key not in _KEYS:
            raise InputError(
                f"the prior file {path} holds the unknown key {key!r}{did_you_mean(key, _KEYS)}; "
                f"the keys are {listed(_KEYS)}"
            )
    pairs = data.get("pairs")
    if "pairs" in data and (
        not isinstance(pairs, list)
        or not all(
            isinstance(p, list) and len(p) == 2 and all(isinstance(s, str) for s in p)
            for p in pairs
        )
    ):
        raise InputError(
            f"the pairs of the prior file {path} must be a list of pairs, as in {shape}"
        )
    return PriorFile(path, data["secrets"], pairs)


def prior_of(
    file: PriorFile, order: str | Sequence[str] | None = None, step: object = None
) -> "Prior":
    """Return the prior of a file.

    Parameters
    ----------
    file : PriorFile
        What was read.
    order : sequence of str, "appearance" or "alphabetical", optional
        Order of its levels.
    step : number, optional
        Step of the lattice.

    Raises
    ------
    InputError
        Names the file and what is wrong with it.
    """
    from pufferfish.prior import Prior

    if isinstance(order, str):
        rows = [row for row in file.secrets.values() if isinstance(row, Mapping)]
        names = list(dict.fromkeys(name.strip() for row in rows for name in row))
        order = sorted(names) if order == "alphabetical" else names
    try:
        return Prior.from_mapping(file.secrets, order=order, step=step)
    except InputError as error:
        raise InputError(f"the prior file {file.path}: {error}") from None


def scenario_of(source: Source) -> "Scenario":
    """Return the scenario that the options describe.

    Raises
    ------
    InputError
        If options are missing or do not go together, or the input cannot be read.
    """
    if source.confidence is not None and source.tv_radius is not None:
        raise InputError("give either --confidence or --tv-radius, not both: each is a region")
    if source.priors:
        return _from_files(source)
    check_given(source)
    lost = [
        name
        for name, value in (("--secret COL", source.secret), ("--public COL", source.public))
        if value is None
    ]
    if lost:
        raise InputError(
            f"a table needs {' and '.join(lost)} (or give the prior with --prior FILE)"
        )
    from pufferfish.prior import Prior
    from pufferfish.scenario import Scenario

    table = source.table or ""
    check_there(table, "file")
    try:
        prior = Prior.from_table(
            table,
            secret=source.secret or "",
            public=source.public or "",
            order=source.order,
            levels=source.levels,
            missing=source.missing,
            exclude_secrets=source.exclude_secrets,
            step=source.step,
            missing_as_level=source.missing_as_level,
            unit=source.unit,
            confidence=source.confidence,
            tv_radius=source.tv_radius,
        )
        scenario = Scenario(prior, source.pairs or "all")
    except InputError as error:
        hints = one_text("--exclude-secret", source.exclude_secrets, str(error))
        # Which cells are text is the very thing that a list of missing texts would have settled.
        hints += one_text("--missing", source.missing, "".join(source.missing))
        raise InputError(f"{error}{hints}") from None
    signals.check()
    return scenario


def unfound_missing(scenario: "Scenario") -> list[str]:
    """Return a warning for each text of --missing that holds a comma and that no cell holds."""
    reports = [prior.report for prior in scenario.priors if prior.report is not None]
    return [
        f"no cell is {m.text!r}{one_text('--missing', [m.text], m.text)}"
        for report in reports
        for m in report.missing
        if "," in m.text and not m.public_rows and not m.secret_rows
    ]


def _from_files(source: Source) -> "Scenario":
    from pufferfish.scenario import Scenario

    if source.table is not None:
        raise InputError("give either a TABLE or --prior, not both: the prior would come from two")
    of_tables = ("--secret", "--public", "--levels", "--missing", "--missing-as-level",
                 "--exclude-secret")  # fmt: skip
    if source.unit is not None:
        raise InputError(
            "--unit names a column of a TABLE, but the prior comes from a file, which says nothing "
            "of what the rows of one person have in common"
        )
    wrong = [name for name in source.given if name in of_tables]
    if wrong:
        raise InputError(
            f"{listed(wrong)} says how to read a TABLE, but the prior comes from a file"
        )
    if source.confidence is not None:
        raise InputError(
            "--confidence needs the numbers of rows of a TABLE, but the prior comes from a file of "
            "probabilities; give --tv-radius R, by how much each of its distributions may be wrong"
        )
    files = [read_prior_file(path) for path in source.priors]
    priors = [prior_of(file, source.order, source.step) for file in files]
    if source.tv_radius is not None:
        priors = [prior.with_region(tv_radius=source.tv_radius) for prior in priors]
    pairs = source.pairs or _agreed_pairs(files)
    try:
        return Scenario(priors, pairs)
    except InputError as error:
        raise InputError(f"{listed(source.priors)}: {error}") from None


def _agreed_pairs(files: Sequence[PriorFile]) -> Any:
    """Return the pairs of the files; one that names none stands for all pairs."""
    if all(file.pairs is None for file in files):
        return "all"
    first = files[0]
    wanted = _unordered(first)
    for other in files[1:]:
        if _unordered(other) != wanted:
            raise InputError(
                f"the prior files {first.path} and {other.path} name different pairs (a file "
                "without pairs means all of them); say which ones with --pair A B"
            )
    return "all" if first.pairs is None else first.pairs


def _unordered(file: PriorFile) -> set[frozenset[str]]:
    names = [name.strip() for name in file.secrets]
    pairs = combinations(names, 2) if file.pairs is None else file.pairs
    return {frozenset(str(secret).strip() for secret in pair) for pair in pairs}


def _without_repetitions(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data: dict[str, Any] = {}
    for key, value in pairs:
        if key in data:
            raise InputError(f"the key {key!r} is given twice")
        data[key] = value
    return data


def _refuse_constant(name: str) -> Any:
    raise InputError(f"{name} is no number of JSON")
