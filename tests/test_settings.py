import time
from pathlib import Path

import numpy as np
import pytest
import yaml

from tests.conftest import ROOT
from wscpml import WSCPML, settings
from wscpml.errors import MOST_CHARACTERS, UserError
from wscpml.methods import METHODS


def load(tmp_path: Path, content: object) -> settings.Settings:
    path = tmp_path / "params.yaml"
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return settings.load(path)


def mistakes(tmp_path: Path, content: object) -> list[str]:
    with pytest.raises(UserError) as raised:
        load(tmp_path, content)
    return [line.partition("params.yaml: ")[2] for line in str(raised.value).splitlines()]


def test_the_committed_settings_are_valid():
    assert settings.load(ROOT / "params.yaml").noise.candidates == 9


def test_every_knob_has_a_comment():
    lines = (ROOT / "params.yaml").read_text().splitlines()
    knobs = [line for line in lines if ":" in line.partition("#")[0] and line.strip()[-1] != ":"]
    assert len(knobs) > 20
    assert [line for line in knobs if "#" not in line] == []


@pytest.mark.parametrize(
    ("section", "key", "value", "message"),
    [
        ("clustering", "alpha", -1, "clustering.alpha: must be > 0, got -1"),
        ("clustering", "alpha", "big", "clustering.alpha: must be a number, got 'big'"),
        ("clustering", "alpha", True, "clustering.alpha: must be a number, got True"),
        ("clustering", "beta", float("inf"), "clustering.beta: must be a finite number, got inf"),
        (
            "clustering",
            "rule",
            "papr",
            "clustering.rule: must be 'paper' or 'constrained', got 'papr'",
        ),
        ("clustering", "alpha", 1e-300, "clustering.alpha: must be >= 1e-09, got 1e-300"),
        (
            "classifier",
            "learning_rate",
            1e300,
            "classifier.learning_rate: must be <= 1e+09, got 1e+300",
        ),
        ("classifier", "width", 10**9, "classifier.width: must be <= 1000, got 1000000000"),
        ("clustering", "max_iterations", 0, "clustering.max_iterations: must be >= 1, got 0"),
        ("classifier", "width", 1.5, "classifier.width: must be a whole number, got 1.5"),
        ("classifier", "width", [3], "classifier.width: must be a whole number, got [3]"),
        ("classifier", "validation_share", 1, "classifier.validation_share: must be < 1, got 1"),
        ("split", "fold", 10, "split.fold: must be < split.folds = 10, got 10"),
        ("split", "fold", -1, "split.fold: must be >= 0, got -1"),
        (
            "dataset",
            "features",
            "data/own/x.csv",
            "dataset: features is for files of your own; set name to null to use them",
        ),
        ("dataset", "name", None, "dataset: give the name of a data set, or features of your own"),
        (
            "weak_supervision",
            "theta",
            2,
            "weak_supervision.theta: must be `adaptive` or a number from 0 to 1, got 2",
        ),
        ("tracking", "experiment", "", "tracking.experiment: must not be empty, got ''"),
        ("evaluation", "treshold", 1, "evaluation.treshold: unknown key; known here: threshold"),
    ],
)
def test_a_mistake_is_one_line_with_its_path(tmp_path, params, section, key, value, message):
    params[section][key] = value
    assert mistakes(tmp_path, params) == [message]


def test_a_number_that_is_beyond_all_others_is_a_line_in_python_too():
    with pytest.raises(UserError, match="^theta=1000.*: must be `adaptive` or a number from 0"):
        WSCPML(theta=10**400).fit(np.zeros((2, 1)), np.eye(2, dtype=int))


def test_all_mistakes_are_reported_at_once(tmp_path, params):
    params["clustering"]["alpha"] = -1
    params["noise"] = 9
    del params["seed"]
    params["extra"] = {}
    found = mistakes(tmp_path, params)
    assert [line.partition(":")[0] for line in found] == [
        "seed",
        "noise",
        "clustering.alpha",
        "extra",
    ]
    assert found[0] == "seed: is missing"
    assert found[1] == "noise: must be a section with keys of its own, got 9"


def test_columns_have_known_roles(tmp_path, params):
    params["dataset"] = {"features": "data/own/x.csv", "columns": {"note": "prose"}, "min_count": 0}
    assert mistakes(tmp_path, params) == [
        "dataset.min_count: must be >= 1, got 0",
        "dataset.columns.note: must be 'number', 'text', 'category', 'date' or 'ignore', "
        "got 'prose'",
    ]


def test_every_key_of_a_section_is_there(tmp_path, params):
    del params["clustering"]["alpha"]
    params["classifier"]["width"] = 0
    assert mistakes(tmp_path, params) == [
        "clustering.alpha: is missing",
        "classifier.width: must be >= 1, got 0",
    ]


