"""A class to inherit from, whose hints name what only this module has."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Urgency(enum.Enum):
    LOW = "low"
    HIGH = "high"


@dataclass
class Urgent:
    urgency: Urgency
