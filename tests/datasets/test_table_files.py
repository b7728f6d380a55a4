import gzip
import io
import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from wscpml.datasets import own, table_files
from wscpml.datasets.dataset import check
from wscpml.datasets.description import describe
from wscpml.errors import UserError

SONGS = ["s1", "s2", "s3", "s4"]
TEMPO, LOUD = [120.5, 95.0, 70.25, 130.0], [1.0, 0.0, 2.0, 5.0]
TAGS = [["folk", "rock"], ["R&B"], [], ["rock"]]
TABLE = pd.DataFrame({"song": SONGS, "tempo": TEMPO, "loud": LOUD})
TEXT = TABLE.assign(tags=["folk;rock", "R&B", "", "rock"])
LISTS = TABLE.assign(tags=TAGS)


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def json_lines(table):
    return table.to_json(orient="records", lines=True)


def hugging_face(directory):
    """What `save_to_disk` of Hugging Face's datasets leaves."""
    names = ["rock", "R&B", "folk"]
    feature = {"feature": {"names": names, "_type": "ClassLabel"}, "_type": "List"}
    features = {"song": {"dtype": "string", "_type": "Value"}, "tags": feature}
    Path(directory).mkdir()
    Path(directory, "dataset_info.json").write_text(json.dumps({"features": features}))
    Path(directory, "state.json").write_text("{}")
    numbers = [[names.index(tag) for tag in tags] for tags in TAGS]
    table = pa.Table.from_pandas(LISTS.assign(tags=numbers)).replace_schema_metadata(None)
    for k in range(2):
        part = table.slice(2 * k, 2)
        name = f"{directory}/data-0000{k}-of-00002.arrow"
        with pa.OSFile(name, "wb") as file, pa.ipc.new_stream(file, table.schema) as writer:
            writer.write_table(part)
    return table, features


def hugging_face_parquet(path):
    table, features = hugging_face("unused")
    stored = {b"huggingface": json.dumps({"info": {"features": features}}).encode()}
    parquet.write_table(table.replace_schema_metadata(stored), path)


def several(directory, table):
    Path(directory).mkdir()
    table[:1].to_csv(f"{directory}/day1.csv", index=False)
    table[1:][table.columns[::-1]].to_csv(f"{directory}/day2.csv", index=False)


FORMS = {
    "x.csv": lambda: TEXT.to_csv("x.csv", index=False),
    "x.tsv": lambda: TEXT.to_csv("x.tsv", index=False, sep="\t"),
    "semicolons.csv": lambda: TEXT.assign(tags=TEXT.tags.str.replace(";", "|")).to_csv(
        "semicolons.csv", index=False, sep=";", decimal=","
    ),
    "bars.csv": lambda: TEXT.to_csv("bars.csv", index=False, sep="|"),
    "json.csv": lambda: LISTS.assign(tags=LISTS.tags.map(json.dumps)).to_csv(
        "json.csv", index=False
    ),
    "repr.csv": lambda: LISTS.to_csv("repr.csv", index=False),
    "commas.csv": lambda: TEXT.assign(tags=TEXT.tags.str.replace(";", " , ")).to_csv(
        "commas.csv", index=False
    ),
    "x.csv.gz": lambda: TEXT.to_csv("x.csv.gz", index=False),
    "x.jsonl": lambda: Path("x.jsonl").write_text(json_lines(TEXT)),
    "lists.jsonl": lambda: Path("lists.jsonl").write_text(json_lines(LISTS)),
    "x.jsonl.gz": lambda: Path("x.jsonl.gz").write_bytes(gzip.compress(json_lines(LISTS).encode())),
    "x.parquet": lambda: TEXT.to_parquet("x.parquet"),
    "lists.parquet": lambda: LISTS.to_parquet("lists.parquet"),
    "x.xlsx": lambda: TEXT.to_excel("x.xlsx", index=False),
    "saved": lambda: hugging_face("saved"),
    "classes.parquet": lambda: hugging_face_parquet("classes.parquet"),
    "days": lambda: several("days", TEXT),
    "days/day*.csv": lambda: several("days", TEXT),
}


def load(path, **given):
    return own.load(own.Sources(Path(path), **{"id": "song", "tags": "tags"} | given))


def assert_the_songs(data):
    assert check(data, "x")
    assert data.instance_ids == SONGS
    assert data.feature_names == ["tempo", "loud"]
    np.testing.assert_array_equal(data.features, np.transpose([TEMPO, LOUD]))
    assert data.encoding is None
    assert data.label_names == ["R&B", "folk", "rock"]
    assert data.candidates.tolist() == [[0, 1, 1], [1, 0, 0], [0, 0, 0], [0, 0, 1]]


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_tags_and_file_is_read_to_the_same_data_set(form):
    FORMS[form]()
    assert_the_songs(load(form))


