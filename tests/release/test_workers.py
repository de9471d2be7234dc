# SPDX-License-Identifier: Apache-2.0
"""Workers of a real Spark and a real Dask cluster are killed in the middle of a release.

The attempt that is the third to have written its part is held before its result is sent, and its
worker is killed: the case in which two versions of a row exist. ``make test-workers`` does it more
often: PUFFERFISH_RUNS times for each engine.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from release_cases import names

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="finds processes in /proc"),
]
RUNS, PARTS, ROWS = int(os.environ.get("PUFFERFISH_RUNS", "1")), 6, 600

#: Runs in each worker as it starts. A file in the log for each attempt that has written its part.
HELD = """
import os, time
from pufferfish.files import PendingFile

publish = PendingFile.publish

def held(pending):
    publish(pending)
    log = pending.target.parent.parent / "log"
    for number in range(1000):
        try:
            with open(log / str(number), "x") as file:
                file.write(str(os.getpid()))
            break
        except FileExistsError:
            pass
    if number == 2:
        time.sleep(600)  # until it is killed

PendingFile.publish = held
"""

#: Releases run after run, while another thread kills the process that is held.
DRIVER = """
import json, os, signal, sys, threading, time, warnings
from pathlib import Path

warnings.simplefilter("ignore")
import pandas as pd
from pufferfish import Prior
from pufferfish.errors import InputError
from pufferfish.release.pipeline import release_file
from release_cases import job

folder, runs, parts, rows, attempts = Path(sys.argv[1]), *map(int, sys.argv[2:])
table = pd.DataFrame({"k": range(rows), "s": ["a", "b", None] * (rows // 3),
                      "x": [0.5, 1, 1, None, 1e-3, 0] * (rows // 6)})

def parent(pid):
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])

def kill(log, chosen):
    held = log / "2"
    while not (held.exists() and held.read_text()):
        time.sleep(0.02)
    os.kill(chosen(int(held.read_text())), signal.SIGKILL)

def count(frame):
    prior, exact = (Prior.from_table(t, secret="s", public="x") for t in (frame, table))
    assert (prior.secrets, prior.support) == (exact.secrets, exact.support)
    assert prior.counts.tolist() == exact.counts.tolist()

def release(frame, run, chosen):
    log, spec = folder / str(run) / "log", job(["0", "0.001", "0.5", "1"], 1e9)
    log.mkdir(parents=True)
    killer = threading.Thread(target=kill, args=(log, chosen), daemon=True)
    killer.start()
    began, answer = time.monotonic(), "released"
    try:
        release_file(frame, log.parent / "out.parquet", spec, ["k"])
    except InputError as error:
        answer = str(error)
    killer.join(timeout=60)
    took = round(time.monotonic() - began, 1)
    print(json.dumps([answer, took, killer.is_alive()]), flush=True)
"""

SPARK = """
from pyspark.sql import SparkSession

settings = {
    "spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1",
    "spark.task.maxFailures": attempts, "spark.deploy.maxExecutorRetries": -1,
    "spark.executorEnv.PYTHONPATH": os.environ["PYTHONPATH"],
}
builder = SparkSession.builder.master("local-cluster[2,1,1024]")
for key, value in settings.items():
    builder = builder.config(key, str(value))
spark = builder.getOrCreate()
spark.sparkContext.setLogLevel("OFF")
frame = spark.createDataFrame(table).repartition(parts, "k")
count(frame)
for run in range(runs):  # an executor, above the daemon that forks Python workers; or one of these
    release(frame, run, [lambda pid: parent(parent(pid)), int][run % 2])
spark.stop()
"""

DASK = """
import dask, dask.dataframe as dd
from distributed import Client, LocalCluster

if __name__ == "__main__":
    dask.config.set({
        "distributed.scheduler.allowed-failures": attempts - 1,
        # A cluster gives up workers that are not there again so long after they were lost.
        "distributed.deploy.lost-worker-timeout": "1h",
    })
    frame = dd.from_pandas(table, npartitions=parts)
    for run in range(runs):
        with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
            with Client(cluster) as client:
                client.wait_for_workers(2, timeout=120)
                if run == 0:
                    count(frame)
                release(frame, run, int)
"""


def run(folder: Path, engine: str, runs: int, attempts: int) -> list[Any]:
    """Release so many times, with one kill each; the answers."""
    program = folder / "program.py"
    program.write_text(DRIVER + engine)
    (folder / "sitecustomize.py").write_text(HELD)
    path = os.pathsep.join([str(folder), str(Path(__file__).parent.parent)])
    environment = {**os.environ, "PYTHONPATH": path, "PYSPARK_PYTHON": sys.executable}
    environment |= {"SPARK_LOCAL_IP": "127.0.0.1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, program, folder / "runs", runs, PARTS, ROWS, attempts]
    with subprocess.Popen(
        list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=environment, cwd=folder, start_new_session=True,
    ) as process:  # fmt: skip
        try:
            answers, complaint = process.communicate(timeout=300 + 120 * runs)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 0, complaint
    return [json.loads(line) for line in answers.splitlines() if line.startswith("[")]


JAVA = pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs Java")
ENGINES = pytest.mark.parametrize(
    "engine", [pytest.param(SPARK, id="spark", marks=JAVA), pytest.param(DASK, id="dask")]
)


@ENGINES
def test_a_killed_worker_lets_one_version_of_each_row_out(tmp_path: Path, engine: str) -> None:
    answers = run(tmp_path, engine, RUNS, attempts=4)
    print(answers)
    assert [(answer, alive) for answer, _, alive in answers] == [("released", False)] * RUNS
    for number in range(RUNS):
        folder = tmp_path / "runs" / str(number)
        assert names(folder) == ["log", "out.parquet"]
        assert len(names(folder / "log")) > PARTS  # some rows had two versions
        released = pq.read_table(folder / "out.parquet").to_pydict()
        assert sorted(released["k"]) == [k for k in range(ROWS) if k % 6 != 3]
        assert len(set(released["x"])) == len(released["k"])  # no noise twice


@ENGINES
def test_where_no_task_is_tried_again_nothing_is_released(tmp_path: Path, engine: str) -> None:
    ((answer, _, alive),) = run(tmp_path, engine, 1, attempts=1)
    assert not alive
    assert "dataframe could not be computed (" in answer
    assert names(tmp_path / "runs" / "0") == ["log"]
