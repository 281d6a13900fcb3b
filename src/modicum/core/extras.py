"""Libraries of extras, and the error that names what to install."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from shlex import quote
from typing import Final

from modicum.core.errors import Code, Problem, UsageError

#: By library, the extra to name where it is missing; others may include it, too. An
#: extra with the name of its library needs no line here.
EXTRAS: Final[Mapping[str, str]] = {
    "anyio": "server",
    "authlib": "server",
    "boto3": "s3",
    "dp_accounting": "pld",
    "duckdb": "query",
    "fastapi": "server",
    "httptools": "server",
    "highspy": "plan",
    "httpx2": "remote",
    "jinja2": "server",
    "joserfc": "server",
    "markupsafe": "server",
    "numba": "fast",
    "opendp": "query",
    "opentelemetry": "server",
    "prometheus_client": "server",
    "psycopg": "postgres",
    "pyarrow": "query",
    "pyseccomp": "escrow",
    "pyspark": "spark",
    "sklearn": "escrow",
    "sqlglot": "query",
    "starlette": "server",
    "uvicorn": "server",
    "wasmtime": "escrow",
}


def not_installed(library: str, package: str) -> Problem:
    """Return the problem of a library that is missing.

    Args:
        library: The library's name.
        package: What to install, as pip takes it: an extra such as `modicum[query]`, or
            a package beside modicum.
    """
    return Problem(
        Code.NOT_SUPPORTED,
        f"{library} is not installed",
        help=f"pip install {quote(package)}",
    )


def extra_of(library: str) -> str:
    """Return the extra of a library; empty if there is none."""
    if library in EXTRAS:
        return EXTRAS[library]
    from importlib.metadata import metadata

    own = metadata("modicum").get_all("Provides-Extra") or ()
    return library if library in own else ""


@contextmanager
def needing_extras() -> Iterator[None]:
    """Name the extra to install where an import inside fails for want of it.

    Raises:
        UsageError: If a library of an extra is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        library = (error.name or "").partition(".")[0]
        extra = extra_of(library)
        if not extra:
            raise
        package = f"modicum[{extra}]"
        raise UsageError(not_installed(f"`{library}`", package)) from None
