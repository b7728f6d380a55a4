"""The shell around wscpml: each script is one DVC stage that reads, calls the core, and writes."""

import sys
from collections.abc import Callable

from threadpoolctl import threadpool_limits

from wscpml import settings
from wscpml.errors import UserError


def run(stage: Callable[[settings.Settings], None]) -> None:
    """Run a stage with checked settings; a user's mistake is told in plain lines, exit 1."""
    try:
        with threadpool_limits(1, "blas"):  # sums in another order would be other bytes
            stage(settings.load())
    except UserError as mistake:
        sys.exit(str(mistake))
