"""Bytes to records and back: HTTP values, server-sent events, stated waits. Public, for teaching and reuse."""
