# SPDX-License-Identifier: Apache-2.0
"""Reference values, copied: small hard priors, the paper's five blocks and its printed table.

The scales were computed by independent slow programs (50 digits, exact rationals for the
couplings) and rounded to 13 digits, to nearest: a right scale may lie 1e-12 (relative) below one
of them. They are facts to compare with; nothing here is computed by this project.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

INF = float("inf")
# Half a unit in the 13th digit, relative, is at most this.
ROUNDED = 5e-13


class Row(NamedTuple):
    """One pair at one epsilon: scales, and the loss at the relaxed scale (None where that is 0).

    `side_first` is given the first secret's value (rows x), `side_second` given the second's
    (columns x').
    """

    epsilon: str
    side_first: float
    side_second: float
    exact: float
    loss_at_relaxed: float | None


class Small(NamedTuple):
    """A prior that breaks careless code: secret -> value -> probability, as texts."""

    name: str
    secrets: dict[str, dict[str, str]]
    diameter: float
    distance: float  # the largest in the comonotone coupling
    loss_unchanged: float  # of the unchanged column
    rows: tuple[Row, ...]

    @property
    def pair(self) -> tuple[str, str]:
        """The only pair."""
        return ("a", "b")


class Block(NamedTuple):
    """One block of the paper: probabilities as texts, or counts, on the support 0, 1, 2, ..."""

    name: str
    first: Sequence[str | int]
    second: Sequence[str | int]
    diameter: float
    distance: float  # the largest in the comonotone coupling
    loss_unchanged: float  # of the unchanged column
    rows: tuple[Row, ...]
    secret: str = "S"
    public: str = "X"
    pair: tuple[str, str] = ("first", "second")
    order: tuple[str, ...] = ()  # of the levels, where the codes stand for levels

    @property
    def secrets(self) -> dict[str, dict[str, str]]:
        """The prior as texts: secret -> value -> probability as a decimal or a fraction."""
        return {
            secret: {
                str(k): str(Fraction(p) / sum(Fraction(q) for q in masses))
                for k, p in enumerate(masses)
            }
            for secret, masses in zip(self.pair, (self.first, self.second), strict=True)
        }


Reference = Small | Block


def scales(reference: Reference, row: Row) -> dict[str, float]:
    """The scale of every mechanism, by the name it is chosen with."""
    epsilon = float(row.epsilon)
    return {
        "l1": reference.diameter / epsilon,
        "wasserstein": reference.distance / epsilon,
        "relaxed": max(row.side_first, row.side_second),
        "one-sided": min(row.side_first, row.side_second),
        "exact": row.exact,
    }


# Numbers that theory states beside those above; the digits given there. One table, one meaning.
THEORY = {
    # section 8: P_A = (.5, .3, .2), P_B = (.2, .3, .5), epsilon .5; the scale is rounded up
    "basic: exact": 1.0594259987634,
    "basic: loss at 1.059": 0.50016,
    # section 3, errata (c): p = (1/1001, 0, 1000/1001), q = (0, 0, 1), epsilon .1
    "algorithm 1: scale returned": 0.267,
    "algorithm 1: root of the side": 0.429,
    "algorithm 1: true loss": 1.02,  # of the unrounded scale; at 0.267 it is 1.0255
    # section 3, errata (e): first simulation at epsilon .2
    "sim1 at 0.2: printed": 0.54,
    "sim1 at 0.2: larger side": 0.533,
    "sim1 at 0.2: smaller side": 0.523,
    # section 3, the paper's first figure, epsilon 1
    "figure: wasserstein": 22.0,
    "figure: side given x'": 19.89,
    "figure: side given x": 12.70,
    # section 6: P_A = {0: 1}, P_B = {0: .99, 10: .01}
    "twice: exact at .1": 4.0919340115,
    "twice: loss of two releases": 0.840,
    "twice: loss of five releases": 7.61,
    "twice: scale for two within .2": 6.36623,
}
# Section 7: Student at epsilon .1, as it is and after one student's secret changed.
STUDENT_EXACT = 1.574
STUDENT_CHANGED = (1.656, 1.496, 1.654, 1.491)

# Noise reduction that the paper reports, per cent, at epsilon .1 and at epsilon 1:
# (block, compared with) -> (one end, other end), in the order in which theory prints them.
REDUCTION: dict[tuple[str, str], tuple[float, float]] = {
    ("sim1", "wasserstein"): (92.2, 73.5),
    ("sim2", "wasserstein"): (66.7, 66.7),
    ("student", "wasserstein"): (66, 47),
    ("bank", "wasserstein"): (75, 54),
    ("bank", "l1"): (87, 77),
    ("census", "wasserstein"): (50, 43),
    ("census", "l1"): (88, 86),
}


class Table(NamedTuple):
    """A small table at epsilon 1, as counts per secret and code, with what is right for it."""

    name: str
    counts: dict[str, tuple[int, ...]]
    support: tuple[int, ...]
    distance: float
    exact: float | None  # as many digits as are known
    digits: int = 5


# Tables that tools of this kind read wrongly, read rightly (and, where it says so, wrongly).
TABLES: tuple[Table, ...] = (
    Table("? missing", {"Private": (1, 1, 0), "State": (0, 1, 1)}, (40, 50, 60), 10.0, None),
    Table(
        "? is a secret",
        {"Private": (1, 1, 0), "?": (1, 0, 0), "State": (0, 1, 1)},
        (40, 50, 60),
        20.0,
        15.779,
    ),
    Table("blank among booleans", {"a": (1, 0), "b": (1, 1)}, (0, 1), 1.0, 0.67119),
    Table("levels in order", {"A": (6, 3, 1), "B": (1, 3, 6)}, (0, 1, 2), 2.0, 0.88801),
    Table("levels by alphabet", {"A": (1, 6, 3), "B": (6, 1, 3)}, (0, 1, 2), 1.0, 0.62284),
    Table("a level never taken", {"A": (1, 1, 0), "B": (1, 0, 1)}, (0, 1, 2), 1.0, 0.8490, 4),
    Table(
        "integers above 2^53",
        {"a": (1, 0), "b": (0, 1)},
        (9007199254740992, 9007199254740993),
        1.0,
        None,
    ),
    Table(
        "chosen pairs: all", {"A": (1, 0, 0), "B": (0, 1, 0), "C": (0, 0, 1)}, (0, 1, 2), 2.0, 2.0
    ),
)

# Small priors that break careless code; the pair is always (a, b).
SMALL: tuple[Small, ...] = (
    Small(
        "ties",
        {
            "a": {"0": ".1", "1": ".2", "1000": ".7"},
            "b": {"0": ".3", "1000": ".7"},
        },
        diameter=1000.0,
        distance=1.0,
        loss_unchanged=INF,
        rows=(
            Row("0.5", 2.0, 1.471460855648, 1.471460855648, 0.3594077992789),
            Row("1", 1.0, 0.7845336183384, 0.7845336183384, 0.7633825153901),
        ),
    ),
    Small(
        "thin-1e-6",
        {
            "a": {"0": ".6", "5": ".4"},
            "b": {"0": ".599999", "5": ".400001"},
        },
        diameter=5.0,
        distance=5.0,
        loss_unchanged=2.499996875005e-06,
        rows=(
            Row("1e-6", 10.63821148224, 14.86002920491, 5.097724532156, 3.448284185491e-07),
            Row("1", 0.3611148429039, 0.3720086237211, 0.0, 2.499987781698e-06),
        ),
    ),
    Small(
        "thin-1e-15",
        {
            "a": {"0": ".6", "5": ".4"},
            "b": {"0": ".599999999999999", "5": ".400000000000001"},
        },
        diameter=5.0,
        distance=5.0,
        loss_unchanged=2.5e-15,
        rows=(
            Row("1e-15", 10.63821572617, 14.86006705994, 5.097727239116, 3.448275862069e-16),
            Row("1", 0.144637106491, 0.1463536977942, 0.0, 2.5e-15),
        ),
    ),
    Small(
        "rare-tail",
        {
            "a": {"0": "1"},
            "b": {"0": ".99", "10": ".01"},
        },
        diameter=10.0,
        distance=10.0,
        loss_unchanged=INF,
        rows=(
            Row("0.1", 4.091934011526, 100.0, 4.091934011526, 0.001051156522113),
            Row("1", 1.940881548362, 10.0, 1.940881548362, 0.01703686323618),
        ),
    ),
    Small(
        "basic",
        {
            "a": {"0": ".5", "1": ".3", "2": ".2"},
            "b": {"0": ".2", "1": ".3", "2": ".5"},
        },
        diameter=2.0,
        distance=1.0,
        loss_unchanged=0.9162907318742,
        rows=(
            Row("0.5", 2.0, 2.0, 1.059425998763, 0.2890107485674),
            Row("1", 1.0, 1.0, 0.0, 0.5224684051186),
        ),
    ),
    Small(
        "unsorted",
        {
            "a": {"30": ".2", "10": ".5", "20": ".3"},
            "b": {"20": ".6", "30": ".1", "10": ".3"},
        },
        diameter=20.0,
        distance=10.0,
        loss_unchanged=0.6931471805599,
        rows=(Row("0.5", 12.02217033797, 12.02217033797, 5.081496366742, 0.2469993025466),),
    ),
    Small(
        "huge-offset",
        {
            "a": {"1000000000000000": ".5", "1000000000000001": ".5"},
            "b": {"1000000000000000": ".25", "1000000000000001": ".75"},
        },
        diameter=1.0,
        distance=1.0,
        loss_unchanged=0.6931471805599,
        rows=(Row("0.5", 1.202217033797, 0.9254940960223, 0.4702166664344, 0.2190701963798),),
    ),
    Small(
        "far-underflow",
        {
            "a": {"0": "1"},
            "b": {"1000000": "1"},
        },
        diameter=1000000.0,
        distance=1000000.0,
        loss_unchanged=INF,
        rows=(
            Row("1", 1000000.0, 1000000.0, 1000000.0, 1.0),
            Row("50", 20000.0, 20000.0, 20000.0, 50.0),
        ),
    ),
    Small(
        "far-thin",
        {
            "a": {"0": ".5", "1000000": ".5"},
            "b": {"0": ".5", "1000000": ".3", "1000001": ".2"},
        },
        diameter=1000001.0,
        distance=1.0,
        loss_unchanged=INF,
        rows=(Row("1", 0.5999174392354, 1.0, 0.5999174392354, 0.5231371636116),),
    ),
    Small(
        "holes",
        {
            "a": {"0": ".3", "1": ".3", "2": ".4"},
            "b": {"0": ".5", "1": ".5"},
        },
        diameter=2.0,
        distance=1.0,
        loss_unchanged=INF,
        rows=(Row("1", 1.0, 0.8720521537764, 0.8129182857234, 0.783800442765),),
    ),
    Small(
        "single-vs-many",
        {
            "a": {"7": "1"},
            "b": {"3": ".2", "4": ".2", "5": ".2", "6": ".2", "7": ".2"},
        },
        diameter=4.0,
        distance=4.0,
        loss_unchanged=INF,
        rows=(Row("1", 2.401724950183, 4.0, 2.401724950183, 0.5616740719245),),
    ),
    Small(
        "algorithm-1-unsafe",
        {
            "a": {"0": "1/1001", "2": "1000/1001"},
            "b": {"2": "1"},
        },
        diameter=2.0,
        distance=2.0,
        loss_unchanged=INF,
        rows=(Row("0.1", 20.0, 0.4286289578213, 0.4286289578213, 0.0001050603331933),),
    ),
    Small(
        "no-gain",
        {
            "a": {"0": "1"},
            "b": {"1": "1"},
        },
        diameter=1.0,
        distance=1.0,
        loss_unchanged=INF,
        rows=(Row("0.5", 2.0, 2.0, 2.0, 0.5),),
    ),
    Small(
        "negative",
        {
            "a": {"-7": ".5", "3": ".5"},
            "b": {"-7": ".2", "3": ".8"},
        },
        diameter=10.0,
        distance=10.0,
        loss_unchanged=0.9162907318742,
        rows=(Row("0.5", 13.64357610135, 9.95744639484, 6.366367948418, 0.2364081575275),),
    ),
    Small(
        "w-inf-54",
        {
            "a": {"1": ".25", "2": ".25", "3": ".25", "54": ".25"},
            "b": {"1": ".25", "2": ".25", "3": ".25", "4": ".25"},
        },
        diameter=53.0,
        distance=50.0,
        loss_unchanged=INF,
        rows=(
            Row("0.5", 100.0, 100.0, 39.91042199774, 0.152395772566),
            Row("2", 25.0, 25.0, 15.67505030788, 0.9911527249773),
        ),
    ),
    Small(
        "half-step",
        {
            "a": {"0.25": ".5", "1.75": ".5"},
            "b": {"0.5": ".5", "1": ".5"},
        },
        diameter=1.5,
        distance=0.75,
        loss_unchanged=INF,
        rows=(Row("1", 0.75, 0.75, 0.5857615835315, 0.7212229062921),),
    ),
    Small(
        "identical",
        {
            "a": {"0": ".5", "9": ".5"},
            "b": {"0": ".5", "9": ".5"},
        },
        diameter=9.0,
        distance=0.0,
        loss_unchanged=0.0,
        rows=(Row("0.1", 0.0, 0.0, 0.0, None),),
    ),
)

# The paper's five blocks on the support 0, 1, 2, ...; the pair is (first, second).
BLOCKS: tuple[Block, ...] = (
    Block(
        "sim1",
        first=("0.52", "0.48"),
        second=("0.5", "0.5"),
        diameter=1.0,
        distance=1.0,
        loss_unchanged=0.04082199452026,
        rows=(
            Row("0.1", 0.7589563045164, 0.775775726777, 0.0, 0.02298071404521),
            Row("0.2", 0.5234229636127, 0.532713142013, 0.0, 0.02982330358242),
            Row("0.3", 0.4324937965914, 0.439192639836, 0.0, 0.03309742179626),
            Row("0.4", 0.3811326838747, 0.3864832185875, 0.0, 0.03500962675829),
            Row("0.5", 0.346867933528, 0.3513756293915, 0.0, 0.0362582018446),
            Row("0.6", 0.3217556808954, 0.3256784113769, 0.0, 0.03713379944146),
            Row("0.7", 0.3022067176136, 0.305695072492, 0.0, 0.03777901757081),
            Row("0.8", 0.2863377013481, 0.2894879290114, 0.0, 0.0382720283543),
            Row("0.9", 0.273054646919, 0.2759323799306, 0.0, 0.03865927474169),
            Row("1.0", 0.2616733616172, 0.2643255931622, 0.0, 0.03897008914907),
        ),
    ),
    Block(
        "sim2",
        first=("0.50001", "0", "0.00001", "0.49998"),
        second=("0.49996", "0.00001", "0", "0.50003"),
        diameter=3.0,
        distance=3.0,
        loss_unchanged=INF,
        rows=(
            Row("0.1", 10.0, 10.0, 0.1167000093774, 1.38992795411e-05),
            Row("0.2", 5.0, 5.0, 0.1073804922703, 2.721498413083e-05),
            Row("0.3", 3.333333333333, 3.333333333333, 0.1023542218997, 3.946012658409e-05),
            Row("0.4", 2.5, 2.5, 0.09890737095237, 5.030882480121e-05),
            Row("0.5", 2.0, 2.0, 0.09627157594725, 5.961347084753e-05),
            Row("0.6", 1.666666666667, 1.666666666667, 0.09412545901479, 6.738108207834e-05),
            Row("0.7", 1.428571428571, 1.428571428571, 0.09230528930077, 7.372772960116e-05),
            Row("0.8", 1.25, 1.25, 0.09071681394908, 7.883003627165e-05),
            Row("0.9", 1.111111111111, 1.111111111111, 0.08930103303753, 8.288561964723e-05),
            Row("1.0", 1.0, 1.0, 0.08801868061714, 8.608652108514e-05),
        ),
    ),
    Block(
        "student",
        first=(376, 204),
        second=(34, 35),
        diameter=1.0,
        distance=1.0,
        loss_unchanged=0.3661496665884,
        rows=(
            Row("0.1", 2.750834112752, 3.390722631112, 1.574457110032, 0.04650580918332),
            Row("0.2", 1.529450142662, 1.839736188747, 0.7416126582501, 0.08577296606713),
            Row("0.3", 1.111743317529, 1.313518008254, 0.4055136804054, 0.1192383980214),
            Row("0.4", 0.8967174616406, 1.044828674584, 0.0, 0.1479807052018),
            Row("0.5", 0.7636823684499, 0.8798932168939, 0.0, 0.1728274323489),
            Row("0.6", 0.6721783245367, 0.7672876683636, 0.0, 0.1944253874456),
            Row("0.7", 0.6047447928671, 0.6848809622181, 0.0, 0.2132882200062),
            Row("0.8", 0.5525824595567, 0.6215524045217, 0.0, 0.2298294954482),
            Row("0.9", 0.5107606327117, 0.5710889319377, 0.0, 0.2443862310532),
            Row("1.0", 0.4762937495055, 0.5297396001521, 0.0, 0.2572359903812),
        ),
        secret="higher",
        public="romantic",
        pair=("yes", "no"),
        order=("no", "yes"),
    ),
    Block(
        "census",
        first=(890, 2554, 14473, 721, 1536, 636, 1264, 13, 1),
        second=(636, 613, 12243, 368, 798, 766, 211, 6, 7),
        diameter=8.0,
        distance=2.0,
        loss_unchanged=2.290601510391,
        rows=(
            Row("0.1", 10.0, 10.0, 2.514248322483, 0.02162629412973),
            Row("0.2", 5.0, 5.0, 1.729293287227, 0.03994377711625),
            Row("0.3", 3.333333333333, 3.333333333333, 1.390130118024, 0.06102474189185),
            Row("0.4", 2.5, 2.5, 1.181510504479, 0.1010312808601),
            Row("0.5", 2.053270371266, 2.0, 1.030754951011, 0.1450182551065),
            Row("0.6", 1.755486795599, 1.666666666667, 0.9108628798469, 0.194436613679),
            Row("0.7", 1.540863874034, 1.428571428571, 0.8091148692671, 0.2481642703422),
            Row("0.8", 1.378355615415, 1.25, 0.7186060700273, 0.3046780399497),
            Row("0.9", 1.250698229029, 1.111111111111, 0.6352911601953, 0.3624844578533),
            Row("1.0", 1.14752162852, 1.0, 0.55675611023, 0.4202487205137),
        ),
        secret="marital-status",
        public="workclass",
        pair=("Married-civ-spouse", "Never-married"),
        order=(
            "State-gov",
            "Self-emp-not-inc",
            "Private",
            "Federal-gov",
            "Local-gov",
            "?",
            "Self-emp-inc",
            "Without-pay",
            "Never-worked",
        ),
    ),
    Block(
        "bank",
        first=(921, 4660, 1663),
        second=(4286, 22554, 11127),
        diameter=2.0,
        distance=1.0,
        loss_unchanged=0.2442075656082,
        rows=(
            Row("0.1", 1.511123308919, 2.527330424874, 0.8619705933496, 0.0326242185737),
            Row("0.2", 0.9172060539218, 1.420458680902, 0.3662215565553, 0.05977535862986),
            Row("0.3", 0.7061681928278, 1.040432999359, 0.0, 0.08264971787735),
            Row("0.4", 0.5938003592427, 0.8440590869984, 0.0, 0.10210707345),
            Row("0.5", 0.5221885514234, 0.7221316365763, 0.0, 0.1187887947417),
            Row("0.6", 0.4716247862131, 0.637992285496, 0.0, 0.1331856245042),
            Row("0.7", 0.4334793121127, 0.5757984932078, 0.0, 0.1456804977109),
            Row("0.8", 0.4033425477277, 0.5275548168914, 0.0, 0.1565770914812),
            Row("0.9", 0.3787111894614, 0.4887746129861, 0.0, 0.1661195621286),
            Row("1.0", 0.3580508358619, 0.456737406682, 0.0, 0.1745065660399),
        ),
        secret="loan",
        public="marital",
        pair=("yes", "no"),
        order=("divorced", "married", "single"),
    ),
)

# The table of detailed results as printed: block -> mechanism -> one cell per epsilon.
PAPER_EPSILONS = ("0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9", "1.0")
PAPER_TABLE: dict[str, dict[str, tuple[float, ...]]] = {
    "sim1": {
        "l1": (10.0, 5.0, 3.33, 2.5, 2.0, 1.67, 1.43, 1.25, 1.11, 1.0),
        "wasserstein": (10.0, 5.0, 3.33, 2.5, 2.0, 1.67, 1.43, 1.25, 1.11, 1.0),
        "relaxed": (0.78, 0.54, 0.44, 0.39, 0.35, 0.33, 0.31, 0.29, 0.28, 0.26),
    },
    "sim2": {
        "l1": (30.0, 15.0, 10.0, 7.5, 6.0, 5.0, 4.29, 3.75, 3.33, 3.0),
        "wasserstein": (30.0, 15.0, 10.0, 7.5, 6.0, 5.0, 4.29, 3.75, 3.33, 3.0),
        "relaxed": (10.0, 5.0, 3.33, 2.5, 2.0, 1.67, 1.43, 1.25, 1.11, 1.0),
    },
    "student": {
        "l1": (10.0, 5.0, 3.33, 2.5, 2.0, 1.67, 1.43, 1.25, 1.11, 1.0),
        "wasserstein": (10.0, 5.0, 3.33, 2.5, 2.0, 1.67, 1.43, 1.25, 1.11, 1.0),
        "relaxed": (3.39, 1.84, 1.31, 1.04, 0.88, 0.77, 0.68, 0.62, 0.57, 0.53),
    },
    "census": {
        "l1": (80.0, 40.0, 26.67, 20.0, 16.0, 13.33, 11.43, 10.0, 8.89, 8.0),
        "wasserstein": (20.0, 10.0, 6.67, 5.0, 4.0, 3.33, 2.86, 2.5, 2.22, 2.0),
        "relaxed": (10.0, 5.0, 3.33, 2.5, 2.05, 1.76, 1.54, 1.38, 1.25, 1.15),
    },
    "bank": {
        "l1": (20.0, 10.0, 6.67, 5.0, 4.0, 3.33, 2.86, 2.5, 2.22, 2.0),
        "wasserstein": (10.0, 5.0, 3.33, 2.5, 2.0, 1.67, 1.43, 1.25, 1.11, 1.0),
        "relaxed": (2.53, 1.42, 1.04, 0.84, 0.72, 0.64, 0.58, 0.53, 0.49, 0.46),
    },
}
