"""The one module that talks to MLflow.

`python -m wscpml.serving.tracking` opens MLflow's pages on the store that runs go to.
"""

import os
import platform
import re
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from wscpml import stopping

if __name__ == "__main__":  # all that is imported takes seconds
    stopping.install()

os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "2")  # 7, with growing pauses, is minutes
os.environ.setdefault("MLFLOW_SERVER_ENABLE_JOB_EXECUTION", "false")
os.environ.setdefault("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false")
os.environ.setdefault("MLFLOW_LOGGING_LEVEL", "WARNING")
os.environ.setdefault("PGCONNECT_TIMEOUT", "10")  # seconds; without it PostgreSQL has for ever

import mlflow  # noqa: E402
import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
import requests  # noqa: E402
from alembic.script import ScriptDirectory  # noqa: E402
from alembic.util import CommandError  # noqa: E402
from filelock import FileLock, Timeout  # noqa: E402
from google.protobuf.json_format import ParseError  # type: ignore[import-untyped] # noqa: E402
from mlflow.data.code_dataset_source import CodeDatasetSource  # noqa: E402
from mlflow.data.meta_dataset import MetaDataset  # noqa: E402
from mlflow.entities import FileInfo, Metric, Param, Run, RunTag  # noqa: E402
from mlflow.exceptions import MlflowException  # noqa: E402
from mlflow.models import ModelSignature, set_model  # noqa: E402
from mlflow.protos.databricks_pb2 import BAD_REQUEST  # noqa: E402
from mlflow.pyfunc import log_model  # noqa: E402
from mlflow.pyfunc.model import PythonModel  # noqa: E402
from mlflow.store.artifact.artifact_repo import ArtifactRepository  # noqa: E402
from mlflow.store.artifact.artifact_repository_registry import (  # noqa: E402
    get_artifact_repository,
)
from mlflow.store.db.utils import _get_alembic_config  # noqa: E402
from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore  # noqa: E402
from mlflow.tracking.context.registry import resolve_tags  # noqa: E402
from mlflow.types import ColSpec, Schema, TensorSpec  # noqa: E402
from mlflow.types.schema import Array as ListOf  # noqa: E402
from mlflow.utils.mlflow_tags import (  # noqa: E402
    MLFLOW_PARENT_RUN_ID,
    MLFLOW_RUN_NOTE,
    MLFLOW_SOURCE_NAME,
    MLFLOW_SOURCE_TYPE,
)
from mlflow.utils.validation import MAX_ENTITY_KEY_LENGTH  # noqa: E402
from sqlalchemy import Engine, create_engine, event  # noqa: E402
from sqlalchemy.exc import SQLAlchemyError  # noqa: E402

from wscpml.arrays import Array  # noqa: E402
from wscpml.deadlines import within  # noqa: E402
from wscpml.errors import UserError  # noqa: E402
from wscpml.serving import local_store, opening, prediction  # noqa: E402
from wscpml.serving.model import Model, load  # noqa: E402

SQLITE, POSTGRESQL = "sqlite:///", "postgresql"
OUR_LOCK = 20_260_401  # any number that others do not take
MOST_RUNS = 1000  # of one result
METRICS_PER_BATCH = 1000  # MLflow takes no more at once
LONGEST_NAME = MAX_ENTITY_KEY_LENGTH  # characters of a parameter, a metric or a tag
PACKAGE = Path(__file__).parents[1]
NO_SUCH_RUN = ("RESOURCE_DOES_NOT_EXIST", "INVALID_PARAMETER_VALUE")
LOG_AGAIN = "run `dvc repro` again: all stages before this one stay cached"
READ_AGAIN = "try again"
COMMAND = "python -m wscpml.serving.tracking"  # that opens MLflow's pages, everywhere
RESULT = "wscpml.result"  # the tag with a result's identity
PLACE = "wscpml.place"  # the tag that tells from where it was logged
MOST_WAITED = 300  # seconds for another process that logs
SECONDS_TO_ANSWER, SLOWEST = 10, 100_000  # of a server; bytes a second that it takes at least
FAILURES = (
    MlflowException,
    SQLAlchemyError,
    sqlite3.Error,
    CommandError,
    ParseError,
    ImportError,
    OSError,
    OverflowError,
    ValueError,
)
LOGIN = re.compile(r"://\S*@")
DESCRIPTION = MLFLOW_RUN_NOTE  # the tag with what a run's page begins with
REGISTERED = (
    "A multi-label classifier that was trained without the wrong labels. A table of features goes "
    "in; out come the probability of each label and the list of those predicted."
)
TRAINING_PAGES = {"mlflow.experimentKind": "custom_model_development"}  # not those for GenAI
OF_TRAINING = "?workflowType=machine_learning"  # in an address, for the same


