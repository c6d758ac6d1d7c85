"""The advisor's result in the report: the loss and the delay of each setting, as plots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from strandline.model.intervals import HOUR_MS
from strandline.quality.figures import duration, exact_duration, percent
from strandline.quality.report.figure import Figure, Series, TableBehind, lines


@dataclass(frozen=True)
class Advised:
    """The result of `strandline advise`.

    Attributes:
        figure: the plot of the lost share over the sum of bound and allowed lateness.
        delays: the plot of the time from a window's end until it is final, over the same sum.
        made_at: the time of the advice.
        sentences: the current setting, and the smallest one that keeps the requested share.
    """

    figure: Figure
    delays: Figure
    made_at: str
    sentences: tuple[str, ...]


def advised(advice: Mapping[str, Any] | None) -> Advised | None:
    """The last advice as plots; None if there is none, or it was about no records."""
    if not advice or not advice.get("records"):
        return None
    rows, records = _until_nothing_is_lost(advice), int(advice["records"])
    table = TableBehind.of(
        ("bound + allowed lateness", "lost", "share", "final after (half)", "final after (95 %)"),
        [
            (
                exact_duration(row["total_ms"]),
                int(row["lost"]),
                percent(row["lost"], records),
                *(_delay(row[name]) for name in ("final_after_ms", "final_after_ms_95")),
            )
            for row in rows
        ],
    )
    figure = lines(
        "share of records lost by each sum of bound and allowed lateness",
        [round(row["total_ms"] / HOUR_MS, 4) for row in rows],
        [(Series("lost", "late"), [round(100 * row["share_lost"], 4) for row in rows])],
        unit="% of records",
        table=table,
        x_title="hours",
        logarithmic=True,
    )
    final = [
        (Series("half of the windows", "colour-0"), _hours(rows, "final_after_ms")),
        (Series("95 % of the windows", "colour-1"), _hours(rows, "final_after_ms_95")),
    ]
    delays = lines(
        "hours from the end of a window until it is final, by each sum",
        [round(row["total_ms"] / HOUR_MS, 4) for row in rows],
        final,
        unit="h until final",
        table=table,
        x_title="hours",
    )
    sentences = [f"In force: {_sentence(advice, advice['in_force'])}."]
    if advice.get("smallest"):
        keep = advice["keep"]
        sentences.append(f"Smallest that keeps {keep}: {_sentence(advice, advice['smallest'])}.")
    return Advised(figure, delays, str(advice.get("made_at", "")), tuple(sentences))


def _until_nothing_is_lost(advice: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    rows = advice["settings"]
    last = next((place for place, row in enumerate(rows) if not row["lost"]), len(rows) - 1)
    return rows[: max(last + 1, 2)]  # type: ignore[no-any-return]


def _sentence(advice: Mapping[str, Any], setting: Mapping[str, Any]) -> str:
    lateness = f"allowed lateness {exact_duration(setting['allowed_lateness_ms'])}"
    bound = advice["bound_name"]
    rules = f"{bound} {exact_duration(setting['bound_ms'])}, {lateness}" if bound else lateness
    lost = percent(setting["lost"], advice["records"])
    return (
        f"{rules} loses {setting['lost']:,} of {advice['records']:,} records ({lost}), windows are "
        f"final after {_delay(setting['final_after_ms'])}"
    )


def _hours(rows: Sequence[Mapping[str, Any]], name: str) -> list[float | None]:
    return [None if row[name] is None else round(row[name] / HOUR_MS, 2) for row in rows]


def _delay(delay_ms: int | None) -> str:
    return "–" if delay_ms is None else duration(delay_ms)
