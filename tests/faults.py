"""What happens when processes are killed, disks are full, servers fail and files are damaged.

`python -m tests.faults [--quick] [--only PART ...] [--keep FILE]` runs the pipeline on a small data
set in a project of its own, does all that to it, and prints how often all was right afterwards:
the same bytes, one whole run, nothing left behind; or one clear line. It exits with 1 if not. With
a file to keep what was found in, the same command goes on where one was stopped, and tries again
what was wrong.
"""

import argparse
import compileall
import hashlib
import importlib
import json
import os
import random
import resource
import runpy
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import yaml

from benchmarks import copy_project
from tests.conftest import STAGES
from tests.serving import hostile
from wscpml import artifacts
from wscpml.serving import locks

RESULTS = ("data", "models", "metrics")
OTHERS = (".dvc", ".git", ".site", "mlruns", "__pycache__")  # where DVC, git and MLflow keep theirs
CHANGES = ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "sqlite3.connect")
WRITES = os.O_WRONLY | os.O_RDWR
SECONDS = 30  # that a server's fault may last
MOST_DRAWN = 50  # moments, until one is met at which a program still runs
MARK = "WSCPML_FAULTS"  # in the environment of whatever a program starts
CELLS = {"folds": 2, "benchmarks": ["emotions-4"], "methods": ["br", "krr-c"]}  # of the study

Attempt = Callable[[random.Random], str]  # says what is wrong afterwards, or nothing


@dataclass
class Found:
    """How often something was tried, and what was not as it should be."""

    tried: int = 0
    wrong: dict[str, str] = field(default_factory=dict)  # by the number of the attempt


@dataclass(frozen=True)
class Ended:
    """A stage that ran in a fork."""

    status: int
    said: str
    seconds: float
    changes: int  # of files and tables that it made, or tried


