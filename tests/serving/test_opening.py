import subprocess
import sys
import threading
import time
import webbrowser
from http.server import HTTPServer, SimpleHTTPRequestHandler

import pytest

from wscpml.serving import opening


def test_a_page_is_opened_once_its_server_answers(tmp_path, monkeypatch):
    def quiet(*_):
        pass

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(SimpleHTTPRequestHandler, "log_message", quiet)
    server = HTTPServer(("127.0.0.1", 0), SimpleHTTPRequestHandler, bind_and_activate=False)
    server.server_bind()  # it does not listen yet
    waited, opened = [], []

    def listen(seconds):
        waited.append(seconds)
        server.server_activate()
        threading.Thread(target=server.handle_request).start()

    monkeypatch.setattr(time, "sleep", listen)
    monkeypatch.setattr(webbrowser, "open", opened.append)
    address = f"http://127.0.0.1:{server.server_port}/#/experiments/1/runs"
    opening.open_now(address)
    server.server_close()
    assert (len(waited), opened) == (1, [address])


@pytest.mark.parametrize(("screen", "terminal"), [("", True), (":0", False), (":0", True)])
def test_a_browser_is_opened_where_somebody_sees_it(monkeypatch, screen, terminal):
    started = []
    monkeypatch.setattr(subprocess, "Popen", started.append)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal, raising=False)
    monkeypatch.setenv("DISPLAY", screen)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    opening.open_later("http://127.0.0.1:1")
    assert bool(started) == bool(screen and terminal)
