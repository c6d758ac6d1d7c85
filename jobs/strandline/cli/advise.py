"""advise: the records lost and the delay of each bound and allowed lateness, as table and plot."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import RenderableType
from rich.table import Table

from strandline.cli import show
from strandline.cli.console import escape, plain_table
from strandline.cli.groups import EngineOptions, Places
from strandline.cli.options import AsJson, AsOf, Pipeline, instant_at, parsed, range_of
from strandline.cli.running import application
from strandline.errors import InputError
from strandline.model.intervals import text_of
from strandline.quality.figures import duration, exact_duration, percent
from strandline.visible import number_of

if TYPE_CHECKING:
    from strandline.pipeline.advise.advice import Question

_BAR = 24
_LEAST_SHARE = 1e-5
"""The smallest share in the logarithmic plot: one lost record in a hundred thousand."""
_SHARE = re.compile(r"(\d{1,3}(?:\.\d{0,12})?|\.\d{1,12})\s*(%)?")
Keep = Annotated[
    str, typer.Option(metavar="SHARE", help="The share of records to keep, such as 99.9%.")
]


@dataclass(frozen=True)
class _Asked:
    """The command's options as they are typed."""

    keep: Keep = "99.9%"
    start: Annotated[
        str | None, typer.Option(help="Only windows that start from this instant on.")
    ] = None
    end: Annotated[
        str | None, typer.Option(help="Only windows that start before this instant.")
    ] = None
    as_of: AsOf = None
    max_ahead: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION",
            help="The max_ahead to try: the most that an event time may be after its arrival. "
            "[max_ahead of the file, 1h]",
        ),
    ] = None

    def question(self, now_ms: int) -> Question:
        """The question with parsed values.

        Raises:
            InputError: a value cannot be parsed.
        """
        from strandline.pipeline.advise.advice import Question  # noqa: PLC0415

        is_bounded = self.start is not None or self.end is not None
        return Question(
            keep=share_of(self.keep),
            within=range_of(self.start, self.end) if is_bounded else None,
            as_of_ms=None if self.as_of is None else instant_at("--as-of", self.as_of),
            max_ahead_ms=None if self.max_ahead is None else _max_ahead_ms(self.max_ahead),
            now_ms=now_ms,
        )


def advise(
    pipeline: Pipeline, asked: _Asked, *, as_json: AsJson = False, on: EngineOptions, at: Places
) -> None:
    """Show what each bound and allowed lateness would lose.

    Also, how much later windows would be final. Nothing is published.
    """
    spec, root = at.spec(pipeline), at.root
    choice = on.choice(spec)
    from strandline.lake.landing.known_columns import require_expressions  # noqa: PLC0415
    from strandline.lake.landing.small_runs import is_small  # noqa: PLC0415
    from strandline.pipeline.advise.advise import advise as advice_of  # noqa: PLC0415
    from strandline.pipeline.advise.advise import require_advisable  # noqa: PLC0415
    from strandline.pipeline.request.opened import OpenedLog  # noqa: PLC0415
    from strandline.pipeline.views.kept_advice import keep_advice  # noqa: PLC0415

    question = asked.question(now_ms := int(time.time() * 1000))
    require_advisable(spec)
    opened = OpenedLog.newest(root, spec)
    require_expressions(spec, opened.log)
    with application(
        spec,
        root,
        choice,
        as_json=as_json,
        log=opened.log,
        short=is_small(spec, opened.ledger.state(), opened.log, None),
    ) as (spark, step):
        found = advice_of(spec, root, question, spark, step, opened).to_json()
    found = {"made_at": text_of(now_ms), **found}
    keep_advice(spec, root, found)
    show.document(found, as_json=as_json, human=_show)


def share_of(text: str) -> Fraction:
    """A share written as a percentage, or as a number between 0 and 1.

    Raises:
        InputError: it is neither, or out of range.
    """
    match = _SHARE.fullmatch(text.strip())
    number = Fraction(match[1]) if match else Fraction(0)
    share = number / 100 if match and match[2] else number
    if not 0 < share <= 1:
        raise InputError("--keep", f"{text!r} is not a share", "write one such as 99.9%")
    return share


def _max_ahead_ms(text: str) -> int:
    from strandline.spec.values import parse_duration  # noqa: PLC0415

    length_ms = parsed("--max-ahead", text, parse_duration)
    if length_ms < 0:
        raise InputError("--max-ahead", f"{text!r} is negative", "give 0s or more")
    return length_ms


def _show(advice: Mapping[str, Any]) -> None:
    """Print the advice as tables and plots."""
    out = show.out
    if not advice["records"]:
        name = escape(advice["pipeline"])
        out.print(f"{name}: no record in the range: there is nothing to advise on")
        return
    out.print(
        f"[bold]{escape(advice['pipeline'])}[/]: {number_of(advice['records'], 'record')} of "
        f"{number_of(advice['windows'], 'window')}, arrivals before {advice['horizon']}"
    )
    out.print(f"in force: {_setting_line(advice, advice['in_force'])}")
    smallest = advice["smallest"]
    if smallest is None:
        out.print(f"none of the settings below keeps {advice['keep']}")
    else:
        out.print(f"smallest that keeps {advice['keep']}: {_setting_line(advice, smallest)}")
    out.print(_settings(advice))
    out.print(
        "lost: depends only on the sum of bound and allowed lateness; the bound decides when a "
        "window is first emitted.\nfinal after: the time from the end of a window until nothing "
        "changes it any more: of the windows that are the newest of a record, half take at most "
        "this long, 95 % at most the next."
    )
    for part in _losses_by_part(advice):
        out.print(part)
    out.print(_clocks_ahead_line(advice))