@dataclass(frozen=True)
class Summary:
    """What a run is called, what went in, and what came out."""

    name: str
    params: Mapping[str, Any]
    metrics: Mapping[str, float]
    tags: Mapping[str, str]


@dataclass(frozen=True)
class Result(Summary):
    """What one run of the pipeline leaves in MLflow."""

    courses: Mapping[str, pd.DataFrame]  # first column: the step; the others: metrics
    files: Sequence[Path]
    tables: Mapping[str, pd.DataFrame]  # that MLflow's pages show, by artifact
    texts: Mapping[str, str]  # further artifacts
    model: Path | None  # a method may leave none
    example: Array | pd.DataFrame  # some rows as the model takes them
    dataset: str
    digest: str  # of the data set, as DVC has it
    source: str  # of the data set: where it comes from
    identity: str  # of the result: one that is logged already is found by it
    sizes: Mapping[str, int]


def project_root() -> Path:
    """The project itself, also from the copies in which DVC runs queued experiments."""
    return Path(os.environ.get("DVC_ROOT", ".")).resolve()


def store_uri() -> str:
    """Where runs go: MLFLOW_TRACKING_URI, or else a SQLite file in the project."""
    default = f"{SQLITE}{(project_root() / 'mlflow.db').as_posix()}"
    given = os.environ.get("MLFLOW_TRACKING_URI")
    if not given:
        return default
    try:
        os.environ["MLFLOW_TRACKING_URI"] = _without_password(given)
    except ValueError:
        raise UserError(
            f"MLFLOW_TRACKING_URI: {LOGIN.sub('://', given)} is no address; set one such as "
            "http://HOST:5000, or unset it"
        ) from None
    return os.environ["MLFLOW_TRACKING_URI"]


def _without_password(address: str) -> str:
    """The address, whose password goes where HTTP and PostgreSQL find it, and no line shows it."""
    parts = urlsplit(address)
    if parts.password is None:
        return address
    place = parts.netloc.rpartition("@")[2]
    if parts.scheme in ("http", "https"):
        os.environ["MLFLOW_TRACKING_USERNAME"] = unquote(parts.username or "")
        os.environ["MLFLOW_TRACKING_PASSWORD"] = unquote(parts.password)
        return parts._replace(netloc=place).geturl()
    if parts.scheme.partition("+")[0] == "postgresql":
        os.environ["PGPASSWORD"] = unquote(parts.password)
        return parts._replace(netloc=f"{parts.username}@{place}").geturl()
    return address


def log_run(result: Result, experiment: str, register_as: str | None = None) -> str:
    """Log a result as one run, and return the run's id, which is the one it has if it is there.

    Its model becomes the next version of the one that is registered under a name, if one is given.
    What a process logged of the same result that was killed meanwhile is removed. Where two
    machines log it to one server at once, both get the run that was whole first.
    """
    model = None
    if result.model:
        model = load(result.model)
    missing = [file for file in result.files if not file.is_file()]
    if missing:
        raise UserError(f"{missing[0]}: is missing; `dvc repro` makes it anew")
    with _failures_in_one_line(), _alone():
        experiment_id = _experiment_id(experiment)
        run_id = _found_again(experiment_id, result.identity, ["FINISHED"])
        if run_id is None:
            about = resolve_tags({RESULT: result.identity, PLACE: _place()})
            run = mlflow.MlflowClient().create_run(experiment_id, tags=about, run_name=result.name)
            ours = run.info.run_id
            try:
                with mlflow.start_run(ours):  # without an id it is the one that MLFLOW_RUN_ID names
                    _log(result, model, ours, run.info.start_time)
                run_id = _found_again(experiment_id, result.identity, ["FINISHED"]) or ours
            finally:
                if run_id != ours:  # no half run, and no second one of a result
                    with suppress(Exception):
                        _remove(mlflow.get_run(ours))
        if register_as and model:
            _register(run_id, register_as, result.tags.get(DESCRIPTION, ""))
    return run_id


def prepare(experiment: str) -> str:
    """Find or create the store and the experiment, whose id it returns."""
    with _failures_in_one_line(), _alone():
        return _experiment_id(experiment)