def test_the_committed_settings_are_the_defaults(params):
    defaults = WSCPML().get_params()
    for section in ("features", "weak_supervision", "clustering", "classifier"):
        for key, value in params[section].items():
            assert defaults.pop(key) == value
    assert defaults.pop("complete") == params["dataset"]["complete"]
    not_of_the_method = {"random_state": None, "columns": None, "verbose": False}
    here = {name: params[name] for name in ("device", "memory", "scheduler", "checkpoint")}
    assert defaults == here | not_of_the_method


def test_whether_candidates_are_complete_is_for_the_estimator_too(tmp_path, params):
    path = tmp_path / "params.yaml"
    for complete in (True, False, "perhaps"):
        params["dataset"]["complete"] = complete
        path.write_text(yaml.safe_dump(params))
        assert settings.for_estimator(path, [])["complete"] == complete
    assert settings.for_estimator(None, [])["complete"]
    assert mistakes(tmp_path, params) == ["dataset.complete: must be true or false, got 'perhaps'"]
    with pytest.raises(UserError, match="^complete='perhaps': must be true or false"):
        WSCPML(**settings.for_estimator(path, [])).fit(np.eye(4), np.eye(4))


@pytest.mark.parametrize("memory", ["much", "0 GB", True, None])
def test_memory_is_an_amount_or_auto(memory):
    with pytest.raises(UserError, match=f"^memory={memory!r}: must be"):
        WSCPML(memory=memory).fit(np.eye(4), np.eye(4))


def test_a_number_as_dvc_writes_it_is_read_as_a_number(tmp_path, params):
    text = yaml.safe_dump(params).replace("tolerance: 0.001", "tolerance: 1e-05")
    assert "1e-05" in text
    assert load(tmp_path, text).clustering.tolerance == 1e-5


def test_theta_may_be_a_number(tmp_path, params):
    params["weak_supervision"]["theta"] = "0.5"
    assert load(tmp_path, params).weak_supervision.theta == 0.5


def test_a_file_that_is_missing_empty_or_no_yaml_is_told_so(tmp_path):
    with pytest.raises(UserError, match="nowhere.yaml: is missing"):
        settings.load(Path("nowhere.yaml"))
    assert mistakes(tmp_path, "")[0].startswith("the file: must be a section")
    assert mistakes(tmp_path, "a: [1")[0].startswith("is not valid YAML")


def test_an_unknown_data_set_is_told_the_known_ones(tmp_path, params):
    params["dataset"]["name"] = "beast"
    (line,) = mistakes(tmp_path, params)
    assert line.startswith("dataset.name: must be one of Mirflickr, ")
    assert line.endswith("corel5k-11, got 'beast'")


def test_every_method_but_our_own_is_fitted_without_stages(tmp_path, params):
    for name in METHODS:
        params["method"] = name
        assert load(tmp_path, params).has_stages == (name == "wsc-pml")


def test_a_short_name_is_a_setting_of_the_paper(tmp_path, params):
    params["dataset"]["name"] = "emotions-5"
    params["noise"]["kind"] = "uniform"
    loaded = load(tmp_path, params)
    assert loaded.dataset.name == "emotions"
    assert (loaded.noise.kind, loaded.noise.candidates) == ("pad", 5)


def test_files_of_ones_own_need_no_name(tmp_path, params):
    params["dataset"] = {"features": "data/own/x.parquet", "candidates": "data/own/tags.csv"}
    loaded = load(tmp_path, params)
    assert loaded.dataset.title == "data/own/x.parquet"


def test_files_that_dvc_does_not_watch_are_refused(tmp_path, params):
    params["dataset"] = {"features": "x.parquet", "candidates": "data/own/../tags.csv"}
    assert mistakes(tmp_path, params) == [
        "dataset.features: must be in data/own/, which DVC watches, got 'x.parquet'",
        "dataset.candidates: must be in data/own/, which DVC watches, got 'data/own/../tags.csv'",
    ]


@pytest.mark.parametrize(("name", "r"), [("yeast", 9), ("emotions", 4), ("image", 3)])
def test_the_number_of_candidates_may_be_left_to_the_data_set(tmp_path, params, name, r):
    params["dataset"]["name"] = name
    assert params["noise"]["candidates"] is None
    assert load(tmp_path, params).noise.candidates == r


def test_nothing_need_be_held_out(tmp_path, params):
    params["split"]["fold"] = None
    assert load(tmp_path, params).split.fold is None


