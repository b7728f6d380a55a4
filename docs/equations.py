"""Equations as MathML, which browsers draw without a script: a hook of MkDocs.

A block of the language `math` holds LaTeX, and so does text between $` and `$, as on GitHub.
"""

import re
from typing import Any

from latex2mathml.converter import convert

BLOCK = re.compile(r"^```math\n(.*?)\n```$", re.DOTALL | re.MULTILINE)
INLINE = re.compile(r"\$`(.+?)`\$")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Put MathML in the place of LaTeX."""
    drawn = BLOCK.sub(lambda found: _mathml(found[1], "block"), markdown)
    return INLINE.sub(lambda found: _mathml(found[1], "inline"), drawn)


def _mathml(latex: str, display: str) -> str:
    return convert(latex.replace("\n", " "), display=display)
