"""What size costs: processor time and memory against rows, labels, features and candidates.

`python -m benchmarks.scale [--quick] [--only CELL ...] [--json FILE]` makes data whose labels
follow from features, with false candidates among them, and measures in a process of its own for
each case (labels are linear in the features, or where it is called bent, in their distances from
zero):

    fit        `WSCPML.fit` against n, q, d and candidates a row, and the exponents of its growth
    lr, rf     cleanlab on the same data: out-of-fold logistic regression, or a forest, its scores
               and its filter; and how well each tells the false candidates (ROC AUC)
    given      `label_confidence` of probabilities that are given, and `issues`, what cleanlab's
               filter takes for the same; memory is with the probabilities, as float32
    clean      `wscpml clean` on a Parquet file, with page and model; the last has a million rows
    predict    `wscpml predict`: rows for each second of processor time
    repro      `dvc repro` of a copy of this project on that file, all its stages; memory is that of
               the stage that takes most
    dask       the same fit on 1, 2 and 4 workers of a Dask cluster on this machine, what reaches
               scheduler and client over the network, and how far confidences are from local ones

Memory is that of the process at its peak: its own, and what it has mapped of files. What FILE has
is not measured again, so a run that was stopped goes on. `--quick`: small problems, no cluster;
`--only CELL ...`: the lines that begin so, such as 50000x64x200.dask. `--trees` measures, in place
of all that, what fewer trees of the judgement's forests cost: ROC AUC, calibration error and
processor time on real sets with noise, and on made-up rows of which half are learned from.
"""

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import yaml
from scipy import sparse

from benchmarks import ROOT, copy_project
from benchmarks.engine import status
from wscpml.arrays import Array, row_blocks
from wscpml.devices import one_blas_thread

ROWS_AT_ONCE = 10_000
TRUE = 0.6  # share of the candidates that are true
ZIPF = 0.5  # how unequal labels are: frequencies fall with their rank to this power
ALONG = {  # how a case grows, and what of
    "n": (25_000, 50_000, 100_000, 200_000),
    "q": (50, 200, 1000),
    "d": (32, 64, 128, 256),
    "candidates": (3, 5, 10),
}
QUICK = {"n": (300, 600), "q": (10, 20)}
WORKERS = (1, 2, 4)
CONFIDENCE = "confidence.npy"  # what the fit on this machine alone has found
TREES = (50, 100, 200, 400)
OF_TREES = (  # a set and a kind of noise, or made-up data
    *product(("emotions", "birds", "yeast", "image", "medical"), ("per_label", "frequency", "pad")),
    (40_000, 64, 20),  # half of these rows are learned from
    (40_000, 64, 200),
)
QUICK_OF_TREES = (("emotions", "per_label"), (300, 8, 10))
Figures = dict[str, float]


@dataclass(frozen=True)
class Problem:
    """n rows of d features and q labels, with so many candidates a row.

    Labels are linear in the features, or in their distances from zero: then they are bent.
    """

    n: int = 50_000
    d: int = 64
    q: int = 200
    candidates: int = 5
    bent: bool = False

    @property
    def title(self) -> str:
        """What a case is called."""
        more = f"x{self.candidates}c" if self.candidates != Problem.candidates else ""
        return f"{self.n}x{self.d}x{self.q}{more}{'-bent' * self.bent}"


BASE, SMALL = Problem(), Problem(300, 8, 10)
LARGE = Problem(50_000, 64, 1000)
BESIDE = Problem(100_000, 100, 200)  # cleanlab
GIVEN = (Problem(1000, 1, 20), Problem(20_000, 1, 50), Problem(100_000, 1, 1000))
LONG = Problem(200_000, 64, 20)
MILLION = Problem(1_000_000, 64, 1000)


