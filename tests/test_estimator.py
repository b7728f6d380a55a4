import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import wscpml
from tests.contract import Contract, small
from wscpml import WSCPML, artifacts, blocks, progress
from wscpml.algorithm import composition, network
from wscpml.datasets.songs import songs
from wscpml.errors import UserError
from wscpml.parameters import ParameterError
from wscpml.quality import judging


@pytest.fixture(autouse=True)
def few_trees(monkeypatch):
    monkeypatch.setattr(judging, "TREES", 50)


class TestWSCPML(Contract):
    method = WSCPML()


class TestOnTheClosedForm(Contract):
    method = WSCPML(kind="kernel_ridge")


@pytest.fixture(scope="module")
def tables():
    """Features and candidates with names, and the truth."""
    X, truth, candidates = small(n=200)
    ids = pd.Index([f"song {i}" for i in range(len(X))], name="song")
    features = pd.DataFrame(X, ids, [f"feature {j}" for j in range(X.shape[1])])
    return features, pd.DataFrame(candidates, ids, ["rock", "jazz", "pop", "folk"]), truth


@pytest.fixture
def fitted(tables):
    return WSCPML(random_state=0).fit(*tables[:2])


def test_names_go_through(tables, fitted):
    features, candidates, _ = tables
    rest = features.iloc[5:9]
    for table in (fitted.predict_proba(rest), fitted.predict(rest)):
        assert table.index.equals(rest.index)
        assert table.columns.tolist() == ["rock", "jazz", "pop", "folk"]
    assert fitted.label_confidence_.index.equals(candidates.index)


def test_issues_are_candidates_that_are_probably_false_the_worst_first(tables, fitted):
    _, candidates, truth = tables
    issues = fitted.find_label_issues()
    assert issues.label_confidence.is_monotonic_increasing
    assert (issues.label_confidence < 0.5).all()
    named = pd.DataFrame(truth, candidates.index, candidates.columns)
    found = [named.loc[each.instance, each.label] for each in issues.itertuples()]
    assert all(candidates.loc[each.instance, each.label] for each in issues.itertuples())
    false = 1 - named.to_numpy()[candidates.to_numpy() == 1].mean()
    assert 1 - np.mean(found) > false + 0.2


def test_issues_say_why(tables, fitted):
    _, candidates, _ = tables
    for each in fitted.find_label_issues().itertuples():
        row = fitted.label_confidence_.loc[each.instance]
        competing = each.competing.split(", ") if each.competing else []
        assert set(competing) == set(row.index[row > each.label_confidence])
        nearest = each.nearest.split(", ")
        assert len(nearest) == 3
        assert (each.label in nearest) == (each.prototype_rank <= 3)
        assert candidates.loc[each.instance, each.label] == 1


def test_all_candidates_can_be_listed(tables, fitted):
    assert len(fitted.find_label_issues(below=2)) == tables[1].to_numpy().sum()


def test_confidence_tells_true_from_false_candidates(tables, fitted):
    features, candidates, truth = tables
    chosen = candidates.to_numpy() == 1
    confidence = fitted.label_confidence_.to_numpy()
    assert roc_auc_score(truth[chosen], confidence[chosen]) > 0.8
    printed = WSCPML(labels="printed", random_state=0).fit(features, candidates)
    np.testing.assert_array_equal(printed.label_confidence_, fitted.label_confidence_)


def test_it_works_in_a_pipeline_and_out_of_fold(tables):
    features, candidates, truth = tables
    chain = make_pipeline(StandardScaler(), WSCPML(random_state=0))
    scores = cross_val_predict(chain, features, candidates, cv=3, method="predict_proba")
    assert roc_auc_score(truth, scores) > 0.7


@pytest.fixture(scope="module")
def sample():
    """The sample's columns of every kind, and its tags."""
    table = songs(120)[0].set_index("song")
    return table.drop(columns="tags"), table.tags