class Place:
    """A copy of this project in which the pipeline has run once on emotions."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rooms = path / ".site"  # for what does not belong into the project
        self.env = os.environ | {
            "DVC_SITE_CACHE_DIR": str(self.rooms),
            "GIT_CONFIG_GLOBAL": os.devnull,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(path),  # and not what is installed
            "TMPDIR": str(self.rooms / "tmp"),
            "PYTHONDONTWRITEBYTECODE": "1",
            "OPENBLAS_NUM_THREADS": "1",
            "OMP_NUM_THREADS": "1",
        }
        self.env.pop("MLFLOW_TRACKING_URI", None)
        copy_project(path)
        compileall.compile_dir(path, quiet=1)  # once, and not by every process
        (self.rooms / "tmp").mkdir(parents=True)
        params = yaml.safe_load((path / "params.yaml").read_text())
        params["dataset"]["name"], params["noise"]["candidates"] = "emotions", 4
        params["classifier"]["max_epochs"] = 5
        (path / "params.yaml").write_text(yaml.safe_dump(params))
        study = yaml.safe_load((path / "experiments/params.yaml").read_text()) | {"quick": CELLS}
        (path / "experiments/params.yaml").write_text(yaml.safe_dump(study))
        (path / ".gitignore").open("a").write(".site\n")
        who = ["-c", "user.name=Test", "-c", "user.email=test@example.com"]
        for command in (["init", "-q"], ["add", "-A"], [*who, "commit", "-qm", "start"]):
            subprocess.run(["git", *command], cwd=path, env=self.env, check=True)
        self.run("dvc", "repro")
        self.before, self.files = self.digests(), self.listed()
        self.undisturbed: dict[str, Ended] = {}

    def start(self, *command: str, **env: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            command,
            cwd=self.path,
            env=self.env | env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self, *command: str, check: bool = True, **env: str) -> tuple[int, str]:
        process = self.start(*command, **env)
        out, err = process.communicate()
        if check and process.returncode:
            raise RuntimeError(f"{' '.join(command)}: {out[-500:]}{err[-2000:]}")
        return process.returncode, err

    def digests(self) -> dict[str, str]:
        """sha256 of all results, but for the id of the run."""
        files = [file for name in RESULTS for file in (self.path / name).rglob("*")]
        return {
            file.relative_to(self.path).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest()
            for file in files
            if file.is_file() and file.name != "run.json"
        }

    def listed(self) -> set[str]:
        """All files that are not those of DVC, git and MLflow."""
        found = (file.relative_to(self.path) for file in self.path.rglob("*") if file.is_file())
        return {
            file.as_posix()
            for file in found
            if not set(OTHERS) & set(file.parts) and not file.name.startswith("mlflow.db")
        }

    def runs(self) -> list[tuple[str, str]]:
        """Id and status of each run in the local store that is not deleted."""
        with closing(sqlite3.connect(self.path / "mlflow.db")) as store:
            chosen = "SELECT run_uuid, status FROM runs WHERE lifecycle_stage = 'active'"
            return store.execute(chosen).fetchall()

    def what_is_wrong(self, runs: bool = True) -> str:
        """In words, or nothing."""
        found = []
        now = self.digests()
        if now != self.before:
            found.append(f"other bytes: {sorted(set(now.items()) ^ set(self.before.items()))[:3]}")
        if left := self.listed() - self.files:
            found.append(f"left behind: {sorted(left)[:3]}")
        if runs:
            known = json.loads((self.path / "metrics/run.json").read_text())["run_id"]
            if self.runs() != [(known, "FINISHED")]:
                found.append(f"runs: {self.runs()}, and not {known}")
        return "; ".join(found)

    def forget_runs(self) -> None:
        for path in self.path.glob("mlflow.db*"):
            path.unlink()
        shutil.rmtree(self.path / "mlruns", ignore_errors=True)

    def log_anew(self) -> None:
        """One run in a store of its own, as at the beginning."""
        self.forget_runs()
        ended = in_fork(self, "track")
        assert not ended.status, ended.said

    def alone(self, stage: str, key: str = "") -> Ended:
        """How a stage runs if nothing happens to it; `key` is how it was prepared for."""
        name = f"{stage} {key}"
        if name not in self.undisturbed:
            self.undisturbed[name] = in_fork(self, stage)
            assert not self.undisturbed[name].status, self.undisturbed[name].said
        return self.undisturbed[name]


def in_fork(
    place: Place,
    stage: str,
    die_after: float | None = None,
    die_at: int = 0,
    room: int | None = None,
    **env: str,
) -> Ended:
    """Run a stage in a fork of this process, which has imported what it needs.

    So what happens to it meets its work, and not what Python imports. It is killed after so many
    seconds, or at its change so and so; or it has room for files of so many bytes.
    """
    ours, its = os.pipe()
    start = time.monotonic()
    process = os.fork()
    if not process:
        _be_stage(place, stage, its, die_at, room, env)
    os.close(its)
    with os.fdopen(ours, "rb") as said, killed_after(die_after, process):
        text, _, count = said.read().decode(errors="replace").partition("\0")
    _, status = os.waitpid(process, 0)
    seconds = time.monotonic() - start
    return Ended(os.waitstatus_to_exitcode(status), text, seconds, int(count or 0))


@contextmanager
def killed_after(seconds: float | None, process: int) -> Iterator[None]:
    """Kill a process and its group after so many seconds of a block, should it last so long."""

    def kill() -> None:
        with suppress(ProcessLookupError):  # it has no group of its own yet
            os.killpg(process, signal.SIGKILL)
        os.kill(process, signal.SIGKILL)

    if seconds is None:
        yield
        return
    timer = threading.Timer(seconds, kill)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()


def _be_stage(
    place: Place, stage: str, said: int, die_at: int, room: int | None, env: dict[str, str]
) -> NoReturn:
    changes, code = 0, 1

    def changed(*_: object, **__: object) -> None:
        nonlocal changes
        changes += 1
        if changes == die_at:
            os.killpg(0, signal.SIGKILL)

    def watch(event: str, given: tuple[object, ...]) -> None:
        if event in CHANGES or (event == "open" and int(given[2] or 0) & WRITES):
            changed()

    try:
        os.setsid()
        os.chdir(place.path)
        os.environ.clear()
        os.environ.update(place.env | env)
        tempfile.tempdir = place.env["TMPDIR"]
        for stream in (1, 2):
            os.dup2(said, stream)
        if room is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))
        from sqlalchemy import Engine, event

        event.listen(Engine, "before_cursor_execute", changed)
        sys.addaudithook(watch)
        sys.argv = [stage]
        runpy.run_module(f"stages.{stage}", run_name="__main__")
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
        print(end.code, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os.write(1, f"\0{changes}".encode())
        os._exit(code)


def killed(place: Place, rng: random.Random, stage: str, key: str, by_time: bool) -> str:
    """Kill a stage at a random moment or change, and run it again."""
    alone = place.alone(stage, key)
    for _ in range(MOST_DRAWN):
        if by_time:
            moment = rng.uniform(0, alone.seconds)
            when, ended = f"at {moment:.2f} s", in_fork(place, stage, die_after=moment)
        else:
            number = rng.randint(1, alone.changes)
            when, ended = f"at change {number}", in_fork(place, stage, die_at=number)
        if ended.status == -signal.SIGKILL:
            break
    else:
        return f"{stage} was never met while it ran"
    again = in_fork(place, stage)
    wrong = place.what_is_wrong()
    if again.status or wrong:
        return f"{stage} {key} {when}: {again.said[-300:]}{wrong}"
    return ""


def seconds(work: Callable[[], object]) -> float:
    start = time.monotonic()
    work()
    return time.monotonic() - start


def writers(_: Place | None) -> list[Attempt]:
    """Two processes write one file, or one directory, at once."""
    return [partial(_two_writers, k % 2 == 1) for k in range(60)]


def _two_writers(one_file: bool, _: random.Random) -> str:
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        target = place / "x.html" if one_file else place / "x"
        children = []
        for text in ("a" * 400_000, "b" * 300_000):
            child = os.fork()
            if not child:
                if one_file:
                    artifacts.write(target, text)
                else:
                    artifacts.write_directory(target, {"x.html": text, "y.html": text})
                os._exit(0)
            children.append(child)
        ends = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
        texts = {file.read_text() for file in ([target] if one_file else target.iterdir())}
        whole = len(texts) == 1 and len(set(next(iter(texts)))) == 1 and ends == [0, 0]
        return "" if whole and len(list(place.iterdir())) == 1 else f"{ends} {len(texts)}"


def stages(place: Place) -> list[Attempt]:
    """SIGKILL in every stage but `track`, by time and by what it changes; then it runs again."""
    names = [name for name in STAGES if name != "track"]
    return [partial(killed, place, stage=name, key="", by_time=k % 2 == 0)
            for k in range(6) for name in names]  # fmt: skip


def track(place: Place) -> list[Attempt]:
    """SIGKILL in `track`, of every second one while there is no store yet."""

    def attempt(k: int, rng: random.Random) -> str:
        if k % 2:
            with closing(sqlite3.connect(place.path / "mlflow.db")) as store:
                store.execute("UPDATE runs SET lifecycle_stage = 'deleted'")
                store.commit()
        else:
            place.forget_runs()
        key = "with a store" if k % 2 else "without a store"
        if f"track {key}" not in place.undisturbed:
            place.alone("track", key)
            return attempt(k, rng)
        return killed(place, rng, "track", key, by_time=k % 4 > 1)

    return [partial(attempt, k) for k in range(30)]


def study(place: Place) -> list[Attempt]:
    """SIGKILL of the study, of all of its processes or of the first alone; then it goes on."""
    command = (sys.executable, "-m", "experiments.study", "--quick")
    results = place.path / "experiments/quick/results"

    def forget() -> None:
        place.forget_runs()
        shutil.rmtree(results, ignore_errors=True)
        (place.path / "experiments/quick/dvc.lock").unlink(missing_ok=True)

    def found() -> dict[str, object]:
        return {
            file.name: [run["metrics"] for run in json.loads(file.read_text())["runs"]]
            for file in results.rglob("*.json")
        }

    alone: dict[str, object] = {}
    longest: list[float] = []

    def attempt(k: int, rng: random.Random) -> str:
        forget()
        if not alone:
            longest.append(seconds(lambda: place.run(*command)))
            alone.update(found())
            place.files = place.listed()
            forget()
        moment = rng.uniform(0.5, longest[0])
        cut_off(place, command, moment, alone=k % 2 == 0)
        code, err = place.run(*command, check=False)
        runs, left = place.runs(), place.listed() - place.files
        each = len(CELLS["methods"]) * (1 + int(CELLS["folds"]))
        whole = len(runs) == each and {status for _, status in runs} == {"FINISHED"}
        if code or not whole or left or found() != alone:
            return f"at {moment:.1f} s: {code} {err[-300:]} {len(runs)} runs, left {sorted(left)}"
        return ""

    return [partial(attempt, k) for k in range(10)]


def cut_off(place: Place, command: Sequence[str], moment: float, alone: bool) -> None:
    """Kill a command after so many seconds, alone or with all that it started."""
    import psutil

    process = place.start(*command)
    time.sleep(moment)
    with suppress(psutil.NoSuchProcess):
        for child in [] if alone else psutil.Process(process.pid).children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                child.kill()
    process.kill()
    process.communicate()


def repro(place: Place) -> list[Attempt]:
    """SIGKILL of `dvc repro`, of all of its processes or of DVC alone; then it goes on."""
    longest: list[float] = []

    def attempt(k: int, rng: random.Random) -> str:
        if not longest:
            longest.append(seconds(lambda: place.run("dvc", "repro", "--force")))
        moment = rng.uniform(1, longest[0])
        cut_off(place, ("dvc", "repro", "--force"), moment, alone=k % 2 == 0)
        place.run(sys.executable, "-m", "wscpml.serving.locks")  # as `make run` does
        code, err = place.run("dvc", "repro", check=False)
        wrong = place.what_is_wrong()
        return f"at {moment:.1f} s: {err[-300:]}{wrong}" if code or wrong else ""

    return [partial(attempt, k) for k in range(10)]


def server(place: Place) -> list[Attempt]:
    """An MLflow server that dies while `track` logs to it; then one that lives."""
    home = place.rooms / "server"
    home.mkdir(parents=True, exist_ok=True)
    address, database = "http://127.0.0.1:5731", home / "server.db"
    command = [sys.executable, "-m", "mlflow", "server", "--workers", "1", "--port", "5731"]
    command += ["--backend-store-uri", f"sqlite:///{database}", "--host", "127.0.0.1"]
    command += ["--artifacts-destination", str(home / "files")]
    running: list[subprocess.Popen[bytes]] = []

    def start() -> None:
        import requests

        running.append(
            subprocess.Popen(
                command,
                cwd=home,
                env=place.env | {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"},
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        )
        for _ in range(600):
            with suppress(requests.RequestException):
                requests.get(f"{address}/health", timeout=1)
                return
            time.sleep(0.2)
        raise RuntimeError("the server does not start")

    def kill() -> None:
        process = running.pop()
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def sql(statement: str) -> list[tuple[str]]:
        with closing(sqlite3.connect(database)) as opened:
            found = opened.execute(statement).fetchall()
            opened.commit()
            return found

    def attempt(k: int, rng: random.Random) -> str:
        if not running:
            start()
        if "track server" not in place.undisturbed:
            ended = in_fork(place, "track", MLFLOW_TRACKING_URI=address)
            assert not ended.status, ended.said
            place.undisturbed["track server"] = ended
        sql("UPDATE runs SET lifecycle_stage = 'deleted'")
        moment = rng.uniform(0, place.undisturbed["track server"].seconds)
        with killed_after(moment, running[0].pid):
            ended = in_fork(place, "track", MLFLOW_TRACKING_URI=address)
        kill()
        start()
        again = in_fork(place, "track", MLFLOW_TRACKING_URI=address)
        found = sql("SELECT status FROM runs WHERE lifecycle_stage = 'active'")
        if k == COUNT - 1:
            kill()
            place.log_anew()
        one_line = not ended.status or len(_lines(ended.said)) == 1
        if one_line and ended.seconds < SECONDS and not again.status and found == [("FINISHED",)]:
            return ""
        return f"at {moment:.1f} s: {ended.seconds:.0f} s, {found}, {ended.said} {again.said}"

    COUNT = 20
    return [partial(attempt, k) for k in range(COUNT)]


def _lines(said: str) -> list[str]:
    """What a stage says went wrong, without its remarks about the labels."""
    return [line for line in said.strip().splitlines() if not line.startswith("the labels are not")]


def disk(place: Place) -> list[Attempt]:
    """Files that may not grow beyond a size, from none to all that is needed."""
    largest = max(file.stat().st_size for file in place.path.glob("data/**/*") if file.is_file())
    sizes = [int(1.3 * largest * (k / 10) ** 2) for k in range(10)]
    names = ("prepare", "cluster", "judge_labels", "train_classifier", "evaluate", "track")

    def attempt(size: int, name: str, _: random.Random) -> str:
        if name == "track":
            place.forget_runs()
        ended = in_fork(place, name, room=size)
        told = ended.status == 0 or (ended.status == 1 and len(_lines(ended.said)) == 1)
        wrong = place.what_is_wrong(runs=False)
        again = in_fork(place, name)
        wrong += again.said if again.status else place.what_is_wrong()
        return f"{name} with {size} bytes: {ended.said[-300:]}{wrong}" if wrong or not told else ""

    return [partial(attempt, size, name) for size in sizes for name in names]


def damage(place: Place) -> list[Attempt]:
    """Every file that a stage reads: cut off, with a flipped byte, and emptied."""

    def attempt(name: str, top: Path, file: Path, harm: str, _: random.Random) -> str:
        with inside(place.path):
            whole = file.read_bytes()
            middle = len(whole) // 2
            flipped = whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :]
            try:
                file.write_bytes({"cut": whole[:middle], "flipped": flipped, "emptied": b""}[harm])
                ended = in_fork(place, name)
                refused = ended.status == 1 and len(_lines(ended.said)) == 1
                found = any(each.path in (file, top) for each in locks.damaged())
            finally:
                file.write_bytes(whole)
        wrong = place.what_is_wrong()
        if refused and found and not wrong:
            return ""
        return f"{file} {harm}: found {found}, {ended.said[-300:]} {wrong}"

    with inside(place.path):
        entries = {name: locks.described(name)[1] for name in STAGES}
        readers = {out: name for name in STAGES for out in locks.inputs(entries[name], "wsc-pml")}
        return [
            partial(attempt, name, Path(out), file, harm)
            for out, name in readers.items()
            for file in sorted(f for f in (Path(out), *Path(out).rglob("*")) if f.is_file())
            for harm in ("cut", "flipped", "emptied")
        ]


@contextmanager
def inside(path: Path) -> Iterator[None]:
    here = Path.cwd()
    os.chdir(path)
    try:
        yield
    finally:
        os.chdir(here)


def at_once(place: Place) -> list[Attempt]:
    """Two `dvc repro` at the same time: both go on, or one says why it does not."""

    def attempt(_: random.Random) -> str:
        processes = [place.start("dvc", "repro", "--force") for _ in range(2)]
        ends = [(process.communicate(), process.returncode) for process in processes]
        told = all(code == 0 or "Traceback" not in err for (_, err), code in ends)
        code, err = place.run("dvc", "repro", check=False)
        wrong = place.what_is_wrong()
        if told and not code and not wrong:
            return ""
        return f"{[(err[-200:], code) for (_, err), code in ends]} {err[-200:]}{wrong}"

    return [attempt] * 3


def queue(place: Place) -> list[Attempt]:
    """DVC's queue with two workers, which make the same anew at once and log it as two runs."""

    def git(*command: str) -> str:
        given = {"cwd": place.path, "env": place.env, "capture_output": True, "text": True}
        return subprocess.run(["git", *command], check=True, **given).stdout

    def attempt(rng: random.Random) -> str:
        names = [f"queued-{rng.randrange(10**9)}" for _ in range(2)]
        for name in names:
            chosen = ["--queue", "--force", "--name", name, "-S", f"tracking.experiment={name}"]
            place.run("dvc", "exp", "run", *chosen)
        place.run("dvc", "queue", "start", "--jobs", "2")
        for _ in range(600):
            time.sleep(1)
            listed = subprocess.run(
                ["dvc", "queue", "status"], cwd=place.path, env=place.env, capture_output=True
            ).stdout.decode()
            if not any(state in listed for state in ("Queued", "Running")):
                break
        wrong = "" if listed.count("Success") == 2 else listed
        refs = git("for-each-ref", "--format=%(refname)", "refs/exps").split()
        for lock in locks.LOCKS:
            here = made(yaml.safe_load((place.path / lock).read_text()))
            for name in names:
                (ref,) = (each for each in refs if each.endswith(f"/{name}"))
                if made(yaml.safe_load(git("show", f"{ref}:{lock}"))) != here:
                    wrong += f" {name} has other bytes in {lock}"
        statuses = [status for _, status in place.runs()]
        if statuses != ["FINISHED"] * 3:
            wrong += f" runs: {statuses}"
        place.run("dvc", "exp", "remove", "--all-commits", check=False)
        place.run("dvc", "queue", "remove", "--all", check=False)
        place.log_anew()
        return wrong + place.what_is_wrong()

    return [attempt] * 3


