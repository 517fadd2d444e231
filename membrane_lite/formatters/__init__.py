"""Participants into a provider's roles, and a provider's deltas back into chunks and blocks."""
