"""The command `wscpml`: what can be asked for; commands.py does it."""

import argparse
import os
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

from wscpml import stopping
from wscpml.errors import UserError

TABLES = (".csv", ".parquet")
INTERRUPTED = 130  # what a shell says of a command that Ctrl-C ended


def main(arguments: list[str] | None = None) -> None:
    """Run a command; a user's mistake is told in plain lines, exit 1."""
    try:
        with stopping.in_one_line():
            options = _parser().parse_args(arguments)
            from wscpml.cli import commands

            getattr(commands, options.command.replace("-", "_"))(options)
            sys.stdout.flush()
    except UserError as mistake:
        sys.exit(str(mistake))
    except KeyboardInterrupt:
        print(stopping.STOPPED, file=sys.stderr)
        sys.exit(INTERRUPTED)
    except BrokenPipeError:  # who reads, `head` say, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="wscpml",
        description="Partial multi-label learning: which of your tags are wrong, and a model that "
        "ignores those.",
        epilog="examples:\n"
        "  wscpml describe songs.csv --tags tags --id song\n"
        "  wscpml clean songs.csv --tags tags --id song -o clean.csv --model songs-model\n"
        "  wscpml audit songs.csv --tags tags --id song --html report.html\n"
        "  wscpml review songs.csv --tags tags --id song --decisions decisions.csv\n"
        "  wscpml predict songs-model new.csv --id song -o predicted.csv\n"
        "  wscpml COMMAND --help\n"
        "\n"
        "exit status: 0 all went well, 1 a mistake in data or settings, 2 one in the command,\n"
        "130 stopped by Ctrl-C, 143 by SIGTERM",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"wscpml {version('wscpml')}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND", dest="command")

    def command(name: str, does: str, *examples: str) -> argparse.ArgumentParser:
        return commands.add_parser(
            name,
            help=does,
            description=does[0].upper() + does[1:] + ".",
            epilog="\n  ".join(["examples:", *examples]),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )

    sample = command(
        "sample", "write a small table of songs, to try things on", "wscpml sample songs.csv"
    )
    sample.add_argument("output", type=_path(".csv"), metavar="FILE", help="a new .csv")

    describe = command(
        "describe",
        "say what is understood of a data set, before anything runs",
        "wscpml describe emotions",
        "wscpml describe songs.csv --tags tags --id song",
        "wscpml describe x.parquet tags.csv --id song --json",
    )
    _take_data(describe)

    clean = command(
        "clean",
        "give every tag a confidence and a decision, and train a model without the wrong ones",
        "wscpml clean songs.csv --tags tags --id song -o clean.csv",
        "wscpml clean x.parquet tags.csv --id song -o clean.parquet --model songs-model",
        "wscpml clean emotions-4 -o clean.csv --set classifier.kind=kernel_ridge --seed 1",
        "wscpml clean songs.csv --tags tags -o clean.csv --label-studio tasks.json",
        "wscpml clean songs.csv --tags tags --id song -o clean.csv --decisions decisions.csv",
        "wscpml clean songs.csv --tags tags --id song -o clean.csv --probabilities oof.parquet",
        "wscpml clean songs.csv --tags tags --id song -o clean.csv --missing missing.csv",
    )
    _take_data(clean)
    _take_decisions(clean)
    _take_evidence(clean)
    _take_settings(clean)
    _take_output(clean)
    clean.add_argument("--model", type=Path, metavar="DIR", help="write the trained model too")
    clean.add_argument(
        "--html", type=_path(".html"), metavar="FILE", help="write the page of `audit` too (.html)"
    )
    clean.add_argument(
        "--missing",
        type=_path(*TABLES),
        metavar="FILE",
        help="write the tags that items probably lack, the likeliest first; means --incomplete",
    )
    clean.add_argument(
        "--cleaned-table",
        type=_path(*TABLES),
        metavar="FILE",
        help="write FILE once more, its tags without the wrong ones, as .csv or .parquet",
    )
    clean.add_argument(
        "--label-studio",
        type=_path(".json"),
        metavar="FILE",
        help="write the suspicious tags as Label Studio tasks (.json), the most suspicious first, "
        "and beside it the labeling interface for them (.xml)",
    )

    audit = command(
        "audit",
        "write a page about the tags: label by label, what to review first, and a map",
        "wscpml audit songs.csv --tags tags --id song --html report.html",
        "wscpml audit songs.csv --tags tags --id song --show title,cover --html report.html",
        "wscpml audit emotions-4 --html report.html --set classifier.kind=kernel_ridge",
        "wscpml audit songs.csv --tags tags --id song --html report.html --incomplete",
    )
    _take_data(audit)
    _take_decisions(audit)
    _take_evidence(audit)
    _take_settings(audit)
    audit.add_argument(
        "--html", type=_path(".html"), required=True, metavar="FILE", help="the page (.html)"
    )

    review = command(
        "review",
        "open a page on which a person decides which tags are right, one item at a time",
        "wscpml review songs.csv --tags tags --id song --decisions decisions.csv",
        "wscpml review songs.csv --tags tags --id song --show title,text,cover --root covers \\",
        "    --decisions decisions.csv --reviewer Anna",
    )
    _take_data(review)
    _take_settings(review)
    review.add_argument(
        "--decisions",
        type=_path(".csv"),
        required=True,
        metavar="FILE",
        help="the table that decisions are appended to (.csv); those in it count already",
    )
    review.add_argument(
        "--root",
        type=Path,
        metavar="DIR",
        help="what shown pictures and sounds are under, if columns name files",
    )
    review.add_argument(
        "--allow-remote",
        action="store_true",
        help="let the browser load pictures and sounds from addresses in shown columns",
    )
    review.add_argument("--reviewer", default="", metavar="NAME", help="who decides")
    review.add_argument(
        "--every",
        type=_count,
        default=50,
        metavar="N",
        help="judge all tags anew after so many decisions (default 50)",
    )
    review.add_argument(
        "--port",
        type=int,
        default=8765,
        metavar="N",
        help="of the page's address on this machine; 0: any that is free (default 8765)",
    )

    queue = command(
        "queue",
        "write the tags that a person should be asked about next, as decisions to fill in",
        "wscpml queue songs.csv --tags tags --id song -o next.csv --size 100",
        "wscpml queue songs.csv --tags tags --id song --decisions decisions.csv -o next.csv",
        "wscpml queue songs.csv --tags tags --id song --probabilities oof.parquet -o next.csv",
    )
    _take_data(queue)
    _take_decisions(queue)
    _take_evidence(queue)
    _take_settings(queue)
    _take_output(queue)
    queue.add_argument(
        "--size", type=_count, default=100, metavar="K", help="tags to ask about (default 100)"
    )

    predict = command(
        "predict",
        "predict the labels of new rows; files may be larger than memory",
        "wscpml predict songs-model new.csv --id song -o predicted.csv",
        "wscpml predict models/wsc-pml/classifier day1.parquet day2.parquet -o predicted.parquet",
    )
    predict.add_argument("model", type=Path, metavar="MODEL", help="a model's directory")
    predict.add_argument(
        "files",
        nargs="+",
        type=Path,
        metavar="FILE",
        help="features, by the names that the model knows; other columns are ignored",
    )
    predict.add_argument("--id", metavar="COLUMN", help="names the instances; is kept")
    predict.add_argument("--separator", default=";", help="between predicted labels (default ;)")
    _take_output(predict)

    imported = command(
        "import-decisions",
        "take what was decided in Label Studio into a table of decisions",
        "wscpml import-decisions export.json -o decisions.csv",
    )
    imported.add_argument(
        "export",
        type=_path(".json"),
        metavar="EXPORT",
        help="what Label Studio exports of our tasks, as JSON or JSON-MIN",
    )
    imported.add_argument(
        "-o",
        "--output",
        type=_path(".csv"),
        required=True,
        metavar="FILE",
        help="the table (.csv); what is new is appended to it, if it is there",
    )

    compared = command(
        "diff",
        "tell which labels changed between two results, and what differs behind them",
        "wscpml diff clean-old.csv clean-new.csv",
        "wscpml diff HEAD workspace",
        "wscpml diff songs-80 songs-100 --html changes.html",
        "wscpml diff run:4f0c... workspace -o changes.csv",
    )
    for name in ("old", "new"):
        compared.add_argument(
            name,
            metavar=name.upper(),
            help="a table that `wscpml clean` or the pipeline wrote, a git revision, run:ID of "
            "MLflow, or workspace",
        )
    compared.add_argument(
        "--bound",
        type=_share,
        default=0.1,
        metavar="X",
        help="tell a confidence that moved further than this (default 0.1)",
    )
    compared.add_argument(
        "-o", "--output", type=_path(*TABLES), metavar="FILE", help="the changes, .csv or .parquet"
    )
    compared.add_argument("--html", type=_path(".html"), metavar="FILE", help="a page of them")

    restored = command(
        "restore",
        "bring all files of an MLflow run back, byte for byte",
        "wscpml restore run:4f0c... then",
    )
    restored.add_argument("run", metavar="run:ID", help="the id of the run, as MLflow shows it")
    restored.add_argument("directory", type=Path, metavar="DIR", help="a new directory for them")

    laid = command(
        "init",
        "lay the pipeline into a git repository of your own: DVC runs it, MLflow shows the runs",
        "wscpml init",
        "wscpml init labels",
    )
    laid.add_argument(
        "directory",
        nargs="?",
        type=Path,
        default=Path(),
        metavar="DIR",
        help="in a git repository; nothing in it is overwritten (default: the current one)",
    )

    verified = command(
        "verify",
        "tell whether the files of the pipeline's result are what was made, to the byte",
        "wscpml verify",
        "wscpml verify --discard && dvc repro",
    )
    verified.add_argument(
        "--discard",
        action="store_true",
        help="remove what is damaged here and in DVC's cache, so that `dvc pull` or `dvc repro` "
        "brings it anew",
    )

    datasets = command(
        "datasets", "list the named data sets, and where they are", "wscpml datasets --json"
    )
    fetch = command(
        "fetch", "get the files of named data sets, checked", "wscpml fetch emotions birds"
    )
    fetch.add_argument("names", nargs="+", metavar="NAME", help="see `wscpml datasets`")
    methods = command(
        "methods", "list the methods, by their names in params.yaml", "wscpml methods --json"
    )

    for each in (
        describe,
        clean,
        audit,
        queue,
        imported,
        predict,
        compared,
        restored,
        laid,
        verified,
        datasets,
        methods,
    ):
        each.add_argument("--json", action="store_true", help="print the result as JSON")
    return parser


