"""The shape of the house: which room may know of which, who may touch the world, and that the folder can be moved.

The rules are read off the source with `ast`, so they hold for code that no test runs. A rule that is broken is told as
a list of "file:line: what is wrong", compared with the empty list.
"""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple, Union
from zipfile import ZipFile

import pytest

import membrane_lite

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "membrane_lite"

# A room imports only from rooms that stand before it. Some are not built yet; their places are kept.
LADDER = [
    "errors",
    "redactor",
    "version",
    "values",
    "wire",
    "schema",
    "function_tools",
    "error_table",
    "retry",
    "progress_bounds",
    "price_table",
    "pricing",
    "clock",
    "abort",
    "call",
    "transport",
    "credentials",
    "keepalive",
    "resumption",
    "formatters",
    "providers",
    "fallback",
    "budget",
    "attempts",
    "outcome",
    "turn",
    "membrane",
    "lanes",
    "trace",
    "cli",
]
BESIDE_THE_LADDER = "loopback"  # imports nothing of ours; anyone on the ladder's last step may import it

PURE = {
    "errors",
    "redactor",
    "values",
    "wire",
    "schema",
    "error_table",
    "retry",
    "progress_bounds",
    "price_table",
    "pricing",
    "call",
    "resumption",
    "formatters",
    "providers",
    "outcome",
}
WORLD = {"time", "random", "socket", "threading"}

LONGEST_FUNCTION = 40
LONGEST_MEDIAN = 10
FEWEST_FUNCTIONS_WITH_A_MEDIAN = 5
NAMES_THAT_SAY_NOTHING = {"utils", "util", "helpers", "helper", "common", "misc"}

Function = Union[ast.FunctionDef, ast.AsyncFunctionDef]


class Module(NamedTuple):
    """name: its dotted name below the package, as a tuple; a package's own ends in "__init__"."""

    name: tuple[str, ...]
    path: Path
    tree: ast.Module

    @property
    def room(self) -> str:
        return self.name[0]

    def at(self, node: ast.AST) -> str:
        return f"{self.path.relative_to(ROOT).as_posix()}:{getattr(node, 'lineno', 0)}"


class Import(NamedTuple):
    """target: dotted name below the package as a tuple; or, where absolute, the top name of another package."""

    module: Module
    node: ast.stmt
    target: tuple[str, ...]
    relative: bool
    for_types: bool


def read(path: Path) -> Module:
    name = path.relative_to(PACKAGE).with_suffix("").parts
    return Module(name, path, ast.parse(path.read_text(encoding="utf-8")))


MODULES = [read(path) for path in sorted(PACKAGE.rglob("*.py"))]
FRONT_DOOR = next(module for module in MODULES if module.name == ("__init__",))


def type_blocks(tree: ast.AST) -> Iterator[ast.If]:
    """`if TYPE_CHECKING:`; what stands in one is never run, so it makes no circle and loads nothing."""
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            yield node


def imports_of(module: Module) -> Iterator[Import]:
    for_types = {id(node) for block in type_blocks(module.tree) for node in ast.walk(block)}
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(module, node, (alias.name.split(".")[0],), False, id(node) in for_types)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield Import(module, node, (str(node.module).split(".")[0],), False, id(node) in for_types)
        elif isinstance(node, ast.ImportFrom):
            base = module.name[: -node.level]
            for name in [node.module] if node.module else [alias.name for alias in node.names]:
                yield Import(module, node, (*base, *name.split(".")), True, id(node) in for_types)


IMPORTS = [found for module in MODULES for found in imports_of(module)]
RUN_TIME = [found for found in IMPORTS if not found.for_types]


