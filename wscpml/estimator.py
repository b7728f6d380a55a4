"""WSCPML: noisy labels in; which of them are wrong, and a model that ignores those, out."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from wscpml import blocks
from wscpml.algorithm import composition, features
from wscpml.algorithm.clustering import Clustering
from wscpml.arrays import EVEN_ODDS, Array, Matrix, compact, nearly_empty
from wscpml.blocks import Engine
from wscpml.datasets import tags
from wscpml.datasets.columns import Role, all_numbers
from wscpml.datasets.dataset import few, refuse_twice
from wscpml.datasets.encoding import Encoding, encode
from wscpml.datasets.own import in_python
from wscpml.datasets.tables import chosen
from wscpml.devices import one_blas_thread
from wscpml.methods.base import OnKernelFeatures
from wscpml.parameters import (
    Address,
    ClassifierSettings,
    ClusteringSettings,
    Device,
    FeatureSettings,
    Memory,
    ParameterError,
    WeakSupervisionSettings,
    check_estimator,
    part_of,
)
from wscpml.progress import Steps, steps
from wscpml.quality import evidence, issues, judging, queue
from wscpml.quality.decisions import Decided, decided, remarks, taken
from wscpml.quality.given import aligned, checked, odd
from wscpml.quality.votes import checked as checked_votes
from wscpml.randomness import Streams, streams
from wscpml.serving.model import Model, refuse_to_replace
from wscpml.serving.model import load as read_model
from wscpml.serving.model import save as save_model


@dataclass(kw_only=True, eq=False, repr=False)
class WSCPML(
    OnKernelFeatures,
    FeatureSettings,
    WeakSupervisionSettings,
    ClusteringSettings,
    ClassifierSettings,
):
    """Find the wrong labels of a data set, and train a classifier without them.

    X may be a table with columns of every kind: numbers, text, categories, dates, lists of
    numbers, with holes. y may be a table or matrix of 0 and 1, or one list of labels for each row,
    or text such as "rock;jazz". Where they are tables, labels and instances keep their names, and
    what comes out is tables too. Where both are tables, rows belong together that have the same
    index. With a whole number as `random_state` everything is what the pipeline gives for that
    `seed`.

    Parameters
    ----------
    labels : "cleaned" or "printed"
        What the classifier is trained on: the label confidences, with even odds where the fewest
        errors are to be expected; or F, the pseudo-labels of the paper, with nothing shifted.
    complete : bool
        Whether every true label is among the candidates. If not, labels that are none are judged
        too, and trained on by how likely they are: see `find_missing_labels`.
    kind : "network" or "kernel_ridge"
        The classifier. This and all others are explained in params.yaml.
    columns : dict, optional
        What columns of X are, by their names, where it is not what they look like: "number",
        "text", "category", "date", or "ignore".
    verbose : bool
        Whether to say on stderr which step is being done, and how far it is.
    memory : "auto", number of bytes or str
        What blocks of rows that are worked on at once may take together, such as "4 GB"; of itself
        half of what is free.
    scheduler : str, optional
        The address of a Dask scheduler, such as "tcp://host:8786", whose workers take blocks of
        rows; a `distributed.Client` that is in use is taken without it. They give what this
        machine would.
    checkpoint : str, optional
        A directory for what is found on the way. The same fit, begun again after it was stopped,
        goes on from there and gives the same; it can be deleted at any time. Needs a whole number
        as `random_state`.

    Attributes
    ----------
    label_confidence_ : (n, q)
        The probability that a candidate is true; 0 where a label is no candidate. What a person
        has decided is 1 or 0.
    candidates_ : (n, q)
        The candidates, with the labels that a person has added.
    decided_ : Decided
        The pairs that a person has decided, by the numbers of their `row` and `label`.
    pseudo_labels_ : (n, q)
        What the classifier was trained on.
    noise_rates_ : table of q rows
        For each label: its `candidates`, the estimated share of them that are false,
        `noise_rate`, between `lower` and `upper` with 90 %, and the `chance` of the label to be a
        candidate where it is not true.
    noise_ : dict
        Which `kind` of noise was found, `common` to all labels, `per label`, `pairs` that are
        confused, or `none seen`, and what speaks for it.
    remarks_ : list of str
        The same in words, what cannot be known from these data, and what is odd about columns,
        probabilities and decisions.
    prototypes_ : (q, d)
        Those of the clustering, among the scaled features.
    """

    TITLE = "WSC-PML"
    SPARSE_LABELS = True
    SOURCE = "WSC-PML for practitioners"

    complete: bool = True
    columns: dict[str, Role] | None = None
    verbose: bool = False
    device: Device = "auto"
    memory: Memory = blocks.AUTO
    scheduler: Address | None = None
    checkpoint: Address | None = None
    random_state: Any = None

    def _forget(self) -> None:
        """Begin without what an earlier fit made of columns."""
        self.encoding_: Encoding | None = None
        self._odd: list[str] = []  # about what was given

    def fit(
        self, X: Any, y: Any, decisions: Any = None, probabilities: Any = None, votes: Any = None
    ) -> Self:
        """Fit to features ``(n, d)`` and candidates ``(n, q)``, arrays or tables.

        What a person knows goes in as `decisions`: a table, or the name of its file, with the
        columns `instance` (as the index of the tables has it, or the number of the row), `label`
        and `decision`, true or false. What another model says goes in as `probabilities`
        ``(n, q)``, of rows that it was not fitted to: they are judged by as well. How many taggers
        gave each candidate, or how much else speaks for it, goes in as `votes` ``(n, q)``, above 0
        for candidates and 0 or NaN for other labels.
        """
        check_estimator(self)
        labels, told = tags.as_table(y, _index(X))
        y = _matched(X, labels)
        X = self._fit_encoding(X)
        self._odd = told + self._odd
        self._compacts = self.encoding_ is None
        return self._fit_prepared(X, y, decisions, probabilities, votes)

    def fit_compact(
        self, X: Any, y: Any, decisions: Any = None, probabilities: Any = None, votes: Any = None
    ) -> Self:
        """The same for `Dataset.compact_features`, which are numbers, and sparse or dense for good.

        Labels are a table of 0 and 1.
        """
        check_estimator(self)
        self._forget()
        self._compacts = False
        return self._fit_prepared(X, y, decisions, probabilities, votes)

    def _fit_prepared(self, X: Any, y: Any, decisions: Any, probabilities: Any, votes: Any) -> Self:
        named = next((each for each in (X, y) if isinstance(each, pd.DataFrame)), None)
        for door, table in (("X", X), ("y", y)):
            if isinstance(table, pd.DataFrame):
                refuse_twice(list(map(str, table)), "column", door)
        self._columns = list(map(str, X)) if isinstance(X, pd.DataFrame) else None
        self._tables = isinstance(y, pd.DataFrame)
        self._names = (
            named.index if named is not None else None,
            y.columns if self._tables else None,
        )
        self._decisions = None if decisions is None else taken(decisions)
        self._given = None if probabilities is None else aligned(probabilities, *self._names)
        self._votes = None if votes is None else aligned(votes, *self._names, "votes")
        with one_blas_thread():
            super().fit(X, tags.in_rows(y))
        noise = self.judged_.noise
        self.noise_rates_ = noise.table(self.label_names_, self.candidates_).set_index("label")
        self.noise_ = noise.summary()
        self.remarks_ = [*noise.told(self.label_names_), *self._odd]
        self.label_confidence_, self.pseudo_labels_ = (
            self._named(values, self.instances_)
            for values in (self.judged_.label_confidence, self.pseudo_labels_)
        )
        return self

    def _fit(self, X: Matrix, candidates: Matrix, rng: np.random.Generator) -> Matrix:
        self.decided_ = self._decided_of(candidates.shape[0])
        seed = self.random_state
        whole = isinstance(seed, int | np.integer)
        if self.checkpoint and not whole:
            raise ParameterError(
                f"checkpoint={self.checkpoint!r}: needs a whole number as random_state; without "
                "one no two fits are the same"
            )
        random = streams(int(seed if whole else rng.integers(2**31)))
        given, votes = self._given, self._votes
        if given is not None:
            given = checked(given, candidates.shape, *self._names)
            self._odd += odd(given, candidates)
        if votes is not None:
            votes = checked_votes(votes, candidates, *self._names)
        if self._decisions:
            self._odd += remarks(self._decisions[0])
            self._odd += queue.told(candidates, self.decided_, self.instances_, self.label_names_)
        if self._compacts and nearly_empty(X) != sparse.issparse(X):
            X = compact(X)
        with (
            blocks.engine(self.memory, self.scheduler, self.verbose, self.checkpoint) as engine,
            steps(6, self.verbose) as progress,
        ):
            return self._fit_in(engine, progress, X, candidates, random, given, votes)

    def _fit_in(
        self,
        engine: Engine,
        progress: Steps,
        X: Matrix,
        candidates: Matrix,
        random: Streams,
        given: Array | None,
        votes: Matrix | None,
    ) -> Matrix:
        known = self.decided_.added_to(candidates)
        progress.begin("mapping the features")
        rows = replace(self._represented(X, random.anchors), engine=engine)
        progress.begin("weighing the candidates")
        B = composition.supervise(rows.scaled, candidates, part_of(self, WeakSupervisionSettings))
        progress.begin("clustering")
        inputs = rows.scaled, candidates, B, part_of(self, ClusteringSettings), self.device
        found = Clustering.from_arrays(
            candidates,
            engine.once(
                "clustering",
                lambda: composition.cluster(*inputs, progress.rounds("rounds")).to_arrays(),
                *inputs,
            ),
        )
        progress.begin(f"judging {int(candidates.sum())} candidates")
        self.judged_ = judging.judge(
            rows, candidates, random.judging, self.decided_, given, self.complete, votes
        )
        F = found.pseudo_labels
        F = self.decided_.settle(F if sparse.issparse(candidates) else F.toarray())
        progress.begin("training the classifier")
        self.head_ = composition.train(
            rows,
            known,
            F,
            self.judged_.probability,
            self.judged_.noise.weight,
            part_of(self, ClassifierSettings),
            random.classifier,
            self.device,
            progress.rounds("epochs"),
        ).head
        self.objective_ = found.course.objective.tolist()
        self.candidates_, self.prototypes_ = known, found.prototypes
        progress.begin("comparing rows with prototypes")
        missing = self.judged_.missing
        listed = known if missing is None else known + (missing > 0)
        self.evidence_ = evidence.gather(rows.scaled, found.prototypes, listed)
        return self.judged_.to_learn(known) if self.labels == "cleaned" else F

    def _decided_of(self, n: int) -> Decided:
        """What is decided of n rows; these and the labels get their names."""
        index, columns = self._names
        classes = self.classes_[-1:] if self.binary_ else self.classes_
        self.instances_ = pd.RangeIndex(n) if index is None else index
        self.label_names_ = [str(name) for name in (classes if columns is None else columns)]
        if self._decisions is None:
            return Decided.nothing()
        table, where = self._decisions
        return decided(table, self.instances_, self.label_names_, where)

    def predict_proba(self, X: Any) -> Any:
        """Probability of each label, ``(n, q)``; of both classes where y was one column."""
        check_is_fitted(self)
        X = self._by_name(X) if self.encoding_ is None else self._encode(X)
        with one_blas_thread():
            return self._named(super().predict_proba(X), _index(X))

    def predict(self, X: Any) -> Any:
        """Labels as 0 and 1, ``(n, q)``; the class where y was one column."""
        return self._named(np.asarray(super().predict(X)), _index(X))

    def find_label_issues(self, below: float = EVEN_ODDS, limit: int | None = None) -> pd.DataFrame:
        """Candidates that are probably wrong, the most suspicious first, and why.

        Those that a person has decided are not among them, whatever the decision was. There are
        `limit` of them at most.

        Returns
        -------
        DataFrame
            `instance`, `label`, `label_confidence` (all below `below`); `nearest`: the labels
            whose prototypes are nearest to the instance, the nearest first; `prototype_rank`: the
            place of this label's own among all; `competing`: the instance's other candidates
            that are more likely to be true, the likeliest first.
        """
        check_is_fitted(self, "judged_")
        return issues.find(
            self.judged_.label_confidence,
            self.decided_.undecided(self.candidates_),
            self.evidence_,
            self.label_names_,
            self.instances_,
            below,
            limit,
        )

    def find_missing_labels(self, limit: int | None = None) -> pd.DataFrame:
        """Labels that instances probably should have and have not, the likeliest first.

        There are as many as are estimated to be missing, or the `limit` of them; of sparse y ten of
        a row at most. The share of true labels that are missing can hardly be known from
        candidates: take the order for more than the probabilities. Needs `complete=False`.

        Returns
        -------
        DataFrame
            `instance`, `label`, `probability`; `nearest` and `prototype_rank` as in
            `find_label_issues`.
        """
        check_is_fitted(self, "judged_")
        if self.judged_.missing is None:
            raise ParameterError(
                "complete=True: says that no true label is missing; fit with complete=False"
            )
        return issues.find_missing(
            self.judged_.missing,
            self.evidence_,
            self.label_names_,
            self.instances_,
            round(self.judged_.noise.missing) if limit is None else limit,
        )

    def queue(self, size: int = 100) -> pd.DataFrame:
        """The undecided candidates whose answer is worth most, in the order of asking.

        Returns
        -------
        DataFrame
            `instance`, `label`, `decision` (empty, to be filled in: the table is one of decisions
            then), `label_confidence`, and `chosen`: `random` of a fifth of them, by which the share
            of wrong tags is estimated, else `worth`.
        """
        check_is_fitted(self, "judged_")
        names = self.instances_, self.label_names_
        confidence, lottery = self.judged_.label_confidence, queue.Lottery(*names)
        asked = queue.choose(confidence, self.candidates_, self.decided_, size, lottery)
        return queue.table(asked, confidence, *names)

    def save(self, directory: str | Path) -> None:
        """Write the model to a directory, for `load`, `wscpml predict` and others; no pickle."""
        check_is_fitted(self)
        refuse_to_replace(Path(directory))
        save_model(directory, self.to_model())

    def to_model(self) -> Model:
        """The model alone: what predicts, without what was found in the training rows."""
        names = self._columns or _numbered(self.n_features_in_)
        return Model(self.map_, self.head_, names, self.label_names_, self.encoding_)

    @classmethod
    def load(cls, directory: str | Path) -> Self:
        """A model that `save` or the command wrote: it predicts, and knows no label issues."""
        model = read_model(directory)
        loaded = cls()
        loaded.map_, loaded.head_, loaded.encoding_ = model.feature_map, model.head, model.encoding
        loaded.label_names_, loaded._tables = model.label_names, True
        loaded._columns, loaded._names = model.feature_names, (None, None)
        loaded.binary_, loaded.classes_ = False, np.arange(len(model.label_names))
        loaded.n_features_in_ = len(model.feature_names)
        if model.feature_names != _numbered(loaded.n_features_in_):
            loaded.feature_names_in_ = np.array(model.feature_names, dtype=object)
        loaded.scale_ = features.fit_scaling(np.zeros((1, loaded.n_features_in_)), "none").scale
        return loaded

    def _fit_encoding(self, X: Any) -> Any:
        """The rows to learn from, as numbers; a table of numbers alone stays as it is."""
        self._forget()
        plain = not isinstance(X, pd.DataFrame) or all_numbers(X) and not X.isna().any(axis=None)
        if plain and not self.columns:
            mixed = isinstance(X, pd.DataFrame) and len({isinstance(name, str) for name in X}) > 1
            return X.set_axis(list(map(str, X)), axis=1) if mixed else X
        with steps(1, self.verbose) as progress:
            progress.begin("encoding the columns")
            encoded = encode(_table(X), "X", in_python, self.columns, shown=self.verbose)
        self.encoding_ = encoded.encoding
        self._odd = [f"X: {line}" for each in encoded.columns for line in each.remarks()]
        return pd.DataFrame(encoded.matrix, _index(X), encoded.names)

    def _encode(self, X: Any) -> pd.DataFrame:
        """Rows of raw columns as the model's features; those of an array are called by number."""
        assert self.encoding_ is not None
        table, names = _table(X), self.encoding_.columns
        if not isinstance(X, pd.DataFrame) and not {*names} <= {*map(str, table)}:
            raise ParameterError(
                f"X: must be a table with the columns that were fitted: {few(names)}"
            )
        return pd.DataFrame(self.encoding_(table, "X"), _index(X), self.encoding_.names)

    def _by_name(self, X: Any) -> Any:
        """Rows with the model's columns in its order, if they are a table that names all of them.

        Others are ignored.
        """
        names = self._columns or _numbered(self.n_features_in_)
        there = list(map(str, X)) if isinstance(X, pd.DataFrame) else []
        if not {*names} <= {*there}:
            return X
        X = X.set_axis(names, axis=1) if there == names else chosen(X, names, "X")
        return X if hasattr(self, "feature_names_in_") else X.set_axis(range(len(names)), axis=1)

    def _named(self, values: Matrix, instances: Any) -> Any:
        if not self._tables:
            return values
        columns = self._names[1]
        return tags.named_columns(
            values, instances, self.label_names_ if columns is None else columns
        )


def _index(X: Any) -> Any:
    """What the rows of a table are called; None of other things, lists with an `index` too."""
    return X.index if isinstance(X, pd.DataFrame | pd.Series) else None


def _table(X: Any) -> pd.DataFrame:
    """Rows as a table, whose columns are called by number if they have no names."""
    if sparse.issparse(X):
        raise ParameterError("X: is sparse; columns of other kinds than numbers need a table")
    return pd.DataFrame(X)


def _numbered(d: int) -> list[str]:
    """What the columns of a matrix are called."""
    return [f"x{j + 1}" for j in range(d)]


def _matched(X: Any, y: Any) -> Any:
    """The labels in the order of the rows of X, where both say what their rows are called."""
    tables = isinstance(X, pd.DataFrame) and isinstance(y, pd.DataFrame | pd.Series)
    if not tables or X.index.equals(y.index):
        return y
    unknown = X.index.symmetric_difference(y.index)
    if len(unknown) or X.index.has_duplicates or y.index.has_duplicates:
        example = f"such as {unknown[0]!r}" if len(unknown) else "and some of them twice"
        raise ParameterError(
            f"X and y: their indexes name different rows, {example}; give both the same index, or "
            "y as an array in the order of X"
        )
    return y.loc[X.index]
