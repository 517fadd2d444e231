"""One file per wire format, request and response side by side; base.py sends and reads for all of them."""
