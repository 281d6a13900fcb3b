"""`/doctor`: whether the server and its ledger are in order."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from modicum.api import operations
from modicum.api.schema.health import CheckResult, Diagnosis
from modicum.ops.doctor.findings import Finding, Status
from modicum.server.auth.authentication import Who
from modicum.server.components import Verbs
from modicum.server.responses import json_response
from modicum.server.routes.openapi_parts import serve

router = APIRouter(tags=["ledger"])


@serve(router, operations.DOCTOR)
async def doctor(who: Who, verbs: Verbs) -> Response:
    """Return what `modicum doctor` finds here, as facts without names and paths.

    Messages and remedies are only where the server is: they may name files.
    """
    found = await verbs.diagnoses.diagnosis(who)
    failed = found.count(Status.FAIL)
    return json_response(
        Diagnosis(
            ok=not failed,
            failed=failed,
            warned=found.count(Status.WARN),
            checks=tuple(map(_result, found.findings)),
        )
    )


def _result(one: Finding) -> CheckResult:
    facts: dict[str, Any] = dict(one.facts)
    return CheckResult(check=one.check, status=one.status.value, facts=facts)