def made(lock: dict[str, Any]) -> dict[str, str]:
    """The hashes of all that stages but `track` have made, by DVC's lock."""
    return {
        out["path"]: out["md5"]
        for name, stage in lock["stages"].items()
        if name not in ("track", "identify")
        for out in stage.get("outs", [])
    }


def servers(place: Place) -> list[Attempt]:
    """Servers that hang, drip, redirect or are none of MLflow's."""

    def attempt(kind: str, _: random.Random) -> str:
        with hostile.server(kind) as address:
            start = time.monotonic()
            code, err = place.run(
                sys.executable, "-m", "stages.track", check=False, MLFLOW_TRACKING_URI=address
            )
            took = time.monotonic() - start
        good = code == 1 and len(_lines(err)) == 1 and took < SECONDS
        return "" if good else f"{kind}: {took:.0f} s {err[-300:]!r}"

    return [partial(attempt, kind) for kind in hostile.KINDS]


def signals(place: Place) -> list[Attempt]:
    """Ctrl-C and SIGTERM, five times in every command, stage, target of make, and the study."""
    outside = place.rooms / "signals"
    outside.mkdir(exist_ok=True)
    table, out = str(outside / "songs.csv"), str(outside / "out")
    place.run("wscpml", "sample", table, check=False)
    given = (table, "--tags", "tags", "--id", "song")
    _, remarks = place.run("wscpml", "audit", *given, "--html", str(outside / "remarks.html"))
    export = outside / "export.json"
    export.write_text("[]\n")
    model, python = "models/wsc-pml/classifier", (sys.executable, "-m")
    commands = {
        "sample": (str(outside / "other.csv"),),
        "describe": given,
        "clean": (*given, "-o", f"{out}.csv", "--model", f"{out}-model"),
        "audit": (*given, "--html", f"{out}.html"),
        "review": (*given, "--decisions", f"{out}-decisions.csv", "--port", "8791"),
        "queue": (*given, "-o", f"{out}-next.csv"),
        "predict": (model, "data/prepared/raw.parquet", "-o", f"{out}.parquet"),
        "import-decisions": (str(export), "-o", f"{out}-decided.csv"),
        "diff": ("HEAD", "workspace"),
        "restore": (f"run:{place.runs()[0][0]}", f"{out}-restored"),
        "init": (f"{out}-project",),
        "verify": (),
        "datasets": (),
        "fetch": ("emotions",),
        "methods": (),
    }
    programs = {f"wscpml {name}": ("wscpml", name, *rest) for name, rest in commands.items()}
    programs |= {f"stages.{name}": (*python, f"stages.{name}") for name in STAGES}
    programs |= {
        "stages.review": (*python, "stages.review", "8792"),
        "experiments.study": (*python, "experiments.study", "--quick"),
        "wscpml.settings": (*python, "wscpml.settings"),
        "wscpml.serving.scoring": (*python, "wscpml.serving.scoring", model, "--port", "8793"),
        "dvc repro": ("dvc", "repro", "--force"),
    }
    make = ("make", "--old-file", ".venv/installed")
    targets = ("run", "track", "experiments", "study-quick")  # others are others' programs alone
    programs |= {f"make {name}": (*make, name) for name in targets}
    programs["make review"] = (*make, "review", "REVIEW_PORT=8794")
    programs["make ui"] = (*make, "ui", "PORT=8795")
    return [
        partial(stop, place, name, command, k, frozenset(remarks.splitlines()))
        for name, command in programs.items()
        for k in range(5)
    ]


