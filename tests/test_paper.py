# SPDX-License-Identifier: Apache-2.0
"""The paper's numbers come out: 149 of 150 cells, the blocks' scales, and the first figure."""

import copy
import csv
import gzip
import json
import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pufferfish import paper
from pufferfish.coupling import Coupling, comonotone
from pufferfish.errors import InputError
from pufferfish.paper import figure as figure_module
from pufferfish.paper import sources
from pufferfish.paper.table import MECHANISMS, round_half_up
from pufferfish.prior import Prior
from pufferfish.rationals import float_up
from pufferfish.scenario import Scenario
from shared_data import require_shared
from slow import literal, values

NAMES = ("sim1", "sim2", "student", "census", "bank")
TABLES = ("student", "census", "bank")


@pytest.fixture(scope="module")
def reproduction() -> paper.Reproduction:
    return paper.reproduce()


def entry_of(name: str) -> dict[str, Any]:
    """A copy of what the package carries for one block, to be changed."""
    return copy.deepcopy(next(e for e in sources._data()["blocks"] if e["name"] == name))


# ------------------------------------------------------------------------------------- the blocks


def wrong_masses(blocks: Sequence[paper.Block]) -> list[str]:
    """The blocks whose prior, names or order are not those of the literals."""
    literals = {b.name: b for b in values.BLOCKS}
    wrong = []
    for block in blocks:
        expected = literals[block.name]
        total = [sum(Fraction(p) for p in masses) for masses in (expected.first, expected.second)]
        for secret, masses, norm in zip(
            block.pair, (expected.first, expected.second), total, strict=True
        ):
            ours = [block.prior.probability(secret, k) for k in range(block.prior.support.size)]
            if ours != [Fraction(p) / norm for p in masses]:
                wrong.append(block.name)
        if block.rows and (block.secret, block.public, block.pair, block.order) != (
            expected.secret,
            expected.public,
            expected.pair,
            expected.order,
        ):
            wrong.append(block.name)
    return wrong


def test_the_blocks_are_the_literals():
    assert tuple(b.name for b in paper.blocks()) == NAMES
    assert wrong_masses(paper.blocks()) == []
    assert [b.rows for b in paper.blocks()] == [0, 0, 649, 37736, 45211]
    assert all(b.scenario.pairs == (b.pair,) for b in paper.blocks())


@pytest.mark.parametrize("name", TABLES)
def test_a_changed_count_is_caught(name: str):
    entry = entry_of(name)
    entry["counts"][entry["pair"][1]][0] += 1
    assert wrong_masses([sources._block(entry)]) == [name]


def original_rows(name: str) -> list[tuple[str, str]]:
    """(secret, public) of the rows of the original files, cleaned as the paper's numbers need."""
    if name == "census":
        rows = []
        for part in ("adult.data.gz", "adult.test.gz"):
            with gzip.open(require_shared("data", part), "rt", newline="") as file:
                for fields in csv.reader(file, skipinitialspace=True):
                    if len(fields) == 15 and not (part == "adult.test.gz" and fields[1] == "?"):
                        rows.append((fields[5], fields[1]))
        return rows
    file_name, opener = {
        "student": ("student-por.csv", open),
        "bank": ("bank-full.csv.gz", gzip.open),
    }[name]
    block = paper.block(name)
    with opener(require_shared("data", file_name), "rt", newline="") as file:  # type: ignore[operator]
        return [(r[block.secret], r[block.public]) for r in csv.DictReader(file, delimiter=";")]


@pytest.mark.parametrize("name", TABLES)
def test_the_counts_are_those_of_the_data_sets(name: str):
    block, found = paper.block(name), Counter(original_rows(name))
    for secret in block.pair:
        counts = block.prior.counts[block.prior.row(secret)].tolist()
        assert counts == [found[secret, level] for level in block.order]
        assert sum(counts) == sum(n for (s, _), n in found.items() if s == secret)


