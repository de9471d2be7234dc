# SPDX-License-Identifier: Apache-2.0
"""QueryPlan: the noise for the answer to a query; what verifies, releases and estimates it."""

import inspect
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np

from pufferfish.errors import (
    CheckFailed,
    InputError,
    OutsidePromiseWarning,
    SeededWarning,
    counted,
    did_you_mean,
    listed,
    warn_user,
)
from pufferfish.files import PRIVATE, read_strict, write_json
from pufferfish.loss.certificate import Certificate, LossBound
from pufferfish.loss.proof import certificate_of
from pufferfish.mechanisms.entropy import seeded_entropy
from pufferfish.mechanisms.laplace import DiscreteLaplace
from pufferfish.numbers import Number, checked_flag, parse_epsilon, show
from pufferfish.plans import schema
from pufferfish.plans.plan import Plan
from pufferfish.queries.answer import QueryAnswer, read_bounds
from pufferfish.queries.chain import MarkovChain
from pufferfish.queries.chain_box import ChainBox
from pufferfish.queries.household import Household
from pufferfish.queries.query import Query, query_of
from pufferfish.queries.routes import prove
from pufferfish.queries.sequences import (
    SequenceRules,
    Sequences,
    read_sequences,
    sequences_of_lists,
)
from pufferfish.queries.tree import Tree
from pufferfish.tables.source import open_table

MODELS: dict[str, Any] = {
    "chain": MarkovChain, "box": ChainBox, "tree": Tree, "household": Household,
}  # fmt: skip