def functions_of(module: Module) -> list[Function]:
    return [node for node in ast.walk(module.tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]


def lines_of(function: Function) -> int:
    """From the first statement to the last: signature and docstring, which are there to be looked up, do not count."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


# Rooms


def test_every_room_stands_on_the_ladder() -> None:
    assert {module.room for module in MODULES} - {"__init__", BESIDE_THE_LADDER, *LADDER} == set()


def test_a_room_imports_only_from_rooms_above_it() -> None:
    wrong = [
        f"{found.module.at(found.node)}: {found.module.room} imports {'.'.join(found.target)}"
        for found in RUN_TIME
        if found.relative and found.module.room in LADDER and found.target[0] != found.module.room
        if found.target[0] not in [*LADDER[: LADDER.index(found.module.room)], BESIDE_THE_LADDER]
    ]
    assert wrong == []


def test_only_the_last_room_knows_of_the_loopback_provider() -> None:
    users = {found.module.room for found in IMPORTS if found.relative and found.target[:1] == (BESIDE_THE_LADDER,)} - {
        BESIDE_THE_LADDER
    }
    assert users == {LADDER[-1]}


def test_the_loopback_provider_imports_nothing_of_the_rest_but_a_transport_on_demand() -> None:
    outside = [
        (found.module.name, found.target, found.node in found.module.tree.body)
        for found in RUN_TIME
        if found.relative and found.module.room == BESIDE_THE_LADDER and found.target[0] != BESIDE_THE_LADDER
    ]
    assert outside == [(("loopback", "provider"), ("transport", "pool"), False)]


def test_all_imports_within_the_package_are_relative_and_stay_in_it() -> None:
    wrong = [
        found.module.at(found.node)
        for found in IMPORTS
        if (not found.relative and found.target[0] == PACKAGE.name)
        or (isinstance(found.node, ast.ImportFrom) and found.node.level > len(found.module.name))
    ]
    assert wrong == []


# The edge


def importers(*names: str) -> set[str]:
    return {".".join(found.module.name) for found in IMPORTS if not found.relative and found.target[0] in names}


def test_one_module_imports_urllib3() -> None:
    assert importers("urllib3") == {"transport.connection"}


def test_one_module_reads_time_and_dice() -> None:
    assert importers("time", "random") == {"clock"}


def test_pure_rooms_import_nothing_of_the_world() -> None:
    wrong = [
        f"{found.module.at(found.node)}: {found.target[0]}"
        for found in RUN_TIME
        if found.module.room in PURE and not found.relative and found.target[0] in WORLD
    ]
    assert wrong == []


def test_everything_imported_is_the_standard_library_or_urllib3() -> None:
    known = getattr(sys, "stdlib_module_names", None)
    if known is None:
        pytest.skip("sys.stdlib_module_names is there from Python 3.10 on")
    assert {found.target[0] for found in IMPORTS if not found.relative} - set(known) == {"urllib3"}


# Values


def made_here(function: Function, module: Module) -> set[str]:
    """Names that hold what another library has just made, and nothing else: `context = ssl.SSLContext(...)`."""
    theirs = {alias.name for node in module.tree.body if isinstance(node, ast.Import) for alias in node.names}
    makers: dict[str, set[str]] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            makers.setdefault(node.targets[0].id, set()).update(map(maker, alternatives(node.value)))
    return {name for name, found in makers.items() if found <= theirs}


def alternatives(value: ast.expr) -> list[ast.expr]:
    return [*alternatives(value.body), *alternatives(value.orelse)] if isinstance(value, ast.IfExp) else [value]


def maker(value: ast.expr) -> str:
    """The "ssl" of `ssl.SSLContext(...)`; "" of anything else."""
    called = value.func if isinstance(value, ast.Call) else None
    return called.value.id if isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name) else ""


def test_nobody_assigns_to_an_attribute_of_something_else() -> None:
    """Only to those of `self`. What another library has just made may be set up: some of it takes only assignments."""
    allowed = {
        id(node)
        for module in MODULES
        for function in functions_of(module)
        for node in ast.walk(function)
        if isinstance(node, ast.Attribute)
        if isinstance(node.value, ast.Name) and node.value.id in {"self"} | made_here(function, module)
    }
    wrong = [
        f"{module.at(node)}: {ast.unparse(node)}"
        for module in MODULES
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, (ast.Store, ast.Del)) and id(node) not in allowed
    ]
    assert wrong == []


# Form


def test_a_file_opens_with_its_docstring_and_then_with_annotations() -> None:
    wrong = [
        str(module.path.relative_to(ROOT))
        for module in MODULES
        if ast.get_docstring(module.tree) is None
        or [ast.unparse(node) for node in module.tree.body[1:2]] not in ([], ["from __future__ import annotations"])
    ]
    assert wrong == []


def test_a_module_is_named_after_a_thing() -> None:
    assert [module.name for module in MODULES if NAMES_THAT_SAY_NOTHING & set(module.name)] == []


def test_no_function_is_longer_than_a_screen() -> None:
    wrong = [
        f"{module.at(function)}: {function.name} has {lines_of(function)} lines"
        for module in MODULES
        for function in functions_of(module)
        if lines_of(function) > LONGEST_FUNCTION
    ]
    assert wrong == []


def test_most_functions_are_short() -> None:
    lengths = {module.at(module.tree): [*map(lines_of, functions_of(module))] for module in MODULES}
    wrong = {
        where: median(lines)
        for where, lines in lengths.items()
        if len(lines) >= FEWEST_FUNCTIONS_WITH_A_MEDIAN and median(lines) > LONGEST_MEDIAN
    }
    assert wrong == {}


# The front door


def python(code: str, *options: str, cwd: Path = ROOT, **environment: str) -> Any:
    """What a fresh interpreter prints, as JSON. `cwd` comes first where it looks for modules."""
    done = subprocess.run(
        [sys.executable, *options, "-c", code],
        env={**os.environ, **environment},
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stderr == ""
    return json.loads(done.stdout)


LOADS = """
import sys
sys.path.insert(0, {root!r})
before = set(sys.modules)
{code}
loaded = sorted(set(sys.modules) - before)
import json
print(json.dumps(loaded))
"""


def loaded_by(code: str) -> list[str]:
    """The modules that `code` loads. -I and -S: whatever an installation would have loaded before it is not."""
    return list(python(LOADS.format(root=str(ROOT), code=code), "-I", "-S"))


def test_importing_the_package_loads_nothing_else() -> None:
    assert loaded_by("import membrane_lite") == ["__future__", "membrane_lite"]


NETWORK = {"urllib3", "ssl", "http", "asyncio", "_ssl"}


def test_making_a_client_loads_no_network_code() -> None:
    loaded = loaded_by("import membrane_lite as m; m.Membrane(m.AnthropicAdapter(api_key='any-key-at-all'))")
    assert {name.partition(".")[0] for name in loaded} & NETWORK == set()
    assert "membrane_lite.transport.pool" not in loaded


def test_one_provider_loads_no_other() -> None:
    loaded = loaded_by("from membrane_lite import MockAdapter")
    assert [name for name in loaded if name.startswith("membrane_lite.providers.")] == ["membrane_lite.providers.mock"]


def test_the_loopback_provider_is_loaded_by_itself() -> None:
    loaded = loaded_by("import membrane_lite.loopback")
    ours = {name for name in loaded if name.startswith("membrane_lite")}
    assert {name for name in ours if not name.startswith("membrane_lite.loopback")} == {"membrane_lite"}


def exported() -> dict[str, str]:
    """What checkers see: `from .abort import AbortController as AbortController` -> {"AbortController": "abort"}."""
    (block,) = type_blocks(FRONT_DOOR.tree)
    statements = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    assert len(statements) == len(block.body)
    assert all(alias.asname == alias.name for node in statements for alias in node.names)
    return {alias.name: str(node.module) for node in statements for alias in node.names}


def test_checkers_and_the_interpreter_see_the_same_names() -> None:
    homes: dict[str, str] = vars(membrane_lite)["_HOMES"]
    assert exported() == homes
    assert list(homes) == sorted(homes) == membrane_lite.__all__


@pytest.mark.parametrize("name", sorted(exported()))
def test_a_public_name_is_that_of_its_home(name: str) -> None:
    home = import_module("." + exported()[name], "membrane_lite")
    assert getattr(membrane_lite, name) is getattr(home, name)
    assert name in dir(membrane_lite)


def test_another_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'membrane_lite' has no attribute 'Membrain'"):
        membrane_lite.Membrain  # type: ignore[attr-defined]  # noqa: B018


# The folder moved

CALL = """
import json, logging, sys
from importlib import import_module

class Heard(logging.Handler):
    def emit(self, record):
        heard.append([record.name, record.getMessage()])

heard = []
logging.getLogger().addHandler(Heard())
package = import_module({package!r})
loopback = import_module({package!r} + ".loopback")
answers = [loopback.Reply("Hello from afar.", stop_reason="odd_word")]
with loopback.LoopbackProvider(answers) as provider, provider.transport() as transport:
    adapter = package.AnthropicAdapter(api_key="any-key-at-all", base_url=provider.url, transport=transport)
    response = package.Membrane(adapter).complete(
        {{"messages": [{{"participant": "User", "content": "Hi"}}], "config": {{"model": "m", "max_tokens": 9}}}}
    )
    agent = provider.requests[0].header("User-Agent")
print(json.dumps({{
    "text": response.text,
    "agent": agent.partition("/")[0],
    "heard": heard,
    "file": package.__file__,
    "others": [name for name in sys.modules if name.partition(".")[0] == "membrane_lite" != {package!r}],
}}))
"""

WARNING = "anthropic stopped for 'odd_word', which is no known reason"


def test_a_copy_under_another_name_works_and_names_itself(tmp_path: Path) -> None:
    target = tmp_path / "vendored" / "llm_client"
    shutil.copytree(PACKAGE, target, ignore=shutil.ignore_patterns("__pycache__"))
    (target.parent / "__init__.py").touch()
    told = python(CALL.format(package="vendored.llm_client"), cwd=tmp_path)
    assert told == {
        "text": "Hello from afar.",
        "agent": "llm-client",
        "heard": [["vendored.llm_client", WARNING]],
        "file": str(target / "__init__.py"),
        "others": [],
    }


def test_it_works_from_a_zip(tmp_path: Path) -> None:
    archive = tmp_path / "membrane_lite.zip"
    with ZipFile(archive, "w") as written:
        for module in MODULES:
            written.write(module.path, module.path.relative_to(ROOT))
    told = python(CALL.format(package="membrane_lite"), cwd=tmp_path, PYTHONPATH=str(archive))
    assert told == {
        "text": "Hello from afar.",
        "agent": "membrane-lite",
        "heard": [["membrane_lite", WARNING]],
        "file": str(archive / "membrane_lite" / "__init__.py"),
        "others": [],
    }