def test_the_printed_table_is_the_literals():
    assert [float(e) for e in paper.epsilons()] == [float(e) for e in values.PAPER_EPSILONS]
    for block in paper.blocks():
        printed = {m: tuple(map(float, cells)) for m, cells in block.printed.items()}
        assert printed == values.PAPER_TABLE[block.name]


def test_sources_and_licences_are_named():
    for name, authors in (
        ("student", ("Cortez", "Silva", "2008")),
        ("bank", ("Moro", "Rita", "Cortez", "2014")),
        ("census", ("Becker", "Kohavi", "1996")),
    ):
        block = paper.block(name)
        assert all(part in block.citation for part in authors)
        assert block.licence == "CC BY 4.0"
    assert all("2601.06385" in paper.block(name).citation for name in ("sim1", "sim2"))


def test_an_unknown_block_is_refused():
    with pytest.raises(InputError, match="did you mean 'student'"):
        paper.block("studnet")


# ------------------------------------------------------------------------------------- the tables


@pytest.mark.parametrize("name", TABLES)
def test_a_written_table_has_the_counts(name: str, tmp_path: Path):
    block, path = paper.block(name), tmp_path / "table.csv"
    assert paper.write_table(name, path) == block.rows
    prior = Prior.from_table(path, secret=block.secret, public=block.public, order=block.order)
    assert prior.report is not None
    assert (prior.report.rows_read, prior.report.rows_used) == (block.rows, block.rows)
    assert prior.support == block.prior.support
    for secret in block.pair:
        ours, theirs = prior.counts[prior.row(secret)], block.prior.counts[block.prior.row(secret)]
        assert ours.tolist() == theirs.tolist()
    assert Scenario(prior, pairs=[block.pair]).digest == block.scenario.digest


