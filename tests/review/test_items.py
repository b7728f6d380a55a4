import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from tests.review.reviews import some_items


def of_media(tmp_path, *values, **changes):
    """Items that show one column with these values, and a root with files in and beside it."""
    root = tmp_path / "root"
    (root / "in").mkdir(parents=True)
    for name in ("root/a.PNG", "root/in/b.mp3", "root/page.html", "secret.png"):
        (tmp_path / name).write_bytes(b"x")
    (root / "out.png").symlink_to(tmp_path / "secret.png")
    (root / "round.png").symlink_to(root / "round.png")
    (root / "folder.png").mkdir()
    shown = pd.DataFrame({"medium": pd.Series(values, dtype=object)})
    return some_items(len(values), shown=shown, **({"root": root} | changes))


def test_columns_are_text_unless_they_name_a_picture_a_sound_or_an_address(tmp_path):
    values = ["a.PNG", "in/b.mp3", "https://x.invalid/a.png?b=1", "words", "HTTP://x.invalid/"]
    items = of_media(tmp_path, *values)
    found = [items.cells(i)[0] for i in range(5)]
    assert [cell["kind"] for cell in found] == ["image", "audio", "link", "text", "link"]
    assert [cell["value"] for cell in found] == ["media/0/0", "media/1/0", *values[2:]]


def test_a_picture_elsewhere_is_loaded_only_if_that_is_allowed(tmp_path):
    address = "https://x.invalid/a.png"
    (cell,) = of_media(tmp_path, address, allow_remote=True).cells(0)
    assert (cell["kind"], cell["value"]) == ("image", address)


def test_without_a_root_no_file_is_shown(tmp_path):
    items = of_media(tmp_path, "a.PNG", root=None)
    assert items.cells(0)[0]["kind"] == "text"
    assert items.file(0, 0) is None


@pytest.mark.parametrize(
    "text", ["javascript:alert(1)", "data:text/html,x", "//x.invalid/a", "http://a b", "file:///x"]
)
def test_what_is_no_address_of_the_web_is_text(tmp_path, text):
    assert of_media(tmp_path, text, allow_remote=True).cells(0)[0]["kind"] == "text"


def test_an_empty_cell_is_left_out_and_a_long_one_cut(tmp_path):
    items = of_media(tmp_path, "", " \n", "x" * 30)
    assert [items.cells(i) for i in range(2)] == [[], []]
    assert items.cells(2, most=10)[0]["value"] == "xxxxxxxxxx…"


def test_only_text_is_cut(tmp_path):
    values = ["https://x.invalid/page", "https://x.invalid/a.png", "in/b.mp3"]
    items = of_media(tmp_path, *values, allow_remote=True)
    found = [items.cells(i, most=3)[0] for i in range(3)]
    assert [cell["kind"] for cell in found] == ["link", "image", "audio"]
    assert [cell["value"] for cell in found] == [*values[:2], "media/2/0"]


@pytest.mark.parametrize("text", ["missing.png", "../secret.png", "we met at 7.wav", "out.png"])
def test_what_ends_like_a_picture_or_sound_and_is_no_file_there_is_text(tmp_path, text):
    (cell,) = of_media(tmp_path, text).cells(0)
    assert (cell["kind"], cell["value"]) == ("text", text)


def test_a_file_is_found_under_the_root(tmp_path):
    items = of_media(tmp_path, "a.PNG", "in/../in/b.mp3")
    assert items.file(0, 0) == (items.root / "a.PNG", "image/png")
    assert items.file(1, 0) == (items.root / "in/b.mp3", "audio/mpeg")


@pytest.mark.parametrize(
    "text",
    [
        "../secret.png",
        "in/../../secret.png",
        "{root}/../secret.png",
        "out.png",
        "round.png",
        "folder.png",
        "page.html",
        "missing.png",
        "nul\0.png",
        f"{'x' * 5000}.png",
        "https://x.invalid/a.png",
    ],
)
def test_what_leaves_the_root_or_is_no_picture_is_not_found(tmp_path, text):
    items = of_media(tmp_path, text.format(root=tmp_path / "root"), allow_remote=True)
    assert items.file(0, 0) is None


@pytest.mark.parametrize(("row", "column"), [(9, 0), (0, 9)])
def test_a_cell_that_is_not_there_has_no_file(tmp_path, row, column):
    assert of_media(tmp_path, "a.PNG").file(row, column) is None


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_the_nearest_rows_come_first(form):
    items = some_items(6, scaled=form(np.array([[0.0], [5], [1], [9], [2], [4]])))
    assert items.by_nearness(0).tolist() == [2, 4, 5, 1, 3]
    assert items.by_nearness(3).tolist() == [1, 5, 4, 2, 0]


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_without_columns_to_show_it_is_what_stands_out_of_the_features(form):
    X = np.zeros((20, 3))
    X[3] = [0, 70, 2]
    X[5:, 2] = 3
    items = some_items(20, shown=None, features=form(X), scaled=form(X), feature_names=list("abc"))
    assert items.cells(3)[0] == {"column": "b", "kind": "text", "value": "70"}
    assert [cell["column"] for cell in items.cells(3)] == ["b", "c"]