def stop(
    place: Place,
    name: str,
    command: Sequence[str],
    k: int,
    remarks: frozenset[str],
    rng: random.Random,
) -> str:
    """Stop a program at a random moment after it has begun to listen to signals.

    What it has said by then of its data are `remarks`.
    """
    number = (signal.SIGINT, signal.SIGTERM)[k % 2]
    mark, foreign = f"{name} {k} {rng.random()}", name.startswith(("make", "dvc"))
    for _ in range(MOST_DRAWN):
        shutil.rmtree(place.rooms / "signals/out-restored", ignore_errors=True)  # must be new
        process = place.start(*command, **{MARK: mark})
        while process.poll() is None and not (foreign or _listens(process.pid)):
            time.sleep(0.002)
        moment = 0.3 * foreign + rng.choice((rng.uniform(0, 0.3), rng.uniform(0, 6)))
        with suppress(subprocess.TimeoutExpired):
            process.wait(moment)
        if process.poll() is not None:
            process.communicate()
            continue
        if number == signal.SIGINT:
            os.killpg(process.pid, number)  # as a terminal does
        else:
            process.send_signal(number)
        start = time.monotonic()
        out, err = process.communicate()
        closing_down = process.returncode == -number and not (foreign or err)
        if process.returncode not in (0, 1) and not closing_down:  # or else its work was done
            break
    else:
        return f"{name} was never met while it ran"
    took, wrong = time.monotonic() - start, []
    of_dvc = (252, 255) if name == "dvc repro" else ()
    if process.returncode not in (128 + number, -number, *of_dvc):
        wrong.append(f"status {process.returncode}")
    if took > 5:
        wrong.append(f"after {took:.0f} s")
    said = [line for line in err.replace("\r", "\n").splitlines() if line.strip()]
    said = [line for line in said if "%|" not in line and line not in remarks]
    ours = [line for line in said if line.startswith("stopped")]
    if "Traceback" in out + err or len(ours) > 1 or (not foreign and said != ours[:1]):
        wrong.append(f"said {err[-500:]!r}")
    if not foreign and not ours:
        wrong.append("said nothing")
    (place.path / "data/decisions/decisions.csv").unlink(missing_ok=True)  # what a review is for
    if alive := _marked(mark):
        wrong.append(f"goes on: {alive}")
    if left := sorted(place.listed() - place.files):
        wrong.append(f"left behind: {left[:3]}")
    if left := [each.name for each in (place.rooms / "tmp").iterdir()]:
        wrong.append(f"left in TMPDIR: {left[:3]}")
        shutil.rmtree(place.rooms / "tmp")
        (place.rooms / "tmp").mkdir()
    if left := [each.name for each in (place.rooms / "signals").rglob(".wscpml-*")]:
        wrong.append(f"left beside the output: {left[:3]}")
    if k == 4 and name.startswith((f"stages.{STAGES[-1]}", "dvc", "make")):  # after all stages
        place.run(sys.executable, "-m", "wscpml.serving.locks")  # as `make run` does
        code, err = place.run("dvc", "repro", check=False)
        found = place.what_is_wrong(runs=False)
        if code or found:
            wrong.append(f"dvc repro: {err[-300:]}{found}")
    return f"{name}, signal {number} at {moment:.2f} s: {'; '.join(wrong)}" if wrong else ""


