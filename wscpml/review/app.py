"""The review as a web application on this machine alone.

Whoever knows the token in its address is the reviewer. Requests must be for the loopback address,
and those that change something must come from the page itself, as JSON. Pages may load nothing
from elsewhere, but pictures and sounds if that is allowed.
"""

import secrets
import socket
from collections.abc import Callable
from importlib.resources import files
from typing import Annotated, Any, NoReturn

import uvicorn
from pydantic import BaseModel, Field, ValidationError
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from wscpml.errors import UserError
from wscpml.parameters import STRICT
from wscpml.review.session import Conflict, Session

LOOPBACK = "127.0.0.1"
NAMES = (LOOPBACK, "localhost")
MOST_SENT = 100_000  # bytes of a request
PAGE = {  # what the page is made of, and where it is
    "": ("wscpml.review", "review.html", "text/html"),
    "review.css": ("wscpml.review", "review.css", "text/css"),
    "icon.svg": ("wscpml.review", "icon.svg", "image/svg+xml"),
    "review.js": ("wscpml.review", "review.js", "text/javascript"),
    "audit.css": ("wscpml.quality", "audit.css", "text/css"),
}

Number = Annotated[int, Field(ge=0)]


class Asked(BaseModel):
    """What the page sends, whatever it asks for."""

    model_config = STRICT

    browser: Annotated[str, Field(min_length=1, max_length=100)]


class Next(Asked):
    """For the item to look at."""

    leave: bool = False


class Skip(Asked):
    """Not to be asked for a pair."""

    row: Number
    label: Number


class Decision(Skip):
    """A decision on a pair."""

    true: bool
    reviewer: str = ""
    note: str = ""


def application(session: Session, token: str, port: int, reviewer: str = "") -> ASGIApp:
    """The application, which answers to those who know the token."""

    def told(browser: str, **more: Any) -> dict[str, Any]:
        return {**more, "progress": session.progress(browser)}

    def start(asked: Asked) -> dict[str, Any]:
        items = session.items
        return told(asked.browser, title=items.title, labels=items.labels, reviewer=reviewer)

    def following(asked: Next) -> dict[str, Any]:
        item = session.next(asked.browser, asked.leave)
        return told(asked.browser, item=item)

    def decide(asked: Decision) -> dict[str, Any]:
        session.decide(**asked.model_dump())
        return told(asked.browser)

    def skip(asked: Skip) -> dict[str, Any]:
        session.skip(**asked.model_dump())
        return told(asked.browser)

    def undo(asked: Asked) -> dict[str, Any]:
        item = session.undo(asked.browser)
        return told(asked.browser, item=item)

    def again(asked: Asked) -> dict[str, Any]:
        session.again(asked.browser)
        return told(asked.browser)

    def progress(asked: Asked) -> dict[str, Any]:
        return told(asked.browser)

    def media(request: Request) -> Response:
        found = session.items.file(request.path_params["row"], request.path_params["column"])
        if found is None:
            raise HTTPException(404, "no picture or sound under the root")
        path, kind = found
        return FileResponse(path, media_type=kind)

    def part(name: str) -> Callable[[Request], Response]:
        package, file, kind = PAGE[name]
        text = files(package).joinpath(file).read_text(encoding="utf-8")
        return lambda _: Response(text, media_type=kind)

    posts: dict[str, tuple[type[Asked], Callable[[Any], dict[str, Any]]]] = {
        "start": (Asked, start),
        "next": (Next, following),
        "decide": (Decision, decide),
        "skip": (Skip, skip),
        "undo": (Asked, undo),
        "again": (Asked, again),
        "progress": (Asked, progress),
    }
    routes = [Route(f"/{token}/{name}", part(name), methods=["GET"]) for name in PAGE]
    routes += [Route(f"/{token}/media/{{row:int}}/{{column:int}}", media, methods=["GET"])]
    routes += [
        Route(f"/{token}/{name}", _endpoint(kind, answer), methods=["POST"])
        for name, (kind, answer) in posts.items()
    ]
    return _Guarded(Starlette(routes=routes), token, port, session.items.allow_remote)