def _take_data(command: argparse.ArgumentParser) -> None:
    command.add_argument("features", metavar="FILE|NAME", help="features, or a named data set")
    command.add_argument(
        "candidates", nargs="?", type=Path, metavar="CANDIDATES", help="if in another file"
    )
    command.add_argument("--truth", type=Path, metavar="FILE", help="the true labels, if known")
    command.add_argument("--id", metavar="COLUMN", help="names the instances")
    command.add_argument(
        "--tags",
        metavar="COLUMN",
        help="holds lists of labels; or columns of 0 and 1, such as rock,jazz or 'tag_*'",
    )
    command.add_argument("--separator", help="between those labels, if it is not found by looking")
    command.add_argument(
        "--merge-variants",
        action="store_true",
        help="take labels that differ in case or blanks alone for one",
    )
    command.add_argument(
        "--min-count",
        type=int,
        default=1,
        metavar="N",
        help="leave labels of fewer than N rows unjudged",
    )
    command.add_argument("--label-count", type=int, metavar="Q", help="last attributes of ARFF")
    for role in ("number", "text", "category", "date", "ignore"):
        command.add_argument(
            f"--{role}",
            action="append",
            default=[],
            metavar="COLUMN",
            help="leave this column out"
            if role == "ignore"
            else f"take this column for {role}, whatever it looks like",
        )
    command.add_argument(
        "--show",
        type=_names,
        default=[],
        metavar="COLUMNS",
        help="columns to show to people, such as title,text,cover; no features, unless --text or "
        "the like names them too",
    )


