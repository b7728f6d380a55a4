"""What is wrong in the paper, with the figures that show it: `python -m experiments.errata [N]`.

docs/errata.md explains each, and quotes what this prints.
"""

import argparse
from collections.abc import Callable

import numpy as np
import pandas as pd
from scipy.optimize import linprog

from experiments.paper import in_print, printed
from wscpml.algorithm import clustering, prototypes, weak_supervision
from wscpml.arrays import Array
from wscpml.datasets import noise
from wscpml.evaluation import statistics


def membership_step() -> list[str]:
    """One row of three labels, then the whole alternation on a small data set."""
    f, d = np.array([1.0, 0.6, 0.3]), np.array([2.0, 0.9, 0.6])
    exact = linprog(d, A_eq=[f], b_eq=[1]).x
    lines = ["f = 1, 0.6, 0.3 and d = 2, 0.9, 0.6; to minimise sum pi d with sum pi f = 1"]
    as_printed, constrained = (f / d / (f**power / d).sum() for power in (1, 2))
    rules = {"exact": exact, "as printed": as_printed, "constrained": constrained}
    for name, pi in rules.items():
        shown = ", ".join(f"{value:.3f}" for value in pi)
        lines.append(f"{name:12} pi = {shown}  sum pi f = {pi @ f:.3f}  sum pi d = {pi @ d:.3f}")
    X, Y, B = _small_data()
    lines.append("objective (Eq. 10) after each iteration, alpha = beta = 1")
    for name, rule in (("as printed", "paper"), ("constrained", "constrained")):
        found = clustering.cluster(X, Y, B, 1, 1, rule, max_iterations=6, tolerance=0)
        lines.append(f"{name:12} " + " ".join(f"{value:.2f}" for value in found.course.objective))
    return lines


def _small_data() -> tuple[Array, Array, Array]:
    """Features, candidates and their weak supervision."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 5))
    Y = noise.pad_candidates((X[:, :4] > 0.5).astype(np.uint8), 3, rng)
    return X, Y, weak_supervision.build(X, Y, *prototypes.learn(X, Y), "adaptive")


def pseudo_label_step() -> list[str]:
    """The positive root over pi, all else equal."""
    alpha = beta = B = 1.0
    D = 4.0
    lines = [f"alpha = beta = B = 1, D = {D:g}: the root of Eq. 15 for a membership pi"]
    for pi in (0.1, 0.3, 0.5, 0.7, 0.9):
        roots = np.roots([2 * alpha * pi, pi * (D - 2 * alpha), -beta * B])
        lines.append(f"pi = {pi:.1f}  f = {min(1.0, roots.max()):.3f}")
    return lines


def swapped_statistics() -> list[str]:
    """The critical values of seven methods on 24 sets, and where the printed one may come from."""
    F = statistics.friedman(_printed_means("average_precision")).critical_f
    return [
        f"critical value of F(6, 138)   {F:.4f}  printed {in_print('critical value of F_F'):.4f}",
        f"critical difference, 7 on 24  {statistics.critical_difference(7, 24):.4f}"
        f"  printed {in_print('critical difference'):.4f}",
        f"critical difference, 9 on 30  {statistics.critical_difference(9, 30):.4f}",
    ]


def _printed_means(metric: str) -> pd.DataFrame:
    return printed(metric).filter(like=" mean")


def friedman_statistics() -> list[str]:
    """F_F of the printed tables, with and without a correction for ties."""
    lines = []
    for metric in ("average_precision", "ranking_loss"):
        found = statistics.friedman(_printed_means(metric))
        n, k, chi = found.benchmarks, found.methods, found.chi_square
        corrected = (n - 1) * chi / (n * (k - 1) - chi)
        lines.append(
            f"{metric:18} F_F {found.f_f:.2f}, corrected for ties {corrected:.2f}"
            f"  printed {in_print(f'F_F {metric}'):.4f}"
        )
    return lines


def repeated_row() -> list[str]:
    """The ablation's Full beside the main table's WSC-PML."""
    full, main = printed("ablation"), printed("average_precision")
    lines = []
    for benchmark in [*full.index, "birds-4"]:
        row = main.loc[benchmark]
        line = f"{benchmark:14} Table 2: {row['WSC-PML mean']:.3f} ± {row['WSC-PML std']:.3f}"
        if benchmark in full.index:
            row = full.loc[benchmark]
            line += f"  Table 5: {row['Full mean']:.3f} ± {row['Full std']:.3f}"
        lines.append(line)
    return lines


def supervision_off_candidates() -> list[str]:
    """The supervision term of Eq. 10 with B as in Eq. 4 and as in Algorithm 1."""
    _, Y, B = _small_data()
    everywhere = np.where(Y == 1, B, 1 - Y.mean(axis=1, keepdims=True))
    F = np.random.default_rng(0).uniform(0.1, 1, Y.shape)
    terms = [float((b * Y * np.log(F)).sum()) for b in (B, everywhere)]
    return [
        f"non-candidates with supervision   {int((everywhere[Y == 0] > 0).sum())}",
        f"sum B y ln f, Eq. 4 {terms[0]:.3f}, Algorithm 1 {terms[1]:.3f}",
    ]


ERRATA: dict[str, Callable[[], list[str]]] = {
    "The membership step": membership_step,
    "The pseudo-label step works against the noise": pseudo_label_step,
    "The critical values are swapped": swapped_statistics,
    "F_F does not follow from the printed tables": friedman_statistics,
    "A row of the ablation belongs to another benchmark": repeated_row,
    "Weak supervision where there is no candidate": supervision_off_candidates,
}


def check(number: int) -> list[str]:
    """The lines of one erratum, which count from 1."""
    return list(ERRATA.values())[number - 1]()


def main() -> None:
    """Print one erratum's figures, or all."""
    parser = argparse.ArgumentParser(description=__doc__.partition(":")[0])
    numbers = range(1, len(ERRATA) + 1)
    parser.add_argument("number", nargs="?", type=int, choices=numbers, help="one of them alone")
    number = parser.parse_args().number
    for i, title in enumerate(ERRATA, 1):
        if number in (None, i):
            print("\n".join([f"{i}. {title}", *check(i)]))


if __name__ == "__main__":
    main()
