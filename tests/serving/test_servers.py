"""A team's servers, for real: MLflow with basic auth on PostgreSQL and S3, and DVC's remote on S3.

Two processes are two machines, with projects of their own. WSCPML_RACES=10 has them race longer.
"""

import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from sqlalchemy import create_engine

from tests.conftest import ROOT
from wscpml.errors import UserError
from wscpml.serving import tracking

RACES = int(os.environ.get("WSCPML_RACES", "3"))
PASSWORD = "p@ss/w0rd-of-16"
QUOTED = "p%40ss%2Fw0rd-of-16"
KEYS = {
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
    "AWS_DEFAULT_REGION": "eu-west-1",
}
TEAM = f"""
import os, pathlib, sys, time
from dataclasses import replace
from tests.serving.test_tracking import a_result
from wscpml.serving import tracking
line, server, database = pathlib.Path(sys.argv[1]), *sys.argv[2:]
here, file = pathlib.Path.cwd(), pathlib.Path("songs.csv")

def race(kind, address):
    os.environ["MLFLOW_TRACKING_URI"] = address
    for i in range({RACES}):
        (line / f"{{kind}} {{i}} {{os.getpid()}}").touch()
        while len(list(line.glob(f"{{kind}} {{i}} *"))) < 2:
            time.sleep(0.001)
        print(kind, tracking.prepare(f"race {{i}}"), flush=True)

race("database", database)
race("server", server)
file.write_text(here.name)
result = replace(a_result(here / "model"), identity=here.name, model=None, files=[file])
run_id = tracking.log_run(result, "team")
(here / "back").mkdir()
tracking.download(run_id, None, here / "back")
assert (here / "back/songs.csv").read_text() == here.name
print("run", run_id)
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    """The address of a cluster of its own on loopback, with passwords; its program is no root's."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not found:
        pytest.skip("PostgreSQL is not installed (apt-get install postgresql)")
    programs, port = found[-1].parent, free_port()
    user = ["runuser", "-u", "postgres", "--"] if os.getuid() == 0 else []
    own = Path(tempfile.mkdtemp(prefix="wscpml-postgres-"))
    place, secret = own / "cluster", own / "password"
    secret.write_text(PASSWORD)
    if user:
        shutil.chown(own, "postgres")
    made = [programs / "initdb", "-D", place, "-U", "team", "-A", "scram-sha-256"]
    made += [f"--pwfile={secret}"]
    subprocess.run([*user, *made], check=True, capture_output=True, cwd="/tmp")
    control = [*user, programs / "pg_ctl", "-D", place, "-w", "-s"]
    options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c fsync=off"
    log = ["-l", place / "log", "-o", options]
    subprocess.run([*control, *log, "start"], check=True, cwd="/tmp")
    try:
        for name in ("mlflow", "direct"):
            subprocess.run(
                [programs / "createdb", "-h", "127.0.0.1", "-p", str(port), "-U", "team", name],
                check=True,
                env=os.environ | {"PGPASSWORD": PASSWORD},
            )
        yield f"postgresql://team:{QUOTED}@127.0.0.1:{port}"
    finally:
        subprocess.run([*control, "-m", "immediate", "stop"], check=True, cwd="/tmp")
        shutil.rmtree(own)


@pytest.fixture(scope="module")
def storage() -> Iterator[str]:
    """The address of an S3 server with two buckets."""
    import boto3
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    address = f"http://{host}:{port}"
    client = boto3.client(
        "s3",
        endpoint_url=address,
        region_name=KEYS["AWS_DEFAULT_REGION"],
        aws_access_key_id="test",
        aws_secret_access_key="test",
    )
    for bucket in ("runs", "data"):
        place = {"LocationConstraint": KEYS["AWS_DEFAULT_REGION"]}
        client.create_bucket(Bucket=bucket, CreateBucketConfiguration=place)
    yield address
    server.stop()


@dataclass(frozen=True)
class Server:
    """MLflow's server, and where what it says goes."""

    address: str  # with name and password
    said: Path


