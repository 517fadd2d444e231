"""The command line: `membrane-lite COMMAND`, or `python -m membrane_lite.cli COMMAND` where the folder was copied.

In goes a list of words, out comes an exit status: 0; 1 where nobody reads on; 2 for words that make no command.
COMMANDS decides; a command is a module of this folder with `run(out)`, imported when it is asked for.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Final

from ..version import VERSION

PROGRAM: Final = "membrane-lite"

COMMANDS: Final[Mapping[str, str]] = {
    "demo": "one turn with a tool over each wire format, shown byte by byte; needs no key and no network",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; without one, say which there are. argv: the words after the program's name."""
    parser = _parser()
    command = parser.parse_args(argv).command
    if command is None:
        parser.print_help(sys.stderr)
        return 2
    try:
        import_module("." + command, __name__).run(sys.stdout)
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read our output has seen enough (`| head`). Python flushes stdout once more as it ends, and would
        # complain then. Source: docs.python.org/3/library/signal.html, "Note on SIGPIPE".
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(PROGRAM, description="LLM requests to many providers through one format.")
    parser.add_argument("--version", action="version", version=f"{PROGRAM} {VERSION}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    for name, summary in COMMANDS.items():
        commands.add_parser(name, help=summary, description=summary[0].upper() + summary[1:] + ".")
    return parser