def make(problem: Problem, directory: Path) -> None:
    """Write features, candidates and truth, and all but the truth as a table.

    Rows come in clusters; a row's labels are those with the highest scores, common ones
    more often; its false candidates are any others.
    """
    from pyarrow import Table, array
    from pyarrow.parquet import ParquetWriter

    rng = np.random.default_rng(0)
    n, d, q, k = problem.n, problem.d, problem.q, problem.candidates
    centres = rng.standard_normal((50, d), np.float32)
    weights = rng.standard_normal((d, q), np.float32)
    common = -ZIPF * np.log(1 + np.arange(q, dtype=np.float32)) * np.sqrt(d)
    true = max(1, round(TRUE * k))
    labels = np.empty((n, k), np.int32)
    features = np.lib.format.open_memmap(directory / "features.npy", "w+", np.float32, (n, d))
    names = np.array([f"label {j:05}" for j in range(q)], dtype=object)
    writer = None
    for rows in row_blocks(n, ROWS_AT_ONCE):
        m = rows.stop - rows.start
        X = centres[rng.integers(0, len(centres), m)] + rng.standard_normal((m, d), np.float32)
        scores = (abs(X) if problem.bent else X) @ weights + common
        first = np.argpartition(-scores, true, axis=1)[:, :true]
        lots = rng.random((m, q), np.float32)
        np.put_along_axis(lots, first, 2, axis=1)
        labels[rows] = np.hstack([first, np.argpartition(lots, k - true, axis=1)[:, : k - true]])
        features[rows] = X
        columns = {"item": array(np.arange(rows.start, rows.stop))}
        columns |= {f"x{j + 1}": array(X[:, j]) for j in range(d)}
        columns["tags"] = array([";".join(each) for each in names[labels[rows]]])
        part = Table.from_pydict(columns)
        writer = writer or ParquetWriter(directory / "items.parquet", part.schema)
        writer.write_table(part)
    assert writer is not None
    writer.close()
    features.flush()
    np.savez(directory / "labels.npz", labels=labels, true=true, q=q)


def read(directory: Path) -> tuple[Array, sparse.csr_array, Array]:
    """Features ``(n, d)``, candidates ``(n, q)``, and whether each of these is true, in order."""
    with np.load(directory / "labels.npz") as stored:
        labels, true, q = stored["labels"], int(stored["true"]), int(stored["q"])
    n, k = labels.shape
    order = np.argsort(labels, axis=1)
    columns = np.take_along_axis(labels, order, axis=1)
    starts = np.arange(0, n * k + 1, k)
    candidates = sparse.csr_array((np.ones(n * k, np.uint8), columns.ravel(), starts), shape=(n, q))
    return np.load(directory / "features.npy"), candidates, (order < true).ravel()


@contextmanager
def measured(figures: Figures) -> Iterator[None]:
    """Seconds of processor time and of the clock, and the peaks of own and mapped memory in GB."""
    peaks, done = {"RssAnon": 0, "RssFile": 0}, threading.Event()

    def watch() -> None:
        ended = False
        while not ended:
            ended = done.wait(0.01)
            for name in peaks:
                peaks[name] = max(peaks[name], status(name))

    watcher = threading.Thread(target=watch)
    watcher.start()
    before, start = processor(), time.perf_counter()
    try:
        yield
    finally:
        figures |= {"seconds": processor() - before, "wall": time.perf_counter() - start}
        done.set()
        watcher.join()
        figures |= {"own_gb": peaks["RssAnon"] / 1e9, "mapped_gb": peaks["RssFile"] / 1e9}


def processor() -> float:
    """Seconds of processor time of this process, and of those it has waited for."""
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in both)


def auc(true: Array, scores: Array) -> float:
    """How well scores of candidates tell the true ones."""
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(true, scores))


def fit(directory: Path) -> Figures:
    """Ours, all of it."""
    from wscpml import WSCPML

    X, candidates, true = read(directory)
    WSCPML(random_state=0).fit(np.eye(20), np.eye(20, 3))  # what is imported late is, by now
    figures: Figures = {}
    with measured(figures):
        fitted = WSCPML(random_state=0).fit(X, candidates)
    confidence = fitted.judged_.label_confidence[candidates.nonzero()]
    np.save(directory / CONFIDENCE, confidence)
    return figures | {"auc": auc(true, confidence)}


def dask(workers: int) -> Callable[[Path], Figures]:
    """Ours on a cluster on this machine, after `fit`."""

    def run(directory: Path) -> Figures:
        from distributed import Client, LocalCluster
        from distributed.comm import tcp

        from wscpml import WSCPML

        X, candidates, _ = read(directory)
        received, from_frames = 0, tcp.from_frames

        async def counted(frames: Any, *args: Any, **options: Any) -> Any:
            nonlocal received
            received += sum(len(memoryview(each).cast("B")) for each in frames)
            return await from_frames(frames, *args, **options)

        figures: Figures = {}
        before = processor()
        with (
            mock.patch.object(tcp, "from_frames", counted),
            LocalCluster(workers, threads_per_worker=1, dashboard_address=":0") as cluster,
            Client(cluster),
        ):
            received = 0
            with measured(figures):
                fitted = WSCPML(random_state=0).fit(X, candidates)
            figures["received_mb"] = received / 1e6
        confidence = fitted.judged_.label_confidence[candidates.nonzero()]
        figures["difference"] = float(abs(confidence - np.load(directory / CONFIDENCE)).max())
        return figures | {"seconds": processor() - before}

    return run