def test_tags_in_a_file_of_their_own_are_read_to_the_same_data_set():
    TABLE.to_csv("x.csv", index=False)
    matrix = pd.DataFrame({"R&B": [0, 1, 0, 0], "folk": [1, 0, 0, 0], "rock": [1, 0, 0, 1]})
    matrix.insert(0, "song", SONGS)
    matrix.to_csv("y.csv", index=False)
    (2 * matrix.set_index("song") - 1).reset_index().to_parquet("signs.parquet")
    long = [(song, tag) for song, tags in zip(SONGS, TAGS, strict=True) for tag in tags]
    pd.DataFrame(long, columns=["song", "label"]).to_csv("long.tsv", index=False, sep="\t")
    for labels in ("y.csv", "signs.parquet", "long.tsv"):
        assert_the_songs(load("x.csv", candidates=Path(labels), tags=None))


@pytest.mark.parametrize("form", ["x.csv", "x.jsonl", "x.parquet", "x.csv.gz", "x.xlsx"])
def test_standard_input_may_bring_the_table(form, monkeypatch):
    FORMS[form]()
    stdin = io.TextIOWrapper(io.BytesIO(Path(form).read_bytes()))
    monkeypatch.setattr(sys, "stdin", stdin)
    assert_the_songs(load("-"))


def test_the_numbers_of_each_files_rows_are_no_feature():
    several("days", TEXT)
    for file in Path("days").iterdir():
        pd.read_csv(file).to_csv(file)
    data = load("days")
    assert_the_songs(data)
    assert data.remarks[0].startswith("days: its first column has no name and just counts the rows")
    whole = load("days", id="column 1", columns={"song": "ignore"})
    assert whole.instance_ids == [0, 0, 1, 2]


def test_a_column_that_is_text_in_one_file_is_so_in_all():
    several("days", TEXT.assign(place=["01", "1", "x", "x"]))
    data = load("days", columns={"place": "category"})
    assert list(data.raw.place) == ["01", "1", "x", "x"]
    several("odd", TEXT.assign(loud=["1.0", "0.5", "3", "loud"]))
    assert refused("odd").startswith(
        "odd/day2.csv: row 3, column 'loud': 'loud' is not a number such as '1.0', as most of "
    )
    several("empty", TEXT.assign(loud=["loud", None, None, None]))
    assert load("empty").columns[1].why == "is the same in every row"


def test_of_what_hugging_face_saved_just_its_own_files_are_read():
    hugging_face("saved")
    shutil.copy("saved/data-00000-of-00002.arrow", "saved/cache-0123456789abcdef.arrow")
    assert_the_songs(load("saved"))
    shutil.copy("saved/data-00000-of-00002.arrow", "saved/indices.arrow")
    files = [{"filename": f"data-0000{k}-of-00002.arrow"} for k in range(2)]
    Path("saved/state.json").write_text(json.dumps({"_data_files": files}))
    assert_the_songs(load("saved"))
    Path("saved/data-00001-of-00002.arrow").unlink()
    assert refused("saved").startswith("saved/data-00001-of-00002.arrow: is missing; state.json")
    Path("saved/state.json").write_text('{"_data_files": [3]}')
    assert refused("saved") == "saved/state.json: does not list files as Hugging Face does"


def test_a_named_index_in_parquet_is_a_column():
    TEXT.set_index("song").to_parquet("x.parquet")
    assert_the_songs(load("x.parquet"))
    LISTS.set_index(["song", "tempo"])[["tags", "loud"]].to_parquet("x.parquet")
    assert load("x.parquet").feature_names == ["tempo", "loud"]
    TABLE.set_index("song").to_parquet("x.parquet")
    labels = pd.DataFrame({"R&B": [0, 1, 0, 0], "folk": [1, 0, 0, 0], "rock": [1, 0, 0, 1]}, SONGS)
    labels[::-1].rename_axis("song").to_parquet("y.parquet")
    assert_the_songs(load("x.parquet", candidates=Path("y.parquet"), tags=None))
    assert "y.parquet: row 1, column 'song': 's4' is not a number; leave the column out, or" in (
        refused("x.parquet", candidates=Path("y.parquet"), tags=None, id=None)
    )


def test_columns_that_parquet_has_by_numbers_are_called_by_their_text():
    table = pd.DataFrame({7: TEMPO, 3: [1.0, None, 2.0, 5.0], "tags": TAGS})
    table.columns = pd.Index([7, 3, "tags"], dtype=object)
    table[[7, 3]].to_parquet("x.parquet")
    LISTS.to_parquet("y.parquet")
    data = load("x.parquet", candidates=Path("y.parquet"), id=None)
    assert data.feature_names == ["7", "3", "3 missing"]
    assert "7" in describe(data)