def log_family(
    whole: Summary,
    parts: Sequence[Summary],
    experiment: str,
    file: Path,
    identity: str,
    failed: bool,
) -> str:
    """Log a run with a file, and below it one for each part; returns the id of the first.

    `identity` is that of the result: what is logged already is found by it, as for `log_run`.
    """
    client = mlflow.MlflowClient
    started: list[Run] = []
    with _failures_in_one_line(), _alone():
        experiment_id = _experiment_id(experiment)
        found = _found_again(experiment_id, identity, ["FINISHED", "FAILED"])
        if found is not None:
            return found
        try:
            for each in (whole, *parts):
                about = {RESULT: identity, PLACE: _place()}
                if started:
                    about[MLFLOW_PARENT_RUN_ID] = started[0].info.run_id
                run = client().create_run(experiment_id, tags=about, run_name=each.name)
                started.append(run)
                _log_batch(run.info.run_id, each, _points(each, run.info.start_time))
            first = started[0].info.run_id
            client().log_artifact(first, str(file))
            for run in reversed(started):  # it is whole once the first is
                client().set_terminated(run.info.run_id, "FAILED" if failed else "FINISHED")
        except BaseException:
            with suppress(Exception):
                for run in started:
                    _remove(run)  # no half runs
            raise
    return first


def _found_again(experiment_id: str, identity: str, ends: Sequence[str]) -> str | None:
    """The run that a result was first logged as whole, with one of these ends, if there is one.

    What a process has begun of it and will not end is removed.
    """
    client = mlflow.MlflowClient()
    chosen = f"tags.`{RESULT}` = '{identity}'"
    runs = client.search_runs([experiment_id], chosen, max_results=MOST_RUNS)
    first = {run.info.run_id: run.data.tags.get(MLFLOW_PARENT_RUN_ID) for run in runs}
    whole = {
        run.info.run_id: run.info.end_time
        for run in runs
        if first[run.info.run_id] is None and run.info.status in ends
    }
    for run in runs:
        if (first[run.info.run_id] or run.info.run_id) not in whole and not _may_go_on(run):
            _remove(run)
    return min(whole, key=lambda each: (whole[each], each), default=None)


def _may_go_on(run: Run) -> bool:
    """Whether another machine may be logging a run right now, to a server that is shared."""
    began = time.time() - run.info.start_time / 1000
    elsewhere = run.data.tags.get(PLACE) != _place()
    return elsewhere and began < MOST_WAITED and not store_uri().startswith(SQLITE)


def _place() -> str:
    """What tells this project on this machine from any other, and nothing else of it."""
    return sha256(f"{platform.node()} {project_root()}".encode()).hexdigest()[:16]


def _remove(run: Run) -> None:
    """Delete a run that is not whole, and the model that was logged with it."""
    client, info = mlflow.MlflowClient(), run.info
    for model in client.search_logged_models(
        [info.experiment_id], f"source_run_id = '{info.run_id}'"
    ):
        client.delete_logged_model(model.model_id)
    client.delete_run(info.run_id)


def _register(run_id: str, name: str, description: str) -> None:
    """Make the model of a run the next version of a registered one, unless it is one already."""
    client = mlflow.MlflowClient()
    if any(each.name == name for each in client.search_model_versions(f"run_id = '{run_id}'")):
        return
    outputs = mlflow.get_run(run_id).outputs
    if outputs is not None:
        made = mlflow.register_model(f"models:/{outputs.model_outputs[0].model_id}", name)
        client.update_model_version(name, made.version, description)
        if not client.get_registered_model(name).description:
            client.update_registered_model(name, REGISTERED)


def tags(run_id: str) -> dict[str, str]:
    """The tags of a run."""
    return dict(_run(run_id).data.tags)


def download(run_id: str, paths: Sequence[str] | None, directory: Path) -> None:
    """Put those artifacts of a run below a directory that it has; None: all."""
    run = _run(run_id)
    with _failures_in_one_line(READ_AGAIN):
        repository = get_artifact_repository(run.info.artifact_uri)
        repository.thread_pool = _Here()
        with within(SECONDS_TO_ANSWER):
            there = _all_below(repository) if paths is None else _listed(repository, paths)
        for each in there:
            with within(_seconds(max(each.file_size or 0, 0))):
                repository.download_artifacts(each.path, str(directory))  # type: ignore[no-untyped-call]


class _Here(Executor):
    """Does what MLflow would do in threads, where no deadline counts, at once."""

    def submit(self, work: Any, /, *given: Any, **named: Any) -> "Future[Any]":
        """What was done, or why it failed."""
        done: Future[Any] = Future()
        try:
            done.set_result(work(*given, **named))
        except Exception as error:
            done.set_exception(error)
        return done


