import subprocess
import sys
from pathlib import Path

import pytest

from wscpml.baselines import METHODS
from wscpml.cli import main
from wscpml.datasets.registry import REGISTRY


@pytest.fixture(autouse=True)
def no_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WSCPML_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("WSCPML_DATA", raising=False)


def test_datasets_lists_every_set_with_its_settings_and_where_it_is(capsys):
    main(["datasets"])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[1:]] == list(REGISTRY)
    by_name = {line.split()[0]: line for line in lines}
    assert "built in" in by_name["yeast"]
    assert "to fetch" in by_name["emotions"]
    assert "emotions-3, emotions-4, emotions-5" in by_name["emotions"]
    assert "to supply" in by_name["Music_style"]
    assert "subset" in by_name["Mirflickr"]


def test_a_damaged_file_is_told_in_the_list(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("WSCPML_DATA", str(tmp_path))
    (tmp_path / "emotions.mat").write_text("no")
    main(["datasets"])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1 + len(REGISTRY)
    assert "damaged: " in next(line for line in lines if line.startswith("emotions"))


def test_fetch_says_where_files_are_and_what_it_does_not_know(capsys):
    main(["fetch", "yeast-9"])
    assert capsys.readouterr().out == "yeast: built in\n"
    with pytest.raises(SystemExit, match="beast: no such data set; known are Mirflickr"):
        main(["fetch", "yeast", "beast"])
    with pytest.raises(SystemExit, match="Music_style.mat: is not public; put it into data/own/"):
        main(["fetch", "Music_style"])


def test_describe_says_what_was_understood(capsys):
    Path("songs.csv").write_text(
        "song,tempo,loud,tags\na,1,0,rock;jazz\nb,2,0,rock\nc,2,0,\nd,3,0,rock\n"
    )
    main(["describe", "songs.csv", "--tags", "tags", "--id", "song"])
    assert capsys.readouterr().out.splitlines() == [
        "instances           4, from 'a' to 'd'",
        "features            2, from 'tempo' to 'loud'",
        "values not 0        50.0%",
        "constant columns    1: loud",
        "duplicate rows      1",
        "labels              2",
        "candidates a row    1.00 on average, 0 to 2",
        "true labels a row   not given",
        "rows without label  1",
        "labels by frequency (candidates):",
        "  rock       3    75.0%",
        "  jazz       1    25.0%",
        "warning: songs.csv: 1 instances have no label and count as pure negatives",
    ]
    main(["describe", "yeast-7"])
    assert "labels              14" in capsys.readouterr().out
    Path("y.csv").write_text("song,label\na,rock\nb,rock\nc,jazz\nd,rock\n")
    Path("x.csv").write_text("song,tempo\na,1\nb,2\nc,2\nd,3\n")
    main(["describe", "x.csv", "y.csv", "--id", "song"])
    assert "candidates a row    1.00 on average, 1 to 1" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="yeast: is a named data set; tags is for files"):
        main(["describe", "yeast", "--tags", "x"])
    with pytest.raises(SystemExit, match="nothing.csv: no such file"):
        main(["describe", "nothing.csv", "--tags", "tags"])


def test_sparse_rows_are_counted_once_too(capsys):
    Path("x.svmlight").write_text("1 1:2\n1,2 1:2\n2 2:1\n")
    main(["describe", "x.svmlight"])
    said = capsys.readouterr().out
    assert "duplicate rows      1" in said
    assert "values not 0        50.0%" in said


def test_methods_lists_every_method_with_its_title_and_source(capsys):
    main(["methods"])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[1:]] == list(METHODS)
    by_name = {line.split()[0]: line for line in lines}
    assert "PML-LENFN" in by_name["pml-lenfn"]
    assert "PAMB-style" in by_name["pamb"]
    assert "reconstruction" in by_name["pamb"]


def test_the_command_is_installed_and_helps():
    command = Path(sys.executable).parent / "wscpml"
    done = subprocess.run([command, "--help"], capture_output=True, text=True, check=True)
    assert "wscpml describe songs.csv --tags tags --id song" in done.stdout
    assert subprocess.run([command, "fly"], capture_output=True).returncode == 2
