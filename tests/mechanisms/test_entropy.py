# SPDX-License-Identifier: Apache-2.0
"""Entropy: every draw asks the operating system, and forked processes never share one."""

import os
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from noise_checks import all_different
from pufferfish.errors import InputError
from pufferfish.mechanisms import channel as channel_module
from pufferfish.mechanisms import laplace as laplace_module
from pufferfish.mechanisms.channel import Channel
from pufferfish.mechanisms.entropy import EntropyStuck, seeded_entropy
from pufferfish.mechanisms.laplace import DiscreteLaplace
from pufferfish.support import Levels

ONE = Fraction(1)
LEVELS = Levels(tuple(f"{k:03d}" for k in range(1000)))
ANY = Channel(Levels(("x",)), LEVELS, [[1] * 1000])
Draw = Callable[..., np.ndarray[Any, np.dtype[np.int64]]]


def noise(size: int, *source: Any) -> np.ndarray[Any, np.dtype[np.int64]]:
    return DiscreteLaplace(1e6, ONE).noise(size, *source)


def outputs(size: int, *source: Any) -> np.ndarray[Any, np.dtype[np.int64]]:
    return ANY.draw(np.zeros(size, dtype=np.int64), *source)


@pytest.mark.parametrize("draw, least", [(noise, 6000), (outputs, 2000)])
def test_every_draw_asks_the_operating_system(
    draw: Draw, least: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    real = os.urandom

    def counted(count: int) -> bytes:
        asked.append(count)
        return real(count)

    monkeypatch.setattr(os, "urandom", counted)
    one = draw(1000)
    first = sum(asked)
    two = draw(1000)
    # Two bytes for each digit at least: nothing is left over from the first call.
    assert first >= least
    assert sum(asked) - first >= least
    assert not np.array_equal(one, two)


def test_batches_are_drawn_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(laplace_module, "_BATCH", 1000)
    monkeypatch.setattr(channel_module, "_BATCH", 1000)
    for draw in (noise, outputs):
        drawn = draw(2500)
        assert drawn.size == 2500
        assert not np.array_equal(drawn[:1000], drawn[1000:2000])
    drawn = noise(2500)
    assert len(set(drawn[:1000]) & set(drawn[1000:2000])) < 100


@pytest.mark.parametrize("draw", [noise, outputs])
def test_seeded_entropy_repeats_itself(draw: Draw) -> None:
    assert np.array_equal(draw(100, seeded_entropy(3)), draw(100, seeded_entropy(3)))
    assert not np.array_equal(draw(100, seeded_entropy(3)), draw(100, seeded_entropy(4)))
    entropy = seeded_entropy(3)
    assert not np.array_equal(draw(100, entropy), draw(100, entropy))


def test_the_stream_of_a_seed_stays_what_it_is() -> None:
    # A change breaks every stored expectation.
    assert seeded_entropy(0)(4).hex() == "6b27270e"
    for seed in ("1", 1.0, None, True):
        with pytest.raises(InputError, match="seed must be an integer"):
            seeded_entropy(seed)  # type: ignore[arg-type]  # wrong on purpose


@pytest.mark.parametrize("scale", [1e-300, 0.5, 1e6])
@pytest.mark.parametrize("byte", [b"\0", b"\xff"])
def test_a_source_that_is_stuck_is_refused(scale: float, byte: bytes) -> None:
    with pytest.raises(EntropyStuck, match="repeats itself"):
        DiscreteLaplace(scale, ONE).noise(1, lambda count: byte * count)


@pytest.mark.parametrize("draw", [noise, outputs])
@pytest.mark.parametrize("more", [-1, 1])
def test_a_source_that_gives_too_little_or_too_much_is_refused(draw: Draw, more: int) -> None:
    with pytest.raises(InputError, match="20 bytes"):
        draw(10, lambda count: b"\1" * (count + more))


FORK = """
import os, sys
from fractions import Fraction
import numpy as np
from pufferfish.mechanisms.channel import Channel
from pufferfish.mechanisms.entropy import seeded_entropy, system_entropy
from pufferfish.mechanisms.laplace import DiscreteLaplace
from pufferfish.support import Levels

sources = {
    "system": lambda: system_entropy,
    "reused seed": lambda: seeded_entropy(7),
    "inherited state": lambda state=np.random.default_rng().bytes: state,
}
source = sources[sys.argv[2]]
levels = Levels(tuple(f"{k:03d}" for k in range(100)))
channel = Channel(levels, levels, [[1 + (x == y) for y in range(100)] for x in range(100)])
draw = {
    "noise": lambda: DiscreteLaplace(50.0, Fraction(1)).noise(20, source()),
    "channel": lambda: channel.draw(np.arange(100), source()),
}[sys.argv[1]]
print(draw().tobytes().hex(), flush=True)
for _ in range(3):
    child = os.fork()
    if child == 0:
        print(draw().tobytes().hex(), flush=True)
        os._exit(0)
    os.waitpid(child, 0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize("mechanism", ["noise", "channel"])
@pytest.mark.parametrize("source", ["system", "reused seed", "inherited state"])
def test_forked_processes_never_share_draws(mechanism: str, source: str) -> None:
    """Unless the source does (the mutants), which the same check tells."""
    done = subprocess.run(
        [sys.executable, "-c", FORK, mechanism, source], check=True, capture_output=True, text=True
    )
    samples = [bytes.fromhex(line) for line in done.stdout.split()]
    assert len(samples) == 4
    assert all_different(samples) == (source == "system")
