import asyncio
import json
import socket
from dataclasses import dataclass, field

import pandas as pd
import pytest

from tests.review.reviews import LABELS, Review, some_items
from wscpml.errors import UserError
from wscpml.quality import decisions
from wscpml.review import app

TOKEN, PORT = "secret-token", 8765
HOST = f"127.0.0.1:{PORT}"
JSON = {"origin": f"http://{HOST}", "content-type": "application/json"}


@dataclass
class Answer:
    """What the application has answered."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""

    @property
    def json(self):
        return json.loads(self.body)


@pytest.fixture
def review(tmp_path):
    (tmp_path / "root").mkdir()
    (tmp_path / "root/a.png").write_bytes(b"a picture")
    (tmp_path / "secret.png").write_bytes(b"a secret")
    shown = pd.DataFrame({"picture": ["a.png", "../secret.png", *["none"] * 28]})
    return Review(tmp_path, some_items(shown=shown, root=tmp_path / "root"))


@pytest.fixture
def send(review):
    """Sends a request to the application of a review."""
    answering = app.application(review.session, TOKEN, PORT, "Anna")

    def send(method, path, body=b"", host=HOST, **headers):
        given = {"host": host} | {name.replace("_", "-"): text for name, text in headers.items()}
        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "headers": [(name.encode(), text.encode()) for name, text in given.items() if text],
        }
        answer = Answer()

        messages = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive():
            if not messages:
                await asyncio.Event().wait()  # whoever asked stays there
            return messages.pop()

        async def reply(message):
            if message["type"] == "http.response.start":
                answer.status = message["status"]
                answer.headers = {k.decode(): v.decode() for k, v in message["headers"]}
            else:
                answer.body += message.get("body", b"")

        asyncio.run(answering(scope, receive, reply))
        return answer

    return send


@pytest.fixture
def post(send):
    """Asks as the page does."""

    def post(what, headers=JSON, host=HOST, **content):
        body = json.dumps({"browser": "me"} | content).encode()
        return send("POST", f"/{TOKEN}/{what}", body, host, **headers)

    return post


def nothing_was_decided(review):
    return len(decisions.read(review.journal)) == 0


def test_the_page_and_its_parts_are_there_for_who_knows_the_token(send):
    page = send("GET", f"/{TOKEN}/")
    assert page.status == 200
    assert page.headers["content-type"].startswith("text/html")
    for name, kind in (("review.js", "javascript"), ("review.css", "css"), ("audit.css", "css")):
        assert name in page.body.decode()
        part = send("GET", f"/{TOKEN}/{name}")
        assert (part.status, kind in part.headers["content-type"]) == (200, True)


def test_an_item_is_asked_for_and_decided(review, post):
    start = post("start").json
    assert (start["title"], start["labels"], start["reviewer"]) == (
        "A <b>title</b>",
        LABELS,
        "Anna",
    )
    assert post("next").json["item"]["id"] == "song 0"
    told = post("decide", row=0, label=1, true=False, reviewer="Bo", note="no").json
    assert told["progress"]["decided"] == 1
    post("skip", row=0, label=0)
    assert post("progress").json["progress"]["skipped"] == 1
    assert post("next").json["item"]["id"] == "song 1"
    (row,) = decisions.read(review.journal).to_dict("records")
    assert [row[key] for key in ("instance", "label", "decision", "reviewer", "note")] == [
        "song 0",
        "jazz",
        "false",
        "Bo",
        "no",
    ]
    assert post("undo").json["item"]["id"] == "song 0"
    assert decisions.last_words(decisions.read(review.journal)).empty
    post("again")
    assert post("next").json["item"]["open"] == [1, 0]


@pytest.mark.parametrize(
    "path", ["/", "/review.js", "/wrong/", "/secret-toke/", "/é/", f"/{TOKEN}x/"]
)
def test_without_the_token_nothing_is_told(send, path):
    answer = send("GET", path)
    assert answer.status == 403
    assert b"title" not in answer.body


@pytest.mark.parametrize(
    "host", ["", "evil.invalid", f"evil.invalid:{PORT}", "127.0.0.1", "127.0.0.1:80", f"{HOST}.x"]
)
def test_a_foreign_host_is_refused(send, post, review, host):
    assert send("GET", f"/{TOKEN}/", host=host).status == 403
    headers = {"origin": f"http://{host}", "content-type": "application/json"}
    assert post("next", headers, host).status == 403


def test_the_machine_may_be_called_localhost(post):
    host = f"localhost:{PORT}"
    assert post("next", {**JSON, "origin": f"http://{host}"}, host).status == 200


@pytest.mark.parametrize(
    "origin", ["", "null", "http://evil.invalid", f"https://{HOST}", "http://127.0.0.1:80"]
)
def test_a_request_of_another_page_is_refused(post, review, origin):
    post("next")
    answer = post("decide", {**JSON, "origin": origin}, row=0, label=0, true=True)
    assert answer.status == 403
    assert nothing_was_decided(review)


@pytest.mark.parametrize("kind", ["", "text/plain", "application/x-www-form-urlencoded"])
def test_a_form_of_another_site_is_refused(post, review, kind):
    post("next")
    answer = post("decide", {**JSON, "content-type": kind}, row=0, label=0, true=True)
    assert answer.status == 415
    assert nothing_was_decided(review)


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "HEAD"])
def test_no_other_method_is_answered_and_none_is_allowed_to_others(send, method):
    answer = send(method, f"/{TOKEN}/decide", origin="http://evil.invalid")
    assert answer.status == 405
    assert not [name for name in answer.headers if name.startswith("access-control")]


@pytest.mark.parametrize(
    "changes",
    [
        {"row": "0"},
        {"row": -1},
        {"label": 0.5},
        {"true": "yes"},
        {"true": None},
        {"more": 1},
        {"browser": ""},
        {"note": 3},
        {"note": "x" * app.MOST_SENT},
    ],
)
def test_what_the_page_does_not_send_is_refused(post, review, changes):
    post("next")
    answer = post("decide", **({"row": 0, "label": 0, "true": True} | changes))
    assert answer.status == 400
    assert nothing_was_decided(review)


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"\xff", b'{"browser": "me", "leave": NaN}'])
def test_bad_json_is_refused(send, body):
    assert send("POST", f"/{TOKEN}/next", body, **JSON).status == 400


def test_an_item_that_is_not_on_the_screen_cannot_be_decided(post, review):
    post("next")
    assert post("decide", row=7, label=0, true=True).status == 409
    assert post("decide", row=10**9, label=0, true=True).status == 409
    assert nothing_was_decided(review)


def test_a_journal_that_is_gone_is_told(post, review):
    post("next")
    review.journal.unlink()
    review.journal.mkdir()
    answer = post("decide", row=0, label=0, true=True)
    assert answer.status == 500
    assert "decisions.csv: no such file of decisions" in answer.json["problem"]


def test_a_picture_is_sent_if_it_is_under_the_root(send):
    answer = send("GET", f"/{TOKEN}/media/0/0")
    assert (answer.status, answer.body) == (200, b"a picture")
    assert answer.headers["content-type"] == "image/png"


@pytest.mark.parametrize(
    "path", ["1/0", "2/0", "99/0", "0/99", "-1/0", "../secret.png", "0/..%2f..%2fsecret.png"]
)
def test_what_is_not_under_the_root_is_not_sent(send, path):
    answer = send("GET", f"/{TOKEN}/media/{path}")
    assert answer.status == 404
    assert b"a secret" not in answer.body


@pytest.mark.parametrize("path", ["/", f"/{TOKEN}/", f"/{TOKEN}/media/0/0", f"/{TOKEN}/nothing"])
def test_every_answer_says_what_a_browser_may_do(send, path):
    headers = send("GET", path).headers
    policy = headers["content-security-policy"].split("; ")
    assert {"default-src 'none'", "script-src 'self'", "img-src 'self'"} <= set(policy)
    assert {"frame-ancestors 'none'", "form-action 'none'", "base-uri 'none'"} <= set(policy)
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == "no-store"


def test_a_port_in_use_is_told_in_a_line():
    with socket.socket() as taken:
        taken.bind((app.LOOPBACK, 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(UserError, match=rf"port {port}: cannot be used \(Address already in"):
            app.listen(port)
    for port in (-1, 65536, "x"):
        with pytest.raises(UserError, match=f"port {port}: cannot be used"):
            app.listen(port)


def test_a_port_that_another_review_will_answer_on_is_in_use():
    with app.listen(0) as listening:
        port = listening.getsockname()[1]
        with pytest.raises(UserError, match=f"port {port}: cannot be used"):
            app.listen(port)


def test_it_listens_on_this_machine_alone():
    with app.listen(0) as listening:
        assert listening.getsockname()[0] == "127.0.0.1"
