"""MLflow's store and servers when they fail, and processes that are killed while they log."""

import os
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from threading import Thread

import mlflow
import pytest

from tests.conftest import ROOT
from tests.serving import hostile
from tests.serving.test_tracking import a_result
from wscpml.errors import UserError
from wscpml.serving import local_store, tracking


@pytest.mark.parametrize("kind", hostile.KINDS)
def test_a_server_that_is_none_is_one_line_in_time(store, monkeypatch, kind):
    monkeypatch.setattr(tracking, "SECONDS_TO_ANSWER", 0.5)
    with hostile.server(kind) as address:
        monkeypatch.setenv("MLFLOW_TRACKING_URI", address)
        start = time.monotonic()
        with pytest.raises(UserError) as told:
            tracking.prepare("none")
    assert time.monotonic() - start < 6
    assert str(told.value).startswith(f"MLFLOW_TRACKING_URI: MLflow at {address} failed (")
    assert "\n" not in str(told.value)
    assert not list(store.iterdir())  # and no lock


def test_a_silent_postgresql_is_one_line(store, monkeypatch):
    assert os.environ["PGCONNECT_TIMEOUT"] == "10"
    monkeypatch.setenv("PGCONNECT_TIMEOUT", "2")  # the least that there is
    with hostile.server("silent") as address:
        place = address.replace("http", "postgresql")
        monkeypatch.setenv("MLFLOW_TRACKING_URI", f"{place}/mlflow")
        with pytest.raises(UserError, match=f"MLflow at {place}/mlflow failed .*timeout expired"):
            tracking.prepare("none")


@pytest.mark.parametrize("kind", ["silent", "dripping", "dripping_headers", "broken", "hanging_up"])
def test_a_server_that_does_not_send_a_run_s_files_is_one_line(store, monkeypatch, kind):
    monkeypatch.setattr(tracking, "SECONDS_TO_ANSWER", 0.5)
    with hostile.server_of_a_run(kind) as address:
        monkeypatch.setenv("MLFLOW_TRACKING_URI", address)
        for paths in (None, [hostile.FILE]):
            with pytest.raises(UserError, match=f"MLflow at {address} failed .*, and try again"):
                tracking.download("1", paths, store)


def test_a_run_s_files_come_back_from_a_server(store, monkeypatch):
    with hostile.server_of_a_run("a_page") as address:
        monkeypatch.setenv("MLFLOW_TRACKING_URI", address)
        tracking.download("1", ["nothing", "data/nothing"], store)
        assert not list(store.iterdir())
        tracking.download("1", None, store)
    assert (store / hostile.FILE).read_bytes() == hostile.PAGE


def test_a_request_from_another_thread_has_a_time_of_its_own(store, monkeypatch):
    monkeypatch.setattr(tracking, "SECONDS_TO_ANSWER", 0.5)
    told = []

    def prepare() -> None:
        try:
            tracking.prepare("none")
        except UserError as mistake:
            told.append(str(mistake))

    with hostile.server("silent") as address:
        monkeypatch.setenv("MLFLOW_TRACKING_URI", address)
        thread = Thread(target=prepare)
        thread.start()
        thread.join()
    (line,) = told
    assert f"MLflow at {address} failed (" in line


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("MLFLOW_TRACKING_URI", "http://ann:secret@[::1"),
        ("MLFLOW_TRACKING_URI", "http://ann:secret@localhost:99999999"),
        ("MLFLOW_TRACKING_URI", "http://ann:secret@localhost:port"),
        ("MLFLOW_HTTP_REQUEST_TIMEOUT", "soon"),
        ("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "-1"),
        ("MLFLOW_HTTP_REQUEST_BACKOFF_JITTER", "much"),
    ],
)
def test_odd_surroundings_are_one_line(store, monkeypatch, name, value):
    for each in ("MLFLOW_TRACKING_USERNAME", "MLFLOW_TRACKING_PASSWORD"):
        monkeypatch.setenv(each, "")  # so that what is set is undone
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")
    monkeypatch.setenv(name, value)
    with pytest.raises(UserError) as told:
        tracking.prepare("none")
    (line,) = told.value.args
    assert line.startswith("MLFLOW_TRACKING_URI: ")
    assert "secret" not in line


def runs() -> "dict[str, str]":
    """Status of each run that is there, by its id."""
    mlflow.set_tracking_uri(tracking.store_uri())
    found = mlflow.search_runs(search_all_experiments=True, output_format="list")
    return {run.info.run_id: run.info.status for run in found}


def test_a_result_is_one_run_however_often_it_is_logged(store):
    result = replace(a_result(store / "model"), model=None)
    first = tracking.log_run(result, "none")
    assert tracking.log_run(result, "none") == first
    other = tracking.log_run(replace(result, identity="1"), "none")
    assert runs() == {first: "FINISHED", other: "FINISHED"}


@pytest.mark.parametrize("step", ["_log_values", "_log_model"])
def test_what_a_killed_process_logged_is_removed_by_the_next(store, step, monkeypatch):
    result = replace(a_result(store / "model"), tables={"t.json": tracking.pd.DataFrame()})
    child = os.fork()
    if not child:
        place = tracking if hasattr(tracking, step) else mlflow
        monkeypatch.setattr(place, step, lambda *_, **__: os._exit(9))
        tracking.log_run(result, "none")
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    assert list(runs().values()) == ["RUNNING"]
    run_id = tracking.log_run(result, "none")
    assert runs() == {run_id: "FINISHED"}
    experiment = mlflow.get_run(run_id).info.experiment_id
    (model,) = mlflow.MlflowClient().search_logged_models([experiment])
    assert model.source_run_id == run_id


