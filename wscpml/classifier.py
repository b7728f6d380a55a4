"""Final classification: one small network per label, all trained as one (Eq. 11)."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from wscpml.arrays import Array
from wscpml.errors import UserError


@dataclass(frozen=True)
class Network:
    """A tanh layer and a sigmoid unit for each of q labels: theta_k and psi_k of Eq. 11."""

    hidden_weight: Array  # (d, q * width): label k owns columns k * width ... (k + 1) * width
    hidden_bias: Array  # (q * width,)
    output_weight: Array  # (q, width)
    output_bias: Array  # (q,)

    def predict_proba(self, X: Array) -> Array:
        """Probability of each label, ``(n, q)``."""
        hidden = np.tanh(X.astype(np.float32) @ self.hidden_weight + self.hidden_bias)
        hidden = hidden.reshape(len(X), *self.output_weight.shape)
        logits = np.einsum("nqh,qh->nq", hidden, self.output_weight) + self.output_bias
        return 0.5 + 0.5 * np.tanh(0.5 * logits)  # the sigmoid, without overflow


def fit(
    X: Array,
    candidates: Array,
    pseudo_labels: Array,
    *,
    width: int,
    learning_rate: float,
    weight_decay: float,
    batch_size: int,
    max_epochs: int,
    patience: int,
    validation_share: float,
    rng: np.random.Generator,
    progress: Callable[[Iterable[int]], Iterable[int]] = iter,
) -> tuple[Network, pd.DataFrame]:
    """Train on the hybrid loss; returns the best network and the losses per epoch.

    Training stops once the loss of a held-out share of the training rows, measured on their
    pseudo-labels and candidates, has not improved for `patience` epochs.
    """
    import torch
    from torch.nn.functional import softplus

    n, d = X.shape
    q = candidates.shape[1]
    if n < 2:
        raise UserError(f"classifier: needs at least 2 training rows, got {n}")

    def parameter(*shape: int, fan_in: int) -> torch.Tensor:
        values = rng.standard_normal(shape, dtype=np.float32) / np.float32(np.sqrt(fan_in))
        return torch.from_numpy(values).requires_grad_()

    hidden_weight = parameter(d, q * width, fan_in=d)
    output_weight = parameter(q, width, fan_in=width)
    hidden_bias = torch.zeros(q * width, requires_grad=True)
    output_bias = torch.zeros(q, requires_grad=True)
    parameters = [hidden_weight, hidden_bias, output_weight, output_bias]
    inputs, negatives, positives = (
        torch.from_numpy(np.asarray(a, dtype=np.float32))
        for a in (X, 1 - candidates, pseudo_labels)
    )

    def loss(rows: torch.Tensor) -> torch.Tensor:
        hidden = torch.tanh(torch.addmm(hidden_bias, inputs[rows], hidden_weight))
        logits = (hidden.view(-1, q, width) * output_weight).sum(-1) + output_bias
        # -H of Eq. 11: ln p = -softplus(-logit), ln(1 - p) = -softplus(logit)
        terms = positives[rows] * softplus(-logits) + negatives[rows] * softplus(logits)
        return terms.sum(1).mean()

    order = rng.permutation(n)
    held_out = min(max(1, round(validation_share * n)), n - 1)
    validation, training = torch.from_numpy(order[:held_out]), order[held_out:]
    optimiser = torch.optim.AdamW(parameters, lr=learning_rate, weight_decay=weight_decay)
    best, best_epoch, course = np.inf, 0, []
    for epoch in progress(range(1, max_epochs + 1)):
        total = 0.0
        shuffled = torch.from_numpy(rng.permutation(training))
        for start in range(0, len(shuffled), batch_size):
            rows = shuffled[start : start + batch_size]
            optimiser.zero_grad()
            batch_loss = loss(rows)
            batch_loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            total += batch_loss.item() * len(rows)
        with torch.no_grad():
            validation_loss = loss(validation).item()
        if not np.isfinite(validation_loss):
            raise UserError(
                f"classifier.learning_rate: {learning_rate} makes the loss {validation_loss} "
                f"in epoch {epoch}; take a smaller one"
            )
        course.append((epoch, total / len(training), validation_loss))
        if validation_loss < best:
            best, best_epoch = validation_loss, epoch
            network = Network(*(p.detach().numpy().copy() for p in parameters))
        elif epoch - best_epoch >= patience:
            break
    table = pd.DataFrame(course, columns=["step", "training_loss", "validation_loss"])
    return network, table
