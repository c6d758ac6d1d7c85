"""views: answers the questions of Airflow's page, one line of JSON each, until they end."""

from __future__ import annotations

import json
import select
import sys
import time
from typing import Any

from strandline.cli.groups import Places
from strandline.errors import StrandlineError, UnexpectedError, storage_error

IDLE_S = 300.0
"""The seconds without a question after which the process ends: it takes some hundred megabytes."""


def views(*, at: Places) -> None:
    """Answer the questions on stdin: `{"view": …, "pipeline": …, "asked": {…}}`, a line each.

    An answer is a line, too: `{"found": …}`, or `{"error": {…}}` with the exit code that the
    command for it would have. It ends with stdin, or once nobody has asked for five minutes.
    """
    while select.select([sys.stdin], [], [], IDLE_S)[0]:
        line = sys.stdin.readline()
        if not line:
            return
        answer = json.dumps(_answered(json.loads(line), at), default=str)
        sys.stdout.write(f"{answer}\n")
        sys.stdout.flush()


def _answered(question: dict[str, Any], at: Places) -> dict[str, Any]:
    from strandline.pipeline.views.answers import answer  # noqa: PLC0415

    pipeline = question["pipeline"]
    try:
        spec, now_ms = at.spec(pipeline), int(time.time() * 1000)
        return {"found": answer(question["view"], spec, at.root, question["asked"], now_ms)}
    except StrandlineError as error:
        return {"error": _as_json(error)}
    except (SystemExit, KeyboardInterrupt):
        raise
    except BaseException as error:  # noqa: BLE001 - a panic of Rust, too, over a broken table
        known = storage_error(pipeline, error) or UnexpectedError.of(pipeline, error)
        return {"error": _as_json(known)}


def _as_json(error: StrandlineError) -> dict[str, Any]:
    kind, exit_code = type(error).__name__, error.exit_code
    return {"kind": kind, "message": str(error), "exit_code": exit_code}
