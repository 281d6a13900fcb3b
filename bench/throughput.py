"""Decisions and plans for the second, beside an earlier commit.

Run it with `python bench/throughput.py COMMIT`, or with `--turns 5` for a look. The
commit is checked out beside this tree. Each side decides on a demo ledger of its own,
in this process and over HTTP, and simulates a plan. The sides take turns, so that both
sides of a ratio are of the same moments; what counts is the median.
"""

from __future__ import annotations

import argparse
import http.client
import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path

from startup import Side, checked_out, sides

#: So many releases are decided in a turn.
BATCH = 40
_SIMULATE = ["-m", "modicum", "plan", "simulate", "--workload", "w2", "--rounds", "4"]
_SERVE = ["-m", "modicum", "serve", "--ledger", "acme/ledger.db", "--port", "0"]
_TOKEN = ["-m", "modicum", "token", "create", "--ledger", "acme/ledger.db"]
_WHO = ["--actor", "ann", "--role", "analyst=*"]
#: Decides a batch for each line that it reads; prints the CPU time of each.
_DECIDE = f"""
import sys, time
import modicum as mo
ledger = mo.open("acme/ledger.db")
number = 0
for _ in sys.stdin:
    began = time.process_time()
    for _ in range({BATCH}):
        number += 1
        one = mo.laplace(
            attributes=["clinic"], sensitivity={{"patient": mo.l1(1)}}, scale=10**7
        )
        release = mo.Release(f"local-{{number}}", audience="public", mechanisms=[one])
        assert ledger.submit(release).allowed
    print(time.process_time() - began, flush=True)
"""


@contextmanager
def deciding(side: Side) -> Iterator[Callable[[], float]]:
    """Yield what decides a batch in a process of its own, and returns its CPU time."""
    with subprocess.Popen(  # noqa: S603 - our own command
        side.command(["-c", _DECIDE]),
        cwd=side.demo,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        send, receive = process.stdin, process.stdout

        def batch() -> float:
            send.write("\n")
            send.flush()
            return float(receive.readline())

        yield batch
        send.close()


@contextmanager
def serving(side: Side) -> Iterator[Callable[[], float]]:
    """Yield what submits a batch to a server, and returns the median time of one."""
    token = side.run([*_TOKEN, *_WHO]).stdout.split()[-1]
    with subprocess.Popen(  # noqa: S603 - our own command
        side.command(_SERVE), cwd=side.demo, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if line.startswith("listening on "):
                break
        else:
            sys.exit(f"{side.name}: the server did not start")
        threading.Thread(target=process.stderr.read, daemon=True).start()
        port = int(line.rpartition(":")[2])
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
        headers = {"Authorization": f"Bearer {token}"}
        headers["Content-Type"] = "application/json"
        numbers = count()

        def once() -> float:
            mechanism = {"mechanism": "laplace", "attributes": ["clinic"]}
            mechanism |= {"scale": 10**7, "sensitivity": {"patient": {"l1": 1}}}
            release = {"release": f"served-{next(numbers)}", "audience": "public"}
            headers["Idempotency-Key"] = release["release"]
            body = json.dumps(release | {"mechanisms": [mechanism]})
            began = time.perf_counter()
            connection.request("POST", "/api/v1/releases", body, headers)
            answer = connection.getresponse()
            text = answer.read()
            lasted = time.perf_counter() - began
            if answer.status != 200:
                sys.exit(f"{side.name}: {text.decode()[:500]}")
            return lasted

        try:
            yield lambda: statistics.median(once() for _ in range(BATCH))
        finally:
            process.terminate()


def main() -> None:
    """Print the time of each kind of work on both sides, and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("commit", help="the commit to compare with")
    parser.add_argument("--turns", type=int, default=15)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        place = Path(folder)
        before = stack.enter_context(checked_out(place, given.commit))
        both = sides(place, before)
        work: dict[str, Sequence[Callable[[], float]]] = {
            f"{BATCH} submits in a process, s of CPU": [
                stack.enter_context(deciding(side)) for side in both
            ],
            "a submit over HTTP, s": [
                stack.enter_context(serving(side)) for side in both
            ],
            "plan simulate, s of CPU": [
                lambda side=side: side.seconds(_SIMULATE)  # type: ignore[misc]
                for side in both
            ],
        }
        print("| work | before | now | ratio |\n|---|--:|--:|--:|")
        for name, ways in work.items():
            times: tuple[list[float], ...] = ([], [])
            for turn in range(given.turns + 1):
                for number in (0, 1) if turn % 2 else (1, 0):
                    spent = ways[number]()
                    if turn:  # The first turn fills caches.
                        times[number].append(spent)
            one, other = map(statistics.median, times)
            print(f"| {name} | {one:.4f} | {other:.4f} | {other / one:.3f} |")


if __name__ == "__main__":
    main()
