"""What each command of `wscpml` does. Slow imports are where they are used: a list is quick."""

import json
import sys
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from fnmatch import fnmatch
from importlib.metadata import version
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wscpml.datasets.dataset import Dataset, check
from wscpml.datasets.registry import BENCHMARKS, REGISTRY
from wscpml.errors import UserError, readable, visible
from wscpml.progress import steps

MOST_TOLD = 3  # labels that are named

if TYPE_CHECKING:
    import pandas as pd

    from wscpml.arrays import Matrix
    from wscpml.estimator import WSCPML
    from wscpml.quality.decisions import Decided


def datasets(options: Namespace) -> None:
    """List the named data sets."""
    found: list[dict[str, Any]] = []
    for name, entry in REGISTRY.items():
        try:
            where = entry.availability()
        except UserError as mistake:
            where = f"damaged: {mistake} "
        found.append(
            {
                "name": name,
                "instances": entry.instances,
                "features": entry.dimensions,
                "labels": entry.labels,
                "true_a_row": entry.average_true,
                "candidates_a_row": entry.average_candidates,
                "where": where,
                "benchmarks": [f"{name}-{r}" for r in entry.levels],
                "note": entry.note,
            }
        )
    head = (
        f"{'name':15}{'n':>6}{'d':>6}{'q':>5}{'true':>6}{'cand.':>7}  {'where':10}benchmarks; note"
    )
    lines = [
        f"{each['name']:15}{each['instances']:6}{each['features']:6}{each['labels']:5}"
        f"{each['true_a_row']:6.2f}{_decimals(each['candidates_a_row']):>7}  {each['where']:10}"
        + "; ".join(filter(None, [", ".join(each["benchmarks"]), each["note"]]))
        for each in found
    ]
    _tell(options, found, head, *lines)


def fetch(options: Namespace) -> None:
    """Get the files of named data sets."""
    from wscpml.datasets.files import get

    names = [_set_behind(name) for name in options.names]
    unknown = [name for name in names if name not in REGISTRY]
    if unknown:
        raise UserError(f"{unknown[0]}: no such data set; known are {', '.join(REGISTRY)}")
    for name in names:
        places = [str(get(file)) for file in REGISTRY[name].files]
        print(f"{name}: {', '.join(places) or 'built in'}")


def methods(options: Namespace) -> None:
    """List the methods."""
    from wscpml.methods import METHODS, method

    found = [
        {"name": name, "title": method(name).TITLE, "source": method(name).SOURCE}
        for name in METHODS
    ]
    head = f"{'name':12}{'title':14}source"
    lines = [f"{each['name']:12}{each['title']:14}{each['source']}" for each in found]
    _tell(options, found, head, *lines)


def sample(options: Namespace) -> None:
    """Write the sample, a table of songs, to try things on."""
    from wscpml import artifacts
    from wscpml.datasets.songs import FILE

    if options.output.exists():
        raise UserError(f"{options.output}: is there already; name another")
    artifacts.write(options.output, FILE)
    print(f"try: wscpml describe {options.output} --tags tags --id song")


def describe(options: Namespace) -> None:
    """Say what is understood of a data set."""
    from wscpml.datasets import description

    with _shown("reading"):
        data, warnings = _read(options)
    if not options.json:
        print(visible(description.describe(data)))
        for warning in warnings:
            print(readable(f"warning: {warning}"))
        return
    summary = {
        **_sizes(data),
        "label_names": data.label_names,
        "feature_names": data.feature_names,
        "columns": description.columns(data),
        "share_not_0": description._filled(data.features),
        "constant_columns": description.constant_columns(data),
        "duplicate_rows": len(data.instance_ids) - description._distinct(data.features),
        "candidates_a_row": _average(data.candidates),
        "true_labels_a_row": _average(data.known_truth),
        "rows_without_label": int((data.labels.sum(axis=1) == 0).sum()),
        "label_counts": data.labels.sum(axis=0).tolist(),
        "warnings": warnings,
    }
    _tell(options, summary)


