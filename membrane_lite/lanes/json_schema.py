"""JSON Schema, under the name of this room; it is obeyed in schema/validate.py."""

from __future__ import annotations

from ..schema.json_values import Violation as Violation
from ..schema.validate import validate as validate
