"""Proposed contracts and their programs: from the catalogue, or as code."""

from __future__ import annotations

import base64
import binascii
from typing import cast

from msgspec.structs import replace

from modicum.api.schema.escrow_input import (
    ContractInput,
    ContractProposal,
    ProgramInput,
    TaskProposal,
)
from modicum.core.diagnostics import fail, placed
from modicum.core.document import Node
from modicum.core.errors import Code
from modicum.core.fields import Fields
from modicum.escrow.programs import Program, Range
from modicum.escrow.task_files import TaskFile, read_task_file
from modicum.server.inputs.reader import read_input


def read_contract(node: Node) -> ContractProposal:
    """Return the proposed contract; the program of a task is read, too."""
    sent = read_input(node, cast("type[ContractProposal]", ContractInput))
    if not isinstance(sent, TaskProposal):
        return sent
    return replace(sent, program=read_program(cast(Node, sent.program)))


def read_program(node: Node) -> Program | TaskFile:
    """Return the program, or the task file of the catalogue."""
    fields = Fields(node, "`program`")
    if "task" in fields or "evaluate" in fields:
        return read_task_file(node)
    sent = read_input(node, ProgramInput, "`program`")
    try:
        code = base64.b64decode(sent.code_base64 or "", validate=True)
    except (binascii.Error, ValueError):
        raise fail(Code.NOT_TEXT, "`code_base64` is not base64", node) from None
    if isinstance(sent.code, str):
        code = sent.code.encode("utf-8", "surrogatepass")
    with placed(node):
        return Program(
            sent.language,
            code,
            sent.arguments,
            Range(*sent.range),
            sent.compares,
            sent.catalogue,
        )
