"""`python -m wscpml` is the command `wscpml`."""

from wscpml.cli import main

main()
