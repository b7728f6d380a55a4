import pickle
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from wscpml import artifacts, blocks
from wscpml.arrays import row_blocks
from wscpml.blocks import BlockError, Engine, OnDisk, engine
from wscpml.errors import UserError

BLOCKS = row_blocks(10, 3)


@dataclass(frozen=True)
class Doubled:
    """Twice some rows, written to a room; gives their sum."""

    rows: Any
    room: Any

    def __call__(self, block: slice) -> float:
        self.room[block] = 2 * self.rows[block]
        return float(self.room[block].sum())

    def written(self, block: slice) -> list[Any]:
        return [self.room[block]]


@dataclass(frozen=True)
class Failing:
    error: Exception

    def __call__(self, block: slice) -> float:
        if block.start == 6:
            raise self.error
        return 0.0

    def written(self, _: slice) -> list[Any]:
        return []


@pytest.mark.parametrize("workers", [1, 3])
def test_results_come_in_the_order_of_the_blocks(workers, monkeypatch):
    monkeypatch.setattr(blocks, "cores", lambda: workers)
    rows = np.arange(10.0)
    work = Doubled(rows, Engine().room((10,), float))
    assert list(Engine().over(work, BLOCKS, 1, "doubling")) == [6, 24, 42, 18]
    np.testing.assert_array_equal(work.room, 2 * rows)


def test_memory_says_how_many_blocks_are_worked_on_at_once(monkeypatch):
    monkeypatch.setattr(blocks, "cores", lambda: 8)
    assert Engine(memory=100)._workers(30, "a pass") == 3
    assert Engine(memory=1000)._workers(30, "a pass") == 8
    monkeypatch.setattr(blocks, "free", lambda: 10)
    assert Engine()._workers(30, "a pass") == 1


def test_memory_that_is_too_little_for_a_block_is_a_line():
    with pytest.raises(UserError, match="memory: 10 bytes is too little for a pass: .* 2 KB"):
        Engine(memory=10).each(Failing(ValueError()), BLOCKS, 2000, "a pass")


def test_a_block_that_fails_names_its_rows():
    with pytest.raises(BlockError, match="a pass: rows 6 to 8: ValueError: odd"):
        Engine().each(Failing(ValueError("odd\nmore")), BLOCKS, 1, "a pass")
    with pytest.raises(UserError, match="a pass: rows 6 to 8: no such file"):
        Engine().each(Failing(UserError("no such file")), BLOCKS, 1, "a pass")


def test_what_is_sent_of_an_array_on_disk_is_its_path(tmp_path):
    given = Engine(client=object(), directory=tmp_path)
    values = np.arange(100_000.0)
    shared = given.shared(values)
    sent = pickle.dumps(shared)
    assert len(sent) < 1000
    np.testing.assert_array_equal(pickle.loads(sent)[3:9], values[3:9])
    np.save(tmp_path / "own.npy", values)
    mapped = given.shared(np.load(tmp_path / "own.npy", mmap_mode="r"))
    assert mapped.path == str(tmp_path / "own.npy")
    np.testing.assert_array_equal(mapped[-5:], values[-5:])


def test_what_is_sent_of_a_sparse_matrix_are_paths_and_rows_of_it_are_read(tmp_path):
    given = Engine(client=object(), directory=tmp_path)
    values = sparse.random_array((5000, 30), density=0.1, format="csr", rng=0)
    sent = pickle.dumps(given.shared(values))
    assert len(sent) < 2000
    found = pickle.loads(sent)[70:90]
    np.testing.assert_array_equal(found.toarray(), values[70:90].toarray())
    some = np.array([3, 4999, 0])
    np.testing.assert_array_equal(given.shared(values)[some].toarray(), values[some].toarray())
    assert Engine().shared(values) is values


def test_a_file_that_a_worker_does_not_see_is_a_line(tmp_path):
    with pytest.raises(UserError, match=r"gone\.bin: .* every worker must see"):
        OnDisk(tmp_path / "gone.bin", (3,), float)[:]


@dataclass(frozen=True)
class Dying:
    """Doubling that ends at some row, and notes which blocks were begun."""

    work: Doubled
    at: int
    begun: list[int]

    def __call__(self, block: slice) -> None:
        self.begun.append(block.start)
        if block.start == self.at:
            raise KeyboardInterrupt
        self.work(block)

    def written(self, block: slice) -> list[Any]:
        return self.work.written(block)


def test_what_was_stopped_goes_on_with_the_block_that_it_stopped_at(tmp_path, monkeypatch):
    monkeypatch.setattr(blocks, "cores", lambda: 1)
    rows, begun = np.arange(10.0), list[int]()

    def run(at: int, *inputs: Any) -> Any:
        with engine(checkpoint=tmp_path) as whole:
            given = whole.of("doubling", rows, *inputs)
            work = Dying(Doubled(rows, given.room((10,), float)), at, begun)
            given.each(work, BLOCKS, 1, "doubling")
            return work.work.room[:]

    with pytest.raises(KeyboardInterrupt):
        run(6)
    np.testing.assert_array_equal(run(-1), 2 * rows)
    assert begun == [0, 3, 6, 6, 9]
    run(-1)
    assert begun == [0, 3, 6, 6, 9]
    run(-1, "other inputs")
    assert begun[5:] == [0, 3, 6, 9]