@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_the_same_every_time_and_well_spread(name: str, tmp_path: Path):
    block = paper.block(name)
    paper.write_table(name, tmp_path / "one.csv")
    paper.write_table(name, tmp_path / "two.csv")
    assert (tmp_path / "one.csv").read_bytes() == (tmp_path / "two.csv").read_bytes()
    with open(tmp_path / "one.csv", newline="") as file:
        header, *rows = list(csv.reader(file))
    assert header == [block.secret, block.public]
    assert tuple(dict.fromkeys(level for _, level in rows)) == block.order
    half = rows[: len(rows) // 2]
    share = sum(secret == block.pair[0] for secret, _ in rows) / len(rows)
    assert abs(sum(secret == block.pair[0] for secret, _ in half) / len(half) - share) < 0.02


def test_a_simulation_has_no_table(tmp_path: Path):
    with pytest.raises(InputError, match="no rows; the tables are student, census, bank"):
        paper.write_table("sim1", tmp_path / "t.csv")
    assert list(tmp_path.iterdir()) == []


def test_a_table_replaces_nothing_unasked(tmp_path: Path):
    path = tmp_path / "t.csv"
    path.write_text("mine")
    with pytest.raises(InputError, match="exists already"):
        paper.write_table("student", path)
    assert path.read_text() == "mine"
    assert paper.write_table("student", path, force=True) == 649
    assert [p.name for p in tmp_path.iterdir()] == ["t.csv"]
    with pytest.raises(InputError, match="cannot write"):
        paper.write_table("student", tmp_path / "nowhere" / "t.csv")


# ---------------------------------------------------------------------------------- the big table


def test_149_of_150_cells_agree(reproduction: paper.Reproduction):
    assert reproduction.summary == "149 of 150 cells agree"
    (cell,) = reproduction.disagreements
    assert (cell.block, cell.epsilon, cell.mechanism) == ("sim1", Fraction("0.2"), "relaxed")
    assert (cell.printed, cell.rounded) == ("0.54", "0.53")
    (why,) = reproduction.why
    assert "the two sides give 0.533 and 0.523" in why
    assert "not rounded" in why


def test_every_block_has_every_cell(reproduction: paper.Reproduction):
    assert len(reproduction.rows) == 50
    assert all(tuple(row.cells) == MECHANISMS for row in reproduction.rows)
    assert len(reproduction.cells) == 250
    assert sum(cell.printed is not None for cell in reproduction.cells) == 150


def test_every_cell_is_certified(reproduction: paper.Reproduction):
    for cell in reproduction.cells:
        assert cell.certified
        assert Fraction(cell.loss) <= cell.epsilon or cell.loss == float(cell.epsilon)


def test_the_scales_are_the_literals(reproduction: paper.Reproduction):
    rows = {(row.block, row.epsilon): row for row in reproduction.rows}
    for reference in values.BLOCKS:
        for expected in reference.rows:
            row = rows[reference.name, Fraction(expected.epsilon)]
            for mechanism, scale in values.scales(reference, expected).items():
                ours = row.cells[mechanism].scale
                assert scale * (1 - 2e-12) <= ours <= scale * (1 + 1e-9), (row, mechanism)


def test_no_cell_is_near_a_rounding_edge(reproduction: paper.Reproduction):
    """So that it does not matter on which side of the true root a computed scale lies."""
    for cell in reproduction.cells:
        if cell.printed is not None:
            for factor in (1 - 1e-9, 1 + 1e-9):
                assert round_half_up(Fraction(cell.scale * factor), 2) == cell.rounded


def test_a_changed_block_disagrees():
    entry = entry_of("student")
    assert paper.reproduce([sources._block(entry)]).summary == "30 of 30 cells agree"
    entry["counts"]["no"] = [31, 38]
    changed = paper.reproduce([sources._block(entry)])
    assert changed.summary != "30 of 30 cells agree"
    assert len(changed.why) == len(changed.disagreements) > 0
    assert all("no reason is known" in why for why in changed.why)


def test_a_changed_printed_cell_disagrees():
    entry = entry_of("sim2")
    entry["printed"]["l1"][6] = "4.28"
    assert paper.reproduce([sources._block(entry)]).summary == "29 of 30 cells agree"


def test_the_noise_reductions_are_the_reported_ones(reproduction: paper.Reproduction):
    found = {(r.block, r.against): r for r in reproduction.reductions}
    assert len(found) == 10
    reported = {key for key, r in found.items() if r.agrees is not None}
    assert reported == set(values.REDUCTION)
    for key, ends in values.REDUCTION.items():
        reduction = found[key]
        assert reduction.agrees
        assert (reduction.reported_least, reduction.reported_most) == tuple(
            f"{end:g}" for end in sorted(ends)
        )
        assert abs(reduction.by_epsilon[0][1] - ends[0]) < 0.6
        assert abs(reduction.by_epsilon[-1][1] - ends[1]) < 0.6
    assert round_half_up(Fraction(found["sim1", "wasserstein"].least), 2) == "73.57"
    assert round_half_up(Fraction(found["sim1", "wasserstein"].most), 2) == "92.24"


def test_a_wrong_reported_reduction_is_caught():
    entry = entry_of("student")
    entry["reported_reduction"][0]["most"] = "68"
    found = paper.reproduce([sources._block(entry)]).reductions
    assert [r.agrees for r in found] == [False, None]


def test_the_reproduction_is_valid_json(reproduction: paper.Reproduction):
    text = json.dumps(reproduction.to_dict(), allow_nan=False)
    assert json.loads(text)["summary"] == "149 of 150 cells agree"


@pytest.mark.parametrize(
    "value, text",
    [
        ("8.9999999", "9.00"),
        ("8.994999999999999999999", "8.99"),
        ("8.995", "9.00"),
        ("0.005", "0.01"),
        ("0.00499999999999999999", "0.00"),
        ("0", "0.00"),
        ("2.675", "2.68"),
        ("80", "80.00"),
    ],
)
def test_rounding_is_exact(value: str, text: str):
    assert round_half_up(Fraction(value), 2) == text


@given(st.decimals(0, 1000, places=5), st.integers(1, 4))
def test_rounding_is_the_decimal_modules(value: Decimal, places: int):
    expected = value.quantize(Decimal(1).scaleb(-places), rounding=ROUND_HALF_UP)
    assert round_half_up(Fraction(value), places) == f"{expected:f}"


def test_rounding_by_format_would_be_caught():
    assert f"{2.675:.2f}" == "2.67"  # the double is below the tie, and so is its exact value
    assert round_half_up(Fraction(2.675), 2) == "2.67"
    assert f"{0.125:.2f}" == "0.12"  # format takes ties to the even digit
    assert round_half_up(Fraction(0.125), 2) == "0.13"


# -------------------------------------------------------------------------------- the first figure


def write_patients(path: Path, rows: Sequence[tuple[Any, Any]]) -> Path:
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("Age", "Other", "Glucose"))
        writer.writerows((age, "x", glucose) for glucose, age in rows)
    return path


