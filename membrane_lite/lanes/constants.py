"""The numbers and names of the wire. Each was probed, and each has a reason why it is named instead of left out."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

# Cohere Embed v4 returns 1536 floats where output_dimension is absent, and exactly 1024 where it is named. A default
# that changed without notice would make every stored vector invalid.
EMBED_MODEL_ID: Final = "cohere.embed-v4:0"
EMBED_DIM: Final = 1024

# Cohere's ceiling of texts in a request; a larger batch is rejected.
EMBED_BATCH_LIMIT: Final = 96

# Batches in flight at once. The bound protects a quota that the whole account shares, not this machine: more would
# spend its tokens per minute in one burst and throttle everybody else.
EMBED_CONCURRENCY: Final = 6

# Both axes of a vector space: the same model at another dimension gives vectors that cannot be compared.
EMBED_WATERMARK: Final = f"{EMBED_MODEL_ID}@{EMBED_DIM}"

# The forced tool, and the strict schema, of a structured answer. One name, so that a reader need not go by position.
STRUCTURED_TOOL_NAME: Final = "emit"

# It bounds thinking and answer together: 8,192 was seen to cut structured answers in the middle of an object. A budget
# is a ceiling and not a spend, so a high default costs nothing.
MAX_TOKENS_DEFAULT: Final = 64_000

# Above it Bedrock raises a ValidationException instead of clamping.
MAX_TOKENS_CEILING: Final = 128_000

ANTHROPIC_VERSION: Final = "bedrock-2023-05-31"  # the only valid one; no date of a model
