"""Ctrl-C and SIGTERM, in programs of their own."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.conftest import ROOT
from wscpml import stopping

WRITES = """
import sys
from pathlib import Path
from wscpml import stopping, temporaries
stopping.install()
with temporaries.file(Path(".")) as file, temporaries.directory(Path(".")) as directory:
    file.write_text("half")
    print("ready", flush=True)
    import time
    try:
        time.sleep(60)
    except BaseException:
        print("other code has its say")
"""
STARTS = """
import subprocess, sys
from wscpml import stopping
stopping.install()
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
print(child.pid, flush=True)
child.wait()
"""
IS_STARTED = """
import os, subprocess, sys
child = subprocess.Popen([sys.executable, "-c", sys.argv[1]], stdout=subprocess.PIPE, text=True)
print(child.stdout.readline().strip(), flush=True)
child.wait()
"""
LOOKS = """
import os, time
from wscpml import stopping
stopping.install()
stopping.end_with_parent()
print(os.getpid(), flush=True)
time.sleep(60)
"""

IS_LEFT = """
import os, subprocess, sys
command = [sys.executable, "-c", sys.argv[1], str(os.getpid())]
child = subprocess.Popen(command, stderr=subprocess.DEVNULL)
print(child.pid, flush=True)
"""
LOOKS_LATE = """
import os, sys, time
from wscpml import stopping
stopping.install()
while os.getppid() == int(sys.argv[-1]):
    time.sleep(0.01)
stopping.end_with_parent()
time.sleep(600)
"""

STARTS_APART = """
import subprocess, time
from wscpml import stopping
stopping.install()
print(subprocess.Popen(["sleep", "60"], start_new_session=True).pid, flush=True)
time.sleep(60)
"""

IMPORTS_HALF = """
import sys, time, types
from wscpml import stopping
stopping.install()
sys.modules["psutil"] = types.ModuleType("psutil")
print("ready", flush=True)
time.sleep(60)
"""

HAS_A_WORKER = """
import os, time
from joblib import Parallel, delayed
from experiments import pool

with pool._workers(None):
    tasks = [delayed(os.getpid)(), delayed(time.sleep)(60)]
    for pid in Parallel(n_jobs=2, return_as="generator")(tasks):
        print(pid, flush=True)
"""


def started(
    code: str,
    *arguments: str,
    cwd: Path | str = ".",
    start_new_session: bool = False,
    stderr: int = subprocess.PIPE,
) -> tuple[subprocess.Popen[str], str]:
    """A program, and the first line that it says."""
    process = subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        cwd=cwd,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
        start_new_session=start_new_session,
    )
    assert process.stdout is not None
    return process, process.stdout.readline().strip()


def ends(pid: int) -> bool:
    for _ in range(100):
        if not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
            return True
        time.sleep(0.1)
    return False


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_program_ends_in_one_line_and_leaves_nothing_half_written(tmp_path, number):
    process, said = started(WRITES, cwd=tmp_path)
    assert said == "ready"
    assert len(list(tmp_path.iterdir())) == 2
    process.send_signal(number)
    assert process.communicate() == ("", "stopped\n")
    assert process.returncode == 128 + number
    assert not list(tmp_path.iterdir())


def test_workers_in_a_session_of_their_own_end_with_a_terminal_that_is_closed():
    process, pid = started(STARTS_APART)
    process.send_signal(signal.SIGHUP)
    process.communicate()
    assert process.returncode == 128 + signal.SIGHUP
    assert ends(int(pid))


def test_a_signal_in_the_middle_of_an_import_is_told_like_any_other():
    process, _ = started(IMPORTS_HALF)
    process.terminate()
    assert process.communicate() == ("", "stopped\n")
    assert process.returncode == 143


def test_workers_end_with_it():
    process, pid = started(STARTS)
    process.terminate()
    process.communicate()
    assert process.returncode == 143
    assert ends(int(pid))


def test_a_stage_ends_with_whoever_started_it():
    process, pid = started(IS_STARTED, LOOKS)
    process.kill()
    assert ends(int(pid))
    process.communicate()


def test_a_stage_whose_dvc_was_killed_while_it_started_ends_at_once():
    process, pid = started(IS_LEFT, LOOKS_LATE, start_new_session=True)
    process.wait()
    assert ends(int(pid))
    process.communicate()


def test_workers_of_the_study_end_with_it_whatever_they_were_given():
    process, pid = started(HAS_A_WORKER)
    process.kill()
    assert ends(int(pid))
    process.communicate(timeout=60)  # none is left that has its output open


def test_a_worker_of_the_study_whose_parent_has_gone_meanwhile_ends_at_once():
    gone, _ = started("print()")
    gone.communicate()
    process, _ = started(f"from experiments import pool; pool._end_with({gone.pid})")
    process.communicate(timeout=60)
    assert process.returncode == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("package", ["stages", "package.stages"])
def test_a_stage_that_still_imports_is_stopped_like_any_other(tmp_path, number, package):
    if package != "stages":  # as the wheel has them
        shutil.copytree(ROOT / "stages", tmp_path / package.replace(".", "/"))
    code = (
        f"import sys, os, signal; sys.orig_argv[1:] = ['-m', '{package}.cluster']\n"
        "class Stop:\n"
        "    def find_spec(self, name, *_):\n"
        f"        if name == 'pydantic': os.kill(os.getpid(), {int(number)})\n"
        "sys.meta_path.insert(0, Stop())\n"
        f"import {package}\n"
    )
    process, _ = started(code, cwd=tmp_path)
    assert process.communicate() == ("", "stopped\n")
    assert process.returncode == 128 + number


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["-m", "wscpml.stages.track"], True),
        (["-m", "wscpml.stages"], True),
        (["-m", "wscpml.stages_of_another"], False),
        (["-m", "wscpml", "init"], False),
        (["-c", "pass"], False),
    ],
)
def test_a_program_is_told_by_the_whole_name_of_its_package(monkeypatch, given, expected):
    monkeypatch.setattr(sys, "orig_argv", ["python", *given])
    assert stopping.is_program("wscpml.stages") == expected


def test_a_program_whose_words_nobody_hears_ends_all_the_same(tmp_path):
    heard, says = os.pipe()
    process, said = started(WRITES, cwd=tmp_path, stderr=says)
    os.close(says)
    assert said == "ready"
    os.close(heard)  # as by `2>&1 | head`
    process.terminate()
    assert process.communicate() == ("", None)
    assert process.returncode == 143
    assert not list(tmp_path.iterdir())
