"""Final classification: one small network per label, all trained as one (Eq. 11).

A network starts as kernel ridge regression: its first hidden units are one curve, the same for all
labels, of the closed-form solution, and training refines it. From random weights the same loss
takes many more passes, and where rows are few it is never reached.

All labels of a network, and all networks of a set of problems (folds, or settings), are one batched
tensor. The labels share nothing but the moment to stop, so parts of them run on all cores.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from scipy import sparse

from wscpml.algorithm import ridge
from wscpml.arrays import Array, Matrix, row_blocks
from wscpml.devices import Parallel, found_device, in_parallel, to_tensor
from wscpml.errors import UserError

if TYPE_CHECKING:
    import torch
    from torch import Tensor

# Where the first units bend, and how sharply: in the straight part of its tanh, at 0 and at 1.
BENDS = ((0.5, 0.1), (0.0, 8.0), (1.0, 8.0))
NEWTON_STEPS, BINS = 12, 600  # that calibrate the closed form's scores
OTHERS = 1.0  # size of the other units' random inputs
WORTH = 0.005  # share of the validation loss that more epochs have to win; less is its noise
START_ROWS = 20_000  # that the closed form is solved on at most
TRIED_PAIRS, TRIED_LABELS = 4_000_000, 100  # rows times labels from which a few tell when to stop
UNITS, NETWORKS = 512, 5  # hidden units and networks of a part, at most: parts run side by side
ROWS_AT_ONCE = 4096  # where nothing is learned
TINY = 1e-30

Progress = Callable[[Iterable[int]], Iterable[int]]


@dataclass(frozen=True)
class Network:
    """A tanh layer and a sigmoid unit for each of q labels: theta_k and psi_k of Eq. 11."""

    hidden_weight: Array  # (d, q * width): label k owns columns k * width ... (k + 1) * width
    hidden_bias: Array  # (q * width,)
    output_weight: Array  # (q, width)
    output_bias: Array  # (q,)

    def predict_proba(self, X: Array) -> Array:
        """Probability of each label, ``(n, q)``."""
        logits = np.empty((len(X), len(self.output_bias)), np.float32)
        for rows in row_blocks(len(X), ROWS_AT_ONCE):
            hidden = np.tanh(X[rows].astype(np.float32) @ self.hidden_weight + self.hidden_bias)
            hidden = hidden.reshape(-1, *self.output_weight.shape)
            logits[rows] = np.einsum("nqh,qh->nq", hidden, self.output_weight) + self.output_bias
        return 0.5 + 0.5 * np.tanh(0.5 * logits)  # the sigmoid, without overflow

    def of_labels(self, labels: Array | slice) -> "Network":
        """The same of some labels."""
        q, width = self.output_weight.shape
        hidden = self.hidden_weight.reshape(-1, q, width)[:, labels]
        return Network(
            hidden.reshape(len(hidden), -1),
            self.hidden_bias.reshape(q, width)[labels].ravel(),
            self.output_weight[labels],
            self.output_bias[labels],
        )

    def with_even_odds_at(self, probability: float) -> "Network":
        """The same network, its logits shifted so that this probability becomes a half."""
        shift = np.float32(np.log(probability / (1 - probability)))
        return replace(self, output_bias=self.output_bias - shift)


@dataclass(frozen=True)
class Problem:
    """What one network is trained on; matrices may be sparse, X may be a memory map."""

    X: Array  # (n, d)
    candidates: Matrix  # 0/1 (n, q)
    pseudo_labels: Matrix  # (n, q)
    rng: np.random.Generator
    axes: ridge.Axes | None = None  # what `principal_axes` gives, if X has been seen before
    closed_form: ridge.Fit | None = None  # of these axes to the pseudo-labels, if it is there


def fit(
    X: Array,
    candidates: Matrix,
    pseudo_labels: Matrix,
    *,
    rng: np.random.Generator,
    **settings: object,
) -> tuple[Network, pd.DataFrame]:
    """Train one network: see `fit_all`."""
    return fit_all([Problem(X, candidates, pseudo_labels, rng)], **settings)[0]  # type: ignore[arg-type]


def fit_all(
    problems: Sequence[Problem],
    *,
    width: int,
    learning_rate: float,
    weight_decay: float,
    batch_size: int,
    max_epochs: int,
    patience: int,
    validation_share: float,
    device: str = "cpu",
    progress: Progress = iter,
) -> list[tuple[Network, pd.DataFrame]]:
    """Train a network on each problem, all at once: the networks, and their losses per epoch.

    First without a held-out share of the rows: the hybrid loss of those rows, measured on their
    pseudo-labels and candidates, tells after how many epochs to stop. Then on all rows, for as
    many. The learning rate goes up and down once over `max_epochs`. Of very many rows and labels, a
    few labels tell it.

    The losses' `attrs["candidate_precision"]` says how well the closed form, which starts the
    network, ranks the candidates of rows that it is not fitted to: their average precision.
    """
    smallest = min(len(problem.X) for problem in problems)
    if smallest < 2:
        raise UserError(f"classifier: needs at least 2 training rows, got {smallest}")
    where = found_device(device)
    problems = [_ready(problem) for problem in problems]
    splits = [_split(problem, validation_share) for problem in problems]
    held_out, training, everything = (list(rows) for rows in zip(*splits, strict=True))

    def begin(problems: list[Problem], rows: list[Array], starts: list[Network]) -> _Training:
        streams = [problem.rng.spawn(1)[0] for problem in problems]
        rates = (learning_rate, weight_decay)
        return _Training(problems, rows, starts, streams, rates, batch_size, max_epochs, where)

    with in_parallel(where) as run:
        streams = [problem.rng.spawn(1)[0] for problem in problems]
        found = run(partial(_starts, width=width), problems, held_out, streams)
        first, last, precisions = (list(parts) for parts in zip(*found, strict=True))
        some = _tried_labels(problems)
        tried = [_of_labels(problem, some) for problem in problems]
        trial = begin(tried, training, [network.of_labels(some) for network in first])
        epochs, courses = _epochs_that_pay(
            run, trial, training, held_out, progress(range(max_epochs + 1)), patience
        )
        final = begin(problems, everything, last)
        networks = _trained_for(run, final, epochs, progress)
    for course, precision in zip(courses, precisions, strict=True):
        course.attrs["candidate_precision"] = precision
    return list(zip(networks, courses, strict=True))


def _epochs_that_pay(
    run: Parallel,
    trial: "_Training",
    training: list[Array],
    held_out: list[Array],
    epochs: Iterable[int],
    patience: int,
) -> tuple[Array, list[pd.DataFrame]]:
    """Train until the loss of the held-out rows falls no more.

    Returns the number of epochs with the lowest, and the losses per epoch, of each network.
    """
    losses: list[list[tuple[float, ...]]] = [[] for _ in held_out]
    best, best_epoch = np.full(len(held_out), np.inf), np.zeros(len(held_out), int)
    seen = [rows[: len(rest)] for rows, rest in zip(training, held_out, strict=True)]
    for epoch in epochs:
        training_loss = trial.epoch(run) if epoch else trial.loss(run, seen)
        loss = trial.loss(run, held_out)
        if not np.isfinite(loss).all():
            raise UserError(
                f"classifier.learning_rate: {trial.learning_rate} makes the loss {loss.max()} "
                f"in epoch {epoch}; take a smaller one"
            )
        for k in trial.going_on:
            losses[k].append((epoch, training_loss[k], loss[k]))
            if loss[k] < best[k] * (1 - WORTH):
                best[k], best_epoch[k] = loss[k], epoch
        if not trial.keep(epoch - best_epoch < patience):
            break
    columns = ["step", "training_loss", "validation_loss"]
    return best_epoch, [pd.DataFrame(each, columns=columns) for each in losses]


def _trained_for(
    run: Parallel, training: "_Training", epochs: Array, progress: Progress
) -> list[Network]:
    """Train each network for its number of epochs."""
    networks: dict[int, Network] = {}
    for epoch in progress(range(epochs.max() + 1)):
        if epoch:
            training.epoch(run)
        done = [k for k in training.going_on if epochs[k] == epoch]
        networks |= {k: training.network(k) for k in done}
        training.keep(epochs > epoch)
    return [networks[k] for k in range(len(epochs))]


def _split(problem: Problem, share: float) -> tuple[Array, Array, Array]:
    """Rows that are held out, the others, and all."""
    n = len(problem.X)
    order = problem.rng.permutation(n)
    held_out = min(max(1, round(share * n)), n - 1)
    return np.sort(order[:held_out]), np.sort(order[held_out:]), np.arange(n)


def _tried_labels(problems: Sequence[Problem]) -> slice:
    """The labels that tell when to stop: all, or evenly spaced ones of very many pairs."""
    n, q = problems[0].candidates.shape
    few = -(-q // TRIED_LABELS) if n * q > TRIED_PAIRS else 1
    return slice(None, None, few)


def _of_labels(problem: Problem, labels: slice) -> Problem:
    candidates, targets = (m[:, labels] for m in (problem.candidates, problem.pseudo_labels))
    return replace(problem, candidates=candidates, pseudo_labels=targets)


def principal_axes(X: Array) -> ridge.Axes:
    """What training has to know of the features: problems with the same X can share it."""
    return ridge.factorise(X[start_rows(len(X))])


def start_rows(n: int) -> Array:
    """The rows that principal axes and closed form are of: all, or evenly spaced of very many."""
    return np.arange(0, n, -(-n // START_ROWS))


def _starts(
    problem: Problem, held_out: Array, rng: np.random.Generator, width: int
) -> tuple[Network, Network, float]:
    """Networks to start from, without the held-out rows and with all of them.

    Their first units are the closed form's predictor, and the others add nothing yet. The third
    is the average precision of its leave-one-out predictions on the candidates.
    """
    rows = start_rows(len(problem.X))
    whole = problem.X, problem.candidates, problem.pseudo_labels
    every = len(rows) == len(problem.X) and not any(map(sparse.issparse, whole))
    X, Y, F = whole if every else (_taken(matrix, rows) for matrix in whole)
    closed_form = problem.closed_form
    if closed_form is None:
        axes = problem.axes or principal_axes(problem.X)
        closed_form = axes.fit(Y.astype(np.uint8), F)
    without = closed_form.without(np.flatnonzero(np.isin(rows, held_out)))
    lengths = [
        np.square(X[block], dtype=np.float64).sum(axis=1)
        for block in row_blocks(len(X), ROWS_AT_ONCE)
    ]
    size = OTHERS / max(float(np.sqrt(np.concatenate(lengths).mean())), TINY)
    shape = (*without.weight.shape, width)
    others = rng.standard_normal(shape, dtype=np.float32) * np.float32(size)
    counts, offset = _calibrated(closed_form.left_out, Y, F, width)
    first, last = (_bent(line, others, counts, offset) for line in (without, closed_form.head))
    return first, last, 1 - float(closed_form.course.validation_loss.min())


def _bent(line: ridge.Ridge, others: Array, counts: Array, offset: float) -> Network:
    """The network whose first units are one curve of a linear predictor, the same for all labels.

    `counts` says what each of them counts; `others` ``(d, q, width)`` has the inputs of the rest,
    which count nothing yet.
    """
    d, q, width = others.shape
    hidden, (inside, output) = others.copy(), np.zeros((2, q, width), np.float32)
    output[:, : len(counts)] = counts
    for unit, (place, gain) in enumerate(BENDS[:width]):
        hidden[:, :, unit] = gain * line.weight
        inside[:, unit] = gain * (line.bias - place)
    return Network(
        hidden.reshape(d, q * width), inside.ravel(), output, np.full(q, offset, np.float32)
    )


def _calibrated(scores: Array, Y: Array, F: Array, width: int) -> tuple[Array, float]:
    """What the bends count, and an offset, to make logits of leave-one-out scores.

    By the hybrid loss and Newton's method; a weak pull to 0 keeps all finite. One rising curve for
    all labels keeps the order in which the scores rank them.
    """
    on, off = np.zeros((2, BINS))
    for rows in row_blocks(len(scores), ROWS_AT_ONCE):
        cut = np.clip((scores[rows] + 1) * (BINS / 3), 0, BINS - 1).astype(int)  # -1 ... 2
        np.add.at(on, cut, F[rows])
        np.add.at(off, cut, 1 - Y[rows])
    middles = (np.arange(BINS) + 0.5) * (3 / BINS) - 1
    curves = [np.tanh(gain * (middles - place)) for place, gain in BENDS[:width]]
    basis = np.column_stack([*curves, np.ones(BINS)])
    rising = np.ones(basis.shape[1], bool)
    while True:
        found = _logistic(basis[:, rising], on, off)
        falling = found[:-1] < 0
        if not falling.any():
            break
        rising[np.flatnonzero(rising)[:-1][falling]] = False
    counts = np.zeros(basis.shape[1])
    counts[rising] = found
    return counts[:-1], float(counts[-1])


def _logistic(basis: Array, on: Array, off: Array) -> Array:
    """Logistic regression of points ``(b, k)`` that are on, and off, so many times."""
    scale = np.maximum(abs(basis).max(axis=0), TINY)
    basis, found = basis / scale, np.zeros(basis.shape[1])
    for _ in range(NEWTON_STEPS):
        p = 0.5 + 0.5 * np.tanh(0.5 * (basis @ found))
        slope = basis.T @ ((on + off) * p - on) + found
        square = (basis.T * ((on + off) * p * (1 - p))) @ basis + np.eye(len(found))
        found = found - np.clip(np.linalg.solve(square, slope), -2, 2)
    return found / scale


@dataclass(frozen=True)
class _Batch:
    """Some rows of every network, and what each of them counts; fewer rows are filled up with 0."""

    rows: Array  # (k, b)
    weights: Array  # (k, b)


def _batches(orders: Sequence[Array], size: int) -> list[_Batch]:
    """Cut each network's rows, in their order, into equally many batches of at most `size`."""
    count = -(-max(map(len, orders)) // size)
    batches = []
    for parts in zip(*(np.array_split(order, count) for order in orders), strict=True):
        shape = len(parts), max(map(len, parts))
        rows, weights = np.zeros(shape, int), np.zeros(shape, np.float32)
        for k, part in enumerate(parts):
            rows[k, : len(part)], weights[k, : len(part)] = part, 1 / len(orders[k])
        batches.append(_Batch(rows, weights))
    return batches


class _Training:
    """Networks on their way, cut into parts that share nothing."""

    def __init__(
        self,
        problems: Sequence[Problem],
        rows: list[Array],
        starts: list[Network],
        streams: list[np.random.Generator],
        rates: tuple[float, float],
        batch_size: int,
        max_epochs: int,
        where: "torch.device",
    ) -> None:
        self.rows, self.streams, self.batch_size = rows, streams, batch_size
        self.learning_rate = rates[0]
        self.going_on = list(range(len(problems)))
        steps = max_epochs * -(-max(map(len, rows)) // batch_size)
        q, width = starts[0].output_weight.shape
        self.parts = [
            _Part(problems, starts, networks, labels, rates, steps, where)
            for networks in row_blocks(len(problems), NETWORKS)
            for labels in row_blocks(q, max(1, UNITS // width))
        ]

    def epoch(self, run: Parallel) -> Array:
        """Go once through all rows; returns the loss of each network, ``(k,)``."""
        orders = [rng.permutation(rows) for rng, rows in zip(self.streams, self.rows, strict=True)]
        batches = _batches(orders, self.batch_size)
        return self._total(run(lambda part: part.train(batches), self.parts))

    def loss(self, run: Parallel, rows: list[Array]) -> Array:
        """The loss of some rows of each network, ``(k,)``."""
        batches = _batches(rows, ROWS_AT_ONCE)
        return self._total(run(lambda part: part.measure(batches), self.parts))

    def _total(self, losses: Iterable[Array]) -> Array:
        total = np.zeros(len(self.rows))
        for part, loss in zip(self.parts, losses, strict=True):
            total[part.members] += loss
        return total

    def keep(self, wanted: Array) -> bool:
        """Go on with the wanted networks only, a boolean ``(k,)``; says if there are any."""
        self.going_on = [k for k in self.going_on if wanted[k]]
        for part in self.parts:
            part.keep(wanted)
        self.parts = [part for part in self.parts if len(part.members)]
        return bool(self.going_on)

    def network(self, k: int) -> Network:
        """Network k as it is now."""
        found = [part.network(k) for part in self.parts if k in part.members]
        hidden, bias, output, offset = (list(arrays) for arrays in zip(*found, strict=True))
        whole = np.concatenate(hidden).T, *map(np.concatenate, (bias, output, offset))
        return Network(*map(np.ascontiguousarray, whole))


class _Part:
    """Some labels of some networks, as one batched tensor with an optimiser of its own."""

    def __init__(
        self,
        problems: Sequence[Problem],
        starts: Sequence[Network],
        networks: slice,
        labels: slice,
        rates: tuple[float, float],
        steps: int,
        where: "torch.device",
    ) -> None:
        import torch

        self.problems, self.labels = problems, labels
        self.members = np.arange(len(problems))[networks]
        self.tensor = partial(to_tensor, where=where, dtype=torch.float32)
        starts = starts[networks]
        width = starts[0].output_weight.shape[1]
        units = slice(labels.start * width, labels.stop * width)
        d = max(len(start.hidden_weight) for start in starts)
        chosen = [start.hidden_weight[:, units] for start in starts]
        hidden = _stacked(chosen, d, chosen[0].shape[1])
        bias, output, offset = (
            np.stack([getattr(start, name)[chosen] for start in starts])
            for name, chosen in (
                ("hidden_bias", units),
                ("output_weight", labels),
                ("output_bias", labels),
            )
        )
        whole = (hidden, bias[:, None], output[:, None], offset[:, None])
        self.parameters = [self.tensor(array).clone().requires_grad_() for array in whole]
        self.optimiser = _AdamW(self.parameters, rates, steps)

    def train(self, batches: list[_Batch]) -> Array:
        """A step for each batch; returns the loss of each network, ``(k,)``."""
        import torch

        total = np.zeros(len(self.members))
        for batch in batches:
            losses = self._losses(batch)
            slopes = torch.autograd.grad(losses.sum() * len(batches), self.parameters)
            self.optimiser.step(self.parameters, slopes)
            total += losses.detach().cpu().numpy()
        return total

    def measure(self, batches: list[_Batch]) -> Array:
        """The loss of each network, ``(k,)``."""
        import torch

        with torch.no_grad():
            losses = [self._losses(batch).cpu().numpy() for batch in batches]
        return np.sum(losses, axis=0, dtype=float)

    def _losses(self, batch: _Batch) -> "Tensor":
        import torch
        from torch.nn.functional import softplus

        hidden, bias, output, offset = self.parameters

        def stacked(name: str, columns: int) -> "Tensor":
            each = (_taken(getattr(self.problems[k], name), batch.rows[k]) for k in self.members)
            return self.tensor(_stacked(list(each), batch.rows.shape[1], columns))

        X, q = stacked("X", hidden.shape[1]), self.problems[0].candidates.shape[1]
        Y, F = (stacked(name, q)[..., self.labels] for name in ("candidates", "pseudo_labels"))
        inside = torch.tanh(torch.baddbmm(bias, X, hidden)).view(*Y.shape, -1)
        logits = (inside * output).sum(-1) + offset
        # -H of Eq. 11: ln p = -softplus(-logit), ln(1 - p) = -softplus(logit)
        terms = F * softplus(-logits) + (1 - Y) * softplus(logits)
        return (terms.sum(-1) * self.tensor(batch.weights[self.members])).sum(-1)

    def keep(self, wanted: Array) -> None:
        """Drop the networks that are not wanted."""
        chosen = np.flatnonzero(wanted[self.members])
        if len(chosen) < len(self.members):
            self.members = self.members[chosen]
            self.parameters = [p.detach()[chosen].requires_grad_() for p in self.parameters]
            self.optimiser.keep(chosen)

    def network(self, k: int) -> tuple[Array, ...]:
        """The part's share of network k: labels first, so that shares can be joined."""
        place = int(np.flatnonzero(self.members == k)[0])
        hidden, bias, output, offset = (
            parameter.detach()[place].cpu().numpy().copy() for parameter in self.parameters
        )
        return hidden[: self.problems[k].X.shape[1]].T, bias[0], output[0], offset[0]


def _taken(matrix: Matrix, rows: Array) -> Array:
    """Some rows of a matrix, dense."""
    if sparse.issparse(matrix):
        return matrix[rows].toarray()
    return np.take(matrix, rows, axis=0)


def _ready(problem: Problem) -> Problem:
    """The problem in float32."""
    whole = problem.X, problem.candidates, problem.pseudo_labels
    X, Y, F = (matrix.astype(np.float32, copy=False) for matrix in whole)
    return replace(problem, X=X, candidates=Y, pseudo_labels=F)


def _stacked(arrays: Sequence[Array], rows: int, columns: int) -> Array:
    """Arrays as one ``(k, rows, columns)``, smaller ones filled up with 0."""
    whole = np.zeros((len(arrays), rows, columns), np.float32)
    for place, array in zip(whole, arrays, strict=True):
        place[: array.shape[0], : array.shape[1]] = array
    return whole


class _AdamW:
    """AdamW (Loshchilov and Hutter, 2019), its rate going up and down once over all steps.

    torch has both, but setting them up imports its compiler, which takes longer than the training.
    """

    MEAN, SQUARE, EPSILON = 0.9, 0.999, 1e-8
    RISE = 0.1  # share of the steps until the rate is highest; it starts at a 25th and ends near 0

    def __init__(self, parameters: "list[Tensor]", rates: tuple[float, float], steps: int) -> None:
        self.learning_rate, weight_decay = rates
        self.decays = (weight_decay, 0.0, weight_decay, 0.0)  # weights shrink, biases do not
        self.steps, self.taken = steps, 0
        self.means, self.squares = ([p.detach() * 0 for p in parameters] for _ in range(2))

    def rate(self) -> float:
        """The learning rate of the present step."""
        done = self.taken / self.steps
        if done < self.RISE:
            return self.learning_rate * (0.04 + 0.48 * (1 - np.cos(np.pi * done / self.RISE)))
        return self.learning_rate * (1 + np.cos(np.pi * (done - self.RISE) / (1 - self.RISE))) / 2

    def keep(self, chosen: Array) -> None:
        """Go on with some of the networks."""
        self.means, self.squares = (
            [m[chosen] for m in moments] for moments in (self.means, self.squares)
        )

    def step(self, parameters: "list[Tensor]", slopes: "Iterable[Tensor]") -> None:
        """Change the parameters in place."""
        import torch

        rate = self.rate()
        self.taken += 1
        debt = 1 - self.SQUARE**self.taken
        with torch.no_grad():
            state = zip(parameters, slopes, self.means, self.squares, self.decays, strict=True)
            for parameter, slope, mean, square, decay in state:
                mean.lerp_(slope, 1 - self.MEAN)
                square.mul_(self.SQUARE).addcmul_(slope, slope, value=1 - self.SQUARE)
                size = (square / debt).sqrt_().add_(self.EPSILON)
                parameter.mul_(1 - rate * decay)
                parameter.addcdiv_(mean, size, value=-rate / (1 - self.MEAN**self.taken))
