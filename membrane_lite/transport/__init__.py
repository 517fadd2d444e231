"""The network, behind one small interface. Nothing here is imported before the first call needs it."""
