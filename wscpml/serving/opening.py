"""Opens a page in a person's browser: `python -m wscpml.serving.opening ADDRESS`.

It waits until a server answers there, in a process of its own, and leaves the server alone.
"""

import os
import subprocess
import sys
import time
import webbrowser
from urllib.error import URLError
from urllib.request import urlopen

SECONDS = 120  # that a server may take to start


def open_later(address: str) -> None:
    """Have the page opened once it answers, if somebody is there to see it."""
    has_screen = sys.platform in ("darwin", "win32") or (
        os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    )
    if has_screen and sys.stdout.isatty():
        subprocess.Popen([sys.executable, "-m", "wscpml.serving.opening", address])


def open_now(address: str) -> None:
    """Wait until a server answers, and open the page."""
    for _ in range(SECONDS):
        try:
            urlopen(address, timeout=5).close()
        except (URLError, OSError):
            time.sleep(1)
        else:
            webbrowser.open(address)
            return


if __name__ == "__main__":
    open_now(sys.argv[1])