def test_a_table_with_columns_of_every_kind_is_taken_as_it_is(sample, tmp_path):
    X, y = sample
    model = WSCPML(kind="kernel_ridge", random_state=0).fit(X, y)
    assert {"Folk", "R&B", "rock"} <= set(model.label_names_)
    assert model.label_confidence_.index.equals(X.index)
    new = X[:9].assign(country="Atlantis", tempo=np.nan)
    model.save(tmp_path / "model")
    loaded = WSCPML.load(tmp_path / "model")
    pd.testing.assert_frame_equal(loaded.predict_proba(new), model.predict_proba(new))
    pd.testing.assert_frame_equal(loaded.predict(new), model.predict(new))
    with pytest.raises(NotFittedError):
        loaded.find_label_issues()
    with pytest.raises(UserError, match="X: must be a table with the columns that were fitted"):
        model.predict_proba(np.zeros((2, 3)))


IN_ANOTHER_PROCESS = """
import pickle
import sys

def refuse(event, arguments):
    if event == "pickle.find_class":
        raise RuntimeError("unpickled")

sys.addaudithook(refuse)
from wscpml import WSCPML, artifacts

found = WSCPML.load("model").predict_proba(artifacts.read("new.parquet").set_index("song"))
artifacts.write("found.parquet", found)
try:
    pickle.loads(pickle.dumps(WSCPML()))
except RuntimeError:
    print("watched")
"""