def _listens(process: int) -> bool:
    """Whether a program has something of its own to do at SIGTERM, as make, DVC and we have."""
    with suppress(OSError, StopIteration):
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
        caught = next(int(line.split()[1], 16) for line in lines if line.startswith("SigCgt"))
        return bool(caught >> (signal.SIGTERM - 1) & 1)
    return False


def _marked(mark: str) -> list[str]:
    """What still runs of those that a program started, after a moment to end."""
    given = f"{MARK}={mark}".encode()
    for _ in range(30):
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if given in (process / "environ").read_bytes().split(b"\0"):
                    found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        if not found:
            return []
        time.sleep(0.1)
    return found


PARTS: dict[str, tuple[str, Callable[[Place], list[Attempt]]]] = {
    "writers": ("two writers of one output", writers),
    "stages": ("SIGKILL in a stage", stages),
    "track": ("SIGKILL in `track` and while the store is made", track),
    "study": ("SIGKILL of the study", study),
    "repro": ("SIGKILL of `dvc repro`", repro),
    "server": ("server killed while `track` logs", server),
    "servers": ("server that hangs, drips, fails or is none", servers),
    "disk": ("no room on the disk", disk),
    "damage": ("damaged file: refused by a stage, found by `wscpml verify`", damage),
    "at-once": ("two `dvc repro` at once", at_once),
    "queue": ("DVC's queue with two workers", queue),
    "signals": ("Ctrl-C and SIGTERM", signals),
}


