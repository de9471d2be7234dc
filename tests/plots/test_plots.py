# SPDX-License-Identifier: Apache-2.0
"""What is drawn is what was computed; names are text; figures say nothing of the outside."""

import itertools
import math
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib import rc_context
from matplotlib.image import imread

import pufferfish as pf
from pufferfish import plots
from pufferfish.errors import InputError
from pufferfish.estimate.estimate import Estimate, Figure
from pufferfish.paper import block
from pufferfish.plots import style
from pufferfish.plots.figures import moved

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


def prior_of(secrets: int, values: int, *, levels: bool = False, long: str = "") -> pf.Prior:
    """Return a prior whose secrets differ in every value."""
    rows = {
        f"{long}secret {i}": [1 + (7 * i + 3 * k * (i + 1)) % 23 for k in range(values)]
        for i in range(secrets)
    }
    support = [f"{long}{k:03}" for k in range(values)] if levels else list(range(values))
    return pf.Prior.from_counts(rows, support=support)


def extents(figure: Any, artists: Any) -> Any:
    """Return where artists are on the page: left, right, bottom and top, in inches."""
    figure.draw_without_rendering()
    boxes = [artist.get_window_extent() for artist in artists]
    return np.array([[box.x0, box.x1, box.y0, box.y1] for box in boxes]) / figure.dpi


def covering(boxes: Any) -> int:
    """Count the pairs of boxes that cover each other."""
    return sum(
        min(one[1], two[1]) > max(one[0], two[0]) and min(one[3], two[3]) > max(one[2], two[2])
        for one, two in itertools.combinations(boxes, 2)
    )


SIZES = [(2, 2, False), (6, 12, True), (5, 100, True), (8, 200, False)]


@pytest.mark.parametrize("secrets, values, levels", SIZES)
def test_distributions_are_the_probabilities(secrets: int, values: int, levels: bool) -> None:
    prior = prior_of(secrets, values, levels=levels)
    panels = plots.distributions(prior).axes
    share = [[float(prior.probability(s, k)) for k in range(values)] for s in prior.secrets]
    for axes, secret, expected in zip(panels, prior.secrets, share, strict=True):
        assert [text.get_text() for text in axes.texts] == [secret]
        bars, mean = (patch.get_data() for patch in axes.patches)
        assert bars.values[::2].tolist() == expected
        assert not bars.values[1::2].any()
        middles = (bars.edges[::2] + bars.edges[1::2]) / 2
        assert middles.tolist() == pytest.approx(list(range(values)))
        assert mean.values.tolist() == pytest.approx(np.mean(share, axis=0).tolist())
        assert mean.edges.tolist() == [k - 0.5 for k in range(values + 1)]
    for place, text in zip(axes.get_xticks(), axes.get_xticklabels(), strict=True):
        assert text.get_text() == prior.support.name(int(place))


def test_distributions_are_those_of_the_protected_secrets() -> None:
    scenario = pf.Scenario(prior_of(3, 2), [("secret 0", "secret 2")])
    panels = plots.distributions(scenario).axes
    assert [axes.texts[0].get_text() for axes in panels] == ["secret 0", "secret 2"]
    first = panels[1].patches[0].get_data().values[0]
    assert first == float(scenario.priors[0].probability("secret 2", 0))


@pytest.mark.parametrize("long", ["", "a name that is long "])
@pytest.mark.parametrize("secrets, values, levels", SIZES)
def test_distributions_can_be_read(secrets: int, values: int, levels: bool, long: str) -> None:
    figure = plots.distributions(prior_of(secrets, values, levels=levels, long=long))
    panels = extents(figure, figure.axes)
    assert (panels[:, 3] - panels[:, 2]).min() > 0.5
    names = figure.axes[-1].get_xticklabels()
    assert min(values, 8) <= len(names) <= 24
    assert covering(extents(figure, names)) == 0
    assert len(plots.svg(figure, "a figure")) < 350_000


