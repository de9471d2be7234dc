# SPDX-License-Identifier: Apache-2.0
"""Certificates: the loss of a mechanism, recomputed by code that shares nothing with calibration.

Nothing in this package imports the calibrators, the coupling or the floating-point loss: a plan is
believed because two independent pieces of code agree (theory, section 8).
"""

from pufferfish.certificate.channel import certify_channel
from pufferfish.certificate.decide import certify_noise, loss_ball
from pufferfish.certificate.prove import certify, prove
from pufferfish.certificate.record import Certificate, Witness

__all__ = [
    "Certificate",
    "Witness",
    "certify",
    "certify_channel",
    "certify_noise",
    "loss_ball",
    "prove",
]
