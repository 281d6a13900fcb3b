"""What things are called in the vault; it follows from what the ledger says of them."""

from __future__ import annotations

from modicum.ledger.log.contracts import Version


def of_data(version: Version) -> str:
    """Return what a version of a data set is called.

    Args:
        version: The version.
    """
    return f"data/{version.id}/{version.number}"


def of_result(contract: str, run: int, name: str) -> str:
    """Return what a result of a run is called.

    Args:
        contract: The digest of its contract.
        run: The number of the run.
        name: Which result.
    """
    return f"result/{contract}/{run}/{name}"


def of_code(code: str) -> str:
    """Return what the code of a program is called.

    Args:
        code: Its SHA-256.
    """
    return f"code/{code}"
