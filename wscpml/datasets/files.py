"""Files of data sets: from a mirror ($WSCPML_DATA), from the cache, or downloaded into the cache.

No file is used whose sha256 is not the expected one; a file of which none is known has to be in
data/own/, where DVC sees it change. A download that breaks off is resumed.
"""

import hashlib
import os
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from wscpml.errors import UserError

OWN = Path("data/own")
ATTEMPTS = 3
CHUNK = 1 << 16  # bytes; less than that is lost when a connection breaks
TIMEOUTS = (10, 60)  # seconds to connect, seconds without a byte


@dataclass(frozen=True)
class File:
    """A file that a data set is read from."""

    name: str  # wherever it is
    sha256: str | None  # None: not known, so the user supplies it in data/own/
    url: str | None  # None: cannot be downloaded


def mirror() -> Path | None:
    """The directory of files that the user has named, if any."""
    directory = _named("WSCPML_DATA")
    if directory is not None and not directory.is_dir():
        raise UserError(
            f"WSCPML_DATA: {directory} is not a directory; create it or unset WSCPML_DATA"
        )
    return directory


def cache_directory() -> Path | None:
    """The directory that downloads go to; None where there can be none, in the core install."""
    if directory := _named("WSCPML_CACHE"):
        return directory
    if find_spec("pooch") is None:
        return None
    import pooch  # type: ignore[import-untyped,unused-ignore]

    return Path(pooch.os_cache("wscpml"))


def _named(variable: str) -> Path | None:
    """The directory that a variable of the environment names, if it is set."""
    name = os.environ.get(variable)
    try:
        return Path(name).expanduser() if name else None
    except RuntimeError:
        raise UserError(
            f"{variable}: {name} is in the home of nobody here; name another or unset {variable}"
        ) from None


def find(file: File) -> Path | None:
    """A local copy of a file, from the mirror or else from the cache; from data/own if supplied."""
    places = (OWN,) if file.sha256 is None else (mirror(), cache_directory())
    for directory in places:
        if directory is not None and (path := directory / file.name).exists():
            if file.sha256 not in (None, digest(path)):
                raise UserError(
                    f"{path}: is not the expected file (sha256 differs); delete or replace it"
                )
            return path
    return None


def get(file: File) -> Path:
    """A local copy of a file, downloaded if there is none."""
    found = find(file)
    if found is not None:
        return found
    if file.url is None:
        raise UserError(f"{file.name}: is not public; put it into {OWN}/")
    directory = cache_directory()
    if directory is None or find_spec("pooch") is None:
        raise UserError(f"{file.name}: to fetch it, pip install 'wscpml[pipeline]'")
    place = mirror() or directory
    way_out = f"put it into {place}, or set WSCPML_DATA to a directory that has it"
    return _download(file, file.url, directory, way_out)


def digest(path: Path) -> str:
    """The sha256 of a file."""
    try:
        with path.open("rb") as content:
            return hashlib.file_digest(content, "sha256").hexdigest()
    except OSError as error:
        raise UserError(
            f"{path}: cannot be read ({error.strerror}); delete or replace it"
        ) from error


def _download(file: File, url: str, directory: Path, way_out: str) -> Path:
    import pooch
    import requests
    from filelock import FileLock

    path = directory / file.name
    part = directory / f"{file.name}.part"

    def download(url: str, output_file: str, _: object) -> None:
        _fetch_whole(url, part)
        part.replace(output_file)

    pooch.get_logger().setLevel("ERROR")
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with FileLock(directory / f".{file.name}.lock"):  # two must not write into one .part
            pooch.retrieve(
                url,
                known_hash=f"sha256:{file.sha256}",
                fname=file.name,
                path=directory,
                downloader=download,
            )
    except requests.RequestException as error:
        reason = f"cannot be downloaded from {url} ({_reason(error)})"
        raise UserError(f"{file.name}: {reason}; {way_out}") from error
    except OSError as error:
        raise UserError(
            f"{path}: cannot be written ({error.strerror}); "
            "set WSCPML_CACHE to a directory that can hold it"
        ) from error
    except ValueError as error:  # pooch's word for a wrong checksum
        reason = f"what {url} sends has another sha256 than expected"
        raise UserError(f"{file.name}: {reason}; {way_out}") from error
    return path


def _fetch_whole(url: str, part: Path) -> None:
    """Fetch until nothing is missing; a connection that breaks is tried again."""
    import requests
    from requests.exceptions import ChunkedEncodingError

    for attempts_left in reversed(range(ATTEMPTS)):
        try:
            _fetch_rest(url, part)
            break
        except (requests.ConnectionError, requests.Timeout, ChunkedEncodingError):
            if not attempts_left:
                raise


def _fetch_rest(url: str, part: Path) -> None:
    """Append to a file what it lacks, or begin it anew if the server cannot resume."""
    import requests
    from tqdm import tqdm

    size = part.stat().st_size if part.exists() else 0
    headers = {"Accept-Encoding": "identity"}  # so that sizes are those of the file itself
    if size:
        headers["Range"] = f"bytes={size}-"
    # requests speaks http and https only, also when it is redirected.
    with requests.get(url, headers=headers, stream=True, timeout=TIMEOUTS) as response:
        status = response.status_code
        content_range = response.headers.get("Content-Range", "")
        if size and status == 416 and content_range == f"bytes */{size}":
            return
        if (size and status == 416) or (
            status == 206 and not content_range.startswith(f"bytes {size}-")
        ):
            part.unlink(missing_ok=True)
            raise requests.ConnectionError("the server cannot resume the download")
        if status not in (200, 206):
            if status < 500:  # not a passing trouble of the server
                part.unlink(missing_ok=True)
            raise requests.HTTPError(f"HTTP {status} {response.reason}")
        if status == 200:
            size = 0
        announced = response.headers.get("Content-Length")
        total = None if announced is None else size + int(announced)
        with (
            part.open("ab" if size else "wb") as content,
            tqdm(
                desc=part.stem,
                initial=size,
                total=total,
                unit="B",
                unit_scale=True,
                disable=None,  # unless stderr is a terminal
            ) as bar,
        ):
            for chunk in response.iter_content(CHUNK):
                bar.update(content.write(chunk))
        if total is not None and part.stat().st_size < total:
            raise requests.ConnectionError("the connection broke off")


def _reason(error: BaseException) -> str:
    """The innermost cause in one line: requests and urllib3 wrap it many times over."""
    for cause in (error.__cause__, *error.args):
        if isinstance(cause, BaseException):
            return _reason(cause)
    return " ".join(str(error).split()) or type(error).__name__