@pytest.mark.parametrize("name", ["0.bin", "1.bin"])
@pytest.mark.parametrize("harm", ["flipped", "cut", "emptied", "lost"])
def test_a_damaged_checkpoint_is_made_anew_and_never_used(tmp_path, monkeypatch, name, harm):
    monkeypatch.setattr(blocks, "cores", lambda: 1)
    rows, begun = np.arange(10.0), list[int]()

    def run() -> Any:
        with engine(checkpoint=tmp_path) as whole:
            given = whole.of("doubling", rows)
            work = Dying(Doubled(rows, given.room((10,), float)), -1, begun)
            given.each(work, BLOCKS, 1, "doubling")
            return work.work.room[:]

    run()
    begun.clear()
    (file,) = tmp_path.glob(f"*/{name}")
    content = file.read_bytes()
    if harm == "lost":
        file.unlink()
    elif harm == "flipped":
        file.write_bytes(bytes([content[0] ^ 1]) + content[1:])
    else:
        file.write_bytes(content[: len(content) // 2 if harm == "cut" else 0])
    np.testing.assert_array_equal(run(), 2 * rows)
    assert begun == ([0] if harm == "flipped" else [0, 3, 6, 9])


def test_what_is_made_once_is_not_made_again(tmp_path):
    made = []

    def make() -> dict[str, Any]:
        made.append(1)
        return {"found": np.arange(3)}

    for inputs in ((1, "a"), (1, "a"), (2, "a")):
        with engine(checkpoint=tmp_path) as given:
            np.testing.assert_array_equal(given.once("a", make, *inputs)["found"], [0, 1, 2])
    assert len(made) == 2
    for damaged in tmp_path.glob("*.npz"):
        damaged.write_bytes(b"no more")
    for _ in range(2):
        with engine(checkpoint=tmp_path) as given:
            np.testing.assert_array_equal(given.once("a", make, 1, "a")["found"], [0, 1, 2])
    assert len(made) == 3


@pytest.mark.parametrize(
    "other",
    [
        np.arange(6.0)[::-1],
        np.arange(6.0).reshape(2, 3),
        np.arange(6.0, dtype=np.float32),
        sparse.csr_array(np.arange(6.0)[None]),
        Doubled(np.arange(6.0), 1),
        np.float64(3),
        [np.arange(3.0), np.arange(3.0, 6.0)],
    ],
)
def test_other_values_have_another_digest(other):
    known = np.arange(6.0)
    assert blocks.digest(known, 1) == blocks.digest(known.copy(), 1)
    assert blocks.digest(other, 1) == blocks.digest(other, 1)
    assert blocks.digest(other, 1) != blocks.digest(known, 1)


def test_a_checkpoint_that_cannot_be_written_is_a_line(tmp_path):
    (tmp_path / "file").touch()
    with engine(checkpoint=tmp_path / "file") as given, pytest.raises(UserError, match="file"):
        given.of("a", 1)


def test_a_full_disk_is_a_line(tmp_path, monkeypatch):
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(artifacts, "allocate", full)
    with pytest.raises(UserError, match=r"cannot be written \(No space left on device\)"):
        Engine(directory=tmp_path).room((3,), float)


def test_a_cluster_does_the_same_blocks(tmp_path, monkeypatch):
    distributed = pytest.importorskip("distributed")
    monkeypatch.chdir(tmp_path)
    rows = np.arange(10.0)
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0"
    ) as cluster:
        with engine(scheduler=cluster.scheduler_address) as given:
            work = Doubled(given.shared(rows), given.room((10,), float))
            assert list(given.over(work, BLOCKS, 1, "doubling")) == [6, 24, 42, 18]
            np.testing.assert_array_equal(work.room[:], 2 * rows)
            with pytest.raises(BlockError, match="rows 6 to 8: ValueError: odd"):
                given.each(Failing(ValueError("odd")), BLOCKS, 1, "a pass")
        with distributed.Client(cluster), engine() as given:
            assert given.client is not None
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("found", "told"), [({"tcp://w": "0.0"}, "update it"), ({}, "no workers")])
def test_workers_of_another_version_are_refused(found, told):
    client = SimpleNamespace(run=lambda _: found)
    with pytest.raises(UserError, match=told):
        blocks._refuse_other_versions(client)


def test_a_scheduler_that_does_not_answer_is_a_line(monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr(blocks, "WAIT", 0.2)
    with pytest.raises(UserError, match="does not answer"), engine(scheduler="tcp://127.0.0.1:9"):
        pass
