"""`python -m wscpml.serving.scoring models:/MODEL_ID`: MLflow's server of a model, with limits.

MLflow itself takes a body of any size, repeats it in its answer, and fails with 500 at some that
it cannot read. Here a guard stands before it: a client's mistake is 4xx and one line.
"""

import argparse
import asyncio
import json
import os
import socket
import sys
from collections.abc import Awaitable, Callable, MutableMapping
from typing import TYPE_CHECKING, Any

from wscpml import stopping
from wscpml.errors import UserError, readable, reason

if TYPE_CHECKING:
    import uvicorn

LOOPBACK = "127.0.0.1"
INVOCATIONS = "/invocations"
PATHS = {INVOCATIONS, "/ping", "/health", "/version"}  # MLflow also shows documentation of itself
TYPES = {"application/json", "text/csv"}  # MLflow takes Parquet too, which may unpack to anything
MOST_BYTES = 10_000_000  # of a body
MOST_READ = 100_000_000  # of one that is too long: an answer is heard by who has sent all
MOST_CELLS = 10_000_000  # rows times all names in them: records may each have names of their own
MOST_SECONDS = 60  # for a body to come in; MLflow has as many for the answer
AT_ONCE = 4  # bodies that are parsed and predicted from, a table takes many times its bytes
CONNECTIONS = 200  # beyond that, 503
NOT_READ = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]


class Guard:
    """An ASGI application before MLflow's."""

    def __init__(self, app: App) -> None:
        self.app = app
        self.turns = asyncio.Semaphore(AT_ONCE)

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
        elif scope["path"] not in PATHS:
            await _refuse(send, 404, f"there is nothing here; predictions are at {INVOCATIONS}")
        elif scope["path"] == INVOCATIONS and scope["method"] == "POST":
            await self._predict(scope, receive, send)
        else:
            await self.app(scope, receive, send)

    async def _predict(self, scope: Message, receive: Receive, send: Send) -> None:
        kind = dict(scope["headers"]).get(b"content-type", b"").decode("latin-1")
        kind = kind.partition(";")[0].strip()
        try:
            async with asyncio.timeout(MOST_SECONDS):
                body = await _read(receive)
        except TimeoutError:
            await _refuse(send, 408, f"the request took more than {MOST_SECONDS} seconds to come")
            return
        if body is None:
            most = f"{MOST_BYTES // 10**6} MB"
            await _refuse(send, 413, f"the request has more than {most}; send fewer rows at a time")
            return
        if kind not in TYPES:
            known = " or ".join(sorted(TYPES))
            await _refuse(send, 415, f"the header Content-Type is {kind!r}; it must be {known}")
            return
        async with self.turns:
            wrong = kind != "text/csv" and await asyncio.to_thread(_wrong, body)
            if wrong:
                await _refuse(send, 400, wrong)
                return
            await self._answer(scope, body, receive, send)

    async def _answer(self, scope: Message, body: bytes, receive: Receive, send: Send) -> None:
        """Hand a whole body on; the answer is held back until it is known to be one."""
        waiting = [{"type": "http.request", "body": body, "more_body": False}]
        held: list[Message] = []

        async def whole() -> Message:
            return waiting.pop() if waiting else await receive()

        async def hold(message: Message) -> None:
            held.append(message)

        try:
            await self.app(scope, whole, hold)
        except NOT_READ as error:  # MLflow turns the model's own failures into answers
            await _refuse(send, 400, f"the request cannot be read: {reason(error)}")
            return
        start, *parts = held
        if start["status"] < 400:
            for message in held:
                await send(message)
        else:
            text = b"".join(part.get("body", b"") for part in parts).decode(errors="replace")
            await _refuse(send, start["status"], _reason(text))


async def _read(receive: Receive) -> bytes | None:
    """A request's body; None if there is too much of it."""
    body, size = bytearray(), 0
    while True:
        message = await receive()
        part = message.get("body", b"")
        size += len(part)
        if size <= MOST_BYTES:
            body += part
        else:
            body.clear()
        if size > MOST_READ or not message.get("more_body"):
            return None if size > MOST_BYTES else bytes(body)


def _wrong(body: bytes) -> str | None:
    """Why a body is no JSON to make a table of."""
    try:
        request = json.loads(body)
    except RecursionError:
        return "the request is nested too deeply"
    except ValueError as error:
        return f"the request is not JSON: {reason(error)}"
    for rows in request.values() if isinstance(request, dict) else ():
        if isinstance(rows, list):
            names = set().union(*(row for row in rows if isinstance(row, dict)))
            if len(names) * len(rows) > MOST_CELLS:
                return f"the request has {len(rows)} rows of {len(names)} columns: too many"
    return None


def _reason(answer: str) -> str:
    """What MLflow says is wrong, without the data that it repeats and without a traceback."""
    try:
        told = json.loads(answer)["message"].partition("\nInput: ")[0]
    except (KeyError, TypeError, ValueError):
        return answer
    return told.rpartition("Error: ")[2] if told.startswith("Failed to predict data") else told


async def _refuse(send: Send, status: int, why: str) -> None:
    body = json.dumps({"message": readable(why)}).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),  # more of the body may be on its way
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def main(given: list[str] | None = None) -> None:
    """Serve a model that MLflow has, on this machine alone."""
    parser = argparse.ArgumentParser(prog="python -m wscpml.serving.scoring", description=__doc__)
    parser.add_argument("model", help="models:/MODEL_ID, models:/NAME/VERSION or a directory")
    parser.add_argument("--port", type=int, default=5001)
    options = parser.parse_args(given)
    os.environ["MLFLOW_SCORING_SERVER_REQUEST_TIMEOUT"] = str(MOST_SECONDS)

    with _bound(options.port) as bound:
        from wscpml.serving import tracking

        answering = server(tracking.scoring_app(options.model))
        print(f"Predictions: http://{LOOPBACK}:{options.port}{INVOCATIONS}", flush=True)
        answering.run(sockets=[bound])


def _bound(port: int) -> socket.socket:
    """A socket on a port of this machine, at which nobody listens yet."""
    bound = socket.socket()
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((LOOPBACK, port))
    except (OSError, OverflowError) as error:
        bound.close()
        why = getattr(error, "strerror", None) or str(error)
        raise UserError(f"port {port}: cannot be used ({why}); name another by --port") from None
    return bound


def server(app: App) -> "uvicorn.Server":
    """A server of MLflow's application behind the guard, not yet running."""
    import uvicorn

    return uvicorn.Server(
        uvicorn.Config(
            Guard(app),
            log_level="warning",
            limit_concurrency=CONNECTIONS,
            server_header=False,
        )
    )


if __name__ == "__main__":
    stopping.install()
    try:
        main()
    except UserError as mistake:
        sys.exit(str(mistake))
