"""What happens when processes are killed, disks are full, servers fail and files are damaged.

`python -m tests.faults [--quick] [--seed N] [--only PART ...]` runs the pipeline on a small data
set in a project of its own, does all that to it, and prints how often all was right afterwards:
the same bytes, one whole run, nothing left behind; or one clear line. It exits with 1 if not.
"""

import argparse
import hashlib
import json
import os
import random
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from benchmarks import copy_project
from tests.conftest import STAGES
from tests.serving import hostile
from wscpml import artifacts
from wscpml.serving import locks

RESULTS = ("data", "models", "metrics")
LEFT = (".tmp", ".half-made")  # how the names of what is left behind end


@dataclass
class Part:
    """What was tried, and what was not as it should be."""

    name: str
    tried: int = 0
    wrong: list[str] = field(default_factory=list)

    def note(self, good: bool, what: str) -> None:
        self.tried += 1
        if not good:
            self.wrong.append(what)
            print(f"  {self.name}: {what}", file=sys.stderr, flush=True)


class Place:
    """A copy of this project in which the pipeline has run once on emotions."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.env = os.environ | {
            "DVC_SITE_CACHE_DIR": str(path / ".site"),
            "GIT_CONFIG_GLOBAL": os.devnull,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "OPENBLAS_NUM_THREADS": "1",
            "OMP_NUM_THREADS": "1",
        }
        self.env.pop("MLFLOW_TRACKING_URI", None)
        copy_project(path)
        params = yaml.safe_load((path / "params.yaml").read_text())
        params["dataset"]["name"], params["noise"]["candidates"] = "emotions", 4
        params["classifier"]["max_epochs"] = 5
        (path / "params.yaml").write_text(yaml.safe_dump(params))
        (path / ".gitignore").open("a").write(".site\n")
        who = ["-c", "user.name=Test", "-c", "user.email=test@example.com"]
        for command in (["init", "-q"], ["add", "-A"], [*who, "commit", "-qm", "start"]):
            subprocess.run(["git", *command], cwd=path, env=self.env, check=True)
        self.run("dvc", "repro")
        self.before = self.digests()

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
        left = [file for file in self.path.rglob("*") if file.name.endswith(LEFT)]
        if left := [file for file in left if ".dvc/" not in file.as_posix()]:
            found.append(f"left behind: {left[0].name}")
        if runs:
            known = json.loads((self.path / "metrics/run.json").read_text())["run_id"]
            if self.runs() != [(known, "FINISHED")]:
                found.append(f"runs: {self.runs()}, and not {known}")
        return "; ".join(found)

    def forget_runs(self) -> None:
        for path in self.path.glob("mlflow.db*"):
            path.unlink()
        shutil.rmtree(self.path / "mlruns", ignore_errors=True)


def killed(place: Place, rng: random.Random, longest: float, *command: str, **env: str) -> float:
    """Kill a command and all that it started at a random moment, which is returned."""
    process = place.start(*command, **env)
    moment = rng.uniform(0, longest)
    time.sleep(moment)
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    return moment


def seconds(work: Callable[[], object]) -> float:
    start = time.monotonic()
    work()
    return time.monotonic() - start


def two_writers(count: int) -> Part:
    """Two processes write one file, or one directory, at once."""
    part = Part("two writers of one output")
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        for round in range(count):
            target = place / f"{round}.html" if round % 2 else place / str(round)
            children = []
            for text in ("a" * 400_000, "b" * 300_000):
                child = os.fork()
                if not child:
                    if round % 2:
                        artifacts.write(target, text)
                    else:
                        artifacts.write_directory(target, {"x.html": text, "y.html": text})
                    os._exit(0)
                children.append(child)
            ends = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
            files = [target] if round % 2 else sorted(target.iterdir())
            texts = {file.read_text() for file in files}
            whole = len(texts) == 1 and len(set(next(iter(texts)))) == 1 and ends == [0, 0]
            part.note(whole and len(list(place.iterdir())) == round + 1, f"round {round}")
    return part


def killed_stages(place: Place, rng: random.Random, count: int) -> Part:
    """SIGKILL at random moments of every stage; then it runs again."""
    part = Part("SIGKILL in a stage")
    names = [name for name in STAGES if name != "track"]
    times = {
        name: seconds(lambda name=name: place.run(sys.executable, "-m", f"stages.{name}"))
        for name in names[: min(count, len(names))]
    }
    for k in range(count):
        name = names[k % len(names)]
        command = (sys.executable, "-m", f"stages.{name}")
        moment = killed(place, rng, times.get(name, 2.0), *command)
        code, err = place.run(*command, check=False)
        part.note(
            code == 0 and not place.what_is_wrong(),
            f"{name} at {moment:.2f} s: {err[-200:]}{place.what_is_wrong()}",
        )
    return part


def killed_repro(place: Place, rng: random.Random, count: int) -> Part:
    """SIGKILL of `dvc repro` and all of its processes; then it goes on."""
    part = Part("SIGKILL of dvc repro")
    longest = seconds(lambda: place.run("dvc", "repro", "--force"))
    for _ in range(count):
        moment = killed(place, rng, longest, "dvc", "repro", "--force")
        code, err = place.run("dvc", "repro", check=False)
        part.note(
            code == 0 and not place.what_is_wrong(),
            f"at {moment:.1f} s: {err[-300:]}{place.what_is_wrong()}",
        )
    return part


def killed_track(place: Place, rng: random.Random, count: int) -> Part:
    """SIGKILL in `track`, of every second one while there is no store yet."""
    part = Part("SIGKILL in track and while the store is made")
    command = (sys.executable, "-m", "stages.track")
    longest = 0.0
    for k in range(count):
        if k % 2 == 0:
            place.forget_runs()
        else:
            with closing(sqlite3.connect(place.path / "mlflow.db")) as store:
                store.execute("UPDATE runs SET lifecycle_stage = 'deleted'")
                store.commit()
        if not longest:
            longest = seconds(lambda: place.run(*command))
            place.forget_runs()
        moment = killed(place, rng, longest, *command)
        code, err = place.run(*command, check=False)
        part.note(
            code == 0 and not place.what_is_wrong(),
            f"at {moment:.1f} s: {err[-300:]}{place.what_is_wrong()}",
        )
    return part


def killed_server(place: Place, rng: random.Random, count: int) -> Part:
    """An MLflow server that dies while `track` logs to it; then one that lives."""
    part = Part("server killed while track logs")
    port, home = "5731", place.path / ".site/server"
    home.mkdir(parents=True, exist_ok=True)
    address = f"http://127.0.0.1:{port}"
    store = f"sqlite:///{home}/server.db"
    serve = (sys.executable, "-m", "mlflow", "server", "--backend-store-uri", store)
    serve += ("--artifacts-destination", str(home / "files"), "--host", "127.0.0.1", "--port", port)
    track = (sys.executable, "-m", "stages.track")

    def server() -> "subprocess.Popen[bytes]":
        import requests

        process = subprocess.Popen(
            serve,
            cwd=home,
            env=place.env | {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        for _ in range(600):
            try:
                requests.get(f"{address}/health", timeout=1)
                return process
            except requests.RequestException:
                time.sleep(0.2)
        raise RuntimeError("the server does not start")

    for _ in range(count):
        process = server()
        with closing(sqlite3.connect(home / "server.db")) as opened:
            opened.execute("UPDATE runs SET lifecycle_stage = 'deleted'")
            opened.commit()
        logging = place.start(*track, MLFLOW_TRACKING_URI=address)
        moment = rng.uniform(2, 14)
        time.sleep(moment)
        os.killpg(process.pid, signal.SIGKILL)
        start = time.monotonic()
        _, err = logging.communicate()
        took = time.monotonic() - start
        one_line = logging.returncode == 0 or len(err.strip().splitlines()) == 1
        process = server()
        code, _ = place.run(*track, check=False, MLFLOW_TRACKING_URI=address)
        with closing(sqlite3.connect(home / "server.db")) as opened:
            found = opened.execute(
                "SELECT status FROM runs WHERE lifecycle_stage = 'active'"
            ).fetchall()
        os.killpg(process.pid, signal.SIGKILL)
        part.note(
            one_line and took < 30 and code == 0 and found == [("FINISHED",)],
            f"at {moment:.1f} s: {took:.0f} s, {found}, {err[-300:]!r}",
        )
    place.run(*track)
    return part


def full_disk(place: Place, count: int) -> Part:
    """Files that may not grow beyond a size, from none to all that is needed."""
    part = Part("no room on the disk")
    largest = max(file.stat().st_size for file in place.path.glob("data/**/*") if file.is_file())
    sizes = [0, *(int(1.3 * largest * (k / count) ** 2) for k in range(1, count))]
    stages = ("prepare", "cluster", "train_classifier", "apply_method", "evaluate", "track")
    for size in sizes:
        for name in stages:
            process = subprocess.run(
                [sys.executable, "-m", f"stages.{name}"],
                cwd=place.path,
                env=place.env,
                capture_output=True,
                text=True,
                preexec_fn=lambda size=size: resource.setrlimit(
                    resource.RLIMIT_FSIZE, (size, size)
                ),
            )
            lines = process.stderr.strip().splitlines()
            told = process.returncode == 0 or (
                process.returncode == 1 and "Traceback" not in process.stderr
            )
            part.note(
                told and not place.what_is_wrong(runs=False),
                f"{name} with {size} bytes: {lines[-1:]}{place.what_is_wrong(runs=False)}",
            )
    place.run(sys.executable, "-m", "stages.track")
    part.note(not place.what_is_wrong(), place.what_is_wrong())
    return part


def damaged_files(place: Place) -> Part:
    """Every file that a stage reads: cut off, with a flipped byte, and emptied."""
    part = Part("damaged file read by a stage, and found by wscpml verify")
    here = Path.cwd()
    os.chdir(place.path)
    try:
        readers = {out: name for name in STAGES for out in locks.inputs(name, "wsc-pml")}
        for out, name in readers.items():
            top = Path(out)
            for file in (
                [top] if top.is_file() else sorted(f for f in top.rglob("*") if f.is_file())
            ):
                whole = file.read_bytes()
                middle = len(whole) // 2
                flipped = whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :]
                for harm, content in (
                    ("cut", whole[:middle]),
                    ("flipped", flipped),
                    ("empty", b""),
                ):
                    file.write_bytes(content)
                    try:
                        locks.refuse_changed(name, "wsc-pml")
                        refused = False
                    except Exception as error:
                        refused = type(error).__name__ == "UserError"
                    found = any(each.path in (file, top) for each in locks.damaged())
                    part.note(refused and found, f"{file} {harm}: refused {refused}, found {found}")
                file.write_bytes(whole)
    finally:
        os.chdir(here)
    return part


def at_once(place: Place, count: int) -> Part:
    """Two `dvc repro` at the same time."""
    part = Part("two dvc repro at once")
    for _ in range(count):
        processes = [place.start("dvc", "repro", "--force") for _ in range(2)]
        ends = [(process.communicate(), process.returncode) for process in processes]
        told = all(code == 0 or "Traceback" not in err for (_, err), code in ends)
        code, err = place.run("dvc", "repro", check=False)
        part.note(
            told and code == 0 and not place.what_is_wrong(),
            f"{[code for _, code in ends]} {err[-200:]}{place.what_is_wrong()}",
        )
    return part


def stopped(place: Place, rng: random.Random, count: int) -> Part:
    """Ctrl-C and SIGTERM in commands and stages."""
    part = Part("Ctrl-C and SIGTERM")
    table = str(place.path / ".site/songs.csv")
    place.run("wscpml", "sample", table, check=False)
    given = (table, "--tags", "tags", "--id", "song")
    out = str(place.path / ".site/out")
    classifier = "models/wsc-pml/classifier"
    commands = [
        ("wscpml", "describe", *given),
        ("wscpml", "clean", *given, "-o", f"{out}.csv", "--model", f"{out}-model"),
        ("wscpml", "audit", *given, "--html", f"{out}.html"),
        ("wscpml", "queue", *given, "-o", f"{out}-next.csv"),
        ("wscpml", "verify"),
        ("wscpml", "diff", "HEAD", "workspace"),
        ("wscpml", "datasets"),
        ("wscpml", "predict", classifier, "data/prepared/raw.parquet", "-o", f"{out}.parquet"),
        *((sys.executable, "-m", f"stages.{name}") for name in STAGES),
    ]
    for command in commands:
        for k in range(count):
            number = (signal.SIGINT, signal.SIGTERM)[k % 2]
            process = place.start(*command)
            moment = rng.uniform(0.4, 3)
            time.sleep(moment)
            was_running = process.poll() is None
            if was_running:
                os.killpg(process.pid, number)
            _, err = process.communicate()
            if not was_running or process.returncode in (0, 1):
                continue  # it was done
            lines = err.strip().splitlines()
            good = process.returncode == 128 + number and lines[-1:] == ["stopped"]
            quiet = len(lines) == 1 or all("warning" in line for line in lines[:-1])
            part.note(
                good and quiet,
                f"{' '.join(command[:3])} at {moment:.1f}: {process.returncode} {err[-200:]!r}",
            )
    for name in STAGES:
        place.run(sys.executable, "-m", f"stages.{name}")
    part.note(not place.what_is_wrong(), place.what_is_wrong())
    return part


def hostile_servers(place: Place) -> Part:
    """Servers that hang, drip, redirect or are none of MLflow's."""
    part = Part("hostile servers")
    for kind in hostile.KINDS:
        with hostile.server(kind) as address:
            start = time.monotonic()
            code, err = place.run(
                sys.executable, "-m", "stages.track", check=False, MLFLOW_TRACKING_URI=address
            )
            took = time.monotonic() - start
        lines = [line for line in err.splitlines() if not line.startswith("the labels are not")]
        part.note(
            code == 1 and len(lines) == 1 and took < 30, f"{kind}: {took:.0f} s {err[-300:]!r}"
        )
    return part


