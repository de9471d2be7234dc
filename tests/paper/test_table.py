# SPDX-License-Identifier: Apache-2.0
"""The paper's table: 149 of 150 cells agree, and every computed scale is a known one."""

import json
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pufferfish import paper
from pufferfish.cli.output import jsonable
from pufferfish.paper.table import MECHANISMS, round_half_up

EPSILONS = [Fraction(k, 10) for k in range(1, 11)]
# Scales at epsilon 0.1, 0.2, ..., 1, to 13 digits, from an independent computation.
SCALES = {
    "sim1": {
        "l1": [1 / e for e in EPSILONS],
        "wasserstein": [1 / e for e in EPSILONS],
        "relaxed": [
            0.775775726777, 0.532713142013, 0.439192639836, 0.3864832185875, 0.3513756293915,
            0.3256784113769, 0.305695072492, 0.2894879290114, 0.2759323799306, 0.2643255931622,
        ],
        "one-sided": [
            0.7589563045164, 0.5234229636127, 0.4324937965914, 0.3811326838747, 0.346867933528,
            0.3217556808954, 0.3022067176136, 0.2863377013481, 0.273054646919, 0.2616733616172,
        ],
        "exact": [
            0.0, 0.0, 0.0, 0.0, 0.0,
            0.0, 0.0, 0.0, 0.0, 0.0,
        ],
    },
    "sim2": {
        "l1": [3 / e for e in EPSILONS],
        "wasserstein": [3 / e for e in EPSILONS],
        "relaxed": [
            10.0, 5.0, 3.333333333333, 2.5, 2.0,
            1.666666666667, 1.428571428571, 1.25, 1.111111111111, 1.0,
        ],
        "one-sided": [
            10.0, 5.0, 3.333333333333, 2.5, 2.0,
            1.666666666667, 1.428571428571, 1.25, 1.111111111111, 1.0,
        ],
        "exact": [
            0.1167000093774, 0.1073804922703, 0.1023542218997, 0.09890737095237, 0.09627157594725,
            0.09412545901479, 0.09230528930077, 0.09071681394908, 0.08930103303753,
            0.08801868061714,
        ],
    },
    "student": {
        "l1": [1 / e for e in EPSILONS],
        "wasserstein": [1 / e for e in EPSILONS],
        "relaxed": [
            3.390722631112, 1.839736188747, 1.313518008254, 1.044828674584, 0.8798932168939,
            0.7672876683636, 0.6848809622181, 0.6215524045217, 0.5710889319377, 0.5297396001521,
        ],
        "one-sided": [
            2.750834112752, 1.529450142662, 1.111743317529, 0.8967174616406, 0.7636823684499,
            0.6721783245367, 0.6047447928671, 0.5525824595567, 0.5107606327117, 0.4762937495055,
        ],
        "exact": [
            1.574457110032, 0.7416126582501, 0.4055136804054, 0.0, 0.0,
            0.0, 0.0, 0.0, 0.0, 0.0,
        ],
    },
    "census": {
        "l1": [8 / e for e in EPSILONS],
        "wasserstein": [2 / e for e in EPSILONS],
        "relaxed": [
            10.0, 5.0, 3.333333333333, 2.5, 2.053270371266,
            1.755486795599, 1.540863874034, 1.378355615415, 1.250698229029, 1.14752162852,
        ],
        "one-sided": [
            10.0, 5.0, 3.333333333333, 2.5, 2.0,
            1.666666666667, 1.428571428571, 1.25, 1.111111111111, 1.0,
        ],
        "exact": [
            2.514248322483, 1.729293287227, 1.390130118024, 1.181510504479, 1.030754951011,
            0.9108628798469, 0.8091148692671, 0.7186060700273, 0.6352911601953, 0.55675611023,
        ],
    },
    "bank": {
        "l1": [2 / e for e in EPSILONS],
        "wasserstein": [1 / e for e in EPSILONS],
        "relaxed": [
            2.527330424874, 1.420458680902, 1.040432999359, 0.8440590869984, 0.7221316365763,
            0.637992285496, 0.5757984932078, 0.5275548168914, 0.4887746129861, 0.456737406682,
        ],
        "one-sided": [
            1.511123308919, 0.9172060539218, 0.7061681928278, 0.5938003592427, 0.5221885514234,
            0.4716247862131, 0.4334793121127, 0.4033425477277, 0.3787111894614, 0.3580508358619,
        ],
        "exact": [
            0.8619705933496, 0.3662215565553, 0.0, 0.0, 0.0,
            0.0, 0.0, 0.0, 0.0, 0.0,
        ],
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def reproduction() -> paper.Reproduction:
    return paper.reproduce()


def entry_of(name: str) -> dict[str, Any]:
    """A copy of what the package carries for one block, to be changed."""
    return dict(msgspec.to_builtins(paper.block(name)))


def read_block(entry: dict[str, Any]) -> paper.Block:
    return msgspec.convert(entry, paper.Block)


def test_149_of_150_cells_agree(reproduction: paper.Reproduction):
    assert reproduction.summary == "149 of 150 cells agree"
    (cell,) = [cell for cell in reproduction.cells if cell.agrees is False]
    assert (cell.block, cell.epsilon, cell.mechanism) == ("sim1", Fraction("0.2"), "relaxed")
    assert (cell.printed, cell.rounded) == ("0.54", "0.53")
    (why,) = reproduction.why
    assert "the two sides give 0.533 and 0.523" in why
    assert "not rounded" in why


def test_every_cell_is_there_and_certified(reproduction: paper.Reproduction):
    assert len(reproduction.cells) == 250
    assert tuple(cell.mechanism for cell in reproduction.cells[:5]) == MECHANISMS
    assert sum(cell.printed is not None for cell in reproduction.cells) == 150
    for cell in reproduction.cells:
        assert cell.certified
        assert Fraction(cell.loss) <= cell.epsilon or cell.loss == float(cell.epsilon)


def test_the_scales_are_the_known_ones(reproduction: paper.Reproduction):
    for cell in reproduction.cells:
        known = float(SCALES[cell.block][cell.mechanism][EPSILONS.index(cell.epsilon)])
        assert known * (1 - 2e-12) <= cell.scale <= known * (1 + 1e-9), cell


def test_no_cell_is_near_a_rounding_edge(reproduction: paper.Reproduction):
    """So that it does not matter on which side of the root a computed scale lies."""
    for cell in reproduction.cells:
        for factor in (1 - 1e-9, 1 + 1e-9) if cell.printed is not None else ():
            assert round_half_up(Fraction(cell.scale * factor), 2) == cell.rounded


def test_a_changed_block_disagrees():
    entry = entry_of("student")
    assert paper.reproduce([read_block(entry)]).summary == "30 of 30 cells agree"
    entry["counts"]["no"] = [31, 38]
    changed = paper.reproduce([read_block(entry)])
    assert len(changed.why) == sum(cell.agrees is False for cell in changed.cells) > 0
    assert all("no reason is known" in why for why in changed.why)


def test_a_changed_printed_cell_disagrees():
    entry = entry_of("sim2")
    entry["printed"]["l1"] = (*entry["printed"]["l1"][:6], "4.28", *entry["printed"]["l1"][7:])
    assert paper.reproduce([read_block(entry)]).summary == "29 of 30 cells agree"


# What the paper reports, at epsilon 0.1 and 1.
REDUCTIONS = {
    ("sim1", "wasserstein"): (92.2, 73.5),
    ("sim2", "wasserstein"): (66.7, 66.7),
    ("student", "wasserstein"): (66, 47),
    ("census", "wasserstein"): (50, 43),
    ("census", "l1"): (88, 86),
    ("bank", "wasserstein"): (75, 54),
    ("bank", "l1"): (87, 77),
}


def test_the_noise_reductions_are_the_reported_ones(reproduction: paper.Reproduction):
    found = {(r.block, r.against): r for r in reproduction.reductions}
    assert len(found) == 10
    assert {key for key, r in found.items() if r.agrees is not None} == set(REDUCTIONS)
    for key, (at_least, at_most) in REDUCTIONS.items():
        assert found[key].agrees
        assert abs(found[key].percent[0] - at_least) < 0.6
        assert abs(found[key].percent[-1] - at_most) < 0.6
    assert round_half_up(Fraction(found["sim1", "wasserstein"].least), 2) == "73.57"
    assert round_half_up(Fraction(found["sim1", "wasserstein"].most), 2) == "92.24"


def test_a_wrong_reported_reduction_is_caught():
    entry = entry_of("student")
    entry["reported"]["wasserstein"] = ("47", "68")
    assert [r.agrees for r in paper.reproduce([read_block(entry)]).reductions] == [False, None]


def test_the_reproduction_is_valid_json(reproduction: paper.Reproduction):
    text = json.dumps(jsonable(reproduction), allow_nan=False)
    assert json.loads(text)["summary"] == "149 of 150 cells agree"


@pytest.mark.parametrize(
    "value, text",
    [
        ("8.9999999", "9.00"),
        ("8.994999999999999999999", "8.99"),
        ("8.995", "9.00"),
        ("0.005", "0.01"),
        ("0", "0.00"),
        ("2.675", "2.68"),
        (2.675, "2.67"),  # the double lies below the tie
        (0.125, "0.13"),  # not to the even digit
    ],
)
def test_rounding_is_exact(value: Any, text: str):
    assert round_half_up(Fraction(value), 2) == text


@given(st.decimals(0, 1000, places=5), st.integers(1, 4))
def test_rounding_is_the_decimal_modules(value: Decimal, places: int):
    expected = value.quantize(Decimal(1).scaleb(-places), rounding=ROUND_HALF_UP)
    assert round_half_up(Fraction(value), places) == f"{expected:f}"