def clean(options: Namespace) -> None:
    """Write every candidate with its label confidence and whether to keep it; and a model."""
    import pandas as pd

    from wscpml import artifacts
    from wscpml.cli import tables
    from wscpml.quality import audit, review
    from wscpml.serving.model import Model, refuse_to_replace, save

    outputs = {"-o": options.output, "--model": options.model, "--html": options.html}
    outputs |= {"--cleaned-table": options.cleaned_table, "--missing": options.missing}
    options.incomplete = options.incomplete or options.missing is not None
    if options.label_studio:
        tasks, config = options.label_studio, options.label_studio.with_suffix(".xml")
        outputs |= {"--label-studio": tasks, "the .xml of --label-studio": config}
    _refuse_overwriting(outputs, _inputs(options))
    if options.model:
        refuse_to_replace(options.model)
    if options.cleaned_table:
        tables.refuse_uncleanable(options)
    data, fitted, warnings = _fitted(options)
    files = {"output": options.output}
    if options.model:
        trained = Model(
            fitted.map_, fitted.head_, data.feature_names, data.label_names, data.encoding
        )
        save(options.model, trained)
        files["model"] = options.model
    if options.label_studio:
        files |= {"label_studio": tasks, "label_studio_config": config}
        shown = None
        if data.shown is not None:
            shown = dict(zip(data.instance_ids, data.shown.to_numpy().tolist(), strict=True))
        suspicious = review.label_studio_parts(
            *_judged(fitted), version=f"wscpml {version('wscpml')}", shown=shown
        )
        artifacts.write(tasks, artifacts.Listed(suspicious))
        artifacts.write(config, review.label_studio_config(data.label_names, data.shown))
    if options.html:
        files["html"] = options.html
        found = audit.of(fitted, options.features, data.truth, data.shown)
        artifacts.write(options.html, audit.render(found))
    if options.missing:
        files["missing"] = options.missing
        artifacts.write(options.missing, fitted.find_missing_labels())
    parts = (
        tables.with_unjudged(part, data, rows)
        for rows, part in review.judged_parts(*_judged(fitted))
    )
    artifacts.write(options.output, artifacts.Parts(parts))
    if options.cleaned_table:
        files["cleaned_table"] = options.cleaned_table
        judged = review.judged_parts(*_judged(fitted))
        wrong = pd.concat([part.query("keep == 0") for _, part in judged])
        artifacts.write(options.cleaned_table, tables.cleaned(options, data, wrong))
    _tell_found(options, data, fitted, files, warnings)


def audit(options: Namespace) -> None:
    """Write the page about a data set's labels."""
    from wscpml import artifacts
    from wscpml.quality import audit

    _refuse_overwriting({"--html": options.html}, _inputs(options))
    data, fitted, warnings = _fitted(options)
    found = audit.of(fitted, options.features, data.truth, data.shown)
    artifacts.write(options.html, audit.render(found))
    _tell_found(options, data, fitted, {"html": options.html}, warnings)


def review(options: Namespace) -> None:
    """Let a person decide, on a page of this machine's own."""
    from sklearn.base import clone

    from wscpml.datasets import tags
    from wscpml.quality import decisions
    from wscpml.quality.decisions import Decided
    from wscpml.review.items import Items
    from wscpml.review.session import Session
    from wscpml.review.view import Judgement

    try:
        from wscpml.review import app
    except ModuleNotFoundError as missing:
        told = f"wscpml review: needs {missing.name}; pip install 'wscpml[review]'"
        raise UserError(told) from None
    read_alone = Namespace(**(vars(options) | {"decisions": None}))
    _refuse_overwriting({"--decisions": options.decisions}, _inputs(read_alone))
    if options.root and not options.root.is_dir():
        raise UserError(f"{options.root}: --root: no such directory")
    with app.listen(options.port) as listening:
        decisions.append(options.decisions, [])
        decisions.read(options.decisions)
        data, fitted, warnings = _fitted(options)
        for line in (*warnings, *fitted.remarks_):
            print(readable(line), file=sys.stderr)
        X = data.compact_features
        assert data.candidates is not None
        candidates = tags.named_columns(data.candidates, data.instance_ids, data.label_names)

        def judge(decided: Decided) -> Judgement:
            table = decided.table(data.instance_ids, data.label_names)
            return Judgement.of(
                clone(fitted).fit_compact(X, candidates, table, votes=data.votes), X
            )

        items = Items(
            options.features,
            data.instance_ids,
            data.label_names,
            data.candidates,
            X,
            data.feature_names,
            fitted.map_.scale(X),
            data.shown,
            options.root,
            options.allow_remote,
        )
        first = Judgement.of(fitted, X)
        session = Session(items, judge, first, options.decisions, every=options.every)
        app.serve(session, listening, options.reviewer)