@pytest.mark.parametrize("values", [2, 12, 100])
def test_long_names_do_not_squeeze_the_other_plots(values: int) -> None:
    prior = prior_of(2, values, levels=True, long="a name that is long ")
    plan = pf.calibrate(prior, "0.5", "channel", best_for="kept")
    ordered = pf.Prior.from_counts(
        dict(zip(prior.secrets, prior.counts.tolist(), strict=True)),
        support=prior.support.names, order=prior.support.names,
    )  # fmt: skip
    found = Estimate(9, dict.fromkeys(prior.support.names, Figure(0.1, 0.01)), (), None, None)
    for figure in (plots.channel(plan), plots.transport(ordered), plots.frequencies(found)):
        ((left, right, bottom, top), *_) = extents(figure, figure.axes)
        assert top - bottom > 0.7
        assert right - left > 1.2
        for axis in (figure.axes[0].xaxis, figure.axes[0].yaxis):
            assert covering(extents(figure, axis.get_ticklabels())) == 0


def test_transport_is_the_coupling(hours: pf.Prior) -> None:
    figure = plots.transport(hours)
    (axes,) = figure.axes
    # The masses of both secrets in order, each taken from where the last one ended.
    left, right = ([hours.probability(s, k) for k in range(6)] for s in "ab")
    expected, x, y = {}, 0, 0
    while x < 6 and y < 6:
        mass = min(left[x], right[y])
        if mass:
            expected[x, y] = float(mass)
        left[x] -= mass
        right[y] -= mass
        x, y = x + (left[x] == 0), y + (right[y] == 0)
    (marks,) = axes.collections
    drawn = dict(zip(map(tuple, marks.get_offsets().tolist()), marks.get_sizes(), strict=True))
    assert drawn == pytest.approx({place: max(4, 900 * mass) for place, mass in expected.items()})
    farthest = max(abs(x - y) for x, y in expected)
    assert [line.get_xy1() for line in axes.lines] == [(0, 0), (0, farthest), (0, -farthest)]
    assert {line.get_slope() for line in axes.lines} == {1}
    assert f"farthest: {farthest}" in texts(figure)
    assert pf.calibrate(hours, 1, "wasserstein").scale == pytest.approx(farthest)


def test_a_transport_of_many_values_is_small_on_a_page() -> None:
    figure = plots.transport(prior_of(2, 800))
    assert len(figure.axes[0].collections[0].get_offsets()) > 800
    source = plots.svg(figure, "a figure")
    assert len(source) < 100_000
    assert "data:image/png;base64" in source


def test_transport_of_one_value() -> None:
    figure = plots.transport(pf.Prior.from_counts({"a": [1], "b": [3]}, support=[7]))
    assert texts(figure).count("7") == 2


def test_transport_of_a_pair() -> None:
    prior = pf.Prior.from_counts({"a": [9, 1, 0], "b": [1, 9, 0], "c": [0, 1, 9]}, support=range(3))
    assert plots.transport(prior).axes[0].get_title(loc="left") == "Moving a\nto c"
    near = pf.Scenario(prior, pairs=[("a", "b")])
    assert plots.transport(near).axes[0].get_title(loc="left") == "Moving a\nto b"
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
    points = curve.get_xydata()
    assert len(points) == 60
    for scale, loss in points:
        likelihood = np.exp(-abs(np.arange(-40, 46)[:, None] - np.arange(6)) / scale)
        given = np.log(likelihood @ hours.probabilities.T)
        assert loss == pytest.approx(abs(given[:, 0] - given[:, 1]).max(), rel=1e-9)
    assert (points[0, 0], points[-1, 0]) == pytest.approx((plan.scale / 8, 3 * plan.scale))
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
    rows = zip(beliefs, segments, axes.texts, axes.get_yticklabels(), strict=True)
    for k, (before, segment, text, name) in enumerate(rows):
        ends = [before * e / (1 - before + before * e) for e in (math.exp(-0.5), math.exp(0.5))]
        assert segment[0] == pytest.approx([ends[0], k], rel=1e-9)
        assert segment[1] == pytest.approx([ends[1], k], rel=1e-9)
        assert text.get_text() == "{:.3g} % to {:.3g} %".format(*(100 * end for end in ends))
        assert text.xy[1] == k
        assert name.get_text() == f"{100 * before:g} %"
    assert axes.lines[0].get_xydata().tolist() == [[b, k] for k, b in enumerate(beliefs)]
    assert moved(0.5, math.inf)[1] == pytest.approx(1)
    assert moved(1 - 1e-9, 700) == pytest.approx((0, 1))
    for wrong in ([], [0.0], [0.5, 1.0]):
        with pytest.raises(InputError, match="above 0 and below 1"):
            plots.belief(plan, wrong)