def peer(name: str) -> Callable[[Path], Figures]:
    """What cleanlab does with the out-of-fold probabilities of a model."""

    def run(directory: Path) -> Figures:
        from cleanlab.internal.multilabel_utils import onehot2int
        from cleanlab.multilabel_classification import filter, rank

        from benchmarks.label_noise import out_of_fold, peers

        X, candidates, true = read(directory)
        figures: Figures = {}
        Y = candidates.toarray()
        with measured(figures):
            predicted = out_of_fold(peers(False)[name], X, Y)
            labels = onehot2int(Y)
            scores = rank.get_label_quality_scores_per_class(labels, predicted)
            filter.find_multilabel_issues_per_class(labels, predicted, n_jobs=1)
        return figures | {"auc": auc(true, scores[candidates.nonzero()])}

    return run


def some_probabilities(candidates: sparse.csr_array, true: Array) -> Array:
    """Probabilities ``(n, q)`` that lean to the true labels."""
    rng = np.random.default_rng(0)
    P = rng.random(candidates.shape, np.float32)
    for rows in row_blocks(len(P), ROWS_AT_ONCE):
        P[rows] **= 8
    row, label = (each[true] for each in candidates.nonzero())
    P[row, label] = np.maximum(P[row, label], rng.random(len(row), np.float32))
    return P


def given(directory: Path) -> Figures:
    """Ours, by probabilities alone."""
    from wscpml import label_confidence

    _, candidates, true = read(directory)
    label_confidence(np.eye(20), np.eye(20))  # what is imported late is, by now
    P = some_probabilities(candidates, true)
    figures: Figures = {}
    with measured(figures):
        confidence = label_confidence(candidates, P)
    return figures | {"auc": auc(true, confidence[candidates.nonzero()])}


def issues(directory: Path) -> Figures:
    """cleanlab's filter, by the same probabilities."""
    from cleanlab.internal.multilabel_utils import onehot2int
    from cleanlab.multilabel_classification.filter import find_label_issues

    _, candidates, true = read(directory)
    P = some_probabilities(candidates, true)
    labels = onehot2int(candidates.toarray())
    figures: Figures = {}
    with measured(figures):
        find_label_issues(labels, P, "self_confidence", n_jobs=1)
    return figures | {"auc": auc(true, P[candidates.nonzero()])}


def clean(directory: Path) -> Figures:
    """The command, with a page and a model."""
    from pyarrow.parquet import read_table

    from wscpml.cli import main

    figures: Figures = {}
    place, source = directory / "out", directory / "items.parquet"
    shutil.rmtree(place, ignore_errors=True)
    also = ["--html", f"{place}/audit.html", "--model", f"{place}/model"]
    with measured(figures):
        command = ["clean", str(source), "--tags", "tags", "--id", "item", "--separator", ";"]
        main([*command, "-o", f"{place}/cleaned.parquet", *also])
    figures["page_mb"] = (place / "audit.html").stat().st_size / 1e6
    (confidence,) = read_table(place / "cleaned.parquet", columns=["label_confidence"]).columns
    *_, true = read(directory)  # in the same order: that of rows and names
    return figures | {"auc": auc(true, confidence.to_numpy())}


def predict(directory: Path) -> Figures:
    """The command on all rows, by the model that `clean` has left."""
    from pyarrow.parquet import ParquetFile

    from wscpml.cli import main

    figures: Figures = {}
    place, source = directory / "out", directory / "items.parquet"
    with measured(figures):
        main(["predict", f"{place}/model", str(source), "-o", f"{place}/predicted.parquet"])
    with ParquetFile(source) as file:
        rows = file.metadata.num_rows
    return figures | {"rows_per_second": rows / figures["seconds"]}


def below(process: int) -> Iterator[int]:
    """All processes that a process has started, and those that these have."""
    for path in Path(f"/proc/{process}/task").glob("*/children"):
        for child in map(int, path.read_text().split()):
            yield child
            yield from below(child)


