from dataclasses import replace

import numpy as np
import pytest

from wscpml import artifacts
from wscpml.algorithm import features
from wscpml.algorithm.network import Network
from wscpml.algorithm.ridge import Ridge
from wscpml.errors import UserError
from wscpml.serving.model import CHECKSUMS, Model, load, save


def heads(d):
    rng = np.random.default_rng(0)
    shapes = ((d, 8), 8, (4, 2), 4)
    yield Network(*(rng.normal(size=shape).astype(np.float32) for shape in shapes))
    yield Ridge(rng.normal(size=(d, 4)), rng.normal(size=4))


@pytest.mark.parametrize("kernel", ["laplace", "rbf", "none"])
def test_a_model_read_back_predicts_the_same(tmp_path, kernel):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    feature_map = features.fit(X, "quantile", kernel, 5, 0.5, 1.0, rng)
    for head in heads(feature_map.size):
        model = Model(feature_map, head, list("abc"), list("wxyz"))
        save(tmp_path / "model", model)
        again = load(tmp_path / "model")
        assert type(again.head) is type(head)
        np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
        assert (again.feature_names, again.label_names) == (list("abc"), list("wxyz"))


def test_a_head_with_even_odds_elsewhere_has_a_half_there_and_the_same_order():
    X = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32) / 4
    for head in heads(3):
        before = head.predict_proba(X)
        after = head.with_even_odds_at(0.7).predict_proba(X)
        np.testing.assert_array_equal(after >= 0.5, before >= 0.7)
        np.testing.assert_array_equal(after.argsort(axis=None), before.argsort(axis=None))


@pytest.fixture
def stored(tmp_path):
    """A directory with a model of two features and four labels, as before there were checksums."""
    feature_map = features.fit_scaling(np.zeros((3, 2)), "none")
    model = Model(feature_map, next(heads(2)), list("ab"), list("wxyz"))
    artifacts.write_directory(tmp_path / "model", model.to_files())
    return tmp_path / "model"


def refusal(directory):
    with pytest.raises(UserError) as mistake:
        load(directory)
    text = str(mistake.value)
    assert text.startswith(str(directory))
    assert text.endswith(
        "`wscpml clean ... --model DIR` makes one, `dvc repro` that of the pipeline"
    )
    assert "\n" not in text
    return text


def rename(stored, **changes):
    names = artifacts.read(stored / "names.json") | changes
    artifacts.write(stored / "names.json", {k: v for k, v in names.items() if v is not None})


def test_a_model_of_another_version_is_told(stored):
    rename(stored, format=2)
    assert "its format is 2, and this version of wscpml reads 1" in refusal(stored)
    rename(stored, format=None)
    assert "its format is none, and this version of wscpml reads 1" in refusal(stored)


def test_what_is_no_model_is_told(stored, tmp_path):
    assert "nothing/weights.safetensors: is missing" in refusal(tmp_path / "nothing")
    weights = stored / "weights.safetensors"
    assert "is missing" in refusal(weights)
    rename(stored, features=["a"])
    assert "its names and its weights are of different models" in refusal(stored)
    rename(stored, features=["a", "b"], kind="kernel_ridge")
    assert "its weights are not those of a model" in refusal(stored)
    (stored / "names.json").write_text("[]\n")
    assert "names.json is not that of a model" in refusal(stored)
    weights.write_bytes(weights.read_bytes()[:-9])
    assert "is damaged or cut off" in refusal(stored)


@pytest.fixture
def checked(tmp_path):
    """The same, with checksums."""
    feature_map = features.fit_scaling(np.zeros((3, 2)), "none")
    save(tmp_path / "model", Model(feature_map, next(heads(2)), list("ab"), list("wxyz")))
    return tmp_path / "model"


def test_a_flipped_byte_is_told_wherever_it_is(checked):
    assert load(checked).label_names == list("wxyz")
    for path in sorted(checked.iterdir()):
        whole = path.read_bytes()
        for place in (0, len(whole) // 2, len(whole) - 2):
            path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
            assert "damaged" in refusal(checked)
        path.write_bytes(b"")
        assert "damaged" in refusal(checked)
        path.write_bytes(whole)
    assert load(checked).label_names == list("wxyz")


def test_a_file_of_another_model_and_checksums_that_are_none_are_told(checked):
    rename(checked, labels=list("wxyv"))
    assert f"is damaged, or of another model: it is not what {CHECKSUMS} says" in refusal(checked)
    (checked / CHECKSUMS).write_text("[]\n")
    assert f"it is not what {CHECKSUMS} says" in refusal(checked)


def test_a_model_that_is_replaced_while_it_is_read_is_one_of_the_two(checked, monkeypatch):
    same_map = features.fit_scaling(np.zeros((3, 2)), "none")
    other = Model(same_map, next(heads(2)), list("ab"), list("1234"))
    real, seen = artifacts.read_directory, []

    def read(*arguments):
        seen.append(arguments)
        if len(seen) == 1:
            save(checked, other)
            raise UserError("the first half is of the first")
        return real(*arguments)

    monkeypatch.setattr(artifacts, "read_directory", read)
    assert load(checked).label_names == list("1234")


@pytest.mark.parametrize("times", [1, 2, 9])
def test_a_model_is_never_one_half_of_each(checked, monkeypatch, times):
    same_map, (head, _) = features.fit_scaling(np.zeros((3, 2)), "none"), heads(2)
    others = [replace(head, output_bias=head.output_bias + k) for k in range(1, times + 1)]
    real, X = artifacts.read, np.zeros((1, 2))

    def read(path, *arguments, **options):
        found = real(path, *arguments, **options)
        if path.name == "weights.safetensors" and others:
            save(checked, Model(same_map, others.pop(0), list("ab"), list("1234")))
        return found

    expected = others[-1].predict_proba(X)
    monkeypatch.setattr(artifacts, "read", read)
    if times < 3:
        found = load(checked)
        assert found.label_names == list("1234")
        np.testing.assert_array_equal(found.predict_proba(X), expected)
    else:
        with pytest.raises(UserError, match="model: was replaced each time while it was read"):
            load(checked)


def reweigh(stored, name, change):
    weights = artifacts.read(stored / "weights.safetensors")
    weights[name] = change(weights[name])
    artifacts.write(stored / "weights.safetensors", weights)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("name", ["head.hidden_weight", "head.output_bias", "feature_map.gain"])
def test_weights_that_are_no_numbers_are_refused(stored, name, value):
    reweigh(stored, name, lambda weight: np.full_like(weight, value))
    assert f"its weight {name} has values that are no numbers" in refusal(stored)


@pytest.mark.parametrize(
    "name", ["head.hidden_weight", "head.hidden_bias", "feature_map.offset", "feature_map.anchors"]
)
def test_weights_of_wrong_shapes_are_refused(stored, name):
    reweigh(stored, name, lambda weight: np.zeros((*weight.shape, 2), weight.dtype))
    assert "its weights are not those of a model" in refusal(stored)
    reweigh(stored, name, lambda _: np.zeros((7, 5), np.float32))
    assert "its weights are not those of a model" in refusal(stored)


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (list("wxyw"), "two of its labels have one name"),
        ([1, 2, 3, 4], "its labels are not named"),
        ("wxyz", "its labels are not named"),
        ({"w": 1}, "its labels are not named"),
    ],
)
def test_names_that_are_none_are_refused(stored, names, told):
    rename(stored, labels=names)
    assert told in refusal(stored)
