# SPDX-License-Identifier: Apache-2.0
"""Prior file: the probabilities of one adversary, and the pairs, as JSON."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import UNSET

from pufferfish.errors import InputError
from pufferfish.files import read_strict
from pufferfish.numbers import Number
from pufferfish.priors.prior import Prior


class _PriorFile(msgspec.Struct, forbid_unknown_fields=True):
    secrets: dict[str, Any]
    pairs: Annotated[list[tuple[str, str]], msgspec.Meta(min_length=1)] | msgspec.UnsetType = UNSET


def read_prior_file(
    path: str | Path, *, order: Sequence[Any] | str | None = None, step: Number | None = None
) -> tuple[Prior, list[tuple[str, str]] | None]:
    """Return the prior of ``{"secrets": {"a": {"0": ".52", ...}, ...}, "pairs": [["a", "b"]]}``.

    Numbers are read as the decimals that they print. The pairs are None where it names none.
    """
    data = read_strict(Path(path), "the prior file", exact=True)
    try:
        file = msgspec.convert(data, _PriorFile)
        prior = Prior.from_mapping(file.secrets, order=order, step=step)
    except msgspec.ValidationError as error:
        shape = '{"secrets": {"a": {"0": ".5", "1": ".5"}, "b": {...}}, "pairs": [["a", "b"]]}'
        raise InputError(f"the prior file {path} is not like {shape}: {error}") from None
    except InputError as error:
        raise InputError(f"the prior file {path}: {error}") from None
    if file.pairs is UNSET:
        return prior, None
    return prior, [(first.strip(), second.strip()) for first, second in file.pairs]