def listen(port: int | str) -> socket.socket:
    """A socket of this machine alone, at a port, or at any that is free for 0."""
    found = socket.socket()
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((LOOPBACK, int(port)))
        found.listen()  # until then another server may bind the same port
    except (OSError, OverflowError, ValueError) as error:
        found.close()
        reason = getattr(error, "strerror", None) or error
        raise UserError(
            f"port {port}: cannot be used ({reason}); name another, or 0 for any that is free"
        ) from None
    return found


def server(
    session: Session, listening: socket.socket, reviewer: str = ""
) -> tuple[uvicorn.Server, str]:
    """A server that answers on a socket, not yet running, and the address of its page."""
    token, port = secrets.token_urlsafe(24), listening.getsockname()[1]
    config = uvicorn.Config(
        application(session, token, port, reviewer),
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=1,
        lifespan="off",
        ws="none",
    )
    return uvicorn.Server(config), f"http://{LOOPBACK}:{port}/{token}/"


def serve(session: Session, listening: socket.socket, reviewer: str = "") -> NoReturn:
    """Say where the page is, and answer until Ctrl-C."""
    answering, address = server(session, listening, reviewer)
    print(f"review at {address}", flush=True)
    print(f"decisions go to {session.journal}, at once; Ctrl-C ends the review", flush=True)
    answering.run(sockets=[listening])
    raise KeyboardInterrupt  # it ends by Ctrl-C, which a shell may have told it to ignore elsewhere


def _endpoint(kind: type[Asked], answer: Callable[[Any], dict[str, Any]]) -> Callable[..., Any]:
    """An endpoint that takes JSON of a kind and gives JSON; a mistake is told as JSON too."""

    async def endpoint(request: Request) -> Response:
        try:
            asked = kind.model_validate_json(await _body(request), strict=True)
        except (ValidationError, ValueError):
            return JSONResponse({"problem": "this is not what the page sends"}, 400)
        try:
            return JSONResponse(await run_in_threadpool(answer, asked))
        except Conflict as conflict:
            return JSONResponse({"problem": str(conflict)}, 409)
        except UserError as mistake:
            return JSONResponse({"problem": str(mistake)}, 500)

    return endpoint


async def _body(request: Request) -> bytes:
    """The body of a request, if it is not too large."""
    content = b""
    async for chunk in request.stream():
        content += chunk
        if len(content) > MOST_SENT:
            raise ValueError
    return content


class _Guarded:
    """An application that refuses whatever does not come from its own page."""

    def __init__(self, app: ASGIApp, token: str, port: int, allow_remote: bool) -> None:
        self.app, self.token = app, token
        self.hosts = {f"{name}:{port}" for name in NAMES}
        seen = "'self' http: https:" if allow_remote else "'self'"
        policy = (
            "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
            f"img-src {seen}; media-src {seen}; base-uri 'none'; form-action 'none'; "
            "frame-ancestors 'none'"
        )
        self.headers = {
            "Content-Security-Policy": policy,
            "Referrer-Policy": "no-referrer",
            "X-Content-Type-Options": "nosniff",
            "Cross-Origin-Opener-Policy": "same-origin",
            "Cross-Origin-Resource-Policy": "same-origin",
            "Cache-Control": "no-store",
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        refused = self.refusal(Request(scope))

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                added = {k.lower().encode(): v.encode() for k, v in self.headers.items()}
                kept = [(k, v) for k, v in message["headers"] if k.lower() not in added]
                message["headers"] = [*kept, *added.items()]
            await send(message)

        await (refused or self.app)(scope, receive, send_guarded)

    def refusal(self, request: Request) -> Response | None:
        """Why a request is not answered, or None if it is."""
        host = request.headers.get("host", "")
        if host not in self.hosts:
            return PlainTextResponse("this is not the address of the review", 403)
        token = request.scope["path"].split("/")[1]
        if not secrets.compare_digest(token.encode(), self.token.encode()):
            return PlainTextResponse("open the address that `wscpml review` has printed", 403)
        if request.method == "GET":
            return None
        if request.method != "POST":
            return PlainTextResponse("not allowed", 405)
        if request.headers.get("origin") != f"http://{host}":
            return PlainTextResponse("only the page itself may send this", 403)
        if request.headers.get("content-type", "").partition(";")[0] != "application/json":
            return PlainTextResponse("must be JSON", 415)
        return None
