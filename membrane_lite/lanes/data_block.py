"""Text of a corpus as a block of data in a prompt: fenced by a tag that the text itself cannot close.

The prose of memories is often shaped like instructions. The fence keeps it from being read as one, as long as the text
cannot produce the closing tag: it would end the block early and put its own rest outside. So the slash of each such
tag gains a backslash, which keeps the text legible; nothing else changes.
"""

from __future__ import annotations

import re
from typing import Final

from ..errors import invalid, wrong_type

TAG: Final = "data"
NAME_GOES_ON: Final = r"[\w.:-]"  # </database> and </data-set> are other tags


def wrap_as_data(label: str, text: str) -> str:
    """`<data label="LABEL">`, the text, `</data>`, a line each. The label may not be empty or hold a line break."""
    for name, value in (("label", label), ("text", text)):
        if not isinstance(value, str):
            raise wrong_type(name, value, "a string")
    if not label.strip() or label.splitlines() != [label]:
        raise invalid("label", f"found {label!r}", "expected a name on one line")
    body = closing_tags_for(label).sub(NEUTRAL, text)
    return f'<{TAG} label="{label.translate(ESCAPES)}">\n{body}\n</{TAG}>'


def closing_tags_for(label: str) -> re.Pattern[str]:
    """The beginnings of all end tags that a reader might take for the block's: by its tag, or by its label.

    In any case, because the fence is prose to a model and no parsed markup; with spaces, and whatever stands behind
    the name, a ">" or not: the fence's own would end a tag that the text left open.
    """
    name = r"\s+".join(map(re.escape, label.split()))
    return re.compile(rf"(<\s*)/(\s*(?:{TAG}|{name})(?!{NAME_GOES_ON}))", re.IGNORECASE)


ESCAPES: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"})
NEUTRAL: Final = r"\1\\/\2"
