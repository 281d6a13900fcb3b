"""Look for bytes that crash or hang the policy compiler, guided by coverage.

    pip install atheris
    python tools/fuzz_policy.py -max_total_time=600 -timeout=20 [CORPUS_FOLDER]

Every input must give a policy or a coded error. The options are libFuzzer's; an input
that crashes, or takes longer than `-timeout` seconds, is written to the current folder.
"""

from __future__ import annotations

import sys

import atheris

with atheris.instrument_imports(include=["modicum"]):
    from modicum.core.errors import Code, InputError
    from modicum.policy.compiler import compile_text


def try_bytes(data: bytes) -> None:
    """Compile what may be anything; only a coded error may come back."""
    try:
        compiled = compile_text(data, "policy.yaml")
        compiled.refuse_mistakes()
        _ = compiled.warnings
        _ = compiled.pruned.witness
    except InputError as error:
        for problem in error.problems:
            if problem.code is Code.INTERNAL or not problem.render():
                raise


def main() -> None:
    """Fuzz until the time given on the command line is over."""
    atheris.Setup(sys.argv, try_bytes)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