def _listed(repository: ArtifactRepository, paths: Sequence[str]) -> list[FileInfo]:
    """Those files of a run that it has."""
    folders = dict.fromkeys(path.rpartition("/")[0] for path in paths)
    there = [each for folder in folders for each in repository.list_artifacts(folder)]
    return [each for each in there if each.path in paths]


def _all_below(repository: ArtifactRepository) -> list[FileInfo]:
    """All files of a run."""
    files: list[FileInfo] = []
    folders = [""]
    while folders:
        for each in repository.list_artifacts(folders.pop()):
            if each.is_dir:
                folders.append(each.path)
            else:
                files.append(each)
    return files


def logged(experiment: str, tag: str, value: str) -> str | None:
    """The id of the newest run of an experiment with such a tag, if there is one."""
    experiment_id = prepare(experiment)
    with _failures_in_one_line():
        chosen = f"tags.`{tag}` = '{value}' AND attributes.status = 'FINISHED'"
        found = mlflow.MlflowClient().search_runs([experiment_id], chosen, max_results=1)
    return found[0].info.run_id if found else None


def _run(run_id: str) -> Run:
    store = store_uri()
    if _is_missing(store):
        raise UserError(f"run:{run_id}: there are no runs yet in {store}; `dvc repro` logs one")
    with _failures_in_one_line(READ_AGAIN):
        mlflow.set_tracking_uri(store)
        try:
            return mlflow.get_run(run_id)
        except MlflowException as error:
            if error.error_code in NO_SUCH_RUN:
                raise UserError(
                    f"run:{run_id}: MLflow has no such run; `{COMMAND}` shows those there are"
                ) from None
            raise


def _is_missing(store: str) -> bool:
    """Whether MLflow would have to create the store."""
    return store.startswith(SQLITE) and not Path(store.removeprefix(SQLITE)).exists()


def _log(result: Result, model: Model | None, run_id: str, now: int) -> None:
    _log_values(run_id, now, result)
    for file in result.files:
        mlflow.log_artifact(str(file), "/".join(file.parent.parts) or None)
    for path, table in result.tables.items():
        mlflow.log_table(table, path)
    for path, text in result.texts.items():
        mlflow.log_text(text, path)
    _log_data(result)
    if model:
        _log_model(result, model)


def _log_data(result: Result) -> None:
    """The data set as the run's input. Who writes the same one at the same moment comes second."""
    data = MetaDataset(  # type: ignore[abstract]
        CodeDatasetSource({MLFLOW_SOURCE_TYPE: "LOCAL", MLFLOW_SOURCE_NAME: result.source}),
        name=result.dataset,
        digest=result.digest,
    )
    sizes = {name: str(size) for name, size in result.sizes.items()}
    log = partial(mlflow.log_input, data, context="all rows", tags=sizes)
    try:
        log()
    except MlflowException:  # it was not there when MLflow looked, and is now
        log()


def _log_values(run_id: str, now: int, result: Result) -> None:
    points = _points(result, now)
    for prefix, table in result.courses.items():
        step, *names = table.columns
        for name in names:
            steps = zip(table[step], table[name], strict=True)
            points += [Metric(f"{prefix}.{name}", float(v), now, int(s)) for s, v in steps]
    _log_batch(run_id, result, points)


def _points(summary: Summary, now: int) -> list[Metric]:
    return [Metric(name, value, now, 0) for name, value in summary.metrics.items()]


def _log_batch(run_id: str, summary: Summary, points: Sequence[Metric]) -> None:
    params = [Param(name, str(value)) for name, value in summary.params.items()]
    tags = [RunTag(name, value) for name, value in summary.tags.items()]
    client = mlflow.MlflowClient()
    client.log_batch(run_id, params=params, tags=tags)
    for start in range(0, len(points), METRICS_PER_BATCH):
        client.log_batch(run_id, metrics=points[start : start + METRICS_PER_BATCH])


def _log_model(result: Result, model: Model) -> None:
    """Log the model from code around its weights: nothing is pickled, nothing is inferred."""
    example = pd.DataFrame(result.example, columns=model.columns)
    for name in example.select_dtypes(["datetime", "datetimetz"]):
        example[name] = example[name].dt.strftime("%Y-%m-%dT%H:%M:%S")  # as JSON has them
    needed = ["filelock", "mlflow", "numpy", "pandas", "pyarrow", "safetensors", "scipy"]
    needed += ["scikit-learn", "threadpoolctl"] if model.encoding else []
    log_model(
        name="classifier",
        python_model=str(PACKAGE / "serving/served_model.py"),
        artifacts={"classifier": str(result.model)},
        code_paths=[str(PACKAGE)],
        signature=_signature(model, example),
        input_example=example,
        pip_requirements=[f"{package}=={version(package)}" for package in needed],
    )


