"""Servers that are none of MLflow's, or have gone wrong: each on loopback, in threads."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress


def silent(connection: socket.socket) -> None:
    time.sleep(600)


def dripping(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n")
    connection.sendall(b"Content-Length: 100000\r\n\r\n")
    while True:
        connection.sendall(b" ")
        time.sleep(0.1)


def dripping_headers(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\n")
    while True:
        connection.sendall(b"X: y\r\n")
        time.sleep(0.3)


def _answer(status: str, body: bytes, *headers: str) -> Callable[[socket.socket], None]:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "Connection: close"]
    whole = "\r\n".join([*lines, "", ""]).encode() + body
    return lambda connection: connection.sendall(whole)


def hanging_up(connection: socket.socket) -> None:
    connection.close()


PAGE = b"<html><body>" + b"<h1>Welcome</h1>\n" * 200 + b"</body></html>"
KINDS: dict[str, Callable[[socket.socket], None]] = {
    "silent": silent,
    "dripping": dripping,
    "dripping_headers": dripping_headers,
    "broken": _answer("500 Internal Server Error", b"no"),
    "redirecting": _answer("302 Found", b"", "Location: /somewhere/else"),
    "a_page": _answer("200 OK", PAGE, "Content-Type: text/html"),
    "no_such_thing": _answer("404 Not Found", PAGE, "Content-Type: text/html"),
    "forbidding": _answer("403 Forbidden", PAGE, "Content-Type: text/html"),
    "other_json": _answer("200 OK", b'{"status": "fine"}', "Content-Type: application/json"),
    "a_list": _answer("200 OK", b"[1, 2]", "Content-Type: application/json"),
    "wrong_kinds": _answer("200 OK", b'{"experiment": [1]}', "Content-Type: application/json"),
    "no_text": _answer("200 OK", b"\xff\xfe\xff", "Content-Type: application/json"),
    "hanging_up": hanging_up,
}


FILE = "dvc.lock"
INFO = b'{"run_id": "1", "experiment_id": "0", "artifact_uri": "mlflow-artifacts:/1"}'
RUN = _answer("200 OK", b'{"run": {"info": ' + INFO + b"}}")
FOLDER = _answer("200 OK", b'{"files": [{"path": "dvc.lock", "is_dir": false, "file_size": 9}]}')
NO_FOLDER = _answer("200 OK", b'{"files": []}')


def server(kind: str) -> AbstractContextManager[str]:
    """The address of a server that answers every request in one way."""
    return _serving(lambda _: KINDS[kind])


def server_of_a_run(kind: str) -> AbstractContextManager[str]:
    """The address of one that knows of a run with one file, and sends that in its own way."""

    def answer(request: bytes) -> Callable[[socket.socket], None]:
        path = request.split()[1].decode()
        if "/runs/get?" in path:
            return RUN
        if "/artifacts?path=" in path:
            return NO_FOLDER if path.endswith(FILE) else FOLDER
        return KINDS[kind]

    return _serving(answer)


@contextmanager
def _serving(answer_to: Callable[[bytes], Callable[[socket.socket], None]]) -> Iterator[str]:
    """The address of a server that answers a request in the way that is chosen by it."""

    def talk(connection: socket.socket) -> None:
        with suppress(OSError), connection:
            answer_to(connection.recv(65536))(connection)

    def answer() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listening.accept()
                threading.Thread(target=talk, args=(connection,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=answer, daemon=True).start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
