"""The vocabulary of the XML transcript: its tags, in both spellings, and what counts as white space between them.

A tag name may carry the namespace prefix, in opening and in closing tags, whether or not the two agree; it is read, and
never written.
"""

from __future__ import annotations

from typing import Final

NAMESPACE: Final = "antml:"
ANY_PREFIX: Final = f"(?:{NAMESPACE})?"  # for patterns

THINKING: Final = "thinking"
CALLS: Final = "function_calls"
RESULTS: Final = "function_results"

# The tags that make a block, and the type of that block in events. `invoke` and `parameter` stand inside calls.
BLOCK_TYPES: Final = {THINKING: "thinking", CALLS: "tool_call", RESULTS: "tool_result"}
INNER_TAGS: Final = ("invoke", "parameter")

THINKING_OPENER: Final = f"<{THINKING}>"
THINKING_CLOSER: Final = f"</{THINKING}>"
CALLS_OPENER: Final = f"<{CALLS}>"
CALLS_CLOSER: Final = f"</{CALLS}>"
RESULTS_OPENER: Final = f"<{RESULTS}>"
RESULTS_CLOSER: Final = f"</{RESULTS}>"

# A value that stands directly after its parameter's opener in this form is taken exactly as written.
CDATA_OPENER: Final = "<![CDATA["
CDATA_CLOSER: Final = "]]>"

# What ECMAScript's trim() and \s take (ECMA-262, 12.2 and 12.3), for the transcripts were first written there: unlike
# str.strip(), U+FEFF too, and neither U+001C to U+001F nor U+0085.
WHITESPACE: Final = (
    "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)
SPACE: Final = f"[{WHITESPACE}]"  # for patterns: \s takes other characters


def is_blank(text: str) -> bool:
    return not text.strip(WHITESPACE)