def test_the_estimator_takes_its_defaults_then_a_file_then_single_changes(tmp_path, params):
    defaults = WSCPML().get_params()
    del defaults["columns"], defaults["verbose"]
    assert settings.for_estimator(None, []) == defaults | {"random_state": 0}
    path = tmp_path / "params.yaml"
    params["clustering"]["alpha"] = "1e-1"
    params["seed"] = 3
    path.write_text(yaml.safe_dump(params))
    found = settings.for_estimator(path, ["classifier.kind=kernel_ridge", "seed=4"])
    changed = {"alpha": 0.1, "kind": "kernel_ridge", "random_state": 4}
    assert found == defaults | changed


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("clustering.alpha=-1", "--set clustering.alpha=-1: must be > 0"),
        (
            "classifier.kin=x",
            "--set classifier.kin=x: unknown key; known here: width, learning_rate, weight_decay, "
            "batch_size, max_epochs, patience, validation_share, kind, labels",
        ),
        ("seed=x", "--set seed=x: must be a whole number"),
        ("classifier=3", "--set classifier=3: must be a section with keys of its own"),
        *[
            (
                wrong,
                f"--set {wrong}: must be KEY=VALUE, with a key such as classifier.kind; known are "
                "seed, device, memory, scheduler, checkpoint, features, weak_supervision, "
                "clustering, classifier",
            )
            for wrong in ("classifier.kind", "dataset.name=yeast", "seed.x=1")
        ],
    ],
)
def test_a_mistake_in_a_single_change_is_one_line(change, message):
    with pytest.raises(UserError) as mistake:
        settings.for_estimator(None, [change])
    assert str(mistake.value) == message


LAUGHS = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{here}: &{here} [{', '.join([f'*{before}'] * 9)}]\n"
    for before, here in zip("abcdefgh", "bcdefghi", strict=True)
)
BOMBS = {
    "aliases of aliases": LAUGHS,
    "merged aliases": "a: &a {x: 1}\n" + "b: {" + "<<: *a, " * 50_000 + "}\n",
    "one that holds itself": "seed: &a [*a]\n",
    "a section that holds itself": "noise: &a {kind: *a}\n",
    "lists 50,000 deep": "[" * 50_000,
    "sections 200 deep": "".join(" " * k + "a:\n" for k in range(200)),
    "keys that are lists 500 deep": "? " * 500 + "a",
    "an integer of 50,000 digits": f"seed: {'9' * 50_000}\n",
    "the same in hex": f"seed: 0x{'f' * 50_000}\n",
    "the same in binary": f"seed: 0b{'1' * 150_000}\n",
    "the same by the clock": f"seed: 1{':59' * 60_000}\n",
    "a key of 50,000 digits": f"0x{'f' * 50_000}: 1\n",
    "a number by the clock": f"seed: 1{':59' * 60_000}.5\n",
    "no date": "seed: 2024-99-99\n",
    "a date": "seed: 2024-05-31\n",
    "a date as a key": "2024-05-31: 1\n",
    "a time in no zone": "seed: 2024-05-31T10:00:00+99:99\n",
    "the year 0": "seed: 0000-01-01\n",
    "bytes": "seed: !!binary aGVsbG8=\n",
    "no bytes": "seed: !!binary a\n",
    "code": "seed: !!python/object/apply:os.system [exit 1]\n",
    "a set": "seed: !!set {a, b}\n",
    "pairs of nothing": "seed: !!pairs 1\n",
    "an order of nothing": "seed: !!omap [1]\n",
    "a truth that is none": "seed: !!bool perhaps\n",
    "a number that is none": "seed: !!int x\n",
    "a number of nothing": "seed: !!int ''\n",
    "a fraction that is none": "seed: !!float x\n",
    "a key that is a list": "? [a]\n: b\n",
    "too much text": "seed: 0  # " + "x" * 300_000,
    "another encoding": "\ud83d",
    "half of a character": 'seed: "\\ud800"\n',
    "half of a character as a key": '"\\ud800": 1\n',
    "control characters": "seed: \x00\x07\n",
    "a tag of its own": "seed: !a!b c\n",
    "a directive": "%YAML 9.9\n---\nseed: 0\n",
    "two documents": "---\nseed: 0\n---\nseed: 1\n",
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_file_that_would_hurt_is_a_few_lines_soon(tmp_path, bomb):
    path = tmp_path / "params.yaml"
    path.write_bytes(BOMBS[bomb].encode("utf-8", "surrogatepass"))
    for read in (settings.load, lambda path: settings.for_estimator(path, ["seed="])):
        start = time.process_time()
        with pytest.raises(UserError) as raised:
            read(path)
        assert time.process_time() - start < 2
        assert len(raised.value.args) < 40
        assert all(len(line) <= MOST_CHARACTERS for line in raised.value.args)


@pytest.mark.parametrize("bomb", [name for name in BOMBS if BOMBS[name].startswith("seed: ")])
def test_a_change_by_hand_that_would_hurt_is_one_line_soon(bomb):
    start = time.process_time()
    with pytest.raises(UserError, match=r"^--set seed=") as raised:
        settings.for_estimator(None, [f"seed={BOMBS[bomb].removeprefix('seed: ')}"])
    assert time.process_time() - start < 2
    assert len(raised.value.args) == 1
