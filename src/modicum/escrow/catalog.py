"""The catalogue: which text each task and evaluation runs, held by its digest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from modicum.core.canonical import digest
from modicum.core.errors import Code, Problem, VerificationError
from modicum.escrow.evaluations import CORRELATION, SHARE
from modicum.escrow.programs import Program, Range


@dataclass(frozen=True, slots=True)
class Entry:
    """A text of the catalogue.

    Attributes:
        name: Its name and version, as `NAME@VERSION`; every change has a new version.
        range: The range of its scores.
        digest: SHA-256 of the text.
    """

    name: str
    range: Range
    digest: str

    @property
    def file(self) -> str:
        """The name of the file with the text."""
        return self.name.replace("@", "_") + ".py"


#: Every text by its name and version. Published texts are never removed.
CATALOGUE: Final[Mapping[str, Entry]] = MappingProxyType(
    {
        name: Entry(name, range_, held)
        for name, range_, held in (
            (
                "accuracy@1",
                SHARE,
                "bf1a366bea83f51beca158b7a5a37b205eaf5db239848e44f50f1c84edcdb13f",
            ),
            (
                "balanced_accuracy@1",
                SHARE,
                "4ebf1685181868366ff7ae7351a762ff8bea606853af9f1c1e620c558bbaddb9",
            ),
            (
                "transfer_accuracy@1",
                SHARE,
                "892806b2daee92a2a14f8fb60277fcbe6db5314598f219d9759932fb2c49dd8c",
            ),
            (
                "r2@1",
                CORRELATION,
                "996eafc7bbc38c502de1e0767ddefd0f670aae9f2fb4b8715ba65ab864d01f36",
            ),
            (
                "rank_correlation@1",
                CORRELATION,
                "98e51a04657684f73e48f97a2f8b047f431e32df89bd8bb1add09b5cf40602e9",
            ),
            (
                "relative_error@1",
                SHARE,
                "0013302014fc7f21eab9acf64e0fc587f265ac322a4f1966c807fc31c56f928b",
            ),
            (
                "top_k_overlap@1",
                SHARE,
                "a0e13a3b5d2ed0ec17d886b9349e9443544d6112521f8f49e3836a877a68f296",
            ),
            (
                "chi_square@1",
                SHARE,
                "4e54d22112f9958a6e22b206d1bbfa9aa964b8702fb931bf9563fe5d53a29851",
            ),
        )
    }
)
#: By the name of an evaluation, the version that it runs now.
CURRENT: Final[Mapping[str, Entry]] = MappingProxyType(
    {name.partition("@")[0]: entry for name, entry in CATALOGUE.items()}
)


def text_of(entry: Entry, texts: Mapping[str, bytes]) -> bytes:
    """Return the text of an entry.

    Args:
        entry: The entry.
        texts: Texts by name and version, as they are installed.

    Raises:
        VerificationError: If it is missing, or differs from the reviewed text.
    """
    found = texts.get(entry.name)
    if found is None or digest(found) != entry.digest:
        what = "is missing" if found is None else "is not the vetted one"
        raise VerificationError(
            Problem(
                Code.NOT_THE_CATALOGUE,
                f"the text of `{entry.name}` {what}",
                help="reinstall modicum",
            )
        )
    return found


def vetted(program: Program) -> bool:
    """Return whether a program runs a text of the catalogue, in its range.

    Its arguments are the analyst's all the same.

    Args:
        program: The program; its own claim does not count.

    Raises:
        VerificationError: If it falsely claims to be a text of the catalogue.
    """
    if not program.catalogue:
        return False
    entry = CATALOGUE.get(program.catalogue)
    same = (
        entry is not None
        and program.language == "python"
        and digest(program.code) == entry.digest
        and program.range == entry.range
    )
    if not same:
        raise VerificationError(
            Problem(
                Code.NOT_THE_CATALOGUE,
                f"a program claims to be `{program.catalogue}`, but differs from it",
                help="submit it as custom code, with an empty `catalogue`",
            )
        )
    return True
