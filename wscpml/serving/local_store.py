"""MLflow's SQLite file in the project: whole, whoever was killed while it was made.

MLflow makes it in many steps that are not one: a process that ends between them leaves a file that
nothing can use any more. So it is made aside, and moved to its place when it is whole.
"""

import os
import shutil
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from wscpml import temporaries

BESIDE = ("-journal", "-wal", "-shm")  # what SQLite itself keeps for a file
HALF_MADE = ".half-made"  # what a store is kept as whose runs were carried over


@dataclass(frozen=True)
class _State:
    revision: str | None
    runs: int
    cut_off: bool  # in the middle of a step


def make_whole(
    database: Path, revisions: Callable[[], Sequence[str]], make: Callable[[Path], None]
) -> None:
    """Make the store if there is none, or one that is half made; to be called under a lock.

    `revisions` gives those that MLflow knows, the newest first, and `make` a new store at a path.
    The runs of a half-made one are carried over, and it is kept beside. What is damaged, or of
    another version of MLflow, is left as it is: MLflow says so.
    """
    if database.exists():
        try:
            found = _state(database)
        except sqlite3.Error:
            return
        known = revisions()
        unknown = found.revision is not None and found.revision not in known
        is_whole = found.revision == known[0] and not found.cut_off
        outdated = found.runs and found.revision is not None and not found.cut_off
        if unknown or is_whole or outdated:
            return
        keep = found.runs > 0
    else:
        keep = False
    database.parent.mkdir(parents=True, exist_ok=True)
    with temporaries.directory(database.parent) as place:
        new = place / database.name
        make(new)
        if keep:
            _carry_over(database, new)
            shutil.copyfile(database, f"{database}{HALF_MADE}")
        with new.open("rb") as file:
            os.fsync(file.fileno())
        for ending in BESIDE:  # of a file that is gone, or was just read: SQLite would apply it
            Path(f"{database}{ending}").unlink(missing_ok=True)
        new.replace(database)


def _state(database: Path) -> _State:
    with closing(sqlite3.connect(database)) as opened:
        tables = [name for (name,) in opened.execute("SELECT name FROM sqlite_master")]
        revision = None
        if "alembic_version" in tables:
            revision = (
                opened.execute("SELECT version_num FROM alembic_version").fetchone() or [None]
            )[0]
        runs = 0
        if "runs" in tables:
            (runs,) = opened.execute("SELECT count(*) FROM runs").fetchone()
    return _State(revision, runs, any(name.startswith("_alembic_tmp_") for name in tables))


def _carry_over(old: Path, new: Path) -> None:
    """Copy what the tables of both have in common."""
    with closing(sqlite3.connect(new)) as opened:
        opened.execute("ATTACH ? AS old", (str(old),))
        there = {
            name
            for (name,) in opened.execute("SELECT name FROM old.sqlite_master WHERE type = 'table'")
        }
        ours = opened.execute("SELECT name FROM main.sqlite_master WHERE type = 'table'").fetchall()
        for (table,) in ours:
            if table not in there or table.startswith(("alembic", "sqlite")):
                continue
            columns = [
                {row[1] for row in opened.execute(f'PRAGMA {side}.table_info("{table}")')}
                for side in ("main", "old")
            ]
            both = ", ".join(f'"{name}"' for name in sorted(columns[0] & columns[1]))
            opened.execute(f'DELETE FROM main."{table}"')
            opened.execute(f'INSERT INTO main."{table}" ({both}) SELECT {both} FROM old."{table}"')
        opened.commit()
