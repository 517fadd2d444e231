"""Ten thousand texts embedded over sockets while the service throttles: every vector on its own text, and in bounds.

The client runs in a process of its own, on a clock whose waits take no time, so that its memory can be measured.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from lanes.lane_stage import aws_environment

from membrane_lite.loopback import Failure, LoopbackProvider, Received, Reply

ROOT = Path(__file__).resolve().parents[2]
MOST_GROWN_KB = 80 * 1024

CLIENT = """
import json, sys, threading
from membrane_lite import Clock
from membrane_lite.lanes import make_bedrock_client, make_embeddings
from membrane_lite.loopback.embeddings import vector

class Leaping(Clock):
    def __init__(self):
        self.slept, self._lock = 0.0, threading.Lock()
    def monotonic(self):
        return super().monotonic() + self.slept
    def sleep(self, seconds, signal=None):
        with self._lock:
            self.slept += seconds
        return signal is not None and signal.aborted

def memory_kb(field):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(field + ":"))

clock = Leaping()
service = make_embeddings(make_bedrock_client("us-east-1", clock=clock))
service.embed(["warm"] * 2)
texts = [f"text {number}" for number in range(int(sys.argv[1]))]
told = []
before = memory_kb("VmRSS")
found = service.embed(texts, on_progress=lambda done, total: told.append((done, total)))
grown = memory_kb("VmHWM") - before
wrong = [text for text, row in zip(texts, found) if row[:8].tolist() != vector(text, 8)]
widths = sorted({(row.typecode, len(row)) for row in found})
print(json.dumps({"count": len(found), "wrong": wrong, "widths": widths, "told": told, "grown_kb": grown,
                  "waited": clock.slept > 0, "threads": threading.active_count()}))
"""


class Throttling:
    """Refuses every twentieth request for its rate, and counts how many are being answered at once."""

    def __init__(self) -> None:
        self.throttled = 0
        self.most = 0
        self._answering = 0
        self._lock = threading.Lock()

    def __call__(self, received: Received) -> Any:
        with self._lock:
            self._answering += 1
            self.most = max(self.most, self._answering)
            refuse = received.number % 20 == 0
            self.throttled += refuse
        try:
            return Failure(429) if refuse else Reply()
        finally:
            with self._lock:
                self._answering -= 1


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
def test_embed_of_ten_thousand_texts_under_throttles() -> None:
    count, script = 10_000, Throttling()
    with LoopbackProvider(script, record=False) as server:
        env = {**os.environ, **aws_environment(server.url), "NO_PROXY": "*", "PYTHONPATH": str(ROOT)}
        done = subprocess.run(
            [sys.executable, "-c", CLIENT, str(count)], env=env, capture_output=True, text=True, timeout=120
        )
        assert done.stderr == ""
        connections = server.connections_made
        requests = server.request_count
    told = json.loads(done.stdout)
    batches = -(-count // 96)
    assert {name: told[name] for name in ("count", "wrong", "widths", "waited", "threads")} == {
        "count": count,
        "wrong": [],
        "widths": [["f", 1024]],
        "waited": True,
        "threads": 1,
    }
    assert told["told"] == [[done, batches] for done in range(1, batches + 1)]
    assert requests == 1 + batches + script.throttled
    assert script.throttled == requests // 20
    assert max(script.most, connections) <= 6
    assert told["grown_kb"] < MOST_GROWN_KB
