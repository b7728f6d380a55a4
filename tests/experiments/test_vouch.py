"""Whether today's code gives the stored figures, which lets DVC take all cells as up to date."""

import json
import sys
from functools import cache

import pytest
import yaml

from experiments import cell, convergence, folds, pool, settings, vouch
from experiments.identify import identities
from tests.conftest import ROOT
from wscpml import artifacts

METHODS = ["ml-knn", "pml-ni"]

ran = cache(folds.run)


@pytest.fixture
def renewed(tmp_path, monkeypatch):
    """A stored study of two methods on one benchmark; notes that its locks were renewed."""
    monkeypatch.chdir(tmp_path)
    content = yaml.safe_load((ROOT / "experiments/params.yaml").read_text())
    content["full"] = {"folds": 2, "benchmarks": ["yeast-9"], "methods": METHODS}
    for part in ("ablation", "features"):
        content[part] |= {"benchmarks": [], "methods": []}
    artifacts.write(settings.PATH, content)
    study, known, stages = settings.load(), identities()["data"], {}
    for each in cell.cells(study, "full"):
        outcomes = [ran(task) for task in each.tasks(study)]
        artifacts.write(each.path, cell.result(each, outcomes))
        stages[each.stage] = {
            "params": {
                "identity.json": {"code": "old", "data.yeast-9": known["yeast-9"]},
                "params.yaml": {"seed": 0, "folds": 10, "full.folds": 2},
            }
        }
    vouch.LOCK.write_text(yaml.safe_dump({"stages": stages}))
    course = {"iteration": [1, 2], "objective": [2.0, 1.0], "change": [0.5, 0.25]}
    artifacts.write(vouch.RESULTS / "yeast-9/convergence.json", course)
    artifacts.write(vouch.RESULTS / "cost.json", {})
    monkeypatch.setattr(convergence, "course", lambda *_: course)
    monkeypatch.setattr(vouch, "BENCHMARKS", dict.fromkeys(vouch.BENCHMARKS, ("yeast-9",)))
    monkeypatch.setattr(vouch, "COURSE", "yeast-9")
    monkeypatch.setattr(pool, "run_cells", in_this_process)
    monkeypatch.setattr(sys, "argv", ["vouch"])
    calls = []
    monkeypatch.setattr(vouch, "renew", lambda: calls.append("renewed"))
    return calls


def in_this_process(cells, _):
    return ((place, [ran(task) for task in tasks]) for place, tasks in enumerate(cells))


def alter(file: str, change) -> None:
    path = vouch.RESULTS / file
    content = json.loads(path.read_text())
    change(content)
    artifacts.write(path, content)


def refused() -> str:
    with pytest.raises(SystemExit) as end:
        vouch.main()
    return end.value.code


def test_equal_figures_renew_the_locks_whatever_the_seconds(renewed, capsys):
    alter("yeast-9/pml-ni.json", lambda whole: whole["runs"][0].update(seconds=1e9))
    vouch.main()
    assert renewed == ["renewed"]
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(maxsplit=1) for line in lines] == [
        [name, "as stored"] for name in (*METHODS, "convergence")
    ]


def test_a_figure_that_differs_by_a_millionth_renews_nothing(renewed, capsys):
    def change(whole):
        whole["runs"][0]["metrics"]["coverage"] = round(
            whole["runs"][0]["metrics"]["coverage"] + 1e-6, 6
        )

    alter("yeast-9/pml-ni.json", change)
    told = refused()
    assert told.startswith("not renewed:\nyeast-9 pml-ni: coverage is 0.")
    assert "ml-knn" not in told
    assert "ml-knn          as stored" in capsys.readouterr().out
    assert renewed == []


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"criterion": 0.5}, "criterion is None, stored is 0.5"),
        ({"settings": {"k": 5}}, "k is None, stored is 5"),
        ({"fold": 7}, "has 1 runs, stored are 0"),
    ],
)
def test_so_does_any_other_part_of_a_run(renewed, change, told):
    alter("yeast-9/ml-knn.json", lambda whole: whole["runs"][0].update(change))
    assert refused() == f"not renewed:\nyeast-9 ml-knn: {told}"
    assert renewed == []


def test_so_does_another_course_of_the_clustering(renewed):
    alter("yeast-9/convergence.json", lambda course: course.update(objective=[2.0, 1.000001]))
    assert refused().startswith("not renewed:\nyeast-9 convergence: objective is [2.0, 1.0], ")
    assert renewed == []


@pytest.mark.parametrize(
    ("file", "told"),
    [
        ("yeast-9/ml-knn.json", "yeast-9 ml-knn: has no result; `make study` runs it"),
        (
            "yeast-9/convergence.json",
            "experiments/results/yeast-9/convergence.json: is missing; `make study` makes it",
        ),
        ("cost.json", "experiments/results/cost.json: is missing; `make study` makes it"),
    ],
)
def test_a_missing_file_renews_nothing(renewed, file, told):
    (vouch.RESULTS / file).unlink()
    assert refused() == told
    assert renewed == []


@pytest.mark.parametrize(
    ("file", "key", "told"),
    [
        ("identity.json", "data.yeast-9", "its data have changed"),
        ("params.yaml", "full.folds", "its settings have changed"),
    ],
)
def test_other_data_and_settings_are_no_matter_of_code(renewed, file, key, told):
    content = yaml.safe_load(vouch.LOCK.read_text())
    content["stages"]["full@yeast-9-pml-ni"]["params"][file][key] = 5
    vouch.LOCK.write_text(yaml.safe_dump(content))
    assert refused() == f"yeast-9 pml-ni: {told}; `make study` runs it again"
    assert renewed == []


def test_every_method_of_the_study_is_vouched_for_on_two_stored_benchmarks(monkeypatch):
    monkeypatch.chdir(ROOT)
    study = settings.load()
    chosen = vouch.chosen(study)
    for part in vouch.BENCHMARKS:
        for name in getattr(study, part).methods:
            assert len([c for c in chosen if (c.part, c.method) == (part, name)]) == 2
    assert all(each.path.exists() for each in chosen)
