"""How fast our readers are, against pandas or scipy reading the same file plainly.

`python -m benchmarks.readers [--quick] [--json FILE]` writes files of each format to a temporary
directory (and takes the real data sets too where WSCPML_DATA has them), and reads each by turns
with both, for at least a second. A ratio below 1 means that ours is faster. `--quick`: smaller
files, fewer turns.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from scipy.io import arff, loadmat, savemat
from sklearn.datasets import dump_svmlight_file, load_svmlight_file
from tqdm import tqdm

from wscpml.datasets import files, own, readers, table_files
from wscpml.datasets.tables import numbers

Case = tuple[str, Callable[[], Any], str, Callable[[], Any]]


def made_files(directory: Path, n: int, d: int, q: int) -> Iterator[Case]:
    """The same made data in every format."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)).round(6)
    Y = (rng.random((n, q)) < 0.2).astype(np.uint8)
    S = sparse.random_array((n, d), density=0.05, rng=rng, format="csr")
    table = pd.DataFrame(X, columns=[f"x{j}" for j in range(d)])

    path = directory / "x.csv"
    table.to_csv(path, index=False)
    yield _table(path, "pandas.read_csv", pd.read_csv)
    tagged = directory / "tagged.csv"
    names = np.array([f"tag{j}" for j in range(q)])
    table.assign(tags=[";".join(names[row == 1]) for row in Y]).to_csv(tagged, index=False)
    sources = own.Sources(tagged, tags="tags")
    yield tagged.name, lambda: own.load(sources), "pandas.read_csv", lambda: pd.read_csv(tagged)
    path = directory / "x.parquet"
    table.to_parquet(path)
    yield _table(path, "pandas.read_parquet", pd.read_parquet)
    path = directory / "x.npz"
    np.savez(path, features=X, candidates=Y)
    yield _case(path, "numpy.load", lambda p: dict(np.load(p)))
    path = directory / "sparse.npz"
    sparse.save_npz(path, S)
    yield _case(path, "scipy.sparse.load_npz", sparse.load_npz)
    path = directory / "x.mat"
    savemat(path, {"data": X, "partial_labels": Y, "target": Y}, do_compression=True)
    yield _case(path, "scipy.io.loadmat", loadmat)
    path = directory / "x.svmlight"
    dump_svmlight_file(S, Y, str(path), multilabel=True)
    yield _case(
        path,
        "sklearn.load_svmlight_file",
        lambda p: load_svmlight_file(str(p), multilabel=True),
    )
    path = directory / "x.arff"
    with path.open("w") as file:
        file.write("@relation made\n" + "".join(f"@attribute x{j} numeric\n" for j in range(d)))
        file.write("".join(f"@attribute y{j} {{0,1}}\n" for j in range(q)) + "@data\n")
        pd.concat([table, pd.DataFrame(Y)], axis=1).to_csv(file, header=False, index=False)
    yield _case(path, "scipy.io.arff.loadarff", arff.loadarff, q)


def real_files() -> Iterator[Case]:
    """The real data sets that are there."""
    mirror = files.mirror()
    if mirror is None:
        return
    for path in sorted(mirror.glob("*.mat")):
        yield _case(path, "scipy.io.loadmat", loadmat)
    for path in sorted(mirror.glob("image-*.arff")):
        yield _case(path, "scipy.io.arff.loadarff", arff.loadarff, 5)


def _case(path: Path, name: str, plain: Callable[[Path], Any], q: int | None = None) -> Case:
    return path.name, lambda: readers.read(path, q), name, lambda: plain(path)


def _table(path: Path, name: str, plain: Callable[[Path], Any]) -> Case:
    def ours() -> Any:
        return numbers(table_files.read(path), str(path))

    return path.name, ours, name, lambda: plain(path)


def ratio(case: Case, turns: int, seconds: float) -> tuple[float, float]:
    """Best time of ours over that of the plain reader, by turns; and ours in seconds."""
    _, ours, _, plain = case
    best, end = [np.inf, np.inf], time.perf_counter() + seconds
    while turns > 0 or time.perf_counter() < end:
        turns -= 1
        for k, function in enumerate((ours, plain)):
            start = time.perf_counter()
            function()
            best[k] = min(best[k], time.perf_counter() - start)
    return best[0] / best[1], best[0]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="smaller files, fewer turns")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here too")
    options = parser.parse_args()
    n, turns, least = (500, 3, 0) if options.quick else (20000, 15, 1)
    figures: dict[str, float] = {}
    lines = [f"{'file':22}{'ours s':>9}{'ratio':>7}  against"]
    with tempfile.TemporaryDirectory() as name:
        cases = [*made_files(Path(name), n, 100, 10), *real_files()]
        for case in tqdm(cases, disable=None, leave=False):
            figures[f"{case[0]}.ratio"], seconds = ratio(case, turns, least)
            lines.append(f"{case[0]:22}{seconds:9.4f}{figures[f'{case[0]}.ratio']:7.2f}  {case[2]}")
    print("\n".join(lines))
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
