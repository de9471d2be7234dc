# SPDX-License-Identifier: Apache-2.0
"""What is drawn is what was computed; names are text; figures say nothing of the outside."""

import math
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib import rc_context
from matplotlib.image import imread

import pufferfish as pf
from pufferfish import plots
from pufferfish.calibration.coupling import comonotone
from pufferfish.errors import InputError
from pufferfish.paper import block
from pufferfish.plots import style
from pufferfish.plots.losses import moved

HOSTILE = {
    "<script>alert(1)</script>": 5, "</svg>": 4, "x" * 10_000: 3, "\u202eabc": 2, "=cmd|' /C": 2,
    "$x^2$ \\frac": 2, "a\x00b\nc": 1, "&amp;": 1, "\U0001f421": 1,
}  # fmt: skip


@pytest.fixture(scope="module")
def hours() -> pf.Prior:
    return pf.Prior.from_counts(
        {"a": [1, 5, 9, 3, 1, 0], "b": [2, 3, 8, 4, 3, 1]}, support=range(6)
    )


@pytest.fixture(scope="module")
def levels() -> pf.Prior:
    rows = {"a": list(HOSTILE.values()), "b": list(HOSTILE.values())[::-1]}
    return pf.Prior.from_counts(rows, support=list(HOSTILE))


def texts(figure: Any) -> list[str]:
    root = ET.fromstring(plots.svg(figure, "a figure"))
    return ["".join(e.itertext()).strip() for e in root.iter("{http://www.w3.org/2000/svg}text")]


# What is drawn --------------------------------------------------------------------------------


def test_distributions_are_the_probabilities(hours: pf.Prior) -> None:
    (axes,) = plots.distributions(hours).axes
    for secret, bars in zip("ab", axes.containers, strict=True):
        drawn = [bar.get_height() for bar in bars]
        assert drawn == [float(hours.probability(secret, k)) for k in range(6)]
        assert [round(bar.get_x() + bar.get_width() / 2) for bar in bars] == list(range(6))
    # Of the protected secrets alone.
    three = pf.Prior.from_counts({"a": [1, 2], "b": [2, 2], "c": [3, 1]}, support=[0, 1])
    assert len(plots.distributions(pf.Scenario(three, [("a", "c")])).axes[0].containers) == 2


def test_many_values_are_lines() -> None:
    counts = {"a": range(1, 101), "b": range(100, 0, -1)}
    prior = pf.Prior.from_counts({k: list(v) for k, v in counts.items()}, support=range(100))
    (axes,) = plots.distributions(prior).axes
    for secret, line in zip("ab", axes.lines, strict=True):
        assert np.allclose(line.get_ydata(), [n / 5050 for n in counts[secret]], rtol=1e-15)
    assert axes.lines[0].get_linestyle() != axes.lines[1].get_linestyle()
    assert len(axes.get_xticks()) <= 25


def test_transport_is_the_coupling(hours: pf.Prior) -> None:
    figure = plots.transport(hours)
    (axes,) = figure.axes
    (marks,) = axes.collections
    (view,) = pf.Scenario(hours).views()
    coupling = comonotone(view)
    index = view.index
    expected = np.c_[index[coupling.first], index[coupling.second]]
    assert np.array_equal(marks.get_offsets(), expected)
    mass = np.array([Fraction(int(m), coupling.total) for m in coupling.mass], dtype=float)
    large = mass > 4 / 900
    assert np.allclose(marks.get_sizes()[large], 900 * mass[large])
    farthest = f"farthest: {coupling.largest_distance}"
    assert farthest in texts(figure)
    assert pf.calibrate(hours, 1, "wasserstein").scale == pytest.approx(coupling.largest_distance)


def test_transport_of_a_pair() -> None:
    prior = pf.Prior.from_counts({"a": [9, 1, 0], "b": [1, 9, 0], "c": [0, 1, 9]}, support=range(3))
    assert plots.transport(prior).axes[0].get_title(loc="left") == "Moving a to c"
    assert plots.transport(prior, ("b", "a")).axes[0].get_title(loc="left") == "Moving a to b"
    with pytest.raises(InputError, match="no such pair; the pairs are"):
        plots.transport(prior, ("a", "d"))
    unordered = pf.Prior.from_counts({"a": [1, 2], "b": [2, 2]}, support=["x", "y"])
    with pytest.raises(InputError, match="order"):
        plots.transport(unordered)


