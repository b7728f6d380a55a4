"""The shell around wscpml: each script is one DVC stage that reads, calls the core, and writes."""

import sys
from collections.abc import Callable

from wscpml import settings
from wscpml.devices import one_blas_thread
from wscpml.errors import UserError


def run(stage: Callable[[settings.Settings], None]) -> None:
    """Run a stage with checked settings; a user's mistake is told in plain lines, exit 1."""
    try:
        with one_blas_thread():
            stage(settings.load())
    except UserError as mistake:
        sys.exit(str(mistake))