class ServedModel(PythonModel):
    """The model as `mlflow.pyfunc` loads it: a table of features in, one of predictions out."""

    def load_context(self, context: Any) -> None:
        """Read the model's directory."""
        self.model = load(context.artifacts["classifier"])

    def predict(
        self,
        context: Any,  # noqa: ARG002
        model_input: pd.DataFrame,
        params: dict[str, Any] | None = None,  # noqa: ARG002
    ) -> pd.DataFrame:
        """Probability of each label, a column each, and `labels`: the list of those predicted.

        What the model cannot take is the answer 400 where it is served.
        """
        try:
            return prediction.table(self.model, model_input, "the request")
        except UserError as mistake:
            raise MlflowException(str(mistake), BAD_REQUEST) from None


def serve() -> None:
    """Hand the model to MLflow, which runs served_model.py to get it."""
    set_model(ServedModel())


def scoring_app(model_uri: str) -> Any:
    """MLflow's web application around a logged model; `scoring` stands before it."""
    from mlflow.pyfunc import load_model, scoring_server

    with _failures_in_one_line(READ_AGAIN):
        mlflow.set_tracking_uri(store_uri())
        return scoring_server.init(load_model(model_uri))


def _signature(model: Model, example: pd.DataFrame) -> ModelSignature:
    outputs = [ColSpec("double", name) for name in model.label_names]
    inputs: list[ColSpec | TensorSpec] = [
        ColSpec(_kind(example[name]), name, required=model.encoding is None)
        for name in model.columns
    ]
    return ModelSignature(
        Schema(inputs),
        Schema([*outputs, ColSpec(ListOf("string"), prediction.labels_column(model))]),
    )


def _kind(cells: "pd.Series[Any]") -> Any:
    """What MLflow calls the values of a column; dates come as text."""
    if cells.dtype == bool:
        return "boolean"
    if cells.dtype.kind in "iuf":
        return "double"
    lists = cells.map(lambda cell: isinstance(cell, list | tuple | np.ndarray)).any()
    return ListOf("double") if lists else "string"


@contextmanager
def _alone() -> Iterator[None]:
    """Use the store; one in a file, which is made if need be, is one process's at a time.

    A server is shared by all: nothing is locked while it may take its time.
    """
    store = store_uri()
    mlflow.set_tracking_uri(store)
    if store.startswith(POSTGRESQL):
        _make_tables(store)
    if not store.startswith(SQLITE):
        yield
        return
    database = Path(store.removeprefix(SQLITE))
    lock = FileLock(f"{database}.lock", timeout=MOST_WAITED)
    try:
        lock.acquire()
    except Timeout:
        raise UserError(
            f"{lock.lock_file}: another process has been logging for {MOST_WAITED} seconds; end "
            f"it, and {LOG_AGAIN}"
        ) from None
    try:
        local_store.make_whole(database, _revisions, _make_store)
        yield
    finally:
        lock.release()


def _make_tables(store: str) -> None:
    """Let MLflow make its tables in a database of PostgreSQL, one process at a time."""
    engine = create_engine(store)
    try:
        with engine.connect() as connection:
            connection.exec_driver_sql(f"SET lock_timeout = '{MOST_WAITED}s'")
            connection.exec_driver_sql(f"SELECT pg_advisory_lock({OUR_LOCK})")
            mlflow.search_experiments(max_results=1)
    finally:
        engine.dispose()  # which unlocks


def _revisions() -> list[str]:
    """The versions of the store that this MLflow knows, the newest first."""
    scripts = ScriptDirectory.from_config(_get_alembic_config(""))  # type: ignore[no-untyped-call]
    return [each.revision for each in scripts.walk_revisions()]


def _make_store(path: Path) -> None:
    """Make a new store at a path, where nobody else sees it: no step of it has to last."""

    def hurry(connection: Any, _: object) -> None:
        connection.execute("PRAGMA synchronous = OFF")

    event.listen(Engine, "connect", hurry)
    try:
        made = SqlAlchemyStore(  # type: ignore[no-untyped-call]
            f"{SQLITE}{path.resolve().as_posix()}", str(_artifacts())
        )
        made.engine.dispose()
    finally:
        event.remove(Engine, "connect", hurry)


