"""The description of this package as a provider of Airflow: a connection type.

Airflow reads it while it is imported itself, so it imports nothing that imports Airflow.
"""

from __future__ import annotations

from typing import Any

CONNECTION_TYPE = "strandline"
SUBMITS = ("process", "spark-submit", "kubernetes")
"""The values of the connection's field `submit`: how a task on the engine spark is run."""


def get_provider_info() -> dict[str, Any]:
    """The provider's description, as the entry point `apache_airflow_provider` returns it."""
    text = {"type": ["string", "null"]}
    return {
        "package-name": "strandline",
        "name": "Strandline",
        "description": "Exact event-time backfills: Flink's watermarks and lateness in batch.",
        "connection-types": [
            {
                "connection-type": CONNECTION_TYPE,
                "hook-class-name": "strandline_airflow.hook.StrandlineHook",
                "hook-name": "Strandline",
                "ui-field-behaviour": {
                    "hidden-fields": ["schema", "login"],
                    "relabeling": {
                        "host": "Spark Connect server",
                        "password": "Token of the Spark Connect server",
                    },
                    "placeholders": {"executable": "/opt/strandline/bin/strandline"},
                },
                "conn-fields": {
                    "executable": {
                        "label": "Executable",
                        "description": "The strandline command; empty: of Airflow's environment",
                        "schema": text,
                    },
                    "lake": {
                        "label": "Lake",
                        "description": "A folder or a URI; empty: what STRANDLINE_LAKE says",
                        "schema": text,
                    },
                    "store": {
                        "label": "Store",
                        "description": "A connection of type aws: credentials of the lake's store",
                        "schema": text,
                    },
                    "pipelines": {
                        "label": "Pipelines",
                        "description": "The folder of the pipeline files, for the pages",
                        "schema": text,
                    },
                    "engine": {
                        "label": "Engine",
                        "schema": {"type": ["string", "null"], "enum": [None, *_ENGINES]},
                    },
                    "submit": {
                        "label": "Spark by",
                        "description": "How a task on the engine spark is run",
                        "schema": {"type": ["string", "null"], "enum": [None, *SUBMITS]},
                    },
                },
            }
        ],
    }


_ENGINES = ["spark", "connect", "sail"]
