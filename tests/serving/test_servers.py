"""A team's servers, for real: MLflow with basic auth on PostgreSQL and S3, and DVC's remote on S3.

Two processes are two machines, with projects of their own. WSCPML_RACES=10 has them race longer.
"""

import os
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

from tests.conftest import ROOT

RACES = int(os.environ.get("WSCPML_RACES", "3"))
PASSWORD = "p@ss/w0rd-of-16"
QUOTED = "p%40ss%2Fw0rd-of-16"
KEYS = {
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
    "AWS_DEFAULT_REGION": "eu-west-1",
}
RACE = f"""
import os, pathlib, sys, time
from wscpml.serving import tracking
line = pathlib.Path(sys.argv[1])
for i in range({RACES}):
    (line / f"{{i}} {{os.getpid()}}").touch()
    while len(list(line.glob(f"{{i}} *"))) < 2:
        time.sleep(0.001)
    print(tracking.prepare(f"race {{i}}"), flush=True)
"""
LOG = """
import pathlib, sys
from dataclasses import replace
from tests.serving.test_tracking import a_result
from wscpml.serving import tracking
here = pathlib.Path(sys.argv[1]).parent
file = pathlib.Path("songs.csv")
file.write_text(here.name)
result = replace(a_result(here / "model"), identity=here.name, model=None, files=[file])
run_id = tracking.log_run(result, "team")
tracking.download(run_id, None, here / "back")
assert (here / "back/songs.csv").read_text() == here.name
print(run_id)
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


def together(code: str, address: str, places: list[Path], *arguments: str) -> list[str]:
    """What processes say that run the same code at once, each in a place of its own."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("MLFLOW_", "PG"))}
    env |= KEYS | {"MLFLOW_TRACKING_URI": address, "PYTHONPATH": str(ROOT)}
    started = []
    for place in places:
        place.mkdir(parents=True, exist_ok=True)
        started.append(
            subprocess.Popen(
                [sys.executable, "-c", code, *(arguments or [str(place / "model")])],
                cwd=place,
                env=env | {"DVC_ROOT": str(place)},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        )
    said = [each.communicate()[0] for each in started]
    assert [each.returncode for each in started] == [0] * len(places), said
    for text in said:
        assert PASSWORD not in text
        assert QUOTED not in text
    return said


@pytest.mark.parametrize("kind", ["server", "database"])
def test_two_machines_that_create_an_experiment_at_once_both_succeed(
    kind, server, postgres, tmp_path
):
    address = server.address if kind == "server" else f"{postgres}/direct"
    places, line = [tmp_path / "one", tmp_path / "other"], tmp_path / "line"
    line.mkdir()  # both wait here until the other has come
    one, other = together(RACE, address, places, str(line))
    assert one.split() == other.split()
    assert len(set(one.split())) == RACES


def test_runs_of_two_machines_go_to_postgresql_and_s3(server, storage, tmp_path):
    places = [tmp_path / "one", tmp_path / "other"]
    for place in places:
        (place / "back").mkdir(parents=True)
    one, other = together(LOG, server.address, places)
    listed = urlopen(f"{storage}/runs?list-type=2&prefix=mlflow/").read().decode()
    for text in (one, other):
        assert f"{text.split()[-1]}/artifacts/songs.csv" in listed
    for secret in (PASSWORD, QUOTED):
        assert secret not in server.said.read_text()


def test_a_wrong_password_is_one_line_that_does_not_tell_it(server, tmp_path):
    code = (
        "from wscpml.serving import tracking\n"
        "from wscpml.errors import UserError\n"
        "try: tracking.prepare('x')\n"
        "except UserError as error: print(error)\n"
    )
    (text,) = together(code, server.address.replace(QUOTED, "wrongone"), [tmp_path])
    assert text.count("\n") == 1
    assert "MLFLOW_TRACKING_URI: MLflow at http://127.0.0.1" in text
    assert "wrongone" not in text


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
    run("dvc", "remote", "add", "--default", "storage", "s3://data/wscpml")
    run("dvc", "remote", "modify", "storage", "endpointurl", storage)
    run("dvc", "add", "--quiet", "songs.csv")
    run("dvc", "push", "--quiet")
    (here / "songs.csv").unlink()
    shutil.rmtree(here / ".dvc/cache")
    run("dvc", "pull", "--quiet")
    assert (here / "songs.csv").read_text() == "song,tags\n1,rock\n"