def queue(options: Namespace) -> None:
    """Write the tags that a person should be asked about next, as decisions to fill in."""
    from wscpml import artifacts
    from wscpml.quality.decisions import COLUMNS

    _refuse_overwriting({"-o": options.output}, _inputs(options))
    data, fitted, warnings = _fitted(options)
    asked = fitted.queue(options.size)
    if data.shown is not None:
        row = fitted.instances_.get_indexer(asked.instance.to_list())  # type: ignore[arg-type]
        for name in data.shown:
            if name in asked or name in COLUMNS:
                raise UserError(f"--show {name}: is a column of our own table; rename yours")
            asked[name] = data.shown[name].to_numpy()[row]
    artifacts.write(options.output, asked)
    _tell_found(options, data, fitted, {"output": options.output}, warnings)


def predict(options: Namespace) -> None:
    """Predict the rows of files, part by part."""
    from tqdm import tqdm

    from wscpml import artifacts
    from wscpml.datasets import batches
    from wscpml.serving import prediction
    from wscpml.serving.model import load

    _refuse_overwriting({"-o": options.output}, [options.model, *options.files])
    model = load(options.model)
    if options.id in model.label_names:
        raise UserError(f"{options.id}: is the name of a label too; rename the column of ids")
    column = prediction.labels_column(model)
    if options.id == column:
        raise UserError(f"--id {column}: is a column of our own table; rename yours")
    words = model.encoding.words if model.encoding else []
    done: list[int] = []  # rows of each part

    def parts() -> "Iterator[pd.DataFrame]":
        for path in options.files:
            for first, part in batches.read(path, model.columns, options.id, words, _warn):
                predicted = prediction.table(model, part, str(path), first)
                predicted[column] = predicted[column].map(options.separator.join)
                if options.id is not None:
                    predicted.insert(0, options.id, part[options.id])
                yield predicted
                bar.update(len(part))
                done.append(len(part))

    with tqdm(desc="predicting", unit=" rows", disable=None, leave=False) as bar:
        artifacts.write(options.output, artifacts.Parts(parts()))
    summary = {"rows": sum(done), "labels": len(model.label_names), "output": str(options.output)}
    _tell(options, summary, f"{options.output}: {sum(done)} rows")


def import_decisions(options: Namespace) -> None:
    """Append what was decided in Label Studio to a table of decisions."""
    from wscpml.quality import decisions, review

    export = review.label_studio_export(options.export)
    said = review.label_studio_decisions(export, str(options.export))
    there = decisions.read(options.output) if options.output.exists() else decisions.empty()
    news = review.news(said, there)
    decisions.append(options.output, news)
    whole = decisions.read(options.output)
    for remark in decisions.remarks(whole):
        print(readable(f"warning: {options.output}: {remark}"), file=sys.stderr)
    taken_back = sum(row["decision"] == decisions.NONE for row in news)
    new = len(news) - taken_back
    summary = {
        "decisions": new,
        "known_before": len(said) - new,
        "taken_back": taken_back,
        "contradictions": len(decisions.contradictions(whole).drop_duplicates(decisions.PAIR)),
        "output": str(options.output),
    }
    _tell(
        options,
        summary,
        f"{options.output}: {new} decisions are new, {len(said) - new} were there"
        + (f", {taken_back} are taken back" if taken_back else ""),
    )