def test_another_process_gives_the_same_of_raw_rows_and_unpickles_nothing(
    sample, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    X, y = sample
    model = WSCPML(kind="kernel_ridge", random_state=0).fit(X, y)
    model.save("model")
    new = X[:9].astype({"country": object})
    new.loc["song 2", "country"] = "Atlantis"
    new.loc["song 3", ["tempo", "country", "released", "description"]] = None
    artifacts.write("new.parquet", new.reset_index())
    command = [sys.executable, "-c", IN_ANOTHER_PROCESS]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert done.stdout == "watched\n"
    found = artifacts.read("found.parquet")
    assert found.to_numpy().tobytes() == model.predict_proba(new).to_numpy().tobytes()


def test_no_code_of_ours_unpickles():
    unpickles = re.compile(
        r"(import|from) (pickle|cloudpickle|dill|joblib|marshal|shelve)|torch\.load|read_pickle|"
        r"allow_pickle=True"
    )
    for path in Path(wscpml.__file__).parent.rglob("*.py"):
        assert not unpickles.search(path.read_text()), path


def test_columns_are_what_one_says(sample):
    X, y = sample
    roles = {"description": "ignore", "country": "text"}
    X = X.assign(empty=None, price=[f"{k % 30} %" for k in range(len(X))])
    model = WSCPML(kind="kernel_ridge", random_state=0, columns=roles).fit(X, y)
    assert model.remarks_[-2:] == [
        "X: column 'empty' is empty in every row: it is left out",
        "X: column 'price' has signs beside its numbers, such as '0 %'; write them plain to have "
        "them taken for numbers",
    ]
    assert "description" not in model.encoding_.columns
    assert any(name.startswith("country: ") for name in model.encoding_.names)
    with pytest.raises(UserError, match="columns.description='prose': must be 'number'"):
        WSCPML(columns={"description": "prose"}).fit(X, y)


def test_labels_in_every_form_give_the_same(tables):
    features, candidates, _ = tables
    lists = [list(candidates.columns[row == 1]) for row in candidates.to_numpy()]
    method = WSCPML(kind="kernel_ridge", random_state=0)
    ordered = candidates[sorted(candidates)]
    expected = method.fit(features, ordered).label_confidence_
    for y in (lists, [";".join(each) for each in lists], 2 * ordered.astype(int) - 1):
        pd.testing.assert_frame_equal(method.fit(features, y).label_confidence_, expected)


def test_a_model_of_arrays_is_saved_too_and_nothing_else_is_replaced(tmp_path):
    X, _, candidates = small()
    model = WSCPML(kind="kernel_ridge", random_state=0).fit(X, candidates)
    model.save(tmp_path / "model")
    loaded = WSCPML.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    (tmp_path / "mine.txt").touch()
    with pytest.raises(UserError, match="is there, and is not just a model"):
        model.save(tmp_path)


@pytest.mark.parametrize(
    "names", [["a", "b", "c", "d"], ["x1", "x2", "x3", "x4"], [3, 2, 0, 1], ["a", 1, "c", 7]]
)
def test_columns_come_in_any_order_before_and_after_saving(names, tmp_path):
    X, _, candidates = small(d=4)
    table = pd.DataFrame(X, columns=pd.Index(names, dtype=object))
    model = WSCPML(kind="kernel_ridge", random_state=0).fit(table, candidates)
    model.save(tmp_path / "model")
    assert artifacts.read(tmp_path / "model/names.json")["features"] == list(map(str, names))
    expected = model.predict_proba(table)
    for each in (model, WSCPML.load(tmp_path / "model")):
        for order in (names, names[::-1]):
            found = each.predict_proba(table[order].assign(more="?"))
            np.testing.assert_array_equal(found, expected)
            np.testing.assert_array_equal(each.predict_proba(table[order]), expected)


def test_a_column_that_is_there_twice_is_refused(sample):
    X, y = sample
    again, model = pd.concat([X, X[["country"]]], axis=1), WSCPML(kind="kernel_ridge")
    plain, _, candidates = small(d=2)
    for fit in (
        lambda: model.fit(again, y),
        lambda: model.fit(X, y).predict(again),
        lambda: model.fit(pd.DataFrame(plain, columns=["country"] * 2), candidates),
        lambda: model.fit(plain, pd.DataFrame(candidates, columns=["pop", "rock", "pop", "folk"])),
    ):
        with pytest.raises(UserError, match="^[Xy]: column '(country|pop)' is there twice, as num"):
            fit()


def test_labels_keep_what_they_are_called():
    X, _, candidates = small()
    y = pd.DataFrame(candidates, columns=[10, 20, 30, 40])
    for given in (y, y.astype(pd.SparseDtype(int, 0))):
        model = WSCPML(kind="kernel_ridge", random_state=0).fit(X, given)
        tables = (model.label_confidence_, model.pseudo_labels_, model.predict(X))
        for table in (*tables, model.predict_proba(X)):
            assert table.columns.tolist() == [10, 20, 30, 40]
    assert model.label_names_ == ["10", "20", "30", "40"]


def test_lists_and_arrays_are_taken_as_tables_are(sample):
    X, _, candidates = small()
    lists = [["rock", "jazz", "pop", "folk"][: row.sum()] for row in candidates]
    model = WSCPML(kind="kernel_ridge", random_state=0).fit(X, lists)
    again = WSCPML(kind="kernel_ridge", random_state=0).fit(X.tolist(), lists)
    pd.testing.assert_frame_equal(again.predict(X.tolist()), model.predict(X))
    whole = np.round(X)
    of_numbers = WSCPML(kind="kernel_ridge", columns={"0": "category"}).fit(whole, lists)
    assert of_numbers.encoding_.names[0].startswith("0=")
    pd.testing.assert_frame_equal(
        of_numbers.predict(whole), of_numbers.predict(pd.DataFrame(whole)[range(7, -1, -1)])
    )
    with pytest.raises(UserError, match="^X: is sparse; columns of other kinds than numbers need"):
        of_numbers.fit(sparse.csr_array(whole), lists)


def test_what_may_not_be_meant_by_labels_is_among_the_remarks():
    X, _, candidates = small()
    names = np.array(["Rock", "rock", "jazz", "folk"])
    y = [", ".join(names[row == 1]) for row in candidates]
    told = WSCPML(kind="kernel_ridge", random_state=0).fit(X, y).remarks_
    assert any(line.startswith("y: column 'y': ',' is taken for") for line in told)
    assert any("1 labels are written in several ways" in line for line in told)


def test_votes_may_be_numbers_that_can_be_nothing(tables):
    features, candidates, _ = tables
    votes = candidates * np.arange(1, 201)[:, None]
    of_floats, of_nothing = (
        WSCPML(kind="kernel_ridge", random_state=0).fit(features, candidates, votes=each)
        for each in (votes, votes.astype("Int64").replace(0, pd.NA))
    )
    pd.testing.assert_frame_equal(of_nothing.label_confidence_, of_floats.label_confidence_)


def test_steps_are_told_if_one_wants(capsys):
    X, _, candidates = small()
    WSCPML(random_state=0).fit(X, candidates)
    assert capsys.readouterr().err == ""
    WSCPML(random_state=0, verbose=True).fit(X, candidates)
    said = capsys.readouterr().err
    for step in ("mapping the features (step 1 of 6, 00:00)", "judging", "training the classifier"):
        assert step in said


def test_how_far_judging_is_is_told_once_it_takes_long(capsys, monkeypatch):
    X, _, candidates = small()
    quiet = WSCPML(random_state=0).fit(X, candidates)
    monkeypatch.setattr(judging, "SECONDS", 0)
    monkeypatch.setattr(progress, "SECONDS", 0)
    told = WSCPML(random_state=0, verbose=True).fit(X, candidates)
    said = capsys.readouterr().err
    for part in ("predicting candidates (step 1 of 4", "estimating the noise", "growing trees: "):
        assert part in said
    np.testing.assert_array_equal(told.label_confidence_, quiet.label_confidence_)


def test_the_time_of_a_step_goes_on_by_itself(capsys, monkeypatch):
    monkeypatch.setattr(progress, "TICK", 0.01)
    with progress.steps(1, True) as steps:
        steps.begin("thinking")
        shown = capsys.readouterr().err
        while shown.count("thinking") < 3:  # the test ends, or never does
            shown += capsys.readouterr().err


def test_what_a_person_has_decided_is_certain_learned_and_never_an_issue(tables, fitted):
    features, candidates, _ = tables
    worst, missing = fitted.find_label_issues().iloc[0], np.argwhere(candidates.to_numpy() == 0)[0]
    added = candidates.index[missing[0]], candidates.columns[missing[1]]
    table = pd.DataFrame(
        [(worst.instance, worst.label, True), (*added, True)],
        columns=["instance", "label", "decision"],
    )
    found = WSCPML(random_state=0).fit(features, candidates, decisions=table)
    for pair in table[["instance", "label"]].itertuples(index=False, name=None):
        for values in (found.label_confidence_, found.pseudo_labels_):
            assert values.loc[pair] == 1
    assert found.decided_.true.tolist() == [True, True]
    listed = found.find_label_issues(below=2)
    assert len(listed) == candidates.to_numpy().sum() - 1
    assert not ((listed.instance == worst.instance) & (listed.label == worst.label)).any()
    printed = WSCPML(labels="printed", random_state=0).fit(features, candidates, decisions=table)
    assert printed.pseudo_labels_.loc[added] == 1


def test_labels_that_a_person_adds_prove_nothing_of_the_tags(tables, fitted):
    features, candidates, _ = tables
    asked = fitted.queue(10_000).assign(decision=False)[["instance", "label", "decision"]]
    row, label = np.nonzero(candidates.to_numpy() == 0)
    added = pd.DataFrame(
        {"instance": candidates.index[row], "label": candidates.columns[label], "decision": True}
    )
    found = WSCPML(random_state=0).fit(features, candidates, decisions=pd.concat([asked, added]))
    (told,) = (line for line in found.remarks_ if "of all tags are wrong" in line)
    assert told.startswith("between 99 and 100 % (95 %)")
    assert told.endswith(f"by {len(asked)} random answers")


def test_without_decisions_nothing_changes_and_false_ones_are_not_learned(tables, fitted, tmp_path):
    features, candidates, _ = tables
    (tmp_path / "none.csv").write_text("instance,label,decision\n")
    none = WSCPML(random_state=0).fit(features, candidates, decisions=tmp_path / "none.csv")
    pd.testing.assert_frame_equal(none.label_confidence_, fitted.label_confidence_)
    pd.testing.assert_frame_equal(none.predict_proba(features), fitted.predict_proba(features))

    row, label = np.argwhere(candidates.to_numpy() == 1)[0]
    table = pd.DataFrame({"instance": [row, row], "label": [label] * 2, "decision": [1, 0]})
    plain = WSCPML(random_state=0).fit(features.to_numpy(), candidates.to_numpy(), decisions=table)
    assert plain.label_confidence_[row, label] == plain.pseudo_labels_[row, label] == 0
    assert any("decided both ways by one reviewer" in remark for remark in plain.remarks_)


def test_probabilities_of_another_model_are_judged_by_too(tables, fitted):
    features, candidates, truth = tables
    knows = np.where(truth == 1, 0.9, 0.2)
    table = pd.DataFrame(knows, candidates.index, candidates.columns).iloc[::-1, ::-1]
    helped = WSCPML(random_state=0).fit(features, candidates, probabilities=table)
    chosen = candidates.to_numpy() == 1
    without, better = (
        roc_auc_score(truth[chosen], each.label_confidence_.to_numpy()[chosen])
        for each in (fitted, helped)
    )
    assert without < better > 0.99
    again = WSCPML(random_state=0).fit(features, candidates, probabilities=knows)
    pd.testing.assert_frame_equal(again.label_confidence_, helped.label_confidence_)


def test_probabilities_of_other_rows_or_labels_are_refused(tables):
    features, candidates, _ = tables
    table = pd.DataFrame(0.5, candidates.index, candidates.columns)
    for wrong, words in (
        (table.iloc[1:], "has no row 'song 0'"),
        (table.rename(columns={"rock": "Rock"}), "has no column 'rock'"),
        (table.to_numpy()[:, 1:], "is 200 x 3, and must be 200 x 4"),
        (
            table.drop("song 7").reindex(table.index),
            "row 'song 7', column 'rock': must be from 0 to 1",
        ),
    ):
        with pytest.raises(UserError, match=f"^probabilities: {words}"):
            WSCPML(random_state=0).fit(features, candidates, probabilities=wrong)


@pytest.fixture(scope="module")
def lossy():
    """Features, candidates without a fifth of the true labels, and the truth."""
    X, truth, candidates = small(n=300)
    lost = (truth == 1) & (np.random.default_rng(0).random(truth.shape) < 0.2)
    return X, np.where(lost, 0, candidates), truth


def test_missing_labels_are_found_the_likeliest_first(lossy):
    X, candidates, truth = lossy
    fitted = WSCPML(complete=False, random_state=0).fit(X, candidates)
    absent, likely = candidates == 0, fitted.judged_.missing
    assert roc_auc_score(truth[absent], likely[absent]) > 0.85
    assert not likely[~absent].any()
    assert likely.sum() == pytest.approx(truth[absent].sum(), rel=0.6)
    found = fitted.find_missing_labels()
    assert found.probability.is_monotonic_decreasing
    assert len(found) == round(likely.sum())
    row, label = found.instance.to_numpy(), found.label.astype(int).to_numpy()
    assert truth[row, label].mean() > 3 * truth[absent].mean()
    pd.testing.assert_frame_equal(fitted.find_missing_labels(limit=5), found[:5])
    assert "of the true labels are taken to be missing" in " ".join(fitted.remarks_)
    assert fitted.noise_["lost"] > 0


def test_missing_labels_are_learned_as_far_as_they_are_likely(lossy):
    X, candidates, _ = lossy
    fitted = WSCPML(complete=False, kind="kernel_ridge", random_state=0).fit(X, candidates)
    np.testing.assert_array_equal(
        fitted.pseudo_labels_[candidates == 0], fitted.judged_.missing[candidates == 0]
    )
    complete = WSCPML(kind="kernel_ridge", random_state=0).fit(X, candidates)
    assert not complete.pseudo_labels_[candidates == 0].any()
    assert fitted.predict_proba(X).mean() > complete.predict_proba(X).mean()


def test_what_a_person_has_decided_is_not_missing(lossy):
    X, candidates, _ = lossy
    first = WSCPML(complete=False, kind="kernel_ridge", random_state=0).fit(X, candidates)
    top = first.find_missing_labels(limit=2)[["instance", "label"]]
    decided = top.assign(decision=["true", "false"])
    again = WSCPML(complete=False, kind="kernel_ridge", random_state=0).fit(X, candidates, decided)
    for row, label in top.astype(int).to_numpy():
        assert again.judged_.missing[row, label] == 0


def test_missing_labels_are_not_looked_for_where_there_are_none(fitted):
    with pytest.raises(UserError, match="^complete=True: says that no true label is missing"):
        fitted.find_missing_labels()


def test_rare_labels_may_be_missing_too():
    X, _, candidates = small()
    candidates[:, 1:] = 0
    candidates[:2, 1] = 1
    fitted = WSCPML(complete=False, kind="kernel_ridge", random_state=0).fit(X, candidates)
    missing = fitted.judged_.missing
    assert (missing[2:, 1] > 0).all()
    assert not missing[:, 2:].any()
    candidates[:, 0] = 0
    nothing = WSCPML(complete=False, kind="kernel_ridge", random_state=0).fit(X, candidates)
    assert nothing.find_missing_labels().empty


def test_a_fit_that_was_stopped_goes_on_and_gives_the_same(monkeypatch, tmp_path):
    monkeypatch.setattr(network, "START_ROWS", 60)
    monkeypatch.setattr(judging, "ROWS_AT_ONCE", 30)
    monkeypatch.setattr(blocks, "cores", lambda: 1)
    rng, begun, clustered = np.random.default_rng(0), list[int](), list[int]()
    X = rng.normal(size=(200, 4))
    Y = (X @ rng.normal(size=(4, 3)) + rng.normal(size=(200, 3)) > 0).astype(int)
    plain = WSCPML(random_state=0, kind="kernel_ridge").fit(X, Y)
    judge, cluster = judging._Judging.__call__, composition.cluster

    def stopped(self, block):
        begun.append(block.start)
        if begun.count(60) == 1 and block.start == 60:
            raise KeyboardInterrupt
        judge(self, block)

    monkeypatch.setattr(judging._Judging, "__call__", stopped)
    monkeypatch.setattr(composition, "cluster", lambda *args: clustered.append(1) or cluster(*args))
    method = WSCPML(random_state=0, kind="kernel_ridge", checkpoint=str(tmp_path))
    with pytest.raises(KeyboardInterrupt):
        method.fit(X, Y)
    again = method.fit(X, Y)
    assert begun == [0, 30, 60, 60, 90, 120]
    assert len(clustered) == 1
    np.testing.assert_array_equal(again.label_confidence_, plain.label_confidence_)
    np.testing.assert_array_equal(again.predict_proba(X), plain.predict_proba(X))
    assert again.objective_ == plain.objective_
    rooms = sorted(tmp_path.glob("judging-*/*.bin"))[:-1]  # without the checksums
    for room in rooms:
        values = np.memmap(room, np.float64, "r+")
        values[-1] = 1 - values[-1]  # of the last row
        values.flush()
        again = method.fit(X, Y)
        np.testing.assert_array_equal(again.label_confidence_, plain.label_confidence_)
    assert begun[6:] == [120] * len(rooms)
    method.fit(X, 1 - Y)
    assert begun[6 + len(rooms) :] == [0, 30, 60, 90, 120]


def test_a_checkpoint_needs_a_fit_that_can_be_repeated(tmp_path):
    with pytest.raises(ParameterError, match="needs a whole number as random_state"):
        WSCPML(checkpoint=str(tmp_path)).fit(np.eye(4), np.eye(4, 2))
