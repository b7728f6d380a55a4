"""Hostile files for every reader: `python -m tests.fuzz --minutes 10 --inputs 100000`.

Good files are mutated, also within what is packed. Whatever becomes of them must be read or be a
UserError of one readable line, within the limits of time and memory below. The inputs are made in
a child process, so that a native death or a hang is seen, counted, and gone on after. What is found
is kept in a directory: make a test of it. So are the counts, and the same command goes on there.
"""

import argparse
import gzip
import io
import json
import os
import random
import resource
import struct
import subprocess
import sys
import tempfile
import time
import traceback
import zipfile
import zlib
from argparse import Namespace
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import yaml
from pyarrow import parquet
from scipy import sparse
from scipy.io import savemat

from benchmarks import ROOT
from wscpml import artifacts, settings
from wscpml.algorithm import features
from wscpml.algorithm.network import Network
from wscpml.cli import commands
from wscpml.datasets import batches, own, readers
from wscpml.datasets.dataset import Dataset, check
from wscpml.datasets.encoding import encode
from wscpml.errors import MOST_CHARACTERS, MOST_LINES, UNPRINTABLE, UserError
from wscpml.quality import decisions, diff, review
from wscpml.serving import locks, model, prediction, versions

SECONDS, BYTES = 5, 10**9  # that no input may take, of the processor and of memory
ALLOWED = "500 MB"  # WSCPML_MAX_MEMORY
WALL = 30  # seconds without an end are a hang, however busy the machine is
IN_MEMORY = Path("/dev/shm")  # where putting a file on disk costs nothing
CHILD = ["-m", "tests.fuzz", "--work"]
MOST_FILE = 200_000  # bytes of a mutated file
INTERESTING = [
    *(b"0", b"-1", b"nan", b"inf", b"-inf", b"1e400", b"99999999999999999999", b"0x10", b"1e-400"),
    *(b'"', b"'", b"\n", b"\r", b"\0", b",", b";", b":", b"{", b"}", b"[", b"]", b"%", b"#", b"@"),
    *(b"\xff\xfe", b"\xc3", b"\xf0\x9f\x92\xa9", b"\xe2\x80\xae", b"&#0;", b"&x;", b"*a", b"&a "),
    *(b"!!python/name:os.system ", b"2024-99-99", b"true", b"null", b"NaN", b"=1+1", b"<!DOCTYPE "),
    *(b"\\ud800", b'"\\ud800"', b'["\\ud800"]', b"../x", b"<<: ", b"\\u0000"),
    *(struct.pack("<i", value) for value in (-1, 0, 1, 2**31 - 1, -(2**31), 2**20)),
    *(struct.pack("<q", value) for value in (-1, 2**63 - 1, 2**40)),
    *(b"[" * 2000, b"a" * 5000, b"9" * 5000, b" " * 3000, b"\t:" * 1000, b"\\" * 999),
]


@dataclass
class Target:
    """A reader, and good files for it: one of each name is written, and one of them mutated."""

    read: Callable[[Path], object]  # a directory with the files
    files: dict[str, list[bytes]]
    inner: Callable[[bytes, random.Random], bytes] | None = None  # mutates within what is packed
    kept: frozenset[str] = frozenset()  # files that are not mutated


@dataclass
class Result:
    """What became of a target's inputs."""

    inputs: int = 0
    refused: int = 0
    seconds: float = 0.0
    slowest: float = 0.0
    largest: int = 0  # bytes of memory that an input took
    found: Counter[str] = field(default_factory=Counter)  # causes, and how often each
    minutes: float = 0.0  # by the clock