def diff(options: Namespace) -> None:
    """Tell what changed between two results; as a table and as a page, too, if asked for."""
    from wscpml import artifacts
    from wscpml.quality import diff
    from wscpml.serving import versions

    sides = [each for each in map(Path, (options.old, options.new)) if not each.is_dir()]
    _refuse_overwriting({"-o": options.output, "--html": options.html}, sides)
    with _shown("comparing"):
        old, new = map(versions.version, (options.old, options.new))
        found = diff.compare(old, new, options.bound)
    if options.output:
        artifacts.write(options.output, found.changes)
    if options.html:
        artifacts.write(options.html, diff.render(found))
    files = {"output": options.output, "html": options.html}
    written = {name: str(path) for name, path in files.items() if path}
    more = ["", f"written: {', '.join(written.values())}"] if written else []
    _tell(options, found.plain() | written, diff.text(found), *more)


def restore(options: Namespace) -> None:
    """Bring all files of a run back."""
    from wscpml.serving import versions

    with _shown(f"restoring {options.run}"):
        found = versions.restore(options.run, options.directory)
    summary = {"run": options.run, "directory": str(options.directory), **asdict(found)}
    commit = f"; git commit {found.commit}, {found.tree}" if found.commit else ""
    _tell(options, summary, f"{options.directory}: {found.files} files of {options.run}{commit}")


def init(options: Namespace) -> None:
    """Lay the pipeline into a git repository."""
    from wscpml.cli import project

    with _shown("laying the pipeline"):
        files = project.lay(options.directory)
    _tell(
        options,
        {"directory": str(options.directory), "files": [str(each) for each in files]},
        f"{options.directory}: has the pipeline now, {len(files)} files; commit them",
        "put your table into data/own/, name it in params.yaml (or leave the yeast data, to try),",
        "then: dvc repro",
    )


def verify(options: Namespace) -> None:
    """Compare the files of the present result, and those in DVC's cache, with DVC's locks."""
    from wscpml.serving import locks

    cut_off = locks.cut_off()
    if cut_off and not options.discard:
        raise UserError(*(f"{path}: is cut off; {locks.AGAIN}" for path in cut_off))
    gone = locks.discard_cut_off()
    with _shown("reading all files of the result"):
        count = len(locks.outputs())
        found = locks.damaged()
    if not count and not gone:
        raise UserError(f"{Path.cwd()}: has no result; run from the project's root")
    if found and not options.discard:
        raise UserError(
            *map(str, found),
            "`wscpml verify --discard` removes what is damaged; then `dvc pull`, where there is a "
            "remote, or `dvc repro` brings it anew",
        )
    discarded = [*gone, *locks.discard(found)]
    summary = {"outputs": count, "discarded": [str(path) for path in discarded]}
    removed = [f"removed: {path}" for path in discarded]
    then = ["`dvc pull`, where there is a remote, or `dvc repro` brings them anew"]
    good = [f"{count} outputs: all that is here is what was made"]
    _tell(options, summary, *(removed + then if discarded else good))


def _read(options: Namespace) -> tuple[Dataset, list[str]]:
    """A person's files or a named data set, and what may be wrong with it."""
    from wscpml.datasets import own

    name = _set_behind(options.features)
    parts = ("candidates", "truth", "id", "tags", "separator", "label_count", "show")
    given = {key: getattr(options, key) for key in (*parts, "merge_variants", "min_count")}
    given["columns"] = _roles(options)
    if name in REGISTRY:
        extra = [key for key in ("candidates", "truth", "id", "tags", "show") if given[key]]
        extra += given["columns"].values()
        if extra:
            option = own.on_command_line(extra[0])
            raise UserError(f"{name}: is a named data set; {option} is for files of your own")
        data = REGISTRY[name].load()
    else:
        sources = own.Sources(Path(options.features), **given, named=own.on_command_line)
        data = own.load(sources, shown=sys.stderr.isatty())
    return data, check(data, options.features)


def _roles(options: Namespace) -> dict[str, Any]:
    """What a person says that columns are, by name."""
    from wscpml.datasets.columns import ROLES

    roles: dict[str, Any] = {}
    for role in ROLES:
        for name in getattr(options, role):
            if roles.setdefault(name, role) != role:
                raise UserError(f"--{role} {name}: is --{roles[name]} too; give it once")
    return roles


