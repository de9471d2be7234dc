# SPDX-License-Identifier: Apache-2.0
"""Release: arrays, dataframes and files through a mechanism, exactly as it was calibrated."""

from pufferfish.release.arrays import release_array
from pufferfish.release.checking import Progress, check_release
from pufferfish.release.files import FileState, file_state, release_file
from pufferfish.release.frames import (
    release_any,
    release_frame,
    release_frame_with_report,
    release_series,
)
from pufferfish.release.job import ReleaseSpec
from pufferfish.release.report import ReleaseReport

__all__ = [
    "FileState",
    "Progress",
    "ReleaseReport",
    "ReleaseSpec",
    "check_release",
    "file_state",
    "release_any",
    "release_array",
    "release_file",
    "release_frame",
    "release_frame_with_report",
    "release_series",
]