@dataclass(frozen=True)
class Fit:
    """How a chain, or with a confidence a class of them, is fitted to sequences."""

    initial: Literal["stationary", "any", "counted"] = "stationary"
    smoothing: Fraction = Fraction(0)
    confidence: Fraction | None = None

    def model(self, found: Sequences, rules: SequenceRules) -> MarkovChain | ChainBox:
        """Return the model that was fitted to sequences."""
        how: dict[str, Any] = {"state": rules.state, "initial": self.initial}
        if self.confidence is not None:
            return ChainBox.from_sequences(found, confidence=self.confidence, **how)
        return MarkovChain.from_sequences(found, smoothing=self.smoothing, **how)


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class QueryPlan:
    """Noise for the answer to a query, made by :func:`pufferfish.calibrate` or :meth:`load`."""

    query: Query
    mechanism: str
    noise: DiscreteLaplace  #: What is added to each number; of a mean to the sum.
    epsilon_exact: Fraction
    certificate: Certificate  #: The proof that the loss is at most epsilon, or a file's claim.
    least_scale: float = 0.0  #: No noise of a smaller scale than this would do; 0: not known.
    from_rows: bool = False  #: Whether a model was fitted to a table, of which the plan tells.
    source: SequenceRules | None = None  #: How a table is read; None: sequences are lists.
    fit: Fit | None = None  #: How the model was fitted to the table; None: it was given.
    notes: tuple[str, ...] = ()
    composition: LossBound | None = None  #: The joint loss with earlier answers; None: it is alone.
    loaded: bool = False

    @property
    def scale(self) -> float:
        """theta, in the units of the answer; of a mean of the sum."""
        return self.noise.scale

    @property
    def epsilon(self) -> float:
        """Epsilon as a float; ``epsilon_exact`` is the number itself."""
        return float(self.epsilon_exact)

    @property
    def loss(self) -> float:
        """The privacy loss of the certificate: an upper bound."""
        return self.certificate.loss

    @property
    def mse(self) -> float:
        """Mean squared error of each released number; of a mean of the sum."""
        return self.noise.mse

    def __repr__(self) -> str:
        said = ", says its file" if self.loaded else ""
        return (
            f"<QueryPlan: {self.mechanism} at epsilon {show(self.epsilon_exact)} for a "
            f"{self.query.kind}: noise of scale {self.scale!r}\n"
            f"  loss at most {self.loss!r}, proved by {self.certificate.method}{said}>"
        )

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write the plan as JSON, readable by its owner only (mode 0600)."""
        write_json(path, self.to_values(), force=force, mode=PRIVATE)

    def to_values(self) -> Any:
        """Return the JSON values of the plan's file."""
        kinds = {kind: name for name, kind in MODELS.items()}
        file = _PlanFile(
            notice=schema.FROM_ROWS if self.from_rows else schema.FROM_GIVEN_PRIOR,
            format=2, mechanism=self.mechanism, epsilon=self.epsilon_exact,
            scale=self.scale, loss=self.loss, from_rows=self.from_rows, query=self.query.to_json(),
            models=tuple({"kind": kinds[type(m)], **m.to_json()} for m in self.query.models),
            source=self.source, fit=self.fit, least_scale=self.least_scale,
            certificate=self.certificate, notes=self.notes, composition=self.composition,
        )  # fmt: skip
        return schema.to_json_values(file)

    @classmethod
    def load(cls, path: str | Path) -> "QueryPlan":
        """Read a plan that :meth:`save` wrote."""
        return cls.of_values(read_strict(path, "the plan"), path)

    @classmethod
    def of_values(cls, data: Any, path: str | Path) -> "QueryPlan":
        """Return the plan that JSON values stand for, which were read from a file."""
        try:
            file: _PlanFile = schema.converted(data, _PlanFile)
            for name, part in (("source", file.source), ("fit", file.fit)):
                if part and (unknown := data[name].keys() - vars(part).keys()):
                    raise InputError(f"{name} has the unknown entry {min(unknown)!r}")
            query = query_of(file.query, [model_of(each) for each in file.models])
            claimed = schema.claim(file.certificate, Certificate)
            return cls(
                query=query, mechanism=file.mechanism, epsilon_exact=parse_epsilon(file.epsilon),
                noise=DiscreteLaplace(file.scale, query.step),
                from_rows=file.from_rows or file.fit is not None,
                certificate=claimed or Certificate("none", math.inf, 0.0),
                least_scale=file.least_scale,
                source=file.source, fit=file.fit, notes=file.notes, loaded=True,
                composition=file.composition and schema.claim(file.composition, LossBound),
            )  # fmt: skip
        except (ValueError, TypeError, KeyError) as error:
            raise InputError(f"{path} is no usable plan of a query: {error}") from None

    def verify(self, query: Query | None = None, *, other_prior: bool = False) -> Certificate:
        """Prove the loss again, for the models in the plan or for those of a query.

        Raises
        ------
        CheckFailed
            If the loss exceeds epsilon, or the query is another one than the plan's and
            ``other_prior`` is not given.
        """
        asked = self.query if query is None else query
        if not isinstance(asked, Query):
            raise InputError(
                "verify takes a query; that of a table is plan.query_of_table(table), but a "
                f"{type(asked).__name__} was given"
            )
        if not checked_flag(other_prior, "other_prior") and not self.is_for(asked):
            raise CheckFailed(
                "this is another query or model than the plan's; to judge the plan under it all "
                "the same use --other-prior (other_prior=True)"
            )
        if asked.step != self.query.step:
            raise CheckFailed("the answers of this query lie on another lattice than the plan's")
        proof = certify_query(asked, self.scale, self.epsilon_exact)
        if not proof.holds:
            said = "is above" if proof.decided else "could not be proved to be at most"
            limit = f"epsilon {show(self.epsilon_exact)}"
            raise CheckFailed(f"the loss at scale {self.scale!r} {said} {limit}")
        return proof

    def is_for(self, query: Query) -> bool:
        """Return whether a query and its models are the plan's."""
        own = self.query
        return query.to_json() == own.to_json() and set(query.models) == set(own.models)

    def query_of_table(self, table: Any) -> Query:
        """Return the plan's query for a table: its model fitted again, if it was fitted."""
        found, models = self._sequences(table), list(self.query.models)
        if self.fit is not None and self.source is not None:
            models = [self.fit.model(found, self.source)]
        return self.query.of(models, found.lengths if self.query.lengths else self.query.lengths)

    def release(
        self, records: Any, *, bounds: Literal["range"] | Sequence[Number] | None = None,
        seed: int | None = None, allow_unchanged: bool = False,
    ) -> QueryAnswer:  # fmt: skip
        """Return the noisy answer for some records; the noise is drawn from the system's entropy.

        Parameters
        ----------
        records : sequence of states, sequence of such sequences, table or path
            One sequence or several; for a plan that knows columns also a table that has them.
        bounds : "range" or (number, number), optional
            Move what is released into the range of possible answers, or into these bounds.
        seed : int, optional
            For tests only; the noise is then not private, and a SeededWarning says so.
        allow_unchanged : bool
            Publish the answer itself where the scale is 0.
        """
        if self.scale == 0 and not checked_flag(allow_unchanged, "allow_unchanged"):
            raise InputError(
                "the scale is 0: the answer is published as it is; allow it with "
                "--allow-unchanged (allow_unchanged=True)"
            )
        found, ends = self.records(records), read_bounds(bounds)
        entropy = None
        if seed is not None:
            text = "the release was drawn from a seed: for tests only, it protects nobody"
            warn_user(text, SeededWarning)
            entropy = seeded_entropy(seed)
        query, size = self.query, found.records
        exact = query.answer(found.codes)
        drawn = self.noise.noise(len(exact), entropy).tolist()
        divisor = size if query.kind == "mean" else 1
        pairs = zip(exact, drawn, strict=True)
        values = tuple((value + z * self.noise.step) / divisor for value, z in pairs)
        answer = QueryAnswer(query.kind, query.names, values, size, self.noise)
        if ends == "range":
            ends = [end / divisor for end in query.ends(size)]
        return answer if ends is None else answer.clamped(*ends)

    def with_columns(
        self, *, state: str, time: str | None = None, sequence: str | None = None,
        gaps: Literal["refuse", "order"] = "refuse", missing: Sequence[str] = (),
    ) -> "QueryPlan":  # fmt: skip
        """Return a plan that can be released from tables (:meth:`MarkovChain.from_sequences`)."""
        return replace(self, source=SequenceRules(state, time, sequence, gaps, tuple(missing)))

    def records(self, given: Any) -> Sequences:
        """Return the records that are given for a release; refuse what the plan is not for."""
        found = self._sequences(given)
        self._check(found)
        return found

    def _sequences(self, records: Any) -> Sequences:
        """Return sequences given as lists, or those of a table in the columns that are named."""
        if isinstance(records, list | tuple | np.ndarray):
            every = list(np.atleast_1d(records)) if isinstance(records, np.ndarray) else records
            several = bool(every) and isinstance(every[0], list | tuple | np.ndarray)
            return sequences_of_lists(every if several else [list(every)], self.query.states)
        if self.source is None:
            raise InputError(
                "the plan names no columns of a table (plan.with_columns does): verify it alone, "
                "and release lists of states"
            )
        return read_sequences(open_table(records), self.source, self.query.states)

    def _check(self, found: Sequences) -> None:
        """Refuse sequences of lengths that the plan is not for; warn where the model has none."""
        query, sizes = self.query, self.query.sizes
        whole = query.protect == "sequence"  # group noise is enough for fewer records, too
        wrong = [n for n in found.lengths if n not in sizes and not (whole and n <= max(sizes))]
        if query.lengths is not None and wrong:
            other = "; a plan for any length (--any-length, length='any') takes all"
            raise InputError(
                f"there are sequences of {listed(map(str, wrong))} records, but the plan is for "
                f"{listed(map(str, sizes))}{'' if whole else other}"
            )
        lost = [n for n in map(partial(_impossible, found), query.models) if n]
        if lost and not whole:
            warn_user(
                f"{counted(max(lost), 'record')} that the model holds impossible there: its "
                "promise does not hold for their sequences",
                OutsidePromiseWarning,
            )


