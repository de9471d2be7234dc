# SPDX-License-Identifier: Apache-2.0
"""FLINT's working precision belongs to one thread at a time."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from fractions import Fraction

import pytest
from flint import ctx

import pufferfish as pf
import pufferfish.precise
import pufferfish.precision
from pufferfish.calibration import REGISTRY
from pufferfish.errors import PufferfishError
from pufferfish.paper import signs
from pufferfish.precise import PreciseLoss
from pufferfish.precision import precision

SCENARIO = pf.Scenario(
    pf.Prior.from_mapping({"a": {0: ".5", 1: ".3", 2: ".2"}, "b": {0: ".2", 1: ".3", 2: ".5"}})
)


def check_alone() -> None:
    """While one thread has a precision, another one that asks for its own waits."""
    inside, entered = threading.Event(), threading.Event()

    def other() -> None:
        inside.wait(10)
        with precision(20):
            entered.set()

    thread = threading.Thread(target=other)
    thread.start()
    with precision(300):
        inside.set()
        early = entered.wait(0.2)
        bits = ctx.prec
    thread.join()
    assert not early
    assert bits == 300
    assert entered.is_set()


def test_two_threads_wait_for_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    check_alone()
    monkeypatch.setattr(pufferfish.precision, "_lock", nullcontext())
    with pytest.raises(AssertionError):
        check_alone()


def test_a_thread_may_ask_again_and_everything_is_put_back() -> None:
    before = ctx.prec, ctx.cap
    with precision(100, terms=1000):
        with precision(200):
            assert (ctx.prec, ctx.cap) == (200, 1000)
        assert ctx.prec == 100
    assert (ctx.prec, ctx.cap) == before
    with pytest.raises(ZeroDivisionError), precision(300):
        _ = 1 // (ctx.prec - 300)
    assert (ctx.prec, ctx.cap) == before


def test_all_users_at_once() -> None:
    """Eight threads calibrate, certify and decide signs: each as if it were alone."""
    epsilons = [Fraction(1, 10**k) for k in (0, 3, 12, 40)]
    exponents = {1: Fraction(1, 3), 2: Fraction(-1, 7)}

    def work() -> list[object]:
        found: list[object] = []
        for epsilon in epsilons:
            noise = REGISTRY["exact"].calibrate(SCENARIO, epsilon)
            found.append((noise.scale, pf.certify(SCENARIO, noise, epsilon).holds))
        found.append(pf.privacy_loss(SCENARIO, 1.06))
        found.append(signs.column_sums([3, 5], [1, 2], [0, 1], exponents, Fraction(1), 8))
        return found

    before = ctx.prec, ctx.cap
    alone, answers = work(), []
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=lambda: answers.append(work())) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert answers == [alone] * 8
    assert (ctx.prec, ctx.cap) == before


def test_a_ball_that_is_too_wide_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another package that lowers FLINT's precision meanwhile cannot spoil a scale."""

    @contextmanager
    def disturbed(_bits: int) -> Iterator[None]:
        with precision(30):
            yield

    epsilon = Fraction(1, 2)
    loss = PreciseLoss(SCENARIO, 128)
    witness = loss.excess(1.0, epsilon)[1]
    monkeypatch.setattr(pufferfish.precise, "precision", disturbed)
    for ask in (
        lambda: loss.excess(1.0, epsilon),
        lambda: loss.excess_at(witness, 1.0, epsilon),
        lambda: loss.unchanged(epsilon),
        lambda: loss.loss(Fraction(1)),
        lambda: REGISTRY["exact"].calibrate(SCENARIO, epsilon),
    ):
        with pytest.raises(PufferfishError):
            ask()


def test_bits_have_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    slice_, half = Fraction(1, 10**60), Fraction(1, 2)
    rows = {"a": {0: half - slice_, 1: half + slice_}, "b": {0: half, 1: half}}
    scenario = pf.Scenario(pf.Prior.from_mapping(rows))
    assert 0 < pf.privacy_loss(scenario, 1) < 1e-59
    monkeypatch.setattr(pufferfish.precise, "_MOST_BITS", 128)
    with pytest.raises(PufferfishError, match="precision"):
        pf.privacy_loss(scenario, 1)
    # ln(5/2) to 45 digits: at 128 bits nobody can tell it from the loss without noise.
    close = Fraction("0.916290731874155065183527211768011071450101220")
    with pytest.raises(PufferfishError, match="decided"):
        PreciseLoss(SCENARIO, 128).unchanged(close)


@pytest.mark.skipif(not hasattr(pufferfish.precision.os, "fork"), reason="needs fork")
def test_a_fork_does_not_inherit_a_lock_that_nobody_gives_back() -> None:
    program = """
import os, threading, time
from pufferfish.precision import precision
held = threading.Event()
def hold():
    with precision(300):
        held.set()
        time.sleep(0.3)
thread = threading.Thread(target=hold)
thread.start()
held.wait()
child = os.fork()
if child == 0:
    with precision(100):
        os._exit(0)
thread.join()
end = time.monotonic() + 20
while time.monotonic() < end:
    done, status = os.waitpid(child, os.WNOHANG)
    if done:
        raise SystemExit(os.waitstatus_to_exitcode(status))
    time.sleep(0.01)
os.kill(child, 9)
raise SystemExit("the child waits for ever")
"""
    command = [sys.executable, "-W", "ignore", "-c", program]
    assert subprocess.run(command, timeout=60).returncode == 0