def _fitted(options: Namespace) -> "tuple[Dataset, WSCPML, list[str]]":
    """The data with their candidates, and the estimator fitted to them."""
    from wscpml import WSCPML, settings
    from wscpml.datasets import tags

    chosen = settings.for_estimator(options.params, options.set)
    with _shown("reading"):
        data, warnings = _read(options)
    if data.candidates is None:
        data = replace(data, candidates=_padded(data, options.features, chosen["random_state"]))
    n = len(data.instance_ids)
    if n < WSCPML.FEWEST_ROWS:
        raise UserError(f"{options.features}: has {n} instances; there must be more to learn from")
    candidates = tags.named_columns(data.candidates, data.instance_ids, data.label_names)
    shown = sys.stderr.isatty()
    if getattr(options, "incomplete", False):
        chosen["complete"] = False
    method = WSCPML(**chosen, verbose=shown)
    given = _probabilities(options, data)
    fitted = method.fit_compact(
        data.compact_features, candidates, options.decisions, given, data.votes
    )
    return data, fitted, warnings


def _probabilities(options: Namespace, data: Dataset) -> Any:
    """What a model of the person's own says of the candidates, ``(n, q)``, if anything."""
    import pandas as pd

    from wscpml.datasets import table_files, tags
    from wscpml.quality import given

    path = getattr(options, "probabilities", None)
    if path is None:
        return None
    if not table_files.is_table(path):
        raise UserError(f"{path}: --probabilities: is no table; {', '.join(table_files.KINDS)} are")
    table = table_files.read(path, [options.id] if options.id else [])
    table.columns = table.columns.map(str)
    rows = pd.Index(data.instance_ids).map(str)
    if options.id:
        if options.id not in table:
            raise UserError(f"{path}: --probabilities: has no column {options.id!r}, the --id")
        table = table.set_index(options.id)
        table.index = table.index.map(str)
    elif len(table) == len(rows):
        table.index = rows
    if options.merge_variants:
        known = data.label_names + (data.unjudged.label_names if data.unjudged else [])
        spelt = {tags.plain(name): name for name in known}
        table.columns = [spelt.get(tags.plain(name), name) for name in map(str, table)]
        table = table.T.groupby(level=0, sort=False).max().T
    if data.unjudged is not None:
        table = table.drop(columns=data.unjudged.label_names, errors="ignore")
    door, labels = f"{path}: --probabilities", pd.Index(data.label_names)
    found = given.aligned(table, rows, labels, door)
    return given.checked(found, (len(rows), len(labels)), rows, labels, door)


def _judged(fitted: "WSCPML") -> "tuple[pd.Index[Any], list[str], Matrix, Matrix, Decided]":
    """What we think of every candidate, and what a person has decided, as `review` takes it."""
    return (
        fitted.instances_,
        fitted.label_names_,
        fitted.candidates_,
        fitted.judged_.label_confidence,
        fitted.decided_,
    )


def _padded(data: Dataset, name: str, seed: int) -> Any:
    """The candidates of a benchmark, as the pipeline makes them."""
    from wscpml.datasets import noise
    from wscpml.randomness import stream

    if name not in BENCHMARKS:
        levels = ", ".join(f"{name}-{r}" for r in REGISTRY[name].levels)
        raise UserError(f"{name}: has true labels and no candidates; take a benchmark: {levels}")
    return noise.pad_candidates(data.truth, BENCHMARKS[name][1], stream(seed, "noise"))  # type: ignore[arg-type]


def _warn(remark: str) -> None:
    print(readable(f"warning: {remark}"), file=sys.stderr)


def _inputs(options: Namespace) -> list[Path]:
    """The files that a command reads a data set and settings from."""
    names = ("features", "candidates", "truth", "params", "decisions", "probabilities")
    given = [getattr(options, name, None) for name in names]
    paths = [Path(each) for each in given if each]
    beside = [path.with_suffix(".xml") for path in paths if path.suffix == ".arff"]  # Mulan's
    return paths + beside


