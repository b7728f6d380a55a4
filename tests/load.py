"""A served model under load: `python -m tests.load --clients 50 --seconds 60`.

The documented server of a small model is asked by many clients at once, with good requests in a
loop, and now and then with bad ones. A good one must be answered with the right numbers, a bad one
with 4xx and one plain line, and the server's memory must stay within a bound; else it exits with 1.
"""

import argparse
import http.client
import json
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from tests.serving.server import FEATURES, log, make, serving
from wscpml.errors import MOST_CHARACTERS
from wscpml.serving.scoring import AT_ONCE, MOST_BYTES

JSON = {"Content-Type": "application/json"}
ROW = dict.fromkeys(FEATURES, 1.0)
MOST_GROWN = 30 * AT_ONCE * MOST_BYTES  # bytes of memory beyond what the server has at rest
EVERY = 10  # requests of a client, one is bad
SECONDS_TO_ANSWER = 120


def records(*rows: object) -> bytes:
    return json.dumps({"dataframe_records": rows}).encode()


def split(columns: object, data: object) -> bytes:
    return json.dumps({"dataframe_split": {"columns": columns, "data": data}}).encode()


GOOD = {
    "one row": records(ROW),
    "100 rows": split(FEATURES, [[1.0] * len(FEATURES)] * 100),
    "columns that the model does not know": records(ROW | {"unknown": "x"}),
}
BAD = {  # the status, the body and the headers
    "not JSON": (400, b'{"dataframe_records": [', JSON),
    "nothing": (400, b"", JSON),
    "not UTF-8": (400, b'{"dataframe_records": "\xff"}', JSON),
    "10 MB that are not JSON": (400, b"[" + b"1," * (MOST_BYTES // 2 - 1), JSON),
    "50 MB": (413, b" " * 50_000_000, JSON),
    "nested 100,000 deep": (400, b"[" * 100_000 + b"]" * 100_000, JSON),
    "a cell nested 500 deep": (400, records(ROW).replace(b"1.0", b"[" * 500 + b"]" * 500), JSON),
    "a number of 5000 digits": (400, records(ROW).replace(b"1.0", b"9" * 5000, 1), JSON),
    "a list": (400, b"[1]", JSON),
    "no table": (400, b"{}", JSON),
    "a table that is a number": (400, b'{"dataframe_split": 5}', JSON),
    "text for a number": (400, records(ROW | {"feature 3": "fast"}), JSON),
    "half of a character": (400, records(ROW | {"feature 3": "\ud800"}), JSON),
    "an object for a number": (400, records(ROW | {"feature 3": {}}), JSON),
    "null": (400, records(ROW | {"feature 3": None}), JSON),
    "NaN": (400, records(ROW | {"feature 3": float("nan")}), JSON),
    "infinity": (400, records(ROW | {"feature 3": float("inf")}), JSON),
    "a column is missing": (400, records(dict.fromkeys(FEATURES[1:], 1.0)), JSON),
    "a column twice": (400, split([*FEATURES, FEATURES[0]], [[1.0] * 9]), JSON),
    "columns that are objects": (400, split([{}] * 8, [[1.0] * 8]), JSON),
    "rows of different lengths": (400, split(FEATURES, [[1.0] * 9, [1.0]]), JSON),
    "a name of its own in each row": (400, records(*({str(i): 0} for i in range(50_000))), JSON),
    "no type": (415, records(ROW), {}),
    "another type": (415, records(ROW), {"Content-Type": "application/vnd.apache.parquet"}),
    "another encoding": (415, records(ROW), {"Content-Type": "application/json; charset=latin-1"}),
    "CSV with text": (400, b",".join([b"a"] * 8), {"Content-Type": "text/csv"}),
    "CSV of nothing": (400, b"", {"Content-Type": "text/csv"}),
}


@dataclass
class Report:
    """What was asked and answered."""

    good: int = 0
    bad: Counter[str] = field(default_factory=Counter)
    failed: list[str] = field(default_factory=list)
    took: list[float] = field(default_factory=list)  # seconds of each good request
    grown: int = 0  # the server's memory at its peak beyond that at rest, bytes


def ask(address: str, body: bytes, headers: dict[str, str]) -> tuple[int, bytes]:
    """Status and body of an answer, over a connection of its own."""
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=SECONDS_TO_ANSWER)
    try:
        connection.request("POST", "/invocations", body, headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def run(address: str, process: int, clients: int, seconds: float) -> Report:
    """Ask a server: each bad request is sent at least once, shared out among the clients."""
    right = {name: ask(address, body, JSON) for name, body in GOOD.items()}
    report, turn = Report(), threading.Lock()
    report.failed += [f"{name}: {status}" for name, (status, _) in right.items() if status != 200]
    at_rest, end = memory(process, "VmRSS"), time.monotonic() + seconds

    def good(name: str) -> None:
        began = time.monotonic()
        status, answer = ask(address, GOOD[name], JSON)
        with turn:
            report.good += 1
            report.took.append(time.monotonic() - began)
            if (status, answer) != right[name]:
                report.failed.append(f"{name}: {status} {answer[:300]!r}")

    def bad(name: str) -> None:
        expected, body, headers = BAD[name]
        status, answer = ask(address, body, headers)
        with turn:
            report.bad[name] += 1
            if status != expected or not plain(answer):
                report.failed.append(f"{name}: {status} {answer[:300]!r}")

    def client(number: int) -> None:
        first = list(BAD)[number::clients]
        turns = 0
        try:
            while first or time.monotonic() < end:
                turns += 1
                good(list(GOOD)[turns % len(GOOD)])
                if first:
                    bad(first.pop())
                elif turns % EVERY == 0:
                    bad(list(BAD)[(number + turns) % len(BAD)])
        except OSError as error:
            with turn:
                report.failed.append(f"client {number}: {error!r}")

    threads = [threading.Thread(target=client, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    report.grown = memory(process, "VmHWM") - at_rest
    return report


def plain(answer: bytes) -> bool:
    """Whether an answer is one short line about what is wrong."""
    message = json.loads(answer)["message"]
    return 10 < len(message) <= MOST_CHARACTERS and "\n" not in message


def memory(process: int, what: str) -> int:
    """Bytes that Linux says a process has (VmRSS), or had at most (VmHWM)."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(what))


def main(given: list[str] | None = None) -> int:
    """Start the server, ask it, and tell."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=60)
    options = parser.parse_args(given)
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        make(directory)
        with serving(directory, *log(directory)) as (address, process):
            report = run(address, process, options.clients, options.seconds)
    took = sorted(report.took)
    middle, most = took[len(took) // 2], took[len(took) * 99 // 100]
    grown, allowed = report.grown / 1e6, MOST_GROWN / 1e6
    print(f"good requests: {report.good}, half within {middle:.2f} s, 99 % within {most:.2f} s")
    print(f"bad requests: {sum(report.bad.values())} of {len(report.bad)} kinds")
    print(f"memory: {grown:.0f} MB more than at rest, {allowed:.0f} allowed")
    print(f"not as it should be: {len(report.failed)}", *report.failed[:20], sep="\n  ")
    return int(bool(report.failed) or report.grown > MOST_GROWN)


if __name__ == "__main__":
    sys.exit(main())
