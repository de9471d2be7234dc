#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The main job on two real tables, step by step: calibrate, release, verify, estimate.
#
# The table is UCI Student Performance, 649 pupils (Cortez and Silva, 2008). What is published is
# `romantic` (in a relationship or not); what must stay hidden is `higher` (wants to go to university).
# The second one is UCI Census Income (Becker and Kohavi, 1996), with the counts of the two largest groups: the work
# class, which has no order, is published, and whether someone is married must stay hidden.
# The folder (demo-output, or the first argument) is made, and the six files in it are replaced.
set -eu

out=${1:-demo-output}
table=$out/student.csv
plan=$out/plan.json
released=$out/released.csv
census=$out/census.csv
census_plan=$out/census-plan.json
census_released=$out/census-released.csv

say() { printf '\n# %s\n' "$*"; }
run() { printf '$ %s\n' "$*"; "$@"; }

mkdir -p "$out"
rm -f "$table" "$plan" "$released" "$census" "$census_plan" "$census_released"

say "1. Write the Student table; the package rebuilds its 649 rows from their counts."
python -c 'import sys, pufferfish.paper as paper; paper.write_table("student", sys.argv[1])' "$table"
run head -n 4 "$table"
printf '... %s rows\n' "$(($(wc -l < "$table") - 1))"

say "2. How much noise hides the secret? All mechanisms side by side, at three values of epsilon."
run pufferfish calibrate "$table" --secret higher --public romantic --order no,yes \
    --epsilon 0.1,0.5,1 --mechanism all

say "3. Keep the plan of the mechanism with the least noise, at epsilon 0.1."
run pufferfish calibrate "$table" --secret higher --public romantic --order no,yes \
    --epsilon 0.1 --mechanism exact --save "$plan"

say "4. Release the column. Only this column is written, with noise on the codes no = 0, yes = 1."
run pufferfish release "$table" --plan "$plan" -o "$released"
run head -n 6 "$released"

say "5. Verify the plan against the table: its loss is computed again, in ball arithmetic."
run pufferfish verify "$plan" "$table"

say "6. Estimate what the column was, from what was released. Single rows say little; shares come back."
run pufferfish estimate "$released" --plan "$plan"

say "7. Categories without an order: no noise, but a channel that publishes sets of them, from which the shares come" \
    "back best, and labels, which are the true level in at least 6 of 10 cases. The plan holds for all priors that the" \
    "rows leave possible at 95 % confidence. For that, all levels that can occur are declared."
python -c 'import sys, pufferfish.paper as paper; paper.write_table("census", sys.argv[1])' "$census"
run pufferfish calibrate "$census" --secret marital-status --public workclass --missing '?' --missing-as-level \
    --levels Private,Self-emp-not-inc,Self-emp-inc,Federal-gov,Local-gov,State-gov,Without-pay,Never-worked \
    --epsilon 0.5 --min-keep 0.6 --confidence 0.95 --save "$census_plan"
run pufferfish release "$census" --plan "$census_plan" -o "$census_released"
run pufferfish estimate "$census_released" --plan "$census_plan"

say "Done. The files are in $out/. The plans are private: keep them to yourself."
