"""Servers that are none of MLflow's, or have gone wrong: each on loopback, in threads."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress


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
    "hanging_up": hanging_up,
}


@contextmanager
def server(kind: str) -> Iterator[str]:
    """The address of a server that answers every request in one way."""
    behave = KINDS[kind]

    def talk(connection: socket.socket) -> None:
        with suppress(OSError), connection:
            connection.recv(65536)
            behave(connection)

    def answer() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listening.accept()
                threading.Thread(target=talk, args=(connection,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=answer, daemon=True).start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
