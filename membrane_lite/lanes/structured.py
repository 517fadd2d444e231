"""Schemas of structured answers, under the names of this room; they are made and obeyed in schema/."""

from __future__ import annotations

from ..schema.decode import MAX_RAW as MAX_RAW
from ..schema.decode import LlmContractViolation as LlmContractViolation
from ..schema.decode import decode_tool_input as decode_tool_input
from ..schema.derive import to_input_schema as to_input_schema