def import_all() -> None:
    """What stages import, so that their forks need not."""
    others = ("matplotlib.pyplot", "sklearn.ensemble", "torch")
    for name in (*others, "wscpml.estimator", "wscpml.serving.tracking"):
        importlib.import_module(name)


def table(found: dict[str, Found]) -> str:
    """What was tried and how often it was right, as in docs/reliability.md."""
    lines = ["| what | tried | right |", "|---|---|---|"]
    for key, (title, _) in PARTS.items():
        if key in found:
            each = found[key]
            lines.append(f"| {title} | {each.tried} | {each.tried - len(each.wrong)} |")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Print a table of what was tried; returns how much was wrong."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="what takes seconds alone")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--keep", type=Path, metavar="FILE.json", help="what is found, to go on")
    options = parser.parse_args(arguments)
    kept = options.keep and options.keep.exists() and json.loads(options.keep.read_text())
    found = {key: Found(**each) for key, each in (kept or {}).items()}
    with tempfile.TemporaryDirectory(prefix="faults-") as name:
        place = None
        for key in ["writers"] if options.quick else options.only:
            if key != "writers" and place is None:
                import_all()
                place = Place(Path(name) / "project")
            here = found.setdefault(key, Found())
            start = time.monotonic()
            attempts = PARTS[key][1](place)
            for k in [*map(int, here.wrong), *range(here.tried, len(attempts))]:
                wrong = attempts[k](random.Random(f"{options.seed} {key} {k}"))
                here.tried = max(here.tried, k + 1)
                here.wrong.pop(str(k), None)
                if wrong:
                    here.wrong[str(k)] = wrong
                    print(f"  {key} {k}: {wrong}", file=sys.stderr, flush=True)
                if options.keep:
                    artifacts.write(
                        options.keep, {key: asdict(each) for key, each in found.items()}
                    )
            if place:
                place.log_anew()
            print(f"{key}: {time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)
    print(table(found))
    return sum(len(each.wrong) for each in found.values())


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
