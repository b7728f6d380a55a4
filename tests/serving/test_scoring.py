"""What the guard before MLflow's server answers when a client or a model takes too long."""

import asyncio
import json
import socket
import threading
import time
from types import SimpleNamespace

import pytest
import requests
from mlflow.pyfunc import scoring_server

from wscpml.errors import UserError
from wscpml.serving import scoring

BODY = b'{"dataframe_records": [{"x": 1}]}'
REQUEST = {
    "type": "http",
    "method": "POST",
    "path": scoring.INVOCATIONS,
    "query_string": b"",
    "headers": [(b"content-type", b"application/json")],
}


def answered(app, receive):
    """Status and message of the guard's answer to a request that comes in so."""
    sent = []

    async def send(message):
        sent.append(message)

    asyncio.run(scoring.Guard(app)(dict(REQUEST), receive, send))
    start, *parts = sent
    return start["status"], json.loads(b"".join(part["body"] for part in parts))["message"]


def test_a_request_that_does_not_come_in_is_408(monkeypatch):
    monkeypatch.setattr(scoring, "MOST_SECONDS", 0.05)

    async def drips():
        await asyncio.sleep(0.01)
        return {"type": "http.request", "body": b" ", "more_body": True}

    status, message = answered(None, drips)
    assert status == 408
    assert message == "the request took more than 0.05 seconds to come"


def test_a_model_that_does_not_answer_is_504(monkeypatch):
    monkeypatch.setenv("MLFLOW_SCORING_SERVER_REQUEST_TIMEOUT", "1")
    monkeypatch.delenv("_MLFLOW_IS_IN_SERVING_ENVIRONMENT", raising=False)
    schema = SimpleNamespace(get_input_schema=lambda: None)
    sleeps = SimpleNamespace(metadata=schema, predict=lambda _: time.sleep(1.5))

    async def whole():
        return {"type": "http.request", "body": BODY, "more_body": False}

    status, message = answered(scoring_server.init(sleeps), whole)
    assert status == 504
    assert message == "Request processing time exceeded limit"


@pytest.mark.parametrize("port", ["99999", "-1", "taken"])
def test_a_port_that_cannot_be_had_is_told_before_the_model_is_read(port):
    with socket.create_server((scoring.LOOPBACK, 0)) as listening:
        if port == "taken":
            port = str(listening.getsockname()[1])
        with pytest.raises(UserError, match=f"port {port}: cannot be used .*; name another by"):
            scoring.main(["models:/nothing", f"--port={port}"])


def test_a_connection_too_many_is_503_and_the_others_are_answered(monkeypatch):
    monkeypatch.setattr(scoring, "CONNECTIONS", 2)
    begun, done = threading.Event(), threading.Event()

    async def slow(scope, _receive, send):
        assert scope["type"] == "http"
        begun.set()
        await asyncio.to_thread(done.wait, 30)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"{}"})

    with socket.create_server((scoring.LOOPBACK, 0)) as listening:
        server = scoring.server(slow)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        address = f"http://{scoring.LOOPBACK}:{listening.getsockname()[1]}"
        statuses = []

        def ask():
            answer = requests.post(
                address + scoring.INVOCATIONS, BODY, headers={"Content-Type": "application/json"}
            )
            statuses.append(answer.status_code)

        first = threading.Thread(target=ask)
        first.start()
        try:
            assert begun.wait(30)
            ask()
            assert statuses == [503]
        finally:
            done.set()
            first.join()
            server.should_exit = True
            thread.join()
        assert statuses == [503, 200]
