"""The target of a problem's `type`: the error codes. They are public."""

from __future__ import annotations

from html import escape

from fastapi import APIRouter
from starlette.responses import HTMLResponse, Response

from modicum.api.local.views.problem_details import PAGE
from modicum.core.errors import Code

router = APIRouter(include_in_schema=False)


@router.get(PAGE)
async def error_codes() -> Response:
    """List the codes, each where the `type` of an answer points to."""
    return HTMLResponse(_page())


def _page() -> str:
    codes = "\n".join(
        f'<dt id="{one.value}">{one.value}</dt><dd>{escape(_words(one))}</dd>'
        for one in Code
    )
    return f"""\
<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>modicum: errors</title></head>
<body>
<h1>Errors</h1>
<p>A response has the problem (<code>detail</code>) and the remedy
(<code>help</code>). The page on errors in the reference of modicum has causes and
remedies for each code.</p>
<dl>
{codes}
</dl>
</body>
</html>
"""


def _words(code: Code) -> str:
    """Return the name of a code, as text."""
    return code.name.lower().replace("_", " ")