@pytest.fixture(scope="module")
def server(postgres, storage, tmp_path_factory) -> Iterator[Server]:
    """MLflow's server as docs/how-to/compare.md starts it."""
    path, port = tmp_path_factory.mktemp("server"), free_port()
    env = (
        os.environ
        | KEYS
        | {
            "MLFLOW_S3_ENDPOINT_URL": storage,
            "MLFLOW_DISABLE_TELEMETRY": "true",
            "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
            "MLFLOW_BACKEND_STORE_URI": f"{postgres}/mlflow",
            "MLFLOW_AUTH_ADMIN_PASSWORD": PASSWORD,
            "MLFLOW_FLASK_SERVER_SECRET_KEY": "any",
        }
    )
    command = [sys.executable, "-m", "mlflow", "server", "--app-name", "basic-auth"]
    command += ["--artifacts-destination", "s3://runs/mlflow", "--workers", "1"]
    said = path / "said"
    with said.open("w") as output:
        started = subprocess.Popen(
            [*command, "--host", "127.0.0.1", "--port", str(port)],
            cwd=path,
            env=env,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        for _ in range(600):
            assert started.poll() is None, said.read_text()
            try:
                urlopen(f"http://127.0.0.1:{port}/health").close()
                break
            except URLError:
                time.sleep(0.2)
        else:
            pytest.fail(said.read_text())
        yield Server(f"http://admin:{QUOTED}@127.0.0.1:{port}", said)
    finally:
        started.terminate()
        started.wait()


@pytest.fixture(scope="module")
def said(server, postgres, tmp_path_factory) -> list[dict[str, list[str]]]:
    """What two machines have: the experiments in a database and on a server, and a run."""
    place = tmp_path_factory.mktemp("team")
    line = place / "line"
    line.mkdir()  # both wait here until the other has come
    env = {k: v for k, v in os.environ.items() if not k.startswith(("MLFLOW_", "PG"))}
    command = [sys.executable, "-c", TEAM, str(line), server.address, f"{postgres}/direct"]
    started = []
    for here in (place / "one", place / "other"):
        here.mkdir()
        started.append(
            subprocess.Popen(
                command,
                cwd=here,
                env=env | KEYS | {"PYTHONPATH": str(ROOT), "DVC_ROOT": str(here)},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        )
    texts = [each.communicate()[0] for each in started]
    assert [each.returncode for each in started] == [0, 0], texts
    for text in texts:
        assert PASSWORD not in text
        assert QUOTED not in text
    return [
        {kind: re.findall(f"^{kind} (.+)$", text, re.M) for kind in ("database", "server", "run")}
        for text in texts
    ]


@pytest.mark.parametrize("kind", ["database", "server"])
def test_two_machines_that_create_an_experiment_at_once_both_succeed(kind, said):
    one, other = (each[kind] for each in said)
    assert one == other
    assert len(set(one)) == RACES


def test_runs_of_two_machines_go_to_postgresql_and_s3(server, storage, said):
    listed = urlopen(f"{storage}/runs?list-type=2&prefix=mlflow/").read().decode()
    for each in said:
        (run_id,) = each["run"]
        assert f"{run_id}/artifacts/songs.csv" in listed
    for secret in (PASSWORD, QUOTED):
        assert secret not in server.said.read_text()


def test_a_wrong_password_is_one_line_that_does_not_tell_it(server, monkeypatch):
    for name in ("USERNAME", "PASSWORD"):
        monkeypatch.setenv(f"MLFLOW_TRACKING_{name}", "")  # which the address goes before
    monkeypatch.setenv("MLFLOW_TRACKING_URI", server.address.replace(QUOTED, "wrongone"))
    with pytest.raises(UserError) as told:
        tracking.prepare("x")
    (line,) = told.value.args
    assert "MLFLOW_TRACKING_URI: MLflow at http://127.0.0.1" in line
    assert "wrongone" not in line


def test_a_database_that_another_has_locked_for_too_long_is_one_line(postgres, monkeypatch):
    monkeypatch.setenv("PGPASSWORD", "")  # so that what is set is undone
    monkeypatch.setattr(tracking, "MOST_WAITED", 1)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"{postgres}/direct")
    engine = create_engine(f"{postgres}/direct")
    with engine.connect() as connection:
        connection.exec_driver_sql(f"SELECT pg_advisory_lock({tracking.OUR_LOCK})")
        with pytest.raises(UserError, match="failed .*due to lock timeout"):
            tracking.prepare("x")
    engine.dispose()


def test_dvc_hands_files_on_through_s3(storage, tmp_path):
    env = os.environ | KEYS | {"GIT_CONFIG_GLOBAL": os.devnull, "DVC_SITE_CACHE_DIR": str(tmp_path)}
    env |= {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}

    def run(*command: str) -> None:
        done = subprocess.run(command, cwd=here, env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr

    here = tmp_path / "one"
    here.mkdir()
    (here / "songs.csv").write_text("song,tags\n1,rock\n")
    run("git", "init", "--quiet")
    run("dvc", "init", "--quiet")
    remote = (
        f"[core]\nremote = s\n['remote \"s\"']\nurl = s3://data/wscpml\nendpointurl = {storage}\n"
    )
    (here / ".dvc/config").write_text(remote)
    run("dvc", "add", "--quiet", "songs.csv")
    run("dvc", "push", "--quiet")
    (here / "songs.csv").unlink()
    shutil.rmtree(here / ".dvc/cache")
    run("dvc", "pull", "--quiet")
    assert (here / "songs.csv").read_text() == "song,tags\n1,rock\n"
