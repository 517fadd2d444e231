"""JSON Schema: derived from type hints, validated, decoded into the user's types. Pure: no provider, no network."""