def test_noise_is_that_of_the_plans(hours: pf.Prior) -> None:
    epsilons = ("0.2", "0.5", "1")
    names = ("wasserstein", "relaxed", "exact")
    plans = [pf.calibrate(hours, e, m) for e in reversed(epsilons) for m in names]
    channel = pf.calibrate(hours, 1, "channel")
    (axes,) = plots.noise([*plans, channel]).axes
    drawn = {line.get_label(): line.get_xydata().tolist() for line in axes.lines}
    assert drawn == {
        m: [[float(e), pf.calibrate(hours, e, m).scale] for e in epsilons] for m in names
    }
    with pytest.raises(InputError, match="no plan that adds noise"):
        plots.noise([channel])


def test_loss_is_the_certified_one(hours: pf.Prior) -> None:
    plan = pf.calibrate(hours, "0.5")
    (axes,) = plots.loss(hours, plan).axes
    curve, limit, mark = axes.lines
    for scale, loss in curve.get_xydata()[::10]:
        assert loss == pf.privacy_loss(hours, float(scale))
    assert set(limit.get_ydata()) == {0.5}
    assert mark.get_xydata().tolist() == [[plan.scale, pf.privacy_loss(hours, plan.scale)]]
    # The curve passes through the mark.
    x, y = curve.get_xydata().T
    assert np.interp(plan.scale, x, y) == pytest.approx(0.5, abs=0.02)
    robust = pf.calibrate(hours.with_region(tv_radius="0.01"), "0.5")
    (axes,) = plots.loss(hours.with_region(tv_radius="0.01"), robust).axes
    assert axes.lines[0].get_ydata()[0] == pf.privacy_loss(hours, axes.lines[0].get_xdata()[0])
    with pytest.raises(InputError, match="no scale of noise"):
        plots.loss(hours, pf.calibrate(hours, 1, "channel"))


def test_loss_of_a_column_that_needs_no_noise() -> None:
    prior = pf.Prior.from_counts({"a": [5, 5], "b": [5, 6]}, support=[0, 1])
    plan = pf.calibrate(prior, 1)
    assert plan.scale == 0
    (axes,) = plots.loss(prior, plan).axes
    assert axes.lines[2].get_xydata().tolist() == [[0, pf.privacy_loss(prior, 0)]]


def test_beliefs_move_by_the_loss(hours: pf.Prior) -> None:
    plan = pf.calibrate(hours, "0.5")
    beliefs = (0.02, 0.5, 0.99)
    (axes,) = plots.belief(plan, beliefs).axes
    segments = [s.tolist() for s in axes.collections[0].get_segments()]
    for k, (before, segment) in enumerate(zip(beliefs, segments, strict=True)):
        ends = [before * e / (1 - before + before * e) for e in (math.exp(-0.5), math.exp(0.5))]
        assert segment[0] == pytest.approx([ends[0], k], rel=1e-9)
        assert segment[1] == pytest.approx([ends[1], k], rel=1e-9)
    assert axes.lines[0].get_xdata().tolist() == list(beliefs)
    assert moved(0.5, math.inf)[1] == pytest.approx(1)
    with pytest.raises(InputError, match="above 0 and below 1"):
        plots.belief(plan, [0.0])


def test_no_output_moves_a_belief_farther(hours: pf.Prior) -> None:
    plan = pf.calibrate(hours, "0.5")
    steps = np.arange(-40, 46)
    kernel = np.exp(-np.abs(steps[:, None] - np.arange(6)) / plan.scale)
    likelihood = kernel @ hours.probabilities.T
    after = 0.3 * likelihood[:, 0] / (0.3 * likelihood[:, 0] + 0.7 * likelihood[:, 1])
    low, high = moved(0.3, plan.loss)
    assert low - 1e-12 <= after.min()
    assert after.max() <= high + 1e-12
    assert min(after.min() - low, high - after.max()) < 1e-9


def test_the_channel_is_a_heat_map(levels: pf.Prior) -> None:
    plan = pf.calibrate(levels, "0.5")
    axes, _ = plots.channel(plan).axes
    assert np.array_equal(axes.images[0].get_array(), plan.channel.matrix)
    assert len(axes.get_yticks()) == len(HOSTILE)
    with pytest.raises(InputError, match="it has no channel"):
        plots.channel(pf.calibrate(block("student").scenario, 1))


