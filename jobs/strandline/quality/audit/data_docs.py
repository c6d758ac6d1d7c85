"""Data Docs: the stored validation results as the HTML pages of Great Expectations."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any

from strandline.quality.audit import lean as _lean  # noqa: F401 - before Great Expectations

# isort: split
from great_expectations.core import ExpectationSuiteValidationResult
from great_expectations.render.renderer.page_renderer import ValidationResultsPageRenderer

from strandline.quality.audit import checks as _registered_too  # noqa: F401 - to render them
from strandline.quality.audit import expectations as _registered  # noqa: F401 - to render them
from strandline.quality.audit.checkpoint import (
    context,
    in_configuration,
    logged_errors,
    without_chatter,
)
from strandline.visible import visible

_RESULTS_SHOWN = 40


class EscapingPageRenderer(ValidationResultsPageRenderer):
    """The page of a validation result in which no value of the data can become markup.

    Great Expectations puts the values that it found into the page as they are.
    """

    def render(
        self,
        validation_results: ExpectationSuiteValidationResult,
        suite_parameters: dict[str, Any] | None = None,
    ) -> Any:
        """Render a validation result, whose found values it escapes in place."""
        for one in validation_results.results:
            one.result = _escaped(one.result)
            one.exception_info = _escaped(one.exception_info)
        return super().render(validation_results, suite_parameters)


def build_data_docs(context_folder: Path, docs_folder: Path) -> Path:
    """Render the stored validation results as HTML pages, the last ten audits; without Spark.

    The pages load their styling from the network; without one they are plain, but readable.
    Two calls for the same folder at the same time are not supported.

    Args:
        context_folder: that of `audit`; if there was no audit yet, the pages are empty.
        docs_folder: where the pages go.

    Returns:
        the path of `index.html`.

    Raises:
        OSError: a page cannot be written.
    """
    site = {
        "class_name": "SiteBuilder",
        "show_how_to_buttons": False,
        "store_backend": {
            "class_name": "TupleFilesystemStoreBackend",
            "base_directory": in_configuration(docs_folder),
        },
        "site_index_builder": {
            "class_name": "DefaultSiteIndexBuilder",
            "validation_results_limit": _RESULTS_SHOWN,
        },
        "site_section_builders": {
            "expectations": "None",
            "profiling": "None",
            "validations": {
                "class_name": "DefaultSiteSectionBuilder",
                "source_store_name": "validation_results_store",
                "validation_results_limit": _RESULTS_SHOWN,
                "renderer": {
                    "module_name": EscapingPageRenderer.__module__,
                    "class_name": EscapingPageRenderer.__name__,
                },
            },
        },
    }
    docs_folder.mkdir(parents=True, exist_ok=True)
    with without_chatter(), logged_errors() as errors:
        context(context_folder, {"data_docs": site}).build_data_docs()
    if errors:
        raise OSError(errors[0])
    return docs_folder / "index.html"


def _escaped(value: Any) -> Any:
    if isinstance(value, str):
        return escape(visible(value, keep="\n"))
    if isinstance(value, dict):
        return {name: _escaped(one) for name, one in value.items()}
    return [_escaped(one) for one in value] if isinstance(value, list | tuple) else value
