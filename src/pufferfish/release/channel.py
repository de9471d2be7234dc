# SPDX-License-Identifier: Apache-2.0
"""Release through a channel: what is published is one of its outputs, a level or a number."""

from pufferfish.errors import InputError, UnchangedWarning, listed, warn_user
from pufferfish.mechanisms import Channel
from pufferfish.release import arithmetic
from pufferfish.release.job import ReleaseSpec
from pufferfish.sampling import Entropy
from pufferfish.support import IntArray, Lattice, Support

#: Values that a message names.
_NAMED = 8


class ChannelDrawing:
    """Draws an output for the atom of every row.

    Parameters
    ----------
    spec : ReleaseSpec
        What is asked for.
    channel : Channel
        Its mechanism.

    Attributes
    ----------
    mechanism : Channel
        What is drawn from.
    outputs : Lattice or Levels
        The alphabet of what is published.

    Raises
    ------
    InputError
        If the inputs of the channel are not the support, a least scale is asked for, levels are
        to be rounded or moved into bounds, the outputs are beyond 64 bits, or every value would be
        published unchanged and nobody allowed it.
    """

    def __init__(self, spec: ReleaseSpec, channel: Channel) -> None:
        self.mechanism = channel
        self.outputs: Support = channel.outputs
        if not channel.inputs.same_as(spec.support):
            raise InputError(
                "a channel releases only the values that it was made for, but its inputs are "
                f"{_named(channel.inputs)} and the support is {_named(spec.support)}"
            )
        _check_options(spec, channel)
        self._units: IntArray | None = None
        if isinstance(channel.outputs, Lattice):
            self._units = arithmetic.atom_units(channel.outputs)
        if channel.unchanged:
            if not spec.allow_unchanged:
                raise InputError(
                    "the channel keeps every value: the column would be published unchanged; if "
                    "that is wanted say so with --allow-unchanged (allow_unchanged=True)"
                )
            warn_user(
                "the channel keeps every value: the column is published unchanged",
                UnchangedWarning,
            )

    def draw(self, atoms: IntArray, entropy: Entropy | None = None) -> IntArray:
        """Return outputs, shape (rows,): in steps of a lattice, or as positions of levels."""
        drawn = self.mechanism.draw(atoms, entropy)
        return drawn if self._units is None else self._units[drawn]


def _check_options(spec: ReleaseSpec, channel: Channel) -> None:
    """Refuse the options that mean nothing for a channel."""
    if spec.min_scale is not None:
        raise InputError(
            "--min-scale (min_scale) raises the scale of noise, but a channel has no scale; for "
            "more protection calibrate with a smaller epsilon"
        )
    if isinstance(channel.outputs, Lattice):
        return  # numbers may be rounded and moved into bounds, which is free
    for name, given in (("round", spec.round), ("bounds", spec.bounds is not None)):
        if given:
            raise InputError(
                f"--{name} ({name}) is for numbers, but this channel publishes levels, and every "
                "released value is one of them already"
            )


def _named(support: Support) -> str:
    """Return values or levels for a message, the first of them."""
    names = [support.name(k) for k in range(min(support.size, _NAMED))]
    more = f", ... ({support.size} in all)" if support.size > _NAMED else ""
    ordered = "" if isinstance(support, Lattice) or not support.ordered else ", in this order"
    return f"{listed(names)}{more}{ordered}"
