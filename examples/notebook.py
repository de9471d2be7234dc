# SPDX-License-Identifier: Apache-2.0
# %% [markdown]
# # From a table to a report
#
# A hospital wants to publish how long patients stayed, and to hide who was in the psychiatric
# ward. This file is a notebook in the percent form: open it in Jupyter (with jupytext), VS Code or
# Spyder, or run it: `python examples/notebook.py`. The table is made up.

# %%
import tempfile
from pathlib import Path

import numpy as np

import pufferfish as pf
from pufferfish import plots
from pufferfish.report.page import write_report

folder = Path(tempfile.mkdtemp())
table = folder / "stays.csv"
rng = np.random.default_rng(7)
lines = ["ward,days"]
for ward, rows, mean in (("psychiatric", 400, 9.0), ("other", 3000, 5.0)):
    lines += [f"{ward},{min(int(d), 30)}" for d in rng.gamma(2.0, mean / 2, rows)]
table.write_text("\n".join(lines) + "\n")

# %% [markdown]
# ## What the column tells about the secret
#
# The prior is counted from the table. A notebook shows it as a table, and
# `plots.distributions` draws it.

# %%
prior = pf.Prior.from_table(table, secret="ward", public="days", support=range(31))
prior

# %%
plots.distributions(prior)

# %% [markdown]
# ## Which mechanism, at which epsilon?
#
# `pf.compare` computes several, side by side. Errors are those of estimates from the release.

# %%
found = pf.compare(prior, ["0.5", "1", "2"], ["wasserstein", "relaxed", "exact"])
found

# %%
plots.noise(found.plans)

# %% [markdown]
# ## The plan
#
# The least noise at epsilon 1, proved, and what it means: how far an attacker's belief can move.

# %%
plan = pf.calibrate(prior, 1)
plan

# %%
plots.loss(prior, plan)

# %%
plots.belief(plan)

# %% [markdown]
# ## Release, and the numbers back

# %%
plan.release(table, output=folder / "released.csv")
estimate = plan.estimate(folder / "released.csv")
estimate

# %%
plots.frequencies(estimate)

# %% [markdown]
# ## A report for the files, and one for the public

# %%
write_report(folder / "report.html", plan, prior, source="stays.csv")
write_report(folder / "public.html", plan, public=True)
print(found, estimate.mean, sorted(path.name for path in folder.iterdir()), sep="\n")
