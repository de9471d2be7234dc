# SPDX-License-Identifier: Apache-2.0
"""Draw the pictures of README.md and the guide: `python examples/pictures.py DIR`.

`make pictures` writes them to docs/pictures; `make examples` fails if those are not what is drawn.
The tables are those of the paper, which the package carries.
"""

import sys
import tempfile
import warnings
from pathlib import Path

import pandas as pd

import pufferfish as pf
from pufferfish import paper, plots
from pufferfish.plots.style import write_svg


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        tables = {name: Path(place) / f"{name}.csv" for name in ("census", "student")}
        for name, path in tables.items():
            paper.write_table(name, path)
        census = pf.Prior.from_table(
            tables["census"], secret="marital-status", public="workclass", missing=["?"],
            missing_as_level=True,
        )  # fmt: skip
        table = pd.read_csv(tables["census"], keep_default_na=False)
        student = pf.Prior.from_table(
            tables["student"], secret="higher", public="romantic", order=["no", "yes"]
        )
    plan = pf.calibrate(census, "0.5")
    with warnings.catch_warnings():
        # A picture is to be the same each time; a release drawn from a seed protects nobody.
        warnings.simplefilter("ignore", pf.errors.SeededWarning)
        released = plan.release(table, seed=1)
    by_value = dict(zip(census.support.names, census.counts.sum(axis=0), strict=True))
    noise = pf.compare(student, ["0.1", "0.2", "0.3", "0.5", "0.7", "1"])
    adds = pf.calibrate(student, "0.1")
    pictures = {
        "priors": plots.distributions(census),
        "channel": plots.channel(plan),
        "belief": plots.belief(plan),
        "frequencies": plots.frequencies(plan.estimate(released), by_value),
        "noise": plots.noise(noise.plans),
        "loss": plots.loss(student, adds),
    }
    for name, figure in pictures.items():
        write_svg(figure, folder / f"{name}.svg", force=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
