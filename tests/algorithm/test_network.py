import numpy as np
import pytest
import torch
from scipy import sparse
from scipy.optimize import minimize

from wscpml import devices
from wscpml.algorithm import network, ridge
from wscpml.errors import UserError

SETTINGS = {
    "width": 3,
    "learning_rate": 0.01,
    "weight_decay": 0.01,
    "batch_size": 32,
    "max_epochs": 60,
    "patience": 10,
    "validation_share": 0.2,
}


def problem(n=200, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    truth = np.column_stack([X[:, 0] > 0, X[:, 1] * X[:, 2] > 0, X[:, 3] > 0]).astype(np.uint8)
    return X, truth


def fit(X, candidates, pseudo_labels, seed=0, **changes):
    rng = np.random.default_rng(seed)
    return network.fit(X, candidates, pseudo_labels, **{**SETTINGS, **changes}, rng=rng)


def test_it_learns_labels_that_no_line_separates():
    X, truth = problem(800)
    trained, _ = fit(X[:600], truth[:600], truth[:600], width=8, max_epochs=200, patience=50)
    right = (trained.predict_proba(X[600:]) > 0.5) == truth[600:]
    assert right.mean(axis=0).min() > 0.85


def test_the_network_is_the_one_of_eq_11():
    rng = np.random.default_rng(0)
    d, q, width = 4, 3, 2
    w, b = rng.normal(size=(d, q * width)), rng.normal(size=q * width)
    v, c = rng.normal(size=(q, width)), rng.normal(size=q)
    made = network.Network(*(a.astype(np.float32) for a in (w, b, v, c)))
    X = rng.normal(size=(5, d))
    for k in range(q):
        columns = slice(k * width, (k + 1) * width)
        logit = np.tanh(X @ w[:, columns] + b[columns]) @ v[k] + c[k]
        expected = 1 / (1 + np.exp(-logit))
        np.testing.assert_allclose(made.predict_proba(X)[:, k], expected, rtol=1e-5)


def test_the_recorded_loss_is_the_hybrid_loss_of_the_start_on_rows_held_out():
    X, Y = problem(50)
    F = Y * np.random.default_rng(1).random(Y.shape)
    _, course = fit(X, Y, F)
    rows = np.random.default_rng(0).permutation(50)[:10]
    closed_form = ridge.fit(X.astype(np.float32), Y, F.astype(np.float32))
    scores = X[rows] @ closed_form.without(rows).weight + closed_form.without(rows).bias
    counts, offset = network._calibrated(closed_form.left_out, Y, F, width=3)
    p = 1 / (1 + np.exp(-curve(counts, offset, scores)))
    hybrid = F[rows] * np.log(p) + (1 - Y[rows]) * np.log(1 - p)
    assert course.validation_loss[0] == pytest.approx(-hybrid.sum(axis=1).mean(), rel=1e-5)


def curve(counts, offset, scores):
    bends = [np.tanh(gain * (scores - place)) for place, gain in network.BENDS]
    return np.tensordot(counts, bends[: len(counts)], 1) + offset


@pytest.mark.parametrize("width", [1, 3, 10])
@pytest.mark.parametrize("bent", [0, 1])
def test_calibrated_scores_have_the_least_hybrid_loss_of_all_rising_curves(width, bent):
    rng = np.random.default_rng(0)
    Y = (rng.random((300, 4)) < [0.5, 0.1, 0.02, 0.9]).astype(np.uint8)
    F, scores = Y * rng.uniform(0.5, 1, Y.shape), 0.4 * Y + rng.normal(size=Y.shape) * 0.3
    if bent:  # flat around 0, where a rising bend would be steep
        Y, F = ((scores > 0.5) | (rng.random(Y.shape) < 0.2) for _ in range(2))
        Y = (Y | F).astype(np.uint8)
    bins = np.clip(np.floor((scores + 1) * 200), 0, 599)
    scores = (bins + 0.5) / 200 - 1
    counts, offset = network._calibrated(scores, Y, F.astype(float), width)
    known = min(width, 3)
    scale = np.append(abs(curve_values(known)).max(axis=1), 1)

    def loss(x):
        logit = curve(x[:-1], x[-1], scores)
        likely = F * np.logaddexp(0, -logit) + (1 - Y) * np.logaddexp(0, logit)
        return likely.sum() + 0.5 * ((x * scale) ** 2).sum()

    bounds = [(0, None)] * known + [(None, None)]
    best = minimize(loss, np.zeros(known + 1), bounds=bounds, method="L-BFGS-B", tol=1e-12)
    assert (counts >= 0).all()
    assert loss(np.append(counts, offset)) == pytest.approx(best.fun, rel=1e-4)


def curve_values(known):
    middles = (np.arange(600) + 0.5) / 200 - 1
    return np.array([np.tanh(gain * (middles - at)) for at, gain in network.BENDS[:known]])


@pytest.mark.parametrize("always", [0, 1])
def test_labels_that_are_never_or_always_there_have_finite_logits(always):
    Y = np.full((20, 2), always, np.uint8)
    counts, offset = network._calibrated(Y.astype(float), Y, Y.astype(float), width=3)
    assert (curve(counts, offset, float(always)) > 0) == always


def test_training_brings_both_losses_down():
    X, truth = problem(400)
    _, course = fit(X, truth, truth)
    assert course.training_loss.iloc[-1] < 0.9 * course.training_loss[0]
    assert course.validation_loss.min() < 0.9 * course.validation_loss[0]


def test_a_pseudo_label_of_zero_takes_a_candidate_out_of_the_loss():
    X, Y = problem(100)
    Y[:, 0] = 1
    F = Y.astype(float)
    F[:, 0] = 0
    trained, _ = fit(X, Y, F)
    untouched, _ = fit(X, Y, F, max_epochs=1, learning_rate=1e-12, weight_decay=0)
    np.testing.assert_allclose(trained.output_bias[0], untouched.output_bias[0], atol=1e-7)
    assert abs(trained.output_bias[2] - untouched.output_bias[2]) > 1e-3


def test_rows_without_candidates_are_pure_negatives():
    X, _ = problem(100)
    nothing = np.zeros((100, 3), np.uint8)
    trained, _ = fit(X, nothing, nothing, max_epochs=200, patience=200)
    assert trained.predict_proba(X).max() < 0.1


def test_training_stops_early():
    X, _ = problem(60)
    noise = (np.random.default_rng(3).random((60, 3)) < 0.5).astype(np.uint8)
    _, course = fit(X, noise, noise, max_epochs=500, patience=7, weight_decay=0)
    assert len(course) < 500
    assert course.validation_loss.idxmin() == len(course) - 1 - 7


def test_weight_decay_shrinks_the_weights():
    X, truth = problem()
    free, _ = fit(X, truth, truth, weight_decay=0, patience=60)
    held, _ = fit(X, truth, truth, weight_decay=5, patience=60)
    assert np.linalg.norm(held.hidden_weight) < 0.5 * np.linalg.norm(free.hidden_weight)


def test_the_same_seed_gives_the_same_network():
    X, truth = problem()
    (one, course), (two, _), (other, _) = (fit(X, truth, truth, seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one.hidden_weight, two.hidden_weight)
    assert (one.hidden_weight != other.hidden_weight).any()
    assert list(course.columns) == ["step", "training_loss", "validation_loss"]


def problems(count):
    """Problems of different sizes, with features of different numbers."""
    for k in range(count):
        X, truth = problem(150 + k, seed=k)
        X = np.column_stack([X, X[:, :1] ** 2])[:, : 5 - k % 2]
        yield X, truth, truth * 0.9


def test_networks_trained_together_are_those_trained_one_by_one(monkeypatch):
    monkeypatch.setattr(network, "NETWORKS", 2)
    monkeypatch.setattr(network, "UNITS", 2 * SETTINGS["width"])
    rngs = [np.random.default_rng(k) for k in range(3)]
    together = network.fit_all(
        [network.Problem(*p, rng) for p, rng in zip(problems(3), rngs, strict=True)], **SETTINGS
    )
    for k, (case, (trained, course)) in enumerate(zip(problems(3), together, strict=True)):
        alone, its_course = fit(*case, seed=k)
        np.testing.assert_allclose(course, its_course, rtol=1e-4)
        for name, value in vars(alone).items():
            np.testing.assert_allclose(getattr(trained, name), value, atol=2e-3)


def test_sparse_labels_and_features_on_disk_train_the_same_network(tmp_path):
    X, truth = problem()
    np.save(tmp_path / "x.npy", X.astype(np.float32))
    mapped, labels = np.load(tmp_path / "x.npy", mmap_mode="r"), sparse.csr_array(truth)
    plain, stored = fit(X.astype(np.float32), truth, truth), fit(mapped, labels, labels)
    np.testing.assert_array_equal(plain[0].hidden_weight, stored[0].hidden_weight)


def test_the_number_of_cores_changes_no_byte(monkeypatch):
    X, truth = problem()
    monkeypatch.setattr(network, "UNITS", SETTINGS["width"])
    weights = []
    for cores in (1, 2, 3):
        monkeypatch.setattr(devices, "cores", lambda cores=cores: cores)
        weights.append(fit(X, truth, truth)[0].hidden_weight.tobytes())
    assert len(set(weights)) == 1


def test_very_many_rows_start_from_some_of_them(monkeypatch):
    X, truth = problem(400)
    monkeypatch.setattr(network, "START_ROWS", 50)
    trained, _ = fit(X, truth, truth)
    assert ((trained.predict_proba(X) > 0.5) == truth)[:, [0, 2]].mean() > 0.9


def test_the_rate_goes_up_and_down_once():
    optimiser = network._AdamW([], (1.0, 0.0), steps=100)
    rates = []
    for taken in range(100):
        optimiser.taken = taken
        rates.append(optimiser.rate())
    assert rates[0] == pytest.approx(0.04)
    assert max(rates) == rates[10] == pytest.approx(1)
    assert (np.diff(rates[:11]) > 0).all()
    assert (np.diff(rates[10:]) < 0).all()
    assert rates[-1] < 0.001


def test_the_steps_are_those_of_torchs_adamw():
    start, rng = np.ones((2, 3, 4), np.float32), np.random.default_rng(0)
    ours, theirs = (torch.from_numpy(start.copy()) for _ in range(2))
    optimiser = network._AdamW([ours] * 4, (0.1, 0.01), steps=50)
    optimiser.means, optimiser.squares, optimiser.decays = (
        part[:1] for part in (optimiser.means, optimiser.squares, optimiser.decays)
    )
    reference = torch.optim.AdamW([theirs], lr=0.1, weight_decay=0.01)
    for _ in range(20):
        slope = torch.from_numpy(rng.normal(size=start.shape).astype(np.float32))
        reference.param_groups[0]["lr"] = optimiser.rate()
        theirs.grad = slope
        reference.step()
        optimiser.step([ours], [slope])
    torch.testing.assert_close(ours, theirs)


def test_a_single_training_row_is_refused():
    X, truth = problem(1)
    with pytest.raises(UserError, match="at least 2 training rows, got 1"):
        fit(X, truth, truth)


def test_a_loss_that_is_not_finite_is_the_learning_rates_fault():
    X, truth = problem()
    with pytest.raises(UserError, match="classifier.learning_rate: 1e\\+36 .* smaller"):
        fit(X, truth, truth, learning_rate=1e36)
