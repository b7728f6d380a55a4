from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from wscpml import WSCPML, embed
from wscpml.datasets.songs import songs
from wscpml.errors import UserError
from wscpml.quality import judging

LETTERS = "abcdefghijklmnopqrstuvwxyz"


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


class Letters:
    """How often each letter occurs, and what was asked for."""

    def __init__(self):
        self.asked = []

    def __call__(self, texts):
        self.asked.append(list(texts))
        return [[text.count(letter) for letter in LETTERS] for text in texts]


def test_rows_are_asked_for_in_batches_and_each_content_once():
    function = Letters()
    texts = ["abba", "cab", "abba", None, "zoo", np.nan, "cab"]
    vectors = embed(texts, function, "letters", batch_size=2)
    assert function.asked == [["abba", "cab"], ["", "zoo"]]
    assert vectors.shape == (7, 26)
    assert vectors.dtype == np.float32
    assert vectors[:, :3].tolist() == [
        [2, 2, 0], [1, 1, 1], [2, 2, 0], [0, 0, 0], [0, 0, 0], [0, 0, 0], [1, 1, 1],
    ]  # fmt: skip


def test_later_only_what_is_new_is_asked_for():
    embed(["abba", "cab"], Letters(), "letters")
    again = Letters()
    embed(["cab", "new", "abba"], again, "letters")
    assert again.asked == [["new"]]
    other = Letters()
    embed(["cab"], other, "other letters")
    assert other.asked == [["cab"]]


def test_what_was_stopped_goes_on_where_it_was():
    def stops(texts):
        if "c" in texts:
            raise KeyboardInterrupt
        return [[1.0]] * len(texts)

    with pytest.raises(KeyboardInterrupt):
        embed(["a", "b", "c"], stops, "stops", batch_size=2)
    again = []
    embed(["a", "b", "c"], lambda texts: again.extend(texts) or [[1.0]] * len(texts), "stops")
    assert again == ["c"]


def test_a_file_is_known_by_its_content():
    Path("a.png").write_bytes(b"picture")
    Path("b.png").write_bytes(b"picture")
    asked = []

    def sizes(paths):
        asked.extend(paths)
        return [[len(path.read_bytes())] for path in paths]

    rows = [Path("a.png"), Path("b.png")]
    assert embed(rows, sizes, "sizes").tolist() == [[7], [7]]
    Path("a.png").write_bytes(b"another")
    embed(rows, sizes, "sizes")
    assert asked == [Path("b.png"), Path("a.png")]


@pytest.mark.parametrize(
    ("rows", "given", "line"),
    [
        (["a"], [[1.0], [2.0]], r"function: gave the shape \(2, 1\) for 1 rows"),
        (["a", "b"], [[1.0], [2.0, 3.0]], "function: gave no vectors of numbers of one length"),
        (["a"], [[np.nan]], "a value that is not a finite number"),
        ([7], [[1.0]], "rows: number 1 is of type int"),
        ([1.5], [[1.0]], "rows: number 1 is of type float"),
        ([Path("gone.png")], [[1.0]], "gone.png: cannot be read"),
        (["known", "a"], [[1.0, 2.0]], "name: vectors of that name have 1 numbers"),
    ],
)
def test_what_cannot_be_taken_is_one_line(rows, given, line):
    embed(["known"], lambda _: [[1.0]], "x")
    with pytest.raises(UserError, match=line):
        embed(rows, lambda _: given, "x")


def test_a_damaged_file_is_told():
    embed(["a"], lambda _: [[1.0]], "x")
    (file,) = Path("embeddings").rglob("*.npy")
    file.with_suffix(".json").write_text("[]\n")
    with pytest.raises(UserError, match="do not fit; delete it, and its vectors are made anew"):
        embed(["a"], lambda _: [[1.0]], "x")


def test_vectors_are_columns_like_any_other(monkeypatch):
    monkeypatch.setattr(judging, "TREES", 20)
    table = songs(60)[0].set_index("song")
    vectors = embed(table.description, Letters(), "letters")
    X = table[["tempo", "country"]].assign(description=list(vectors))
    model = WSCPML(kind="kernel_ridge", random_state=0).fit(X, table.tags)
    assert "description 26" in model.encoding_.names
    assert isinstance(model.predict(X[:3]), pd.DataFrame)