def _impossible(found: Sequences, model: Any) -> int:
    """Return how many records no chain of a model can begin with or reach; 0 of other models."""
    if isinstance(model, ChainBox):
        rows, start = model.upper, None
    elif isinstance(model, MarkovChain):
        rows, start = model.transition, model.start
    else:
        return 0
    never = np.array([[p == 0 for p in row] for row in rows])
    no_start = np.array([p == 0 for p in start or (1,) * len(rows)])
    return int(found.transitions()[never].sum() + found.firsts()[no_start].sum())


class _PlanFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """All entries of the file of a query's plan, in their order."""

    notice: Any = None
    format: Literal[2]
    mechanism: schema.Name
    epsilon: Fraction
    scale: schema.Scale
    loss: Any = None
    from_rows: bool
    query: dict[str, Any]
    models: schema.Some[dict[str, Any]]
    source: SequenceRules | None = None
    fit: Fit | None = None
    least_scale: schema.Scale = 0.0
    certificate: Any = None
    notes: tuple[str, ...] = ()
    composition: Any = None


def load_plan(path: str | Path) -> Plan | QueryPlan:
    """Return the plan of a file, for a column or for a query."""
    data = read_strict(path, "the plan")
    of_query = isinstance(data, dict) and isinstance(data.get("query"), dict)
    return QueryPlan.of_values(data, path) if of_query else Plan.of_values(data, path)


def certify_query(query: Query, scale: float, epsilon: Fraction) -> Certificate:
    """Prove the loss of noise for a query, and compare it with epsilon."""
    return certificate_of(prove(query, scale, epsilon), epsilon)


def model_of(data: Any) -> Any:
    """Return the model that JSON values stand for, by their ``kind``."""
    if not isinstance(data, dict) or data.get("kind") not in [*MODELS]:
        raise InputError(f"a model is a JSON object with a kind, one of {listed(MODELS)}")
    kind, given = data["kind"], {name: value for name, value in data.items() if name != "kind"}
    every = inspect.signature(MODELS[kind]).parameters.values()
    known = [one.name for one in every if one.kind is not one.KEYWORD_ONLY]
    for name in given:
        if name not in known:
            raise InputError(f"a {kind} has no {name!r}{did_you_mean(name, known)}")
    try:
        return MODELS[kind](**given)
    except TypeError:
        raise InputError(
            f"a {kind} needs more than {listed(given) or 'nothing'}, or other values"
        ) from None
