"""The command `wscpml`: data sets and methods from the shell."""

import argparse
import sys
from pathlib import Path

from wscpml.errors import UserError


def main(arguments: list[str] | None = None) -> None:
    """Run a command; a user's mistake is told in plain lines, exit 1."""
    options = _parser().parse_args(arguments)
    try:
        options.run(options)
    except UserError as mistake:
        sys.exit(str(mistake))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="wscpml",
        description="Partial multi-label learning: data sets and methods from the shell.",
        epilog="examples:\n"
        "  wscpml datasets\n"
        "  wscpml fetch emotions birds\n"
        "  wscpml describe emotions\n"
        "  wscpml describe songs.csv --tags tags --id song\n"
        "  wscpml describe x.parquet tags.csv --id song\n"
        "  wscpml methods",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    listing = commands.add_parser("datasets", help="list the named data sets, and where they are")
    listing.set_defaults(run=_datasets)

    fetch = commands.add_parser("fetch", help="get the files of named data sets, checked")
    fetch.add_argument("names", nargs="+", metavar="NAME", help="see `wscpml datasets`")
    fetch.set_defaults(run=_fetch)

    methods = commands.add_parser("methods", help="list the methods, by their names in params.yaml")
    methods.set_defaults(run=_methods)

    describe = commands.add_parser(
        "describe", help="say what is understood of a data set, before anything runs"
    )
    describe.add_argument("features", metavar="FILE|NAME", help="features, or a named data set")
    describe.add_argument(
        "candidates", nargs="?", type=Path, metavar="CANDIDATES", help="if in another file"
    )
    describe.add_argument("--truth", type=Path, metavar="FILE", help="the true labels, if known")
    describe.add_argument("--id", metavar="COLUMN", help="names the instances")
    describe.add_argument("--tags", metavar="COLUMN", help="holds lists of labels")
    describe.add_argument("--separator", default=";", help="between those labels (default ;)")
    describe.add_argument("--label-count", type=int, metavar="Q", help="last attributes of ARFF")
    describe.set_defaults(run=_describe)
    return parser


def _datasets(_: argparse.Namespace) -> None:
    from wscpml.datasets.registry import REGISTRY

    print(f"{'name':15}{'n':>6}{'d':>6}{'q':>5}{'true':>6}{'cand.':>7}  {'where':10}settings; note")
    for name, entry in REGISTRY.items():
        levels = ", ".join(f"{name}-{r}" for r in entry.levels)
        candidates = "" if entry.average_candidates is None else f"{entry.average_candidates:.2f}"
        try:
            where = entry.availability()
        except UserError as mistake:
            where = f"damaged: {mistake} "
        print(
            f"{name:15}{entry.instances:6}{entry.dimensions:6}{entry.labels:5}"
            f"{entry.average_true:6.2f}{candidates:>7}  {where:10}"
            f"{levels + '; ' if levels else ''}{entry.note}"
        )


def _fetch(options: argparse.Namespace) -> None:
    from wscpml.datasets.files import get
    from wscpml.datasets.registry import REGISTRY

    names = [_set_behind(name) for name in options.names]
    unknown = [name for name in names if name not in REGISTRY]
    if unknown:
        raise UserError(f"{unknown[0]}: no such data set; known are {', '.join(REGISTRY)}")
    for name in names:
        places = [str(get(file)) for file in REGISTRY[name].files]
        print(f"{name}: {', '.join(places) or 'built in'}")


def _describe(options: argparse.Namespace) -> None:
    from wscpml.datasets import own
    from wscpml.datasets.dataset import check
    from wscpml.datasets.description import describe
    from wscpml.datasets.registry import REGISTRY

    name = _set_behind(options.features)
    given = {key: value for key, value in vars(options).items() if key != "run"}
    if name in REGISTRY:
        extra = [key for key in ("candidates", "truth", "id", "tags") if given[key]]
        if extra:
            raise UserError(f"{name}: is a named data set; {extra[0]} is for files of your own")
        data = REGISTRY[name].load()
    else:
        data = own.load(own.Sources(**{**given, "features": Path(options.features)}))
    warnings = check(data, options.features)
    print(describe(data))
    for warning in warnings:
        print(f"warning: {warning}")


def _methods(_: argparse.Namespace) -> None:
    from wscpml.baselines import METHODS, method

    print(f"{'name':12}{'title':14}source")
    for name in METHODS:
        print(f"{name:12}{method(name).TITLE:14}{method(name).SOURCE}")


def _set_behind(name: str) -> str:
    """The data set of one of the paper's settings: emotions for emotions-3."""
    from wscpml.datasets.registry import SETTINGS

    return SETTINGS.get(name, (name, 0))[0]


if __name__ == "__main__":
    main()