@pytest.fixture
def shared(store, monkeypatch):
    """A store that is to us as one that other machines log to, too."""
    monkeypatch.setenv("MLFLOW_TRACKING_URI", tracking.store_uri())
    monkeypatch.setattr(tracking, "SQLITE", "a file of one machine")
    return store


def test_a_result_that_two_machines_log_at_once_is_one_run_that_both_have(shared, monkeypatch):
    result = a_result(shared / "model")
    log, theirs = tracking._log, []

    def meanwhile() -> None:
        monkeypatch.setattr(tracking, "_log", log)
        monkeypatch.setattr(tracking, "_place", lambda: "another machine")
        theirs.append(tracking.log_run(result, "none"))

    def log_while_another_does(*given: object) -> None:
        other = Thread(target=meanwhile)
        other.start()
        other.join()
        log(*given)

    monkeypatch.setattr(tracking, "_log", log_while_another_does)
    ours = tracking.log_run(result, "none")
    assert theirs == [ours]
    assert runs() == {ours: "FINISHED"}
    experiment = mlflow.get_run(ours).info.experiment_id
    (model,) = mlflow.MlflowClient().search_logged_models([experiment])
    assert model.source_run_id == ours


@pytest.mark.parametrize(
    ("place", "waited", "left"), [("here", 300, 0), ("there", 300, 1), ("there", 0, 0)]
)
def test_a_run_that_another_machine_may_be_logging_is_left_alone(
    shared, monkeypatch, place, waited, left
):
    result = replace(a_result(shared / "model"), model=None)
    experiment = tracking.prepare("none")
    monkeypatch.setattr(tracking, "_place", lambda: "here")
    monkeypatch.setattr(tracking, "MOST_WAITED", waited)
    about = {tracking.RESULT: result.identity, tracking.PLACE: place}
    begun = mlflow.MlflowClient().create_run(experiment, tags=about).info.run_id
    run_id = tracking.log_run(result, "none")
    assert runs() == {run_id: "FINISHED"} | dict.fromkeys([begun] * left, "RUNNING")


def a_family(name: str = "cell", count: int = 2) -> tuple[tracking.Summary, list[tracking.Summary]]:
    parts = [tracking.Summary(f"fold {k}", {}, {"m": 1.0}, {}) for k in range(count)]
    return tracking.Summary(name, {}, {"m": 1.0}, {}), parts


@pytest.mark.parametrize("after", [0, 2, 3])
def test_a_family_of_runs_is_logged_once_and_whole(store, after, monkeypatch):
    (store / "x.json").write_text("1")
    whole, parts = a_family()

    def log() -> str:
        return tracking.log_family(whole, parts, "none", store / "x.json", "0", failed=False)

    done, real = [], mlflow.MlflowClient.set_terminated

    def ended(*arguments: object) -> None:
        if len(done) == after:
            os._exit(9)
        done.append(real(*arguments))

    child = os.fork()
    if not child:
        monkeypatch.setattr(mlflow.MlflowClient, "set_terminated", ended)
        log()
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == (9 if after < 3 else 0)
    before = set(runs())
    first = log()
    assert (first in before) == (after == 3)
    assert len(runs()) == 3
    assert set(runs().values()) == {"FINISHED"}


def kill_while_mlflow_makes_a_store(database: Path, statement: str) -> None:
    """MLflow alone, in a process that is killed at its first SQL that begins like this."""
    code = (
        "import os, sys\n"
        "from sqlalchemy import Engine, event\n"
        "@event.listens_for(Engine, 'before_cursor_execute')\n"
        "def look(c, cursor, sql, *_):\n"
        "    if sql.strip().startswith(sys.argv[2]): os._exit(9)\n"
        "from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore\n"
        "SqlAlchemyStore(f'sqlite:///{sys.argv[1]}', '/nowhere')\n"
    )
    command = [sys.executable, "-c", code, str(database), statement]
    assert subprocess.run(command, cwd=ROOT, capture_output=True).returncode == 9


@pytest.mark.parametrize("statement", ["CREATE TABLE alembic_version", "DROP TABLE experiments"])
def test_a_store_that_mlflow_left_half_made_is_made_anew(store, statement):
    database = store / "mlflow.db"
    kill_while_mlflow_makes_a_store(database, statement)
    assert database.exists()
    run_id = tracking.log_run(replace(a_result(store / "model"), model=None), "none")
    assert runs() == {run_id: "FINISHED"}
    left = {each.name for each in store.iterdir()}
    assert left - {"mlflow.db.lock"} == {"mlflow.db", "model"}


def test_the_runs_of_a_store_that_was_cut_off_in_a_step_are_carried_over(store):
    result = replace(a_result(store / "model"), model=None, metrics={"m": 0.5})
    run_id = tracking.log_run(result, "none")
    with closing(sqlite3.connect(store / "mlflow.db")) as database:
        database.execute("CREATE TABLE _alembic_tmp_runs (x)")
        database.execute("UPDATE alembic_version SET version_num = 'dc11669786a5'")
        database.execute("DROP TABLE webhooks")
        database.commit()
    tracking.prepare("none")
    assert runs() == {run_id: "FINISHED"}
    assert mlflow.get_run(run_id).data.metrics == {"m": 0.5}
    assert (store / f"mlflow.db{local_store.HALF_MADE}").exists()


def test_a_store_of_another_version_of_mlflow_is_left_as_it_is(store):
    tracking.log_run(replace(a_result(store / "model"), model=None), "none")
    with closing(sqlite3.connect(store / "mlflow.db")) as database:
        database.execute("UPDATE alembic_version SET version_num = 'of the future'")
        database.commit()
    before = (store / "mlflow.db").read_bytes()
    local_store.make_whole(store / "mlflow.db", tracking._revisions, tracking._make_store)
    assert (store / "mlflow.db").read_bytes() == before
