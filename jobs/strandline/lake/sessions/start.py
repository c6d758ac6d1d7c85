"""The opening of the session of a chosen engine."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping

from strandline.lake.sessions.choice import EngineChoice
from strandline.lake.sessions.protocol import EngineSession
from strandline.lake.sessions.settings import FEW_ROWS, s3a_settings


def start(
    choice: EngineChoice,
    app_name: str,
    conf: Mapping[str, str] | None = None,
    *,
    short: bool = False,
    few_rows: bool = False,
    stores: Collection[str] = (),
) -> EngineSession:
    """Open a session of an engine; the caller stops it.

    Args:
        choice: the engine.
        app_name: the application's name in the engine's UI.
        conf: the pipeline's settings, which override the defaults.
        short: whether the run is too short for a JVM to warm up.
        few_rows: whether all its queries have few rows.
        stores: the kinds of remote stores that are used.

    Raises:
        InputError: the engine is not installed, cannot start, or does not meet the requirements.
        RetryableError: its server does not answer, or has no free resources.
    """
    # each of them loads packages that the others do without
    if choice.name == "sail":
        from strandline.lake.sessions.embedded import start_embedded  # noqa: PLC0415

        return start_embedded(
            conf, trust_this_machine=choice.trust_this_machine, needs_network=bool(stores)
        )
    if choice.name == "connect":
        from strandline.lake.sessions.connect import start_connect  # noqa: PLC0415

        settings = {**(FEW_ROWS if few_rows else {}), **(conf or {})}
        return start_connect(choice.remote or "", app_name, settings)
    from strandline.lake.sessions.classic import SMALL_INPUT, start_classic  # noqa: PLC0415

    store = s3a_settings(os.environ, conf or {}) if "s3" in stores else {}
    settings = {**store, **(SMALL_INPUT if few_rows else {}), **(conf or {})}
    return start_classic(app_name, settings, master=choice.master, short=short)
