"""`jaxevo watch` as a person uses it: a terminal, a page, wrong uses; without JAX."""

from __future__ import annotations

import http.client
import json
import os
import pathlib
import re
import signal
import subprocess
import sys

import pytest
from builders_runs import LAST, RESULT, individual_record, table_records, write_run
from conftest import REPOSITORY
from launching import launch

from jaxevo.run.workdir import Workdir


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Workdir:
    folder = tmp_path_factory.mktemp("runs") / "run"
    workdir = write_run(folder, [*table_records(), individual_record(LAST)])
    workdir.result.write_text(json.dumps(RESULT))
    workdir.report.write_text("the report")
    return workdir


def watch(*arguments: str, folder: pathlib.Path) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"COLUMNS": "100"}
    arguments = ("watch", *arguments)
    return launch("jaxevo", *arguments, environment=environment, folder=folder, without_jax=True)


def test_a_finished_run_in_a_terminal(finished: Workdir):
    done = watch("run", "--terminal", folder=finished.path.parent)
    assert (done.returncode, done.stderr) == (0, "")
    assert "complete" in done.stdout and "test accuracy 55.00%" in done.stdout


def test_it_serves_until_it_is_interrupted(finished: Workdir):
    line = [sys.executable, "-m", "jaxevo", "watch", str(finished.path), "--port=0"]
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY), "PYTHONUNBUFFERED": "1"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(line, env=environment, text=True, **pipes) as process:
        assert process.stdout is not None
        said = process.stdout.readline()
        found = re.match(
            r"http://127\.0\.0\.1:(\d+)/ shows .*/report\.html; Ctrl-C ends this", said
        )
        assert found
        connection = http.client.HTTPConnection("127.0.0.1", int(found[1]))
        connection.request("GET", "/")
        assert connection.getresponse().read() == b"the report"
        connection.close()
        process.send_signal(signal.SIGTERM)
        _, error = process.communicate()
    assert (process.returncode, error) == (130, "interrupted; the run itself goes on\n")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "give the folder of one run"),
        (("run", "other"), "give the folder of one run"),
        (("nowhere",), "nowhere is not the folder of a run"),
        (("run", "--port=70000"), "port"),
    ],
)
def test_wrong_use_is_refused_in_one_line(finished: Workdir, arguments: tuple, words: str):
    done = watch(*arguments, folder=finished.path.parent)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: ") and done.stderr.count("\n") == 1
    assert words in done.stderr