def _setting_line(advice: Mapping[str, Any], setting: Mapping[str, Any]) -> str:
    lost = percent(setting["lost"], advice["records"])
    lateness = f"allowed lateness {exact_duration(setting['allowed_lateness_ms'])}"
    bound = advice["bound_name"]
    rules = f"{bound} {exact_duration(setting['bound_ms'])} + {lateness}" if bound else lateness
    final = setting["final_after_ms"]
    cost = "no window final yet" if final is None else f"windows final after {duration(final)}"
    return f"{rules} loses {number_of(setting['lost'], 'record')} ({lost}); {cost}"


def _settings(advice: Mapping[str, Any]) -> Table:
    """A line for each setting, with a bar for its lost share on a logarithmic scale."""
    table = plain_table()
    total = "bound + lateness" if advice["bound_name"] else "allowed lateness"
    for name in (total, "lost", "share"):
        table.add_column(name, justify="right")
    table.add_column("share lost, ×10 a step")
    for name in ("final after", "95 %"):
        table.add_column(name, justify="right")
    table.add_column("")
    marks = {advice["in_force"]["total_ms"]: "in force"}
    if advice["smallest"]:
        chosen = advice["smallest"]["total_ms"]
        marks[chosen] = ", ".join([f"keeps {advice['keep']}", *filter(None, [marks.get(chosen)])])
    for row in _rows_shown(advice["settings"], marks):
        after, most = (
            "–" if row[name] is None else duration(row[name])
            for name in ("final_after_ms", "final_after_ms_95")
        )
        table.add_row(
            exact_duration(row["total_ms"]),
            f"{row['lost']:,}",
            percent(row["lost"], advice["records"]),
            _bar(row["share_lost"]),
            after,
            most,
            f"← {marks[row['total_ms']]}" if row["total_ms"] in marks else "",
        )
    return table


def _rows_shown(
    rows: Sequence[Mapping[str, Any]], marks: Mapping[int, str]
) -> Iterator[Mapping[str, Any]]:
    """The settings up to the first without loss, and the marked settings."""
    nothing_lost_ms = next((row["total_ms"] for row in rows if not row["lost"]), None)
    for row in rows:
        if (
            nothing_lost_ms is None
            or row["total_ms"] <= nothing_lost_ms
            or row["total_ms"] in marks
        ):
            yield row


def _bar(share: float) -> str:
    if not share:
        return ""
    reach = 1 - math.log10(max(share, _LEAST_SHARE)) / math.log10(_LEAST_SHARE)
    return "█" * max(1, round(_BAR * reach))


def _losses_by_part(advice: Mapping[str, Any]) -> Iterator[RenderableType]:
    """The channels, keys and days with lost records, the largest losses first."""
    key = ", ".join(advice["key"])
    groups = (
        ("channel", advice["channels"], advice["channels_in_all"]),
        (f"key ({key})", advice["keys"], advice["keys_in_all"]),
    )
    for title, parts, in_all in groups:
        losing = [part for part in parts if part["lost"]]
        if not losing:
            continue
        table = plain_table()
        table.add_column(escape(title))
        for name in ("records", "lost", "share", f"needs for {advice['keep']}"):
            table.add_column(name, justify="right")
        for part in losing[:10]:
            needs = part["smallest_total_ms"]
            table.add_row(
                escape(", ".join(part["name"])),
                f"{part['records']:,}",
                f"{part['lost']:,}",
                percent(part["lost"], part["records"]),
                "more than the settings above" if needs is None else exact_duration(needs),
            )
        if in_all > 10:
            table.add_row(f"{in_all:,} in all, the worst first")
        yield table
    days = [day for day in advice["days"] if day["lost_by_smallest"]]
    if days:
        worst = days[0]
        share = percent(worst["lost_by_smallest"], worst["records"])
        yield (
            f"day with most losses at the smallest setting: {worst['name'][0]}, "
            f"{worst['lost_by_smallest']:,} of "
            f"{worst['records']:,} lost ({share})"
        )


def _clocks_ahead_line(advice: Mapping[str, Any]) -> str:
    """The cost of clocks that run ahead."""
    clocks = advice["clocks_ahead"]
    limit = exact_duration(clocks["max_ahead_ms"])
    if not clocks["records"]:
        return f"clocks: no event time is more than {limit} after its arrival"
    with_limit, without_limit = clocks["with"], clocks["without"]
    origin = "in force" if clocks["in_force"] else "not in the file"
    return (
        f"clocks: {number_of(clocks['records'], 'event time')} more than {limit} after arrival, "
        f"malformed by max_ahead {limit} ({origin}): with it {with_limit['lost']:,} of the other "
        f"records too late, without it {without_limit['lost']:,}"
    )