def test_frequencies_are_the_estimates() -> None:
    prior = pf.Prior.from_counts({"a": [30, 50, 20], "b": [20, 40, 40]}, support=["x", "y", "z"])
    plan = pf.calibrate(prior, "0.1")
    values = ["x"] * 500 + ["y"] * 300 + ["z"] * 200
    with pytest.warns(pf.errors.SeededWarning):
        labels, sets = plan.release(values, sets=True, seed=1)
    import pyarrow as pa

    named = plan.with_columns("v")
    found = named.estimate(pa.table({"v": labels, "v (set)": sets}))
    published = {name: float((np.asarray(labels) == name).sum()) for name in "xyz"}
    figure = plots.frequencies(found, {"x": 500, "y": 300, "z": 200}, published)
    (axes,) = figure.axes
    assert [bar.get_height() for bar in axes.containers[0]] == [0.5, 0.3, 0.2]
    released, estimated = axes.lines[:2]
    assert released.get_ydata().tolist() == [published[name] / 1000 for name in "xyz"]
    assert estimated.get_ydata().tolist() == [f.estimate for f in found.frequencies.values()]
    (bars,) = axes.containers[1].lines[2]
    for segment, own in zip(bars.get_segments(), found.frequencies.values(), strict=True):
        assert segment[:, 1].tolist() == pytest.approx(own.interval)
    with pytest.raises(InputError, match="must not all be 0"):
        plots.frequencies(found, {"x": 0})


# How it is written ----------------------------------------------------------------------------


def test_figures_ask_nothing_of_the_network_and_take_the_ink_of_the_page(hours: pf.Prior) -> None:
    plan = pf.calibrate(hours, 1)
    for drawn in (lambda: plots.transport(hours), lambda: plots.belief(plan)):
        source = plots.svg(drawn(), "a figure", "p7")
        addresses = set(re.findall(r"https?://[^\s\"<]+", source))
        assert addresses <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
        assert style.INK not in source
        assert "currentColor" in source
        ids = re.findall(r'\bid="([^"]+)"', source)
        assert len(ids) == len(set(ids))
        assert all(name.startswith("p7-") for name in ids)
        used = set(re.findall(r'(?:url\(#|href="#)([^")]+)', source))
        assert used <= set(ids)
        assert source == plots.svg(drawn(), "a figure", "p7"), "the same bytes each time"


def test_series_differ_in_more_than_colour(hours: pf.Prior) -> None:
    for kinds in (style.COLOURS, style.LINES, style.MARKS, style.HATCHES):
        assert len(set(kinds)) == len(style.COLOURS)
    for colour in style.COLOURS:
        for ground in ("#ffffff", "#161616"):
            assert contrast(colour, ground) >= 3, (colour, ground)


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colours as WCAG 2 defines it."""

    def light(colour: str) -> float:
        channels = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return float(np.dot(linear, [0.2126, 0.7152, 0.0722])) + 0.05

    pair = sorted([light(one), light(other)])
    return pair[1] / pair[0]


def test_the_core_does_not_import_matplotlib() -> None:
    program = "import sys, pufferfish.cli, pufferfish as pf; pf.calibrate; " \
              "print('matplotlib' in sys.modules)"  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"


def test_without_matplotlib_the_extra_is_named() -> None:
    program = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "try:\n    import pufferfish.plots\nexcept Exception as e: print(type(e).__name__, e)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip().startswith("InputError plots need matplotlib: pip install")


def test_transport_of_numbers_names_the_numbers() -> None:
    prior = pf.Prior.from_counts({"a": [5, 3, 1], "b": [1, 3, 5]}, support=["0.5", "1", "2"])
    figure = plots.transport(prior)
    figure.draw_without_rendering()
    (axes,) = figure.axes
    shown = {label.get_text(): label.get_position()[0] for label in axes.get_xticklabels()}
    assert {2 * float(text) - place for text, place in shown.items()} == {1}


def test_ground_is_white_but_on_a_page(hours: pf.Prior, tmp_path: Path) -> None:
    """Near black ink can be read in a dark notebook, too."""
    figure = plots.distributions(hours)
    figure.savefig(tmp_path / "test.png")
    assert (imread(tmp_path / "test.png")[0, 0] == 1).all()
    style.write_svg(figure, tmp_path / "test.svg")
    assert "fill: #ffffff" in (tmp_path / "test.svg").read_text()
    assert "#ffffff" not in plots.svg(figure, "a figure")


def test_users_own_style_does_not_make_names_mathematics(levels: pf.Prior) -> None:
    with rc_context({"text.usetex": True, "axes.facecolor": "red"}):
        figure = plots.distributions(levels)
        assert "red" not in plots.svg(figure, "a figure")
    assert figure.axes[0].get_title(loc="left") in texts(figure)


def test_long_names_keep_their_ends() -> None:
    assert style.named("secret number 17") == "secret number 17"
    assert style.named("the secret number 17") == "the secre…ber 17"
