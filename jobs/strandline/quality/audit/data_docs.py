"""Data Docs: the stored validation results as pages of Great Expectations, without a network.

The pages of Great Expectations load styles and scripts from the network, and link to suites that
are not stored. Here they are stripped of both, and get an index page of Strandline.
"""

from __future__ import annotations

import json
import re
import shutil
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote

from strandline.quality.audit import lean as _lean  # noqa: F401 - before Great Expectations

# isort: split
from great_expectations.core import ExpectationSuiteValidationResult
from great_expectations.render.components import RenderedDocumentContent
from great_expectations.render.renderer.page_renderer import ValidationResultsPageRenderer
from great_expectations.render.view.view import DefaultJinjaPageView

from strandline.quality.audit import declared as _registered_too  # noqa: F401 - to render them
from strandline.quality.audit import expectations as _registered  # noqa: F401 - to render them
from strandline.quality.audit.validation import (
    context,
    first_logged_error,
    in_configuration,
    without_chatter,
)
from strandline.visible import visible

_RESULTS_SHOWN = 40
_ELSEWHERE = re.compile(
    r"<link\b[^>]*>|<img\b[^>]*>|<script\b.*?</script>|<a\b[^>]*https?:[^>]*>.*?</a>"
    r"|url\([\"']https?:[^)]*\)",
    re.DOTALL,
)
"""Elements and styles that load or link to something; no value matches, since all are escaped."""
_RAISED = re.compile(r"^\s*(\w+: \".*?\")\.  Traceback", re.DOTALL | re.MULTILINE)
"""The exception within a message that Great Expectations logs when it cannot write a page."""
_STYLE = """<style>
:root { color-scheme: light dark }
body { font: 1rem/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem }
table { border-collapse: collapse; width: 100% }
th, td { border-bottom: 1px solid #8886; padding: .3rem .6rem; text-align: left }
td { overflow-wrap: anywhere }
.sticky, footer, [data-toggle=collapse] { display: none }
.text-success::before { content: "met" }
.text-danger::before { content: "not met" }
.text-warning::before { content: "not evaluated" }
</style>"""
"""The style of a page without scripts: controls that need one are hidden, icons are words."""
_INDEX = """<!DOCTYPE html>
<html lang="en"><head><meta charset="UTF-8"><title>Audits</title>
<meta name="viewport" content="width=device-width, initial-scale=1.0">{style}</head><body>
<h1>Audits</h1>
<p>Validation results of Great Expectations, the newest first. The report has the verdicts of all
audits.</p>
<table><thead><tr><th>Verdict<th>Run<th>Table<th>Expectations met<th>Audited at</tr></thead><tbody>
{rows}
</tbody></table></body></html>
"""
_ROW = '<tr><td>{verdict}<td>{run}<td><a href="{page}">{table}</a><td>{met} of {all}<td>{at}</tr>'


class EscapingPageRenderer(ValidationResultsPageRenderer):
    """The page of a validation result with escaped values.

    Great Expectations inserts observed values without escaping them.
    """

    def render(
        self,
        validation_results: ExpectationSuiteValidationResult,
        suite_parameters: dict[str, Any] | None = None,
    ) -> Any:
        """Render a validation result, after escaping its observed values in place."""
        for one in validation_results.results:
            one.result = _escaped(one.result)
            one.exception_info = _escaped(one.exception_info)
        return super().render(validation_results, suite_parameters)

    def _determine_page_title(
        self, run_name: str, run_time: str, data_asset_name: str, expectation_suite_name: str
    ) -> str:
        """The page's title.

        Great Expectations reads the run's name as a time, and fails on an id of ten digits, which
        is a year.
        """
        parts = ("Validations", expectation_suite_name, data_asset_name, run_name, run_time)
        return " / ".join(part for part in parts if part)

    @classmethod
    def _render_validation_header(cls, validation_results: ExpectationSuiteValidationResult) -> Any:
        """The page's header, with the verdict of the audit and without the link to a suite."""
        untyped: Any = super()
        header = untyped._render_validation_header(validation_results)
        template = header.subheader.string_template
        of_result: Any = validation_results
        verdict = _verdict(of_result.to_json_dict())
        template["params"] |= {"success": verdict, "html_success_icon": ""}
        del template["styling"]["params"]["expectation_suite_name"]
        return header


class PageAlone(DefaultJinjaPageView):
    """A page that loads nothing and has no links to other sites."""

    def render(
        self, document: RenderedDocumentContent, template: str | None = None, **options: Any
    ) -> str:
        """The page as HTML."""
        untyped: Any = super()
        page = _ELSEWHERE.sub("", untyped.render(document, template, **options))
        return page.replace("</head>", f"{_STYLE}</head>", 1)


def build_data_docs(context_folder: Path, docs_folder: Path) -> Path:
    """Render the stored validation results as HTML pages, the last ten audits; without Spark.

    Two calls for the same folder at the same time are not supported.

    Args:
        context_folder: the folder given to `audit`; without an audit the pages are empty.
        docs_folder: the folder for the pages.

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
                "view": {
                    "module_name": PageAlone.__module__,
                    "class_name": PageAlone.__name__,
                },
            },
        },
    }
    docs_folder.mkdir(parents=True, exist_ok=True)
    with without_chatter(), first_logged_error() as errors:
        context(context_folder, {"data_docs": site}).build_data_docs(build_index=False)
    if errors:
        raise OSError(_reason(errors[0].getMessage()))
    shutil.rmtree(docs_folder / "static", ignore_errors=True)  # styles, logos: of no page any more
    rows = _rows_of_index(context_folder, docs_folder)
    index = docs_folder / "index.html"
    index.write_text(_INDEX.format(style=_STYLE, rows="\n".join(rows)), encoding="utf-8")
    return index


def _reason(logged: str) -> str:
    """The exception in a logged message, without its traceback; without one, the whole message."""
    raised = _RAISED.search(logged)
    return raised[1] if raised else logged


def _rows_of_index(context_folder: Path, docs_folder: Path) -> list[str]:
    """A table row of HTML for each page, the newest first."""
    pages = sorted(docs_folder.rglob("validations/**/*.html"), key=_named, reverse=True)
    rows = []
    for page in pages:
        place = page.relative_to(docs_folder)
        stored = context_folder / place.with_suffix(".json")
        if not stored.is_file():  # upkeep has removed what the page was made of
            page.unlink()
            continue
        found = json.loads(stored.read_text("utf-8"))
        run = found["meta"]["run_id"]
        row = {
            "verdict": _verdict(found),
            "run": run["run_name"],
            "page": quote(place.as_posix()),
            "table": found["suite_name"],
            "met": found["statistics"]["successful_expectations"],
            "all": found["statistics"]["evaluated_expectations"],
            "at": run["run_time"],
        }
        rows.append(_ROW.format(**{name: escape(str(value)) for name, value in row.items()}))
    return rows


def _named(page: Path) -> tuple[str, str]:
    """The time and the table of a page's audit."""
    return page.parent.name, page.name


def _verdict(found: dict[str, Any]) -> str:
    """The verdict of an audit on a table: passed, warning (it did not block), or failed."""
    failed = [one["expectation_config"] for one in found["results"] if not one["success"]]
    if not failed:
        return "passed"
    return "failed" if any(one.get("severity") == "critical" for one in failed) else "warning"


def _escaped(value: Any) -> Any:
    if isinstance(value, str):
        return escape(visible(value, keep="\n"))
    if isinstance(value, dict):
        return {name: _escaped(one) for name, one in value.items()}
    return [_escaped(one) for one in value] if isinstance(value, list | tuple) else value
