"""Attempts to tell more than a score, or to tell it another way."""

from __future__ import annotations

from samples.escapes.attempt import Attempt

_READ_HERE = "what comes out is what the test reads"

# Where the answer goes, and what must be written there for a number.
_ANSWER = """
ANSWER = 3

def record(number):
    (bits,) = struct.unpack("=Q", struct.pack("=d", number))
    return struct.pack("=Q", bits + 1)
"""

ANSWERS = (
    Attempt(
        "environment-secret",
        """
def attempt(given):
    return float(os.environ["MODICUM_SECRET"])
""",
    ),
    Attempt(
        "environment-preload",
        """
def attempt(given):
    return "MODICUM_PRELOAD" in os.environ
""",
    ),
    Attempt(
        "inherited-handle",
        """
def attempt(given):
    for handle in range(3, 256):
        try:
            content = os.pread(handle, 99, 0)
        except OSError:
            continue
        if content.startswith(b"0.8125"):
            return True
""",
    ),
    Attempt(
        "arguments-of-the-first-program",
        """
def attempt(given):
    return any("filter" in one or "uid" in one for one in sys.argv)
""",
        _READ_HERE,
    ),
    Attempt(
        "huge-answer",
        _ANSWER
        + """
def attempt(given):
    os.write(ANSWER, b"S" * 60000)
    return 0.5
""",
        _READ_HERE,
        (0.0,),  # The first eight bytes and the record, added up: below zero.
    ),
    Attempt(
        "two-records",
        _ANSWER
        + """
def attempt(given):
    os.write(ANSWER, record(0.25))
    return 0.5
""",
        _READ_HERE,
        (1.0,),  # Their sum, which is large: one number all the same.
    ),
    Attempt(
        "half-a-record",
        _ANSWER
        + """
def attempt(given):
    try:
        os.write(ANSWER, record(0.25)[:4])
    finally:
        os._exit(0)
""",
        _READ_HERE,
        (None,),
    ),
    Attempt(
        "more-than-can-be-counted",
        _ANSWER
        + """
def attempt(given):
    os.write(ANSWER, record(0.25))
    os.write(ANSWER, struct.pack("=Q", 2**64 - 2))
    os.write(ANSWER, struct.pack("=Q", 2**64 - 1))
""",
        _READ_HERE,
        (0.25,),  # What was written, and 0.0, which tells of the failure.
    ),
    Attempt(
        "answer-that-is-waited-for",
        _ANSWER
        + """
def attempt(given):
    import fcntl
    flags = fcntl.fcntl(ANSWER, fcntl.F_GETFL)
    fcntl.fcntl(ANSWER, fcntl.F_SETFL, flags & ~os.O_NONBLOCK)
    return True
""",
        _READ_HERE,
    ),
    Attempt(
        "closed-answer-and-other-handles",
        _ANSWER
        + """
def attempt(given):
    os.close(ANSWER)
    for handle in (0, 1, 2):
        os.write(handle, record(0.25))
    return 0.5
""",
        _READ_HERE,
        (None,),
    ),
    Attempt(
        "not-a-number",
        """
def attempt(given):
    return float("nan")
""",
        _READ_HERE,
        (None,),
    ),
    Attempt(
        "infinity",
        """
def attempt(given):
    return -float("inf")
""",
        _READ_HERE,
        (None,),
    ),
    Attempt(
        "text",
        """
def attempt(given):
    return "1.0"
""",
        _READ_HERE,
        (None,),
    ),
    Attempt(
        "nested-json",
        """
def attempt(given):
    return {"score": [1.0, {"secret": 0.8125}]}
""",
        _READ_HERE,
        (None,),
    ),
    Attempt(
        "whole-number-without-end",
        """
def attempt(given):
    return 10**4000
""",
        _READ_HERE,
        (None,),
    ),
    Attempt(
        "number-that-lies",
        """
class Lies(float):
    def __float__(self):
        return "0.8125"

def attempt(given):
    return Lies(0.5)
""",
        _READ_HERE,
        (None, 0.5),
    ),
    Attempt(
        "negative-zero",
        """
def attempt(given):
    return -0.0
""",
        _READ_HERE,
        (0.0,),
    ),
    Attempt(
        "smallest-number",
        """
def attempt(given):
    return 5e-324
""",
        _READ_HERE,
        (0.0,),
    ),
    Attempt(
        "outside-of-the-range",
        """
def attempt(given):
    return -1e308
""",
        _READ_HERE,
        (0.0,),
    ),
    Attempt(
        "last-bits",
        """
def attempt(given):
    return 0.5 + 0x2A5C3 * 2.0**-51
""",
        _READ_HERE,
        (0.5,),
    ),
    Attempt(
        "standard-output",
        """
def attempt(given):
    print("MODICUM-LEAK")
    os.write(1, b"MODICUM-LEAK")
    return 0.0
""",
        _READ_HERE,
        (0.0,),
    ),
    Attempt(
        "standard-error",
        """
def attempt(given):
    os.write(2, b"MODICUM-LEAK")
    raise SystemExit("MODICUM-LEAK")
""",
        _READ_HERE,
        (None,),
    ),
    Attempt(
        "exit-status",
        """
def attempt(given):
    os._exit(77)
""",
        _READ_HERE,
        (None,),
    ),
    Attempt(
        "death-by-signal",
        """
def attempt(given):
    ctypes.string_at(0)
""",
        _READ_HERE,
        (None,),
    ),
    Attempt(
        "early-end",
        """
def attempt(given):
    return 0.0
""",
        _READ_HERE,
        (0.0,),
    ),
    Attempt(
        "late-end",
        """
def attempt(given):
    time.sleep(1)
    return 0.0
""",
        _READ_HERE,
        (0.0,),
    ),
    Attempt(
        "much-memory",
        """
def attempt(given):
    kept = bytearray(2**27)
    kept[::4096] = b"x" * len(kept[::4096])
    return 0.0
""",
        _READ_HERE,
        (0.0,),
    ),
    Attempt(
        "clock-of-the-machine",
        """
def attempt(given):
    time.clock_settime(time.CLOCK_REALTIME, time.time())
    return True
""",
        "it would set the clock",
    ),
)
