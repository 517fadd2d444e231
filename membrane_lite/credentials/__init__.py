"""Where keys come from."""