def patients(seed: int = 7, number: int = 400) -> list[tuple[Any, Any]]:
    """Invented people: the older ones have somewhat more of it."""
    rng = np.random.default_rng(seed)
    age = rng.integers(21, 70, number)
    # Clipped, so that no value at an end belongs to one group alone.
    glucose = np.clip(np.rint(rng.normal(100, 25, number) + 0.8 * (age - 30)), 70, 140).astype(int)
    return list(zip(glucose.tolist(), age.tolist(), strict=True))


@pytest.fixture
def figure(tmp_path: Path) -> paper.FigureOne:
    return paper.figure_one(write_patients(tmp_path / "p.csv", patients()))


def dense(found: paper.FigureOne) -> tuple[Any, Any, Any]:
    """Points and masses over one total, for the literal definitions."""
    prior = found.scenario.priors[0]
    first, second = (prior.counts[k].astype(object) for k in (0, 1))
    a, b = prior.totals
    return np.arange(found.bins, dtype=float), first * b, second * a


def check_against_dense(found: paper.FigureOne) -> None:
    points, first, second = dense(found)
    epsilon = float(found.epsilon)
    rows, columns = literal.sides(points, first, second, epsilon)
    assert found.side_rows == pytest.approx(rows, rel=1e-10)
    assert found.side_columns == pytest.approx(columns, rel=1e-10)
    assert found.strict.scale == pytest.approx(
        literal.wasserstein(points, first, second, epsilon), rel=1e-15
    )
    assert found.relaxed.scale == max(found.side_rows, found.side_columns)
    pi = (literal.coupling(first, second) / np.sum(first)).astype(float)
    assert np.count_nonzero(pi) == len(found.x)
    assert pi[found.x, found.x_prime] == pytest.approx(found.mass, rel=1e-14)
    assert found.columns.tolist() == np.flatnonzero(pi.sum(axis=0)).tolist()
    for ours in (found.strict, found.relaxed):
        matrix = literal.condition(points, first, second, epsilon, ours.scale)
        assert ours.cells == pytest.approx(matrix[found.x, found.x_prime], rel=1e-9, abs=1e-14)
        assert ours.sums == pytest.approx(matrix.sum(axis=0)[found.columns], rel=1e-9, abs=1e-13)
        assert (np.sign(ours.cells) == ours.cell_signs).all()
        assert (np.sign(ours.sums) == ours.sum_signs).all()


def test_the_papers_first_figure():
    found = paper.figure_one(require_shared("data", "diabetes.csv"), epsilon=1)
    assert (found.lowest, found.highest, found.rows_used, found.rows_set_aside) == (0, 199, 768, 0)
    assert found.strict.scale == 22.0
    assert math.isclose(found.side_columns, 19.89, abs_tol=0.005)
    assert math.isclose(found.side_rows, 12.70, abs_tol=0.005)
    assert found.relaxed.scale == found.side_columns
    assert [claim.holds for claim in found.claims] == [True, True]
    assert 0 in found.strict.cell_signs  # the furthest cell lies at the edge, exactly
    check_against_dense(found)