def repro(directory: Path) -> Figures:
    """The pipeline on the same file."""
    from pandas import read_parquet

    project = directory / "project"
    shutil.rmtree(project, ignore_errors=True)
    copy_project(project)
    (project / "data/own").mkdir(parents=True, exist_ok=True)
    shutil.copy(directory / "items.parquet", project / "data/own")
    params = yaml.safe_load((project / "params.yaml").read_text())
    params["dataset"] |= {"name": None, "features": "data/own/items.parquet"}
    params["dataset"] |= {"id": "item", "tags": "tags", "separator": ";"}
    (project / "params.yaml").write_text(yaml.safe_dump(params))
    subprocess.run(["git", "init", "--quiet"], cwd=project, check=True)
    peaks = {"RssAnon": 0, "RssFile": 0}
    before, start = processor(), time.perf_counter()
    command = [sys.executable, "-m", "dvc", "repro", "--quiet"]
    with subprocess.Popen(command, cwd=project, env=os.environ | {"PYTHONPATH": "."}) as running:
        while running.poll() is None:
            with suppress(OSError, StopIteration):  # one has ended
                for process, name in product(below(running.pid), peaks):
                    peaks[name] = max(peaks[name], status(name, process))
            time.sleep(0.1)
    if running.returncode:
        sys.exit("dvc repro failed")
    figures = {"seconds": processor() - before, "wall": time.perf_counter() - start}
    figures |= {"own_gb": peaks["RssAnon"] / 1e9, "mapped_gb": peaks["RssFile"] / 1e9}
    found = read_parquet(project / "data/pseudo_labels.parquet", columns=["label_confidence"])
    *_, true = read(directory)
    return figures | {"auc": auc(true, found.label_confidence.to_numpy())}


CHILDREN: dict[str, Callable[[Path], Figures]] = {
    "fit": fit,
    "lr": peer("lr"),
    "rf": peer("rf"),
    "given": given,
    "issues": issues,
    "clean": clean,
    "predict": predict,
    "repro": repro,
    **{f"dask{workers}": dask(workers) for workers in WORKERS},
}


def of_trees(case: tuple[Any, ...], known: Figures) -> Iterator[Figures]:
    """What judging takes and tells with so many trees, each in turn."""
    from benchmarks.label_noise import judge, load
    from wscpml.quality import judging

    title, data = " ".join(map(str, case)), None
    for count in TREES:
        prefix = f"{title}.{count}."
        found = {k.removeprefix(prefix): v for k, v in known.items() if k.startswith(prefix)}
        if not found:
            if data is None and isinstance(case[0], str):
                noisy = load(*case, 0)
                true = noisy.truth[noisy.candidates.nonzero()]
                data = noisy.X, noisy.candidates, true
            elif data is None:
                with tempfile.TemporaryDirectory() as place:
                    make(Problem(*case), Path(place))
                    data = read(Path(place))
            assert data is not None
            X, candidates, true = data
            before = processor()
            with mock.patch.object(judging, "TREES", count):
                _, judged = judge(X, candidates)
            found = {"seconds": processor() - before}
            confidence = judged.label_confidence[candidates.nonzero()]
            measured = judging.identification(true.astype(int), np.asarray(confidence))
            found |= {name: measured[name] or np.nan for name in ("auc", "calibration_error")}
        print(tree_row(title, count, found), flush=True)
        yield {f"{prefix}{key}": value for key, value in found.items()}


def tree_row(title: str, count: int, figures: Figures) -> str:
    """A line of the table of trees."""
    told = "{seconds:9.1f}{auc:9.4f}{calibration_error:8.3f}".format(**figures)
    return f"{title:22}{count:6} trees{told}"


def mean_of_trees(known: Figures, count: int) -> Figures:
    """The means of what so many trees take and tell on the real sets that were measured."""
    titles = [" ".join(case) for case in OF_TREES if isinstance(case[0], str)]
    titles = [title for title in titles if f"{title}.{count}.seconds" in known]
    if not titles:
        return {}
    return {
        name: float(np.mean([known[f"{title}.{count}.{name}"] for title in titles]))
        for name in ("seconds", "auc", "calibration_error")
    }