def mutated(content: bytes, rng: random.Random, others: list[bytes]) -> bytes:
    """A file like this one, and not quite."""
    data = bytearray(content)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 5, 8))):
        i, j = sorted(rng.randrange(len(data) + 1) for _ in range(2))
        j = min(j, i + rng.choice((1, 4, 16, 64, 1 << 16)))
        how = rng.randrange(10)
        if how == 0 and data:
            data[min(i, len(data) - 1)] ^= 1 << rng.randrange(8)
        elif how == 1 and data:
            data[min(i, len(data) - 1)] = rng.randrange(256)
        elif how in (2, 3):
            data[i:i] = rng.choice(INTERESTING)
        elif how in (4, 5):
            new = rng.choice(INTERESTING)
            data[i : i + len(new)] = new
        elif how == 6:
            del data[i:j]
        elif how == 7:
            data[j:j] = data[i:j] * rng.choice((1, 2, 50))
        elif how == 8:
            other = rng.choice(others)
            k = rng.randrange(len(other) + 1)
            data[i:j] = other[k : k + 256]
        elif rng.random() < 0.3:
            del data[i:]
        else:
            data[i:j] = bytes(rng.randrange(256) for _ in range(j - i))
        del data[MOST_FILE:]
    return bytes(data)


def in_zip(content: bytes, rng: random.Random) -> bytes:
    """A zip file of which one entry is mutated, and whose checksums are right."""
    packed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(packed, "w") as new:
        names = old.namelist()
        chosen = rng.choice(names)
        for name in names:
            entry = old.read(name)
            entry = mutated(entry, rng, [entry]) if name == chosen else entry
            if name != chosen or rng.random() < 0.95:
                new.writestr(name, entry, zipfile.ZIP_DEFLATED)
    return packed.getvalue()


def in_gzip(content: bytes, rng: random.Random) -> bytes:
    """A gzip file of mutated content."""
    plain = gzip.decompress(content)
    return gzip.compress(mutated(plain, rng, [plain]), 1)


def in_mat(content: bytes, rng: random.Random) -> bytes:
    """A MATLAB file whose first element is mutated and packed again."""
    size = struct.unpack("<I", content[132:136])[0]
    plain = zlib.decompress(content[136 : 136 + size])
    packed = zlib.compress(mutated(plain, rng, [plain]))
    tag = struct.pack("<II", 15, len(packed))
    return content[:128] + tag + packed + content[136 + size :]


X = np.array([[0.5, 0.0, 2.0], [0.0, 0.25, -1.0], [1.0, 3.0, 0.0], [0.0, 1.0, 7.0]])
Y = np.array([[1, 0], [1, 1], [0, 1], [0, 0]], dtype=np.uint8)
TABLE = pd.DataFrame(
    {
        "song": ["a", "b", "c", "d"],
        "tempo": [1.0, 2.5, 3.0, 4.0],
        "text": ["loud and fast", "slow", "loud and slow", "fast, fast"],
        "day": ["2024-05-31", "2023-01-01", "2022-02-02", "2021-03-03"],
        "tags": ["rock;folk", "R&B", "", "rock"],
    }
)
JUDGED = pd.DataFrame(
    {
        "instance": ["a", "b", "c", "d"],
        "label": ["rock", "folk", "R&B", "rock"],
        "label_confidence": [0.9, 0.2, 0.5, 0.0],
    }
)
LISTS = TABLE.assign(tags=[["rock", "folk"], ["R&B"], [], ["rock"]])
ARFF = b"""% songs
@relation 'songs: -C 2'
@attribute rock {0,1}
@attribute "R&B" {0,1}
@attribute 'tem po' numeric
@attribute loud REAL
@data
1,0,0.5,2
0,1,?,-1e3
"""
SPARSE_ARFF = ARFF.partition(b"@data")[0] + b"@data\n{0 1, 2 0.5}\n{1 1,3 -2}\n{ }\n"
XML = (
    b'<?xml version="1.0" encoding="utf-8"?><labels xmlns="http://m"><label name="rock"/></labels>'
)
SVMLIGHT = b"1,2 1:0.5 3:2\n2 2:1e-3 # more\n3:4\n1\n"
EXPORT = [
    {
        "data": {"instance": "a", "tags": ["rock", "folk"]},
        "annotations": [
            {
                "completed_by": 1,
                "created_at": "2024-05-31T10:00:00Z",
                "result": [
                    {"from_name": "labels", "type": "choices", "value": {"choices": ["rock"]}}
                ],
            }
        ],
    }
]