def test_the_figure_of_invented_people(figure: paper.FigureOne):
    assert [claim.name for claim in figure.claims] == ["strict", "relaxed"]
    assert [claim.holds for claim in figure.claims] == [True, True]
    assert figure.rows_used == 400
    assert figure.relaxed.scale < figure.strict.scale
    check_against_dense(figure)


@pytest.mark.parametrize("epsilon", ["0.01", "1/3", 5, 50])
@pytest.mark.parametrize("bins", [2, 17])
def test_the_figure_at_other_settings(tmp_path: Path, epsilon: Any, bins: int):
    path = write_patients(tmp_path / "p.csv", patients(3, 60))
    found = paper.figure_one(path, epsilon=epsilon, bins=bins, age="40.5")
    assert found.claims[0].holds
    assert found.relaxed.positive_sums == 0
    points, first, second = dense(found)
    rows, columns = literal.sides(points, first, second, float(found.epsilon))
    assert found.relaxed.scale == pytest.approx(max(rows, columns), rel=1e-10)


def test_bins_have_exact_edges(figure: paper.FigureOne):
    people = patients()
    low, high = min(g for g, _ in people), max(g for g, _ in people)
    inner = [low + Fraction(k * (high - low), 100) for k in range(1, 100)]
    slow = [[0] * 100, [0] * 100]
    for glucose, age in people:
        slow[int(age > 29)][bisect_right(inner, glucose)] += 1
    assert figure.scenario.priors[0].counts.tolist() == slow
    assert (figure.lowest, figure.highest) == (low, high)


def test_a_scale_that_is_a_little_too_small_is_caught(figure: paper.FigureOne):
    coupling = comonotone(next(figure.scenario.views()))
    below = figure_module.condition(coupling, figure.relaxed.scale * (1 - 1e-12), figure.epsilon)
    assert below.positive_sums > 0
    below = figure_module.condition(
        coupling, math.nextafter(figure.strict.scale, 0), figure.epsilon
    )
    assert below.positive_cells > 0


def test_signs_in_doubles_are_caught():
    """On either side of the edge, theta = d / eps, the sign is right; in doubles it is often 0."""
    careless = []
    for d in range(1, 30):
        for epsilon in (Fraction(k, 10) for k in range(1, 11)):
            one = np.array([0])
            coupling = Coupling(one, one, np.array([d]), np.array([1]), 1)
            private = float_up(d / epsilon)
            for scale in (private, math.nextafter(private, 0)):
                edge = d / epsilon
                sign = (Fraction(scale) < edge) - (Fraction(scale) > edge)
                ours = figure_module.condition(coupling, scale, epsilon)
                assert ours.cell_signs[0] == ours.sum_signs[0] == sign
                assert np.sign(ours.cells[0]) == np.sign(ours.sums[0]) == sign
                careless.append(np.sign(math.exp(d / scale) - math.exp(epsilon)) == sign)
    assert not all(careless)


def test_a_sum_that_is_a_little_too_large_is_caught(
    figure: paper.FigureOne, monkeypatch: pytest.MonkeyPatch
):
    coupling = comonotone(next(figure.scenario.views()))
    exact = figure_module.column_sums

    def careless(*arguments: Any) -> list[tuple[float, int]]:
        return [(v + 1e-12, int(np.sign(v + 1e-12))) for v, _ in exact(*arguments)]

    monkeypatch.setattr(figure_module, "column_sums", careless)
    wrong = figure_module.condition(coupling, figure.relaxed.scale, figure.epsilon)
    assert wrong.positive_sums > figure.relaxed.positive_sums == 0