def parts(chosen: list[str], quick: bool, rng: random.Random, scale: float) -> Iterator[Part]:
    """All parts that were asked for, one after the other."""

    def many(count: int) -> int:
        return max(1, round(count * scale))

    if "writers" in chosen:
        yield two_writers(20 if quick else 60)
    if quick or not set(chosen) - {"writers"}:
        return
    with tempfile.TemporaryDirectory(prefix="faults-") as name:
        place = Place(Path(name) / "project")
        works: dict[str, Callable[[], Part]] = {
            "damage": lambda: damaged_files(place),
            "track": lambda: killed_track(place, rng, many(30)),
            "stages": lambda: killed_stages(place, rng, many(60)),
            "disk": lambda: full_disk(place, many(10)),
            "servers": lambda: hostile_servers(place),
            "stop": lambda: stopped(place, rng, many(5)),
            "server": lambda: killed_server(place, rng, many(20)),
            "repro": lambda: killed_repro(place, rng, many(10)),
            "at-once": lambda: at_once(place, many(3)),
        }
        for key, work in works.items():
            if key in chosen:
                yield work()


PARTS = (
    "writers",
    "damage",
    "track",
    "stages",
    "disk",
    "servers",
    "stop",
    "server",
    "repro",
    "at-once",
)


def main(arguments: list[str] | None = None) -> int:
    """Print a table of what was tried; returns how much was wrong."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="what takes seconds alone")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--scale", type=float, default=1.0, help="of how often each is tried")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    options = parser.parse_args(arguments)
    rng, wrong = random.Random(options.seed), 0
    print("| what | tried | right |\n|---|---|---|", flush=True)
    for part in parts(options.only, options.quick, rng, options.scale):
        wrong += len(part.wrong)
        print(f"| {part.name} | {part.tried} | {part.tried - len(part.wrong)} |", flush=True)
    return wrong


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