def written(name: str, write: Callable[[Path], object]) -> bytes:
    """What a library writes to a file."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, name)
        write(path)
        return path.read_bytes()


def _arrow(path: Path) -> None:
    table = pa.Table.from_pandas(LISTS)
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table)


def _songs(name: str, **given: object) -> Callable[[Path], object]:
    """Read a person's table as a data set, all the way."""

    def read(directory: Path) -> object:
        sources = own.Sources(directory / name, **{"id": "song", "tags": "tags"} | given)  # type: ignore[arg-type]
        data = own.load(sources)
        warnings = check(data, name)
        written_names = [*data.label_names, *data.feature_names, *map(str, data.instance_ids)]
        written_names += data.unjudged.label_names if data.unjudged else []
        assert "".join(written_names).encode()
        return warnings

    return read


def _candidates(directory: Path) -> object:
    """Read labels that are in another file than the features."""
    data = own.load(own.Sources(directory / "x.parquet", directory / "y.csv", id="song"))
    return check(data, "y.csv")


def _probabilities(directory: Path) -> object:
    given = Namespace(probabilities=directory / "x.csv", id="song", merge_variants=False)
    found = commands._probabilities(given, some_songs())
    assert ((found >= 0) & (found <= 1)).all()
    return found


def _diff(directory: Path) -> object:
    old = diff.Version("old", diff.candidates(JUDGED, "old"))
    return diff.text(diff.compare(old, versions.version(str(directory / "x.csv"))))


def _locks(directory: Path) -> object:
    """All that is made of DVC's files of a result that somebody else has, but its bytes."""
    both = zip(locks.LOCKS, ("dvc.lock", "models.lock"), strict=True)
    found = versions.locked({path: artifacts.read(directory / name) for path, name in both})
    kept = locks.outs_of(artifacts.read(directory / "songs.dvc"), "songs.dvc")
    for path in [*found.outs, *(out.path for out in kept)]:
        assert (directory / path).resolve().is_relative_to(directory)
        locks.hash_of(directory / path)
    return found


def _matrices(name: str) -> Callable[[Path], object]:
    def read(directory: Path) -> object:
        parts = readers.read(directory / name)
        if parts.features is not None:
            assert np.isfinite(parts.features.sum()) or parts.features.size
        return parts

    return read


def _settings(directory: Path) -> object:
    settings.for_estimator(directory / "params.yaml", [])
    return settings.load(directory / "params.yaml")


def _model(directory: Path) -> object:
    found = model.load(directory)
    table = TABLE.assign(loud=1.0).reindex(columns=found.columns)
    return prediction.table(found, table, "the table")


def _predict(directory: Path) -> object:
    found = some_model(encoded=False)
    for first, part in batches.read(directory / "x.csv", found.columns, "song"):
        probabilities = prediction.table(found, part, "x.csv", first)[found.label_names]
        assert ((probabilities >= 0) & (probabilities <= 1)).all(axis=None)
    return first


def _decisions(directory: Path) -> object:
    table = decisions.read(directory / "x.csv")
    decisions.remarks(table)
    decisions.append(directory / "x.csv", [{"instance": "a", "label": "b", "decision": True}])
    assert len(decisions.read(directory / "x.csv")) >= 1
    return decisions.decided(table, ["a", "b"], ["rock", "folk"], "x.csv")


def _export(directory: Path) -> object:
    export = review.label_studio_export(directory / "x.json")
    said = review.label_studio_decisions(export, "x.json")
    decisions.append(directory / "y.csv", said.to_dict("records"))
    return decisions.read(directory / "y.csv")