def test_ties_are_decided(tmp_path: Path):
    """Everybody moves by the same distance: I and its sums are 0 at the edge, and nothing gained.

    Theory, section 3, (a): there is not always a strict reduction.
    """
    path = write_patients(tmp_path / "p.csv", [(0, 20), (1, 40)])
    found = paper.figure_one(path, epsilon=1, bins=2)
    assert found.strict.scale == found.relaxed.scale == 1.0
    assert found.strict.cells.tolist() == found.strict.sums.tolist() == [0.0]
    assert found.strict.cell_signs.tolist() == found.strict.sum_signs.tolist() == [0]
    assert [claim.holds for claim in found.claims] == [True, False]


def test_groups_alike_need_no_noise(tmp_path: Path):
    path = write_patients(tmp_path / "p.csv", [(0, 20), (1, 20), (0, 40), (1, 40)])
    found = paper.figure_one(path, bins=2)
    assert found.strict.scale == found.relaxed.scale == found.side_rows == 0.0
    assert found.strict.cell_signs.tolist() == [-1, -1]
    assert found.strict.cells == pytest.approx([(1 - math.e) / 2] * 2)
    assert [claim.holds for claim in found.claims] == [True, False]


def test_missing_cells_are_set_aside(tmp_path: Path):
    rows = [*patients(number=50), ("", 30), (100, ""), ("", "")]
    found = paper.figure_one(write_patients(tmp_path / "p.csv", rows))
    assert (found.rows_used, found.rows_set_aside) == (50, 3)


def test_the_figure_is_valid_json(figure: paper.FigureOne):
    data = json.loads(json.dumps(figure.to_dict(), allow_nan=False))
    assert len(data["strict"]["cells"]) == len(data["x"]) == len(data["mass"])
    assert len(data["relaxed"]["sums"]) == len(data["columns"])
    assert [claim["holds"] for claim in data["claims"]] == [True, True]
    assert math.fsum(data["mass"]) == pytest.approx(1)


FIGURE: Callable[..., Any] = paper.figure_one


@pytest.mark.parametrize(
    "options, message",
    [
        ({"bins": 1}, "bins must be an integer from 2"),
        ({"bins": True}, "bins must be an integer from 2"),
        ({"bins": 2.5}, "bins must be an integer from 2"),
        ({"epsilon": 0}, "epsilon must be above 0"),
        ({"epsilon": 701}, "epsilon must be at most 700"),
        ({"epsilon": "much"}, "epsilon must be a number"),
        ({"age": "old"}, "the age must be a number"),
        ({"age": 99}, "no row with Age > 99"),
        ({"age": 2}, "no row with Age <= 2"),
    ],
)
def test_wrong_settings_are_refused(tmp_path: Path, options: dict[str, Any], message: str):
    with pytest.raises(InputError, match=message):
        FIGURE(write_patients(tmp_path / "p.csv", patients(number=30)), **options)


@pytest.mark.parametrize(
    "text, message",
    [
        ("Glucos,Age\n1,2\n", "no column 'Glucose'.*did you mean 'Glucos'"),
        ("Glucose,Years\n1,2\n", "no column 'Age'"),
        ("Glucose,Age\n1,30\nsecret,20\n", "row 2: the cell of Glucose is no finite number"),
        ("Glucose,Age\n1,30\ninf,20\n", "row 2: the cell of Glucose is no finite number"),
        ("Glucose,Age\n5,30\n5,20\n", "are equal: there are no bins"),
        ("Glucose,Age\n,30\n5,\n", "no row with both Glucose and Age"),
    ],
)
def test_wrong_tables_are_refused(tmp_path: Path, text: str, message: str):
    path = tmp_path / "p.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=message) as error:
        paper.figure_one(path)
    assert "secret" not in str(error.value)  # cells are not shown
    assert "\n" not in str(error.value)
