"""The use of Great Expectations: a context in memory, and a validation of each table.

Only validation results are stored. Each audit makes a context of its own, so that audits at the
same time do not affect each other.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import great_expectations as gx
import pandas as pd
from great_expectations.core import ExpectationValidationResult
from great_expectations.core.run_identifier import RunIdentifier
from great_expectations.data_context.data_context.abstract_data_context import (
    AbstractDataContext,
)
from great_expectations.data_context.data_context.context_factory import set_context
from great_expectations.data_context.data_context.ephemeral_data_context import (
    EphemeralDataContext,
)
from great_expectations.data_context.types.base import (
    DataContextConfig,
    InMemoryStoreBackendDefaults,
    ProgressBarsConfig,
)
from great_expectations.datasource.fluent.pandas_datasource import PandasDatasource
from great_expectations.datasource.fluent.spark_datasource import SparkDatasource
from great_expectations.expectations.expectation import Expectation

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def context(
    results_folder: Path | None, sites: dict[str, Any] | None = None
) -> AbstractDataContext:
    """A context that keeps its validation results in a folder, or nowhere.

    Args:
        results_folder: where validation results are stored; None: in memory.
        sites: the Data Docs that it builds, in the configuration of Great Expectations.
    """
    stores = InMemoryStoreBackendDefaults()
    if results_folder is not None:
        stores.stores[stores.validation_results_store_name]["store_backend"] = {
            "class_name": "TupleFilesystemStoreBackend",
            "base_directory": in_configuration(results_folder / "validations"),
        }
    config = DataContextConfig(
        store_backend_defaults=stores,
        data_docs_sites=sites or {},
        progress_bars=ProgressBarsConfig(globally=False),
        analytics_enabled=False,
    )
    gx_context = _Context(project_config=config)
    set_context(gx_context)
    return gx_context


class _Context(EphemeralDataContext):
    """A context whose configuration is never saved; it ends with the audit."""

    def _save_project_config(self) -> None:
        """Do nothing, where Great Expectations would write YAML into memory at each change."""


def in_configuration(folder: Path) -> str:
    """A folder with `$` escaped, for which Great Expectations would substitute a variable."""
    return str(folder.absolute()).replace("$", r"\$")


def validate(
    gx_context: AbstractDataContext,
    table: str,
    frame: DataFrame | pd.DataFrame,
    expectations: Sequence[Expectation],
    *,
    row_id: Sequence[str],
    run: RunIdentifier,
) -> list[ExpectationValidationResult]:
    """Validate a table; the results in the order of the expectations.

    Args:
        gx_context: made by `context`.
        table: the table's name.
        frame: its rows, Spark or pandas.
        expectations: what is expected of it.
        row_id: the columns that name an offending row.
        run: the run's name and time.
    """
    sources = gx_context.data_sources
    source: PandasDatasource | SparkDatasource = (
        sources.add_pandas(table)
        if isinstance(frame, pd.DataFrame)
        else sources.add_spark(table, persist=False)
    )
    staged = source.add_dataframe_asset(table).add_batch_definition_whole_dataframe("staged")
    suite = gx.ExpectationSuite(name=table, expectations=list(expectations))
    definition = gx.ValidationDefinition(
        name=table, data=staged, suite=gx_context.suites.add(suite)
    )
    result = gx_context.validation_definitions.add(definition).run(
        batch_parameters={"dataframe": frame},
        result_format={
            "result_format": "SUMMARY",
            "unexpected_index_column_names": list(row_id),
            "partial_unexpected_count": 3,
        },
        run_id=run,
    )
    found = {
        one.expectation_config.id: one
        for one in result.results
        if one.expectation_config is not None
    }
    return [found[one.id] for one in suite.expectations]


def exception_of(result: ExpectationValidationResult) -> str | None:
    """The error that prevented the evaluation of an expectation; None if it was evaluated."""
    info: dict[str, Any] = result.exception_info or {}
    # one exception, or a map from each metric that failed to its exception
    for one in (info, *info.values()):
        if isinstance(one, dict) and one.get("raised_exception"):
            return str(one.get("exception_message"))
    return None


@contextmanager
def without_chatter() -> Iterator[None]:
    """A context in which Great Expectations logs only errors."""
    logger = logging.getLogger("great_expectations")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


@contextmanager
def first_logged_error() -> Iterator[list[logging.LogRecord]]:
    """The first error that Great Expectations logs instead of raising it, if there is one.

    None of its errors is printed.
    """
    logger, found = logging.getLogger("great_expectations"), _First(logging.ERROR)
    logger.addHandler(found)
    propagates, logger.propagate = logger.propagate, False
    try:
        yield found.records
    finally:
        logger.propagate = propagates
        logger.removeHandler(found)


class _First(logging.Handler):
    """A handler that keeps the first record."""

    def __init__(self, level: int) -> None:
        super().__init__(level)
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a record if it is the first."""
        if not self.records:
            self.records.append(record)