@cache
def some_songs() -> Dataset:
    with tempfile.TemporaryDirectory() as directory:
        TABLE.to_csv(Path(directory, "x.csv"), index=False)
        return own.load(own.Sources(Path(directory, "x.csv"), id="song", tags="tags"))


@cache
def some_model(encoded: bool) -> model.Model:
    """A small model with weights that are no good."""
    rng, table = np.random.default_rng(0), TABLE[["tempo", "text", "day"]]
    found = encode(table, "x", str) if encoded else None
    matrix = found.matrix if found else X[:, :2]
    names = found.names if found else ["tempo", "loud"]
    feature_map = features.fit(matrix, "quantile", "rbf", 5, 0.5, 1.0, rng)
    shapes = ((feature_map.size, 4), 4, (2, 2), 2)
    head = Network(*(rng.normal(size=shape).astype(np.float32) for shape in shapes))
    encoding = found.encoding if found else None
    return model.Model(feature_map, head, names, ["rock", "R&B"], encoding)


def model_files() -> dict[str, list[bytes]]:
    with tempfile.TemporaryDirectory() as directory:
        artifacts.write_directory(Path(directory, "m"), some_model(encoded=True).to_files())
        return {path.name: [path.read_bytes()] for path in Path(directory, "m").iterdir()}


def lock_files() -> dict[str, list[bytes]]:
    """DVC's files of a small result."""
    known = {"hash": "md5", "md5": "0123456789abcdef" * 2, "size": 7}
    params = {
        "metrics/code.json": {"stages.prepare": "0123"},
        "metrics/settings.json": {"method": "wsc-pml", "noise": {"kind": "pad", "rate": None}},
    }
    prepare = {
        "cmd": "python -m stages.prepare",
        "deps": [{"path": "data/own/songs.csv"} | known],
        "params": params,
        "outs": [{"path": "data/prepared"} | known | {"md5": f"{known['md5']}.dir"}],
    }
    cluster = {"cmd": "true", "outs": [{"path": "data/pseudo_labels.parquet"} | known]}
    files = {
        "dvc.lock": {"schema": "2.0", "stages": {"prepare": prepare}},
        "models.lock": {"schema": "2.0", "stages": {"cluster": cluster}},
        "songs.dvc": {"outs": [{"path": "songs.csv"} | known]},
    }
    return {name: [yaml.safe_dump(content).encode()] for name, content in files.items()}


