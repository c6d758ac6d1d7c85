"""Pages as HTML: values are escaped, and the policy lets a page load and run nothing."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from fastapi import Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment
from markupsafe import Markup

from strandline.model.intervals import DAY_MS, day_of, text_of
from strandline.quality import progress
from strandline.quality.figures import NOTHING, duration, share_so_far
from strandline.quality.templates import templates_of
from strandline.visible import number_of

_CSS = Path(__file__).parent / "templates" / "page.css"
PLAIN = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
"""The content security policy of a document without style, script, image or frame."""


def page(request: Request, template: str, *, status: int = 200, **values: Any) -> HTMLResponse:
    """The response with a rendered page.

    Args:
        request: the request that it answers.
        template: the template's file name.
        status: the HTTP status.
        values: the template's variables.
    """
    css, policy = _style()
    at = datetime.now(UTC).isoformat(" ", "seconds").removesuffix("+00:00")
    html = (
        _environment()
        .get_template(template)
        .render(css=css, link=_Links(request.scope.get("root_path", "")), read_at=at, **values)
    )
    return HTMLResponse(html, status_code=status, headers=headers(policy))


def headers(policy: str) -> dict[str, str]:
    """The headers of every response: its policy, no caching, no guessing of content types."""
    return {
        "Content-Security-Policy": policy,
        "Cache-Control": "no-store",
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "same-origin",
    }


class _Links:
    """The URLs of the pages, below the path at which Airflow has mounted the app."""

    def __init__(self, root: str) -> None:
        self._root = root

    def __call__(self, *path: object, **asked: object) -> str:
        """The URL of a page, from the parts of its path and its query; a None is left out."""
        parts = "/".join(quote(str(part), safe="") for part in path)
        given = {name: value for name, value in asked.items() if value is not None}
        return f"{self._root}/{parts}" + (f"?{urlencode(given)}" if given else "")


@cache
def _style() -> tuple[Markup, str]:
    """The style sheet of every page, and the policy that allows no other, by its hash."""
    css = _CSS.read_text(encoding="utf-8")
    digest = b64encode(sha256(css.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; frame-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'self'"
    )
    return Markup(css), policy


@cache
def _environment() -> Environment:
    filters: dict[str, Callable[..., Any]] = {
        "duration": duration,
        "instant": instant,
        "cutoff": lambda horizon: progress.cutoff(horizon, instant),
        "closed_up_to": closed_up_to,
        "watermark": progress.watermark,
        "clock": clock,
        "ago": ago,
        "share": share_so_far,
        "grade": grade,
        "count": lambda many: f"{many:,}",
        "iso": text_of,
        "day": day_of,
        "named": _named,
        "number_of": number_of,
    }
    return templates_of("strandline_airflow.page", filters)


def closed_up_to(status: Mapping[str, Any]) -> str:
    """The instant before which no window can change, in a document of `strandline status`."""
    return progress.closed_up_to(status["closed_up_to"], status["totals"]["slots"], instant)


def instant(at: int | str | None) -> str:
    """An instant in UTC such as `2013-12-30 14:00`, with seconds if it has any; a dash for None."""
    if at is None:
        return NOTHING
    text = text_of(at) if isinstance(at, int) else at
    text = text.replace("T", " ").removesuffix("Z").removesuffix("+00:00").removesuffix(".000")
    return text.removesuffix(":00") if text.count(":") == 2 else text


def clock(start_ms: int, end_ms: int) -> str:
    """The hours of a slot, `14:00 – 15:00`; with the date if it ends on another day."""
    first, last = instant(start_ms), instant(end_ms)
    if first[:10] == last[:10]:
        return f"{first[11:]} – {last[11:]}"
    return f"{first[11:]} – {last}"


def ago(at: str | None, now_ms: int) -> str:
    """The time since an instant, such as `2h 4m ago`; empty for None."""
    if at is None:
        return ""
    then = datetime.fromisoformat(at.replace("Z", "+00:00"))
    since_ms = now_ms - int(then.timestamp() * 1000)
    if since_ms >= 2 * DAY_MS:
        return f"{since_ms // DAY_MS:,} days ago"
    since_ms -= since_ms % 1000  # nobody asks for milliseconds
    return f"{duration(since_ms)} ago" if since_ms >= 0 else f"in {duration(-since_ms)}"


_GRADES = ((1.0, 5), (0.99, 4), (0.95, 3), (0.8, 2), (0.5, 1))


def grade(share: float | None) -> int:
    """The shade of a share, from 0 (less than half) to 5 (all); 6 for None: no record."""
    if share is None:
        return 6
    return next((shade for least, shade in _GRADES if share >= least), 0)


def _named(states: Mapping[str, int]) -> str:
    """Counts of slots by state: `3 closed, 1 open`; of a single slot only its state."""
    if sum(states.values()) == 1:
        return next(iter(states))
    return ", ".join(f"{count:,} {state}" for state, count in states.items())