def _artifacts() -> Path:
    return project_root() / "mlruns"


def _experiment_id(name: str) -> str:
    """Find or create the experiment."""
    found = mlflow.get_experiment_by_name(name)
    if found is None:
        location = None if _has_server() else _artifacts().as_uri()
        try:
            return str(mlflow.create_experiment(name, location, TRAINING_PAGES))
        except MlflowException:
            found = mlflow.get_experiment_by_name(name)  # another was faster
            if found is None:
                raise
    if not found.experiment_id:
        raise MlflowException("what answers there is not MLflow")
    return str(found.experiment_id)


def _has_server() -> bool:
    return urlsplit(store_uri()).scheme in ("http", "https", "databricks", "")


@contextmanager
def _failures_in_one_line(then: str = LOG_AGAIN) -> Iterator[None]:
    """A store that cannot be reached, refuses or answers nonsense is the user's to mend."""
    try:
        with _answers_in_time():
            yield
    except UserError:
        raise
    except FAILURES as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        address, reason = (LOGIN.sub("://", text) for text in (store_uri(), reason))
        raise UserError(
            f"MLFLOW_TRACKING_URI: MLflow at {address} failed ({reason[:200]}); mend it, or set "
            f"another, and {then}"
        ) from None


@contextmanager
def _answers_in_time() -> Iterator[None]:
    """Give a server so long for each answer as a whole; one that failed once is not asked again.

    A timeout of requests is for each of the bytes that a slow server sends.
    """
    asked = requests.Session.send
    failed = False

    def send(session: requests.Session, request: Any, **options: Any) -> requests.Response:
        nonlocal failed
        if failed:
            raise requests.ConnectionError("it failed before")
        most = _seconds(int(request.headers.get("Content-Length") or 0))
        asks = options.get("timeout")  # of each of the bytes, but that counts everywhere
        options["timeout"] = min(asks, most) if isinstance(asks, int | float) else most
        try:
            with within(most):
                return asked(session, request, **options)
        except OSError:
            failed = True
            raise

    requests.Session.send = send  # type: ignore[assignment, method-assign]
    try:
        yield
    finally:
        requests.Session.send = asked  # type: ignore[method-assign]


def _seconds(size: int) -> float:
    """How long a server may take that is sent so many bytes, or sends them."""
    return SECONDS_TO_ANSWER + size / SLOWEST


def _refuse_taken(port: str) -> None:
    """MLflow's server would start its workers again and again on a port that it cannot have."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", int(port)))
        except (OSError, OverflowError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            by_make = "MAKELEVEL" in os.environ  # which make sets
            another = "make ui PORT=5001" if by_make else f"{COMMAND} 5001"
            raise UserError(
                f"port {port}: cannot be used ({reason}); name another: {another}"
            ) from None


def _page_of_runs() -> str:
    """Where MLflow's pages have the runs that were logged last; its first page has none."""
    if _is_missing(store_uri()):
        return f"/experiments{OF_TRAINING}"
    with _failures_in_one_line(READ_AGAIN):
        mlflow.set_tracking_uri(store_uri())
        every = [each.experiment_id for each in mlflow.search_experiments()]
        newest = mlflow.MlflowClient().search_runs(
            every, max_results=1, order_by=["attributes.start_time DESC"]
        )
    place = f"/{newest[0].info.experiment_id}/runs" if newest else ""
    return f"/experiments{place}{OF_TRAINING}"


def open_pages(port: str = "5000") -> None:
    """Serve MLflow's pages on loopback and open them, or say that a server of its own has them."""
    if _has_server():
        print("The runs are on the server that MLFLOW_TRACKING_URI names: open it in a browser")
        return
    _refuse_taken(port)
    address = f"http://127.0.0.1:{port}/#{_page_of_runs()}"
    print(f"The runs: {address}", flush=True)
    opening.open_later(address)
    os.environ["MLFLOW_BACKEND_STORE_URI"] = store_uri()
    command = [sys.executable, "-m", "mlflow", "ui", "--host", "127.0.0.1", "--port", port]
    # in a session of its own, where a terminal's Ctrl-C does not reach it: it would show tracebacks
    sys.exit(subprocess.Popen(command, start_new_session=True).wait())


if __name__ == "__main__":
    try:
        open_pages(*sys.argv[1:2])
    except UserError as mistake:
        sys.exit(str(mistake))
