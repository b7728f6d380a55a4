import hashlib
import re
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from wscpml.datasets import files
from wscpml.datasets.files import File
from wscpml.errors import UserError

CONTENT = bytes(range(256)) * 1024
SHA256 = hashlib.sha256(CONTENT).hexdigest()
CUT = files.CHUNK  # where a connection breaks off


@pytest.mark.parametrize("variable", ["WSCPML_DATA", "WSCPML_CACHE"])
def test_the_home_of_nobody_is_told(monkeypatch, variable):
    monkeypatch.setenv(variable, "~nosuch/data")
    with pytest.raises(UserError, match=f"{variable}: ~nosuch/data is in the home of nobody here"):
        (files.mirror if variable == "WSCPML_DATA" else files.cache_directory)()


class Server(ThreadingHTTPServer):
    """Serves CONTENT and keeps the Range header of every request; can be told to misbehave."""

    daemon_threads = False  # so that closing the server waits for its threads

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_port}/data.bin"
        self.ranges = []
        self.content = CONTENT
        self.cuts = 0  # how many answers break off after CUT bytes
        self.announces_length = True
        self.knows_ranges = True
        self.shift = 0  # how far a range starts from where it should
        self.statuses = []  # errors to answer with, first of all


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self):
        server, wanted = self.server, self.headers.get("Range")
        server.ranges.append(wanted)
        assert self.headers["Accept-Encoding"] == "identity"
        if server.statuses:
            return self.answer(server.statuses.pop(0), b"<p>an error page")
        if wanted is None or not server.knows_ranges:
            return self.answer(200, server.content)
        size = len(server.content)
        start = int(re.fullmatch(r"bytes=(\d+)-", wanted)[1]) + server.shift
        if start >= size:
            return self.answer(416, b"", f"bytes */{size}")
        return self.answer(206, server.content[start:], f"bytes {start}-{size - 1}/{size}")

    def answer(self, status, body, content_range=None):
        self.send_response(status)
        if self.server.announces_length:
            self.send_header("Content-Length", str(len(body)))
        if content_range:
            self.send_header("Content-Range", content_range)
        self.end_headers()
        if self.server.cuts:
            self.server.cuts -= 1
            body = body[:CUT]
        self.wfile.write(body)

    def log_message(self, *args):
        pass


