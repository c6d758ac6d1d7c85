"""What every pipeline file says, whatever it computes."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BeforeValidator, Field, WithJsonSchema

from strandline.spec import described
from strandline.spec.alerts import Alert
from strandline.spec.quality import Quality
from strandline.spec.values import PipelineName, SpecModel, parse_bytes, refuse_at

EngineName: TypeAlias = Literal["spark", "connect", "sail"]
"""Apache Spark in this process or on a cluster; behind Spark Connect; Sail in this process."""
Overridden: TypeAlias = Literal["keep", "redo"]
"""What scheduled runs do with windows that a run by rules of its own has published."""
_FIXED_SETTINGS = ("spark.sql.session.timeZone", "spark.sql.ansi.enabled")


def _settings(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    for name, setting in value.items():
        if not isinstance(setting, str | int | float):
            refuse_at(str(name), setting, "not a setting; give a text, a number or a boolean")
        if name in _FIXED_SETTINGS:
            refuse_at(str(name), setting, "fixed, since it would change the numbers; leave it out")
    spelled = {True: "true", False: "false"}
    return {k: spelled[v] if isinstance(v, bool) else str(v) for k, v in value.items()}


def _in_order(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


class OnAsset(SpecModel):
    """A schedule by an asset of Airflow: whenever a DAG has updated it.

    Attributes:
        asset: its name, or its URI (with `://`).
    """

    asset: Annotated[str, Field(min_length=1, max_length=1500)]


def _schedule(value: Any) -> Any:
    shape = re.compile(r"@[a-z]+|[\w*,/?#-]+(\s+[\w*,/?#-]+){4}")
    match value:
        case str() if shape.fullmatch(value.strip()):
            return value.strip()
        case {"asset": str(asset), **more} if asset.strip() and not more:
            return OnAsset(asset=asset.strip())
        case OnAsset():
            return value
    msg = (
        'not a schedule; write the five fields of cron, such as "0 6 * * *", {asset: NAME} of an '
        "asset of Airflow that the landing updates, or null"
    )
    raise ValueError(msg)


class CommonSpec(SpecModel):
    """A name, the quality that is asked for, and how it runs.

    Attributes:
        pipeline: its name, and that of its folder in the lake and of its DAG.
        quality: what must hold for the data of a run.
        spark: Spark configuration of its runs.
        engine: what it runs on; by default `spark`.
        schedule: cron, in UTC, or an asset of Airflow; null: by hand only.
        overridden: what scheduled runs do with windows that a run by rules of its own published.
        alerts: which events Airflow sends to whom; by default none.
        quarantine_days: how long quarantine is kept; by default always.
        max_bytes: the most that a run may read of the landing table, such as 20GB.
    """

    pipeline: PipelineName
    quality: Quality = Field(default_factory=Quality)
    spark: Annotated[
        dict[str, str], BeforeValidator(_settings), WithJsonSchema(described.SETTINGS)
    ] = Field(default_factory=dict)
    # the engine decides no number, so that no fingerprint has it
    engine: EngineName | None = Field(default=None, exclude=True)
    schedule: Annotated[str | OnAsset, BeforeValidator(_schedule)] | None = "0 6 * * *"
    # what becomes of ranges by rules of one run decides no number by the file's rules
    overridden: Overridden = "keep"
    alerts: Annotated[tuple[Alert, ...], BeforeValidator(_in_order)] = ()
    quarantine_days: Annotated[int, Field(ge=1)] | None = None
    max_bytes: (
        Annotated[int, BeforeValidator(parse_bytes), WithJsonSchema(described.SIZE)] | None
    ) = None

    @property
    def cron(self) -> str | None:
        """The schedule by the clock, in UTC; None: by an asset, by other results or by hand."""
        return self.schedule if isinstance(self.schedule, str) else None
