"""Attempts to reach somebody over a network, or another process over a socket."""

from __future__ import annotations

from samples.escapes.attempt import WORKS_AS_ROOT, Attempt

NETWORK = (
    Attempt(
        "tcp-connect",
        """
def attempt(given):
    socket.create_connection(("127.0.0.1", given["tcp"]), 1).sendall(b"secret")
    return True
""",
    ),
    Attempt(
        "udp-send",
        """
def attempt(given):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as to:
        return to.sendto(b"secret", ("127.0.0.1", given["udp"])) > 0
""",
    ),
    Attempt(
        "dns-lookup",
        """
def attempt(given):
    return bool(socket.getaddrinfo("localhost", 80))
""",
    ),
    Attempt(
        "unix-abstract-socket",
        """
def attempt(given):
    with socket.socket(socket.AF_UNIX) as to:
        to.connect("\\0" + given["abstract"])
        to.sendall(b"secret")
    return True
""",
    ),
    Attempt(
        "unix-path-socket",
        """
def attempt(given):
    with socket.socket(socket.AF_UNIX) as to:
        to.connect(given["folder"] + "/socket")
        to.sendall(b"secret")
    return True
""",
    ),
    Attempt(
        "netlink-socket",
        """
def attempt(given):
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as to:
        to.bind((0, 0))
    return True
""",
    ),
    Attempt(
        "raw-socket",
        """
def attempt(given):
    socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP).close()
    return True
""",
        WORKS_AS_ROOT,
    ),
    Attempt(
        "packet-socket",
        """
def attempt(given):
    socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 3).close()
    return True
""",
        WORKS_AS_ROOT,
    ),
    Attempt(
        "listening-socket",
        """
def attempt(given):
    with socket.create_server(("127.0.0.1", 0)):
        return True
""",
    ),
    Attempt(
        "socket-pair",
        """
def attempt(given):
    one, other = socket.socketpair()
    one.sendall(b"x")
    return other.recv(1) == b"x"
""",
    ),
)