@pytest.fixture
def server():
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def file(server):
    return File("data.bin", SHA256, server.url)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """The cache: not there yet."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setenv("WSCPML_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("WSCPML_DATA", raising=False)
    return tmp_path / "cache"


@pytest.fixture
def mirror(tmp_path, monkeypatch):
    """A mirror: there, and empty."""
    (tmp_path / "mirror").mkdir()
    monkeypatch.setenv("WSCPML_DATA", str(tmp_path / "mirror"))
    return tmp_path / "mirror"


def names(directory):
    return sorted(path.name for path in directory.iterdir() if path.suffix != ".lock")


def refusal(file):
    """The one line that a user gets to see."""
    with pytest.raises(UserError) as caught:
        files.get(file)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_file_is_downloaded_once_and_then_found(server, file, cache):
    assert files.find(file) is None
    assert files.get(file) == cache / "data.bin"
    assert (cache / "data.bin").read_bytes() == CONTENT
    assert files.get(file) == files.find(file) == cache / "data.bin"
    assert server.ranges == [None]
    assert names(cache) == ["data.bin"]


def test_a_download_says_nothing_where_there_is_no_terminal(file, capfd):
    files.get(file)
    assert capfd.readouterr() == ("", "")


def test_the_mirror_is_preferred(server, file, cache, mirror):
    files.get(file)
    (mirror / "data.bin").write_bytes(CONTENT)
    server.ranges.clear()
    assert files.get(file) == mirror / "data.bin"
    assert server.ranges == []


def test_what_the_mirror_lacks_is_downloaded_into_the_cache(file, cache, mirror):
    assert files.get(file) == cache / "data.bin"
    assert names(mirror) == []


def test_a_broken_download_is_resumed(server, file, cache):
    server.cuts = 2
    assert files.get(file).read_bytes() == CONTENT
    assert server.ranges == [None, f"bytes={CUT}-", f"bytes={2 * CUT}-"]
    assert names(cache) == ["data.bin"]


def test_a_download_given_up_is_resumed_by_the_next_call(server, file, cache):
    server.cuts = 3
    assert re.fullmatch(
        rf"data.bin: cannot be downloaded from {server.url} \(.+\); put it into {cache}, "
        "or set WSCPML_DATA to a directory that has it",
        refusal(file),
    )
    assert names(cache) == ["data.bin.part"]
    server.ranges.clear()
    assert files.get(file).read_bytes() == CONTENT
    assert server.ranges == [f"bytes={3 * CUT}-"]
    assert names(cache) == ["data.bin"]


def test_a_server_that_cannot_resume_sends_the_whole_again(server, file):
    server.cuts, server.knows_ranges = 1, False
    assert files.get(file).read_bytes() == CONTENT
    assert server.ranges == [None, f"bytes={CUT}-"]


def test_a_server_that_resumes_elsewhere_is_asked_for_the_whole(server, file):
    server.cuts, server.shift = 1, -1
    assert files.get(file).read_bytes() == CONTENT
    assert server.ranges == [None, f"bytes={CUT}-", None]


def test_a_server_that_announces_no_length_is_fine(server, file):
    server.announces_length = False
    assert files.get(file).read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("left", "ranges"),
    [(CONTENT, [f"bytes={len(CONTENT)}-"]), (CONTENT * 2, [f"bytes={2 * len(CONTENT)}-", None])],
    ids=["whole", "too long"],
)
def test_nothing_is_appended_to_what_is_whole_or_too_long(server, file, cache, left, ranges):
    cache.mkdir()
    (cache / "data.bin.part").write_bytes(left)
    assert files.get(file).read_bytes() == CONTENT
    assert server.ranges == ranges


def test_corrupted_content_is_refused_and_nothing_stays(server, file, cache):
    server.content = CONTENT[:-1] + b"?"
    assert refusal(file) == (
        f"data.bin: what {server.url} sends has another sha256 than expected; "
        f"put it into {cache}, or set WSCPML_DATA to a directory that has it"
    )
    assert names(cache) == []


def test_a_file_that_changed_between_two_calls_is_not_patched_together(server, file, cache):
    cache.mkdir()
    (cache / "data.bin.part").write_bytes(b"?" * CUT)
    assert "has another sha256 than expected" in refusal(file)
    assert names(cache) == []
    assert files.get(file).read_bytes() == CONTENT


def test_a_file_missing_on_the_server_is_asked_for_once(server, file, cache):
    server.statuses = [404]
    assert refusal(file) == (
        f"data.bin: cannot be downloaded from {server.url} (HTTP 404 Not Found); "
        f"put it into {cache}, or set WSCPML_DATA to a directory that has it"
    )
    assert server.ranges == [None]
    assert names(cache) == []


@pytest.mark.parametrize(("status", "kept"), [(404, []), (503, ["data.bin.part"])])
def test_only_a_trouble_of_the_server_keeps_what_had_arrived(server, file, cache, status, kept):
    cache.mkdir()
    (cache / "data.bin.part").write_bytes(CONTENT[:CUT])
    server.statuses = [status]
    assert f"(HTTP {status} " in refusal(file)
    assert server.ranges == [f"bytes={CUT}-"]
    assert names(cache) == kept


@pytest.mark.parametrize("place", ["cache", "mirror"])
def test_a_server_that_is_down_is_told_in_one_line(cache, place, request):
    directory = request.getfixturevalue(place)
    with socket.socket() as taken:  # but nobody listens
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/data.bin"
        assert re.fullmatch(
            rf"data.bin: cannot be downloaded from {url} \(.*Connection refused\); "
            rf"put it into {directory}, or set WSCPML_DATA to a directory that has it",
            refusal(File("data.bin", SHA256, url)),
        )
    assert names(cache) == []


def test_other_schemes_than_http_are_refused(tmp_path, cache):
    (tmp_path / "data.bin").write_bytes(CONTENT)
    url = (tmp_path / "data.bin").as_uri()
    assert f"cannot be downloaded from {url} (No connection adapters" in refusal(
        File("data.bin", SHA256, url)
    )


@pytest.mark.parametrize("place", ["cache", "mirror"])
def test_a_local_file_with_another_checksum_is_never_used(server, file, place, request):
    directory = request.getfixturevalue(place)
    directory.mkdir(exist_ok=True)
    (directory / "data.bin").write_bytes(b"?")
    assert refusal(file) == (
        f"{directory / 'data.bin'}: is not the expected file (sha256 differs); delete or replace it"
    )
    with pytest.raises(UserError, match="is not the expected file"):
        files.find(file)
    assert server.ranges == []
    assert (directory / "data.bin").read_bytes() == b"?"


def test_a_directory_in_place_of_the_file_is_told_so(file, cache):
    (cache / "data.bin").mkdir(parents=True)
    assert refusal(file) == (
        f"{cache / 'data.bin'}: cannot be read (Is a directory); delete or replace it"
    )


def test_a_file_that_is_not_public_has_to_be_where_dvc_sees_it_change(
    tmp_path, monkeypatch, cache, mirror
):
    monkeypatch.chdir(tmp_path)
    file = File("data.bin", None, None)
    for directory in (cache, mirror):
        directory.mkdir(exist_ok=True)
        (directory / "data.bin").write_bytes(b"whatever the user has")
    assert files.find(file) is None
    assert refusal(file) == "data.bin: is not public; put it into data/own/"
    (tmp_path / "data/own").mkdir(parents=True)
    (tmp_path / "data/own/data.bin").write_bytes(b"whatever the user has")
    assert files.get(file) == files.find(file) == Path("data/own/data.bin")


def test_a_mirror_that_is_no_directory_is_told_so(tmp_path, monkeypatch, file):
    monkeypatch.setenv("WSCPML_DATA", str(tmp_path / "nowhere"))
    assert refusal(file) == (
        f"WSCPML_DATA: {tmp_path / 'nowhere'} is not a directory; create it or unset WSCPML_DATA"
    )


def test_a_cache_that_cannot_be_written_is_told_so(server, file, cache):
    cache.write_text("a file, not a directory")
    assert refusal(file) == (
        f"{cache / 'data.bin'}: cannot be written (File exists); "
        "set WSCPML_CACHE to a directory that can hold it"
    )
    assert server.ranges == []


def test_variables_that_are_empty_count_as_not_set(tmp_path, monkeypatch):
    monkeypatch.setenv("WSCPML_DATA", "")
    monkeypatch.setenv("WSCPML_CACHE", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert files.mirror() is None
    assert files.cache_directory().name == "wscpml"


def test_directories_may_start_with_a_tilde(tmp_path, monkeypatch, file):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("WSCPML_DATA", "~")
    monkeypatch.setenv("WSCPML_CACHE", "~/there")
    assert files.mirror() == tmp_path
    assert files.get(file) == files.find(file) == tmp_path / "there" / "data.bin"


def test_two_that_want_the_same_file_share_one_download(server, file):
    with ThreadPoolExecutor(2) as pool:
        for path in pool.map(files.get, [file, file]):
            assert path.read_bytes() == CONTENT
    assert server.ranges == [None]


def test_importing_the_module_imports_nothing_heavy():
    code = (
        "import sys, wscpml.datasets.files; print({'pooch', 'requests', 'tqdm'} & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