def refused(path, **given):
    with pytest.raises(UserError) as raised:
        load(path, **given)
    assert "\n" not in str(raised.value)
    return str(raised.value)


def test_an_excel_file_of_two_sheets_is_refused():
    with pd.ExcelWriter("x.xlsx") as book:
        TEXT.to_excel(book, sheet_name="songs", index=False)
        TEXT.to_excel(book, sheet_name="more", index=False)
    assert refused("x.xlsx") == (
        "x.xlsx: has 2 sheets, songs, more; save the one with the table as a file of its own"
    )


def test_excel_without_its_package_says_what_to_install(monkeypatch):
    TEXT.to_excel("x.xlsx", index=False)
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    assert "pip install 'wscpml[excel]'; or save it as CSV" in refused("x.xlsx")


def test_what_unpacks_to_far_more_than_it_is_is_refused(monkeypatch):
    monkeypatch.setattr(table_files, "SMALL", 1000)
    Path("x.csv.gz").write_bytes(gzip.compress(b"a,b\n" + b"1,2\n" * 1_000_000))
    assert "x.csv.gz: unpacks to more than 200 times its size" in refused("x.csv.gz")
    pd.DataFrame(np.zeros((20_000, 3))).to_excel("x.xlsx")
    monkeypatch.setattr(table_files, "SMALL_EXCEL", 1000)
    monkeypatch.setattr(table_files, "MOST_PACKED_EXCEL", 1)
    assert "x.xlsx: unpacks to more than" in refused("x.xlsx")


@pytest.mark.parametrize(
    ("files", "path", "line"),
    [
        (
            {"x.json": b"{}"},
            "x.json",
            "x.json: extension '.json' is not known; known are .csv, .tsv",
        ),
        ({"x.csv.gz": b"no"}, "x.csv.gz", "x.csv.gz: cannot be unpacked"),
        ({"x.csv.gz": gzip.compress(b"")}, "x.csv.gz", "x.csv.gz: is empty"),
        (
            {"x.csv.gz": gzip.compress(b"song,t,t,tags\n")},
            "x.csv.gz",
            "x.csv.gz: column 't' is there twice, as numbers 2 and 3; rename one",
        ),
        (
            {"x.csv.gz": gzip.compress(b"song,t,tags\na,1,\xff\n")},
            "x.csv.gz",
            "x.csv.gz: is not UTF-8 text (line 2, byte 16)",
        ),
        ({"x.jsonl": b'{"a": 1}\n{"a": x}\n'}, "x.jsonl", "x.jsonl: cannot be read as jsonl"),
        ({"x.xlsx": b"no"}, "x.xlsx", "x.xlsx: cannot be read as xlsx"),
        ({"d/readme.md": b"?"}, "d", "d: has no table; read are .csv"),
        ({"d/train/x.csv": b"?"}, "d", "d: has the directories train; name one of them: d/train"),
        ({}, "day*.csv", "day*.csv: no file fits"),
        (
            {"d/a.csv": b"x,y\n1,2\n", "d/b.csv": b"x,z\n1,2\n"},
            "d",
            "d/b.csv: its columns are not those of a.csv: only one of them has y, z",
        ),
    ],
)
def test_what_cannot_be_read_is_one_line(files, path, line):
    for name, content in files.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_bytes(content)
    assert refused(path).startswith(line)


def test_a_class_without_a_name_is_refused():
    table, features = hugging_face("saved")
    features["tags"]["feature"]["names"] = ["rock"]
    Path("saved/dataset_info.json").write_text(json.dumps({"features": features}))
    assert refused("saved") == (
        "saved/data-00000-of-00002.arrow: column 'tags': has class 2, and 1 names"
    )
    Path("saved/dataset_info.json").write_text('{"features": {"tags": 3}}')
    assert refused("saved").endswith("its description by Hugging Face cannot be read")


def test_variants_are_merged_and_rare_labels_are_left_unjudged():
    TABLE.assign(tags=["Rock; folk", "rock", "jazz", "rock"]).to_csv("x.csv", index=False)
    data = load("x.csv")
    assert data.label_names == ["Rock", "folk", "jazz", "rock"]
    assert any("'rock'/'Rock': merge_variants= makes one" in each for each in data.remarks)
    data = load("x.csv", merge_variants=True, min_count=2)
    assert data.label_names == ["rock"]
    assert data.candidates.tolist() == [[1], [1], [0], [1]]
    assert data.unjudged.label_names == ["folk", "jazz"]
    assert data.unjudged.candidates.tolist() == [[1, 0], [0, 0], [0, 1], [0, 0]]
    assert any("min_count=: 2 labels are too rare to be judged" in each for each in data.remarks)
    assert refused("x.csv", min_count=9) == "x.csv: min_count=: no label has 9 rows"
