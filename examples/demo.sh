#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The main job on a real table, step by step: calibrate, release, verify.
#
# The table is UCI Student Performance, 649 pupils (Cortez and Silva, 2008). What is published is
# `romantic` (in a relationship or not); what must stay hidden is `higher` (wants to go to university).
# The folder (demo-output, or the first argument) is made, and the three files in it are replaced.
set -eu

out=${1:-demo-output}
table=$out/student.csv
plan=$out/plan.json
released=$out/released.csv

say() { printf '\n# %s\n' "$*"; }
run() { printf '$ %s\n' "$*"; "$@"; }

mkdir -p "$out"
rm -f "$table" "$plan" "$released"

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

say "5. Verify the plan against the table, with code that shares nothing with the calibration."
run pufferfish verify "$plan" "$table"

say "Done. The files are in $out/. The plan is private: keep it to yourself."