@pytest.mark.parametrize("many", [1, 4, 12])
def test_beliefs_can_be_read(hours: pf.Prior, many: int) -> None:
    plan = pf.calibrate(hours, "0.5")
    figure = plots.belief(plan, [(k + 1) / (many + 1) for k in range(many)])
    (axes,) = figure.axes
    boxes = extents(figure, [*axes.texts, *axes.get_yticklabels(), *axes.get_xticklabels()])
    assert covering(boxes) == 0
    assert boxes[:, 0].min() >= 0
    ((_, right, _, _),) = extents(figure, [axes])
    assert boxes[:many, 0].min() >= right  # texts are beside the bars, not upon them
    assert (np.diff(boxes[:many, 2]) > 0.2).all()
    assert boxes[:, 1].max() <= figure.get_figwidth()


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
    for axis, support in ((axes.xaxis, plan.channel.outputs), (axes.yaxis, plan.channel.inputs)):
        names = [style.named(support.name(int(k))) for k in axis.get_ticklocs()]
        assert [text.get_text() for text in axis.get_ticklabels()] == names
    rows, columns = plan.channel.matrix.shape
    assert axes.images[0].get_extent() == [-0.5, columns - 0.5, rows - 0.5, -0.5]
    assert axes.images[0].norm([0, 0.01, 1]).tolist() == [0, 0.1, 1]
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
    assert [bar.get_x() + bar.get_width() / 2 for bar in axes.containers[0]] == [0, 1, 2]
    assert [line.get_xdata().tolist() for line in (released, estimated)] == [[0, 1, 2]] * 2
    assert bars.get_segments()[2][:, 0].tolist() == [2, 2]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["x", "y", "z"]
    for wrong in ({"x": 0}, {"w": 3}):
        with pytest.raises(InputError, match="no frequency above 0 was given of x, y, z"):
            plots.frequencies(found, wrong)


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
    for kinds in (style.COLOURS, style.LINES, style.MARKS):
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


def test_titles_with_wide_names_stay_on_the_figure() -> None:
    prior = pf.Prior.from_counts({"W" * 20: [1, 2], "M" * 20: [2, 1]}, support=[0, 1])
    for figure in (plots.transport(prior), plots.belief(pf.calibrate(prior, 1))):
        (axes,) = figure.axes
        words = axes.get_title(loc="left")
        (title,) = figure.findobj(lambda own, words=words: getattr(own, "_text", "") == words)
        ((left, right, _, top),) = extents(figure, [title])
        assert left >= 0
        assert right <= figure.get_figwidth()
        assert top <= figure.get_figheight()


def test_svg_alters_tags_alone() -> None:
    names = ('id="a', "#2a2b2c", 'href="#b')
    prior = pf.Prior.from_counts({name: [1, 2, 3] for name in names}, support=range(3))
    text = plots.svg(plots.distributions(prior), "x", "own")
    assert all(f">{name}<" in text for name in names)
    assert text.count('id="own-') > 10
    assert "currentColor" in text