def in_child(name: str, directory: Path) -> Figures:
    """What one of `CHILDREN` finds in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.scale", "--child", name, str(directory)]
    given = dict.fromkeys(["OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"], "1")  # waiting would count
    given["PYTHONPATH"] = str(ROOT)
    done = subprocess.run(
        command,
        cwd=directory,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        env=os.environ | given,
    )
    found: Figures = json.loads(done.stdout.splitlines()[-1])
    return found


def cases(quick: bool) -> Iterator[tuple[Problem, tuple[str, ...]]]:
    """What is measured on which problem, each problem once, the largest last."""
    base = SMALL if quick else BASE
    wanted: dict[Problem, tuple[str, ...]] = {}

    def want(problem: Problem, *names: str) -> None:
        wanted[problem] = tuple(dict.fromkeys((*wanted.get(problem, ()), *names)))

    for name, values in (QUICK if quick else ALONG).items():
        for value in values:
            want(replace(base, **{name: value}), "fit")
    if quick:
        want(base, "fit", "lr", "rf", "given", "issues", "clean", "predict")
    else:
        for problem in GIVEN:
            want(problem, "given", "issues")
        want(LARGE, "fit", "repro")
        want(base, *(f"dask{workers}" for workers in WORKERS))
        want(replace(base, n=2 * base.n), "dask2")
        want(BESIDE, "fit", "lr", "rf")
        want(replace(BESIDE, bent=True), "fit", "lr")
        want(LONG, "fit", "clean", "predict")
        want(MILLION, "clean", "predict", "repro")
    yield from sorted(wanted.items(), key=lambda each: each[0].n * each[0].q)


def exponents(found: Figures, quick: bool) -> Iterator[tuple[str, float]]:
    """How processor time and own memory of a fit grow with each quantity."""
    base = SMALL if quick else BASE
    for name, values in (QUICK if quick else ALONG).items():
        titles = [replace(base, **{name: value}).title for value in values]
        for figure in ("seconds", "own_gb"):
            measured = [found.get(f"{title}.fit.{figure}") for title in titles]
            if None not in measured:
                slope = np.polyfit(np.log(values), np.log(np.array(measured, float)), 1)[0]
                yield f"exponent.{name}.{figure}", float(slope)


HEAD = f"{'n x d x q':22}{'':10}{'CPU s':>9}{'clock s':>9}{'own GB':>8}{'mapped':>8}{'AUC':>7}"


def row(title: str, name: str, figures: Figures) -> str:
    """A line of the table."""
    more = f"{figures['auc']:7.3f}" if "auc" in figures else ""
    more += f"  {figures['page_mb']:.1f} MB of page" if "page_mb" in figures else ""
    more += f"  {figures['rows_per_second']:.0f} rows/s" if "rows_per_second" in figures else ""
    if "received_mb" in figures:
        more += (
            f"  {figures['received_mb']:.1f} MB received, differs by {figures['difference']:.0e}"
        )
    return (
        f"{title:22}{name:10}{figures['seconds']:9.1f}{figures['wall']:9.1f}"
        f"{figures['own_gb']:8.2f}{figures['mapped_gb']:8.2f}{more}"
    )


def measure(problem: Problem, names: tuple[str, ...], known: Figures) -> Iterator[Figures]:
    """The figures of one problem, one kind after the other; data are made if any is wanted."""
    with tempfile.TemporaryDirectory() as place:
        directory = Path(place)
        made = False
        for name in names:
            prefix = f"{problem.title}.{name}."
            found = {k.removeprefix(prefix): v for k, v in known.items() if k.startswith(prefix)}
            if not found:
                if not made:
                    make(problem, directory)
                made = True
                if name == "predict" and not (directory / "out/model").exists():
                    in_child("clean", directory)
                if name.startswith("dask") and not (directory / CONFIDENCE).exists():
                    in_child("fit", directory)
                found = in_child(name, directory)
            print(row(problem.title, name, found), flush=True)
            yield {f"{prefix}{key}": value for key, value in found.items()}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small problems")
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep the figures here too")
    parser.add_argument("--most", type=int, metavar="N", help="leave out problems of more rows")
    parser.add_argument(
        "--only", nargs="+", metavar="CELL", default=[""], help="just what begins so"
    )
    parser.add_argument("--trees", action="store_true", help="what fewer trees cost")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        name, directory = options.child
        with one_blas_thread():
            print("\n" + json.dumps(CHILDREN[name](Path(directory))))
        return
    found = json.loads(options.json.read_text()) if options.json and options.json.exists() else {}
    if options.trees:
        print(f"{'':34}{'CPU s':>9}{'AUC':>9}{'error':>8}", flush=True)
        for case in QUICK_OF_TREES if options.quick else OF_TREES:
            if not " ".join(map(str, case)).startswith(tuple(options.only)):
                continue
            with one_blas_thread():
                for figures in of_trees(case, found):
                    found |= figures
                    if options.json:
                        options.json.write_text(json.dumps(found, indent=2) + "\n")
        for count in TREES:
            if means := mean_of_trees(found, count):
                print(tree_row("mean of real sets", count, means))
        return
    print(HEAD, flush=True)
    for problem, names in cases(options.quick):
        if options.most is not None and problem.n > options.most:
            continue
        title, only = problem.title, tuple(options.only)
        names = tuple(name for name in names if f"{title}.{name}".startswith(only))
        for figures in measure(problem, names, found):
            found |= figures
            if options.json:
                options.json.write_text(json.dumps(found, indent=2) + "\n")
    print("\ngrows with this power of n, q, d and the number of candidates")
    for name, value in exponents(found, options.quick):
        found[name] = value
        print(f"{name:30}{value:8.2f}")
    if options.json:
        options.json.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