def _refuse_overwriting(outputs: Mapping[str, Path | None], inputs: Sequence[Path]) -> None:
    """An output may be neither an input, nor among the files of one, nor another output."""
    given = {option: path for option, path in outputs.items() if path}
    for option, path in given.items():
        for each in inputs:
            if not path.exists() and not _same_file(path, each) and _is_among(path, each):
                raise UserError(
                    f"{path}: {option} would be among the files of {each}; name another"
                )
            if _is_among(path, each):
                raise UserError(
                    f"{path}: is an input, which {option} would overwrite; name another"
                )
    for (one, path), (other, again) in combinations(given.items(), 2):
        if _same_file(path, again):
            raise UserError(f"{again}: is what both {one} and {other} would write; name another")


def _is_among(path: Path, given: Path) -> bool:
    """Whether a file is an input, or one of the files of a directory or a pattern, or would be."""
    if given.is_dir():
        return _same_file(path.parent, given) or any(_same_file(path, e) for e in given.iterdir())
    if set(given.name) & set("*?[") and not given.exists():
        fits = fnmatch(path.name, given.name) and _same_file(path.parent, given.parent)
        return fits or any(_same_file(path, each) for each in given.parent.glob(given.name))
    return _same_file(path, given)


def _same_file(one: Path, other: Path) -> bool:
    if one.exists() and other.exists():
        return one.samefile(other)
    return one.resolve() == other.resolve()


def _tell_found(
    options: Namespace,
    data: Dataset,
    fitted: "WSCPML",
    files: dict[str, Path],
    warnings: list[str],
) -> None:
    from wscpml.arrays import EVEN_ODDS, values_at

    candidates = fitted.candidates_
    confidence = values_at(fitted.judged_.label_confidence, *candidates.nonzero())
    undecided = fitted.decided_.codes(candidates) == 0
    suspicious = int(((confidence < EVEN_ODDS) & undecided).sum())
    decided = len(fitted.decided_.row)
    noise = 1 - float(confidence.mean()) if len(confidence) else None
    rates = fitted.noise_rates_.reset_index()
    summary = {
        **_sizes(data),
        "candidates": len(confidence),
        "decided": decided,
        "suspicious": suspicious,
        "estimated_noise_rate": noise,
        "noise": fitted.noise_ | {"remarks": fitted.remarks_},
        "noise_rates": json.loads(rates.to_json(orient="records")),
        **{name: str(path) for name, path in files.items()},
        "warnings": warnings,
    }
    if not options.json:
        for warning in warnings:
            print(readable(f"warning: {warning}"), file=sys.stderr)
    _tell(
        options,
        summary,
        f"{len(confidence)} candidates of {len(data.instance_ids)} instances: "
        f"{suspicious} are rather false than true"
        + (f", {decided} are decided" if decided else ""),
        *fitted.remarks_,
        *_noisiest(rates),
        f"written: {', '.join(map(str, files.values()))}",
    )


def _noisiest(rates: "pd.DataFrame") -> list[str]:
    """A line about the labels with the highest noise rates, if there are some."""
    worst = rates[rates.noise_rate > 0].nlargest(MOST_TOLD, "noise_rate")
    told = [
        f"{each['label']} {100 * each['noise_rate']:.0f} % "
        f"({100 * each['lower']:.0f} to {100 * each['upper']:.0f})"
        for each in worst.to_dict("records")
    ]
    return [f"noisiest labels: {', '.join(told)}"] if told else []


def _tell(options: Namespace, result: Any, *lines: str) -> None:
    print(json.dumps(result) if options.json else visible("\n".join(lines)))


def _sizes(data: Dataset) -> dict[str, int]:
    n, d = data.features.shape
    return {"instances": n, "features": d, "labels": len(data.label_names)}


def _average(labels: Any) -> float | None:
    return None if labels is None else float(labels.sum(axis=1).mean())


def _decimals(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _set_behind(name: str) -> str:
    """The data set of a benchmark: emotions for emotions-3."""
    return BENCHMARKS.get(name, (name, 0))[0]


@contextmanager
def _shown(what: str) -> Iterator[None]:
    """Say on a terminal what is being done, for as long as it is."""
    with steps(1, sys.stderr.isatty()) as progress:
        progress.begin(what)
        yield