@cache
def targets() -> dict[str, Target]:
    """Every reader, by the name of what it reads."""
    csv = TABLE.to_csv(index=False).encode()
    short = TABLE[["song", "tempo", "tags"]].to_csv(index=False).encode()
    listed = LISTS[["song", "tempo"]].assign(tags=LISTS.tags.map(json.dumps)).to_csv(index=False)
    dated = TABLE[["song", "tempo", "tags"]].assign(day=pd.to_datetime(TABLE.day))
    german = TABLE.to_csv(index=False, sep=";", decimal=",").encode()
    loud = TABLE.assign(loud=0.5)
    german_loud = loud.to_csv(index=False, sep=";", decimal=",").encode()
    json_lines = [
        "".join(json.dumps(row) + "\n" for row in table.to_dict("records")).encode()
        for table in (TABLE, LISTS)
    ]
    tables = [
        written("x.parquet", lambda path: table.to_parquet(path))  # noqa: B023
        for table in (TABLE, LISTS)
    ]
    plain = written(
        "x.parquet",
        lambda path: parquet.write_table(
            pa.Table.from_pandas(LISTS), path, compression="none", use_dictionary=False
        ),
    )
    params = (ROOT / "params.yaml").read_bytes()
    bare = yaml.safe_dump(yaml.safe_load(params)).encode()
    mats = [
        written("x.mat", lambda path: savemat(path, what, do_compression=packed))  # noqa: B023
        for what in ({"data": X, "target": Y}, {"data": sparse.csc_array(X), "partial_labels": Y.T})
        for packed in (True, False)
    ]
    said = pd.DataFrame(
        {"instance": ["a", "b"], "label": ["rock", "folk"], "decision": ["true", "false"]}
    )
    full = said.assign(reviewer="me", time="2024-05-31", note='well, "so"')
    long = TABLE.assign(label=["rock", "folk", "R&B", "rock"])[["song", "label"]]
    wide = pd.DataFrame(Y, columns=["rock", "R&B"]).assign(song=TABLE.song)
    likely = pd.DataFrame(X.clip(0, 1), columns=["rock", "R&B", "folk"]).assign(song=TABLE.song)
    worded = JUDGED.assign(decided=["true", "", "false", ""])
    features = written("x.parquet", lambda path: TABLE[["song", "tempo"]].to_parquet(path))
    return {
        "csv": Target(_songs("x.csv"), {"x.csv": [csv, german, short, listed.encode()]}),
        "rare": Target(_songs("x.csv", min_count=2), {"x.csv": [csv, listed.encode()]}),
        "csv.gz": Target(_songs("x.csv.gz"), {"x.csv.gz": [gzip.compress(short)]}, in_gzip),
        "jsonl": Target(_songs("x.jsonl"), {"x.jsonl": json_lines}),
        "parquet": Target(_songs("x.parquet"), {"x.parquet": [*tables, plain]}),
        "arrow": Target(
            _songs(""),
            {"x.arrow": [written("x", _arrow)], "dataset_info.json": [b'{"features": null}']},
        ),
        "xlsx": Target(
            _songs("x.xlsx"),
            {"x.xlsx": [written("x.xlsx", lambda path: dated.to_excel(path, index=False))]},
            in_zip,
        ),
        "npy": Target(
            _matrices("x.npy"), {"x.npy": [written("x.npy", lambda path: np.save(path, X))]}
        ),
        "npz": Target(
            _matrices("x.npz"),
            {
                "x.npz": [
                    written("x.npz", lambda path: np.savez(path, features=X, candidates=Y)),
                    written("x.npz", lambda path: np.savez_compressed(path, features=X, truth=Y)),
                    written("x.npz", lambda path: sparse.save_npz(path, sparse.csr_array(X))),
                    written("x.npz", lambda path: sparse.save_npz(path, sparse.csc_array(X))),
                ]
            },
            in_zip,
        ),
        "mat": Target(_matrices("x.mat"), {"x.mat": mats}, in_mat),
        "arff": Target(_matrices("x.arff"), {"x.arff": [ARFF, SPARSE_ARFF]}),
        "xml": Target(
            _matrices("x.arff"), {"x.arff": [ARFF], "x.xml": [XML]}, kept=frozenset({"x.arff"})
        ),
        "svmlight": Target(_matrices("x.svmlight"), {"x.svmlight": [SVMLIGHT]}),
        "params": Target(_settings, {"params.yaml": [params, bare]}),
        "model": Target(_model, model_files()),
        "decisions": Target(
            _decisions, {"x.csv": [table.to_csv(index=False).encode() for table in (said, full)]}
        ),
        "predict": Target(_predict, {"x.csv": [loud.to_csv(index=False).encode(), german_loud]}),
        "candidates": Target(
            _candidates,
            {
                "x.parquet": [features],
                "y.csv": [each.to_csv(index=False).encode() for each in (long, wide)],
            },
            kept=frozenset({"x.parquet"}),
        ),
        "probabilities": Target(_probabilities, {"x.csv": [likely.to_csv(index=False).encode()]}),
        "diff": Target(
            _diff, {"x.csv": [each.to_csv(index=False).encode() for each in (JUDGED, worded)]}
        ),
        "locks": Target(_locks, lock_files()),
        "label studio": Target(_export, {"x.json": [json.dumps(EXPORT).encode() + b"\n"]}),
    }