def _take_decisions(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--decisions",
        type=_path(*TABLES),
        metavar="FILE",
        help="what a person has decided: a table of instance, label and decision, true or false",
    )


def _take_evidence(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--probabilities",
        type=Path,
        metavar="FILE",
        help="what a model of your own says, of rows that it was not fitted to: a table with the "
        "--id, if there is one, and a column per label, from 0 to 1",
    )
    command.add_argument(
        "--incomplete",
        action="store_true",
        help="tags may be missing: what an item is not tagged with is not taken to be false",
    )


def _take_settings(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--params",
        type=Path,
        metavar="FILE",
        help="take the seed and the settings of the method from a params.yaml",
    )
    command.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="change a single one of these, such as classifier.kind=kernel_ridge",
    )
    for key, metavar, told in (
        ("seed", "N", "of all randomness, and of the noise of a benchmark"),
        (
            "scheduler",
            "ADDRESS",
            "of a Dask cluster that works on blocks of rows, such as tcp://host:8786",
        ),
        (
            "checkpoint",
            "DIRECTORY",
            "keep what is found on the way there: the same command, begun again after it was "
            "stopped, goes on from it",
        ),
    ):
        command.add_argument(
            f"--{key}",
            dest="set",
            action="append",
            type=(key + "={}").format,
            metavar=metavar,
            help=f"{told}; the same as --set {key}={metavar}",
        )


def _take_output(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "-o",
        "--output",
        type=_path(*TABLES),
        required=True,
        metavar="FILE",
        help="the table to write, .csv or .parquet",
    )


def _names(text: str) -> list[str]:
    """A type for argparse: names with commas between them."""
    return [name.strip() for name in text.split(",") if name.strip()]


def _count(text: str) -> int:
    """A type for argparse: a whole number from 1 on."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text}: must be a whole number from 1 on")
    return int(text)


def _share(text: str) -> float:
    """A type for argparse: a number from 0 to 1."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"{text}: must be a number from 0 to 1")
    return value


def _path(*endings: str) -> Any:
    """A type for argparse: a path that ends as it should, or else wrong usage."""

    def path(text: str) -> Path:
        if Path(text).suffix not in endings:
            raise argparse.ArgumentTypeError(f"{text}: must end in {' or '.join(endings)}")
        return Path(text)

    return path