def make(name: str, number: int) -> dict[str, bytes]:
    """The files of an input: the same for the same number."""
    target, rng = targets()[name], random.Random(f"{name} {number}")
    files = {each: rng.choice(seeds) for each, seeds in target.files.items()}
    chosen = rng.choice([each for each in files if each not in target.kept])
    if target.inner and rng.random() < 0.5:
        with suppress(zlib.error, struct.error):  # this one is not packed
            files[chosen] = target.inner(files[chosen], rng)
    else:
        files[chosen] = mutated(files[chosen], rng, target.files[chosen])
    return files


def cause(error: BaseException) -> str:
    """What an exception has in common with those of the same origin: where it comes from."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "wscpml" in Path(frame.filename).parts] or frames
    return f"{type(error).__name__} at {Path(ours[-1].filename).name}:{ours[-1].lineno}"


def attempt(name: str, files: dict[str, bytes], directory: Path) -> str:
    """Read an input: nothing, `refused`, or what is wrong with what became of it."""
    for old in directory.iterdir():
        old.unlink()
    for each, content in files.items():
        (directory / each).write_bytes(content)
    try:
        targets()[name].read(directory)
    except UserError as mistake:
        odd = [
            line for line in mistake.args if len(line) > MOST_CHARACTERS or UNPRINTABLE.search(line)
        ]
        return "unreadable line" if odd or len(mistake.args) > MOST_LINES + 1 else "refused"
    except Exception as error:
        return cause(error)
    return ""


def peak() -> int:
    """Bytes of memory that this process has had at most since it was last asked."""
    lines = Path("/proc/self/status").read_text().splitlines()
    found = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) << 10
    Path("/proc/self/clear_refs").write_text("5")
    return found


def work(jobs: list[tuple[str, int, int]], report: Path) -> None:
    """Run inputs one after another; what comes of each is a line of the report, flushed."""
    place = IN_MEMORY if IN_MEMORY.is_dir() else None
    with (
        tempfile.TemporaryDirectory(dir=place) as directory,
        report.open("a", buffering=1) as lines,
    ):
        os.chdir(directory)
        Path("x").mkdir()
        for name, first, end in jobs:
            for number in range(first, end):
                files = make(name, number)
                lines.write(json.dumps([name, number]) + "\n")
                peak()
                before, start = peak(), time.process_time()
                became = attempt(name, files, Path("x").absolute())
                seconds = time.process_time() - start
                lines.write(json.dumps([became, round(seconds, 3), max(0, peak() - before)]) + "\n")
                del files


def run(
    names: list[str], inputs: int, minutes: float, keep: Path, share: int = 500
) -> dict[str, Result]:
    """So many inputs of each, or as many as there is time for, in turns, in child processes."""
    results = {name: Result() for name in names}
    go_on(results, inputs, minutes, keep, share)
    return results


def go_on(results: dict[str, Result], inputs: int, minutes: float, keep: Path, share: int) -> None:
    """The same, after those inputs that were there before."""
    end = time.monotonic() + 60 * minutes
    while time.monotonic() < end:
        jobs = [
            (name, each.inputs, min(each.inputs + share, inputs))
            for name, each in results.items()
            if each.inputs < inputs
        ]
        if not jobs:
            return
        for name, number, became, seconds, size in supervised(jobs, end):
            result = results[name]
            result.inputs = number + 1
            result.refused += became == "refused"
            result.seconds += seconds
            result.slowest, result.largest = max(result.slowest, seconds), max(result.largest, size)
            if seconds > SECONDS:
                became = f"{seconds:.0f} s"
            elif size > BYTES:
                became = f"{size >> 20} MB"
            if became not in ("", "refused"):
                result.found[became] += 1
                if result.found[became] <= 3:
                    place = keep / f"{name.replace('.', '-')}-{number}"
                    place.mkdir(parents=True, exist_ok=True)
                    (place / "became.txt").write_text(f"{became}\n")
                    for each, content in make(name, number).items():
                        (place / each).write_bytes(content)


def supervised(
    jobs: list[tuple[str, int, int]], end: float
) -> Iterator[tuple[str, int, str, float, int]]:
    """What becomes of each input; a child that dies or hangs is followed by another."""
    while jobs:
        with tempfile.TemporaryDirectory() as directory:
            report = Path(directory, "report")
            report.touch()
            child = subprocess.Popen(
                [sys.executable, *CHILD, json.dumps(jobs), str(report)],
                env=os.environ | {"WSCPML_MAX_MEMORY": ALLOWED, "PYTHONPATH": str(ROOT)},
                cwd=ROOT,
                stderr=subprocess.PIPE,
            )
            begun: tuple[str, int] | None = None
            with report.open() as lines:
                for line in _followed(lines, child, end):
                    found = json.loads(line)
                    if len(found) == 2:
                        begun = (found[0], found[1])
                    elif begun:
                        yield *begun, *found
                        jobs = _rest(jobs, *begun)
                        begun = None
            stopped = child.poll() is None
            child.kill()
            _, said = child.communicate()
        if time.monotonic() > end:
            return
        if begun:
            yield *begun, "hang" if stopped else f"native death, status {child.returncode}", 0.0, 0
            jobs = _rest(jobs, *begun)
        elif jobs and not stopped:  # or else it was slow to start, and another is
            raise RuntimeError(f"the child ended early: {said.decode()[-2000:]}")


def _followed(lines: io.TextIOBase, child: "subprocess.Popen[bytes]", end: float) -> Iterator[str]:
    """The lines of a report until its writer ends, or writes no more, or the time is over."""
    last, part = time.monotonic(), ""
    while True:
        alive = child.poll() is None
        while line := lines.readline():
            last, part = time.monotonic(), part + line
            if part.endswith("\n"):
                yield part
                part = ""
        if not alive or time.monotonic() > min(last + WALL, end):
            return
        time.sleep(0.02)


def _rest(jobs: list[tuple[str, int, int]], name: str, number: int) -> list[tuple[str, int, int]]:
    """The jobs that are left after an input of the first of them."""
    while jobs and jobs[0][0] != name:
        jobs = jobs[1:]
    (_, _, end), *others = jobs
    return [(name, number + 1, end), *others] if number + 1 < end else others


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="of each reader, at most")
    parser.add_argument("--inputs", type=int, default=100_000, help="of each reader, at most")
    parser.add_argument("--target", action="append", choices=list(targets()))
    parser.add_argument("--keep", type=Path, default=Path("fuzz-found"), metavar="DIR")
    options = parser.parse_args()
    counts = options.keep / "counts.json"
    results = {name: Result() for name in targets()}
    if counts.exists():
        for name, each in artifacts.read(counts).items():
            results[name] = Result(**each | {"found": Counter(each["found"])})
    for name in options.target or list(targets()):
        result = results[name]
        while result.inputs < options.inputs and result.minutes < options.minutes:
            start = time.monotonic()
            left = min(2.0, options.minutes - result.minutes)
            go_on({name: result}, options.inputs, left, options.keep, options.inputs)
            result.minutes += (time.monotonic() - start) / 60
            artifacts.write(counts, {name: vars(each) for name, each in results.items()})
    print("| reader | inputs | refused | minutes | slowest | memory | found |")
    print("|---|---|---|---|---|---|---|")
    for name, each in results.items():
        if each.inputs:
            told = ", ".join(f"{what} ({count})" for what, count in each.found.items())
            print(
                f"| {name} | {each.inputs:,} | {each.refused:,} | {each.minutes:.1f} "
                f"| {each.slowest:.1f} s | {each.largest >> 20} MB | {told or 'nothing'} |"
            )
    sys.exit(any(each.found for each in results.values()))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--work"]:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_AS, (8 * BYTES, 8 * BYTES))
        work(json.loads(sys.argv[2]), Path(sys.argv[3]))
    else:
        main()
