"""The pages of the Data Docs, as far as they need no engine."""

from __future__ import annotations

import logging

import pytest

from strandline.quality.audit.data_docs import EscapingPageRenderer
from strandline.quality.audit.validation import first_logged_error


@pytest.mark.parametrize("run_id", ["9079001157-1", "20130101-1", "3c173eccfa-1"])
def test_a_run_of_any_id_has_a_page_whose_title_names_it(run_id):
    """Also one of digits alone, which a parser of dates takes for a year."""
    title = EscapingPageRenderer()._determine_page_title(run_id, "2026-11-29", "", "windows")
    assert title == f"Validations / windows / {run_id} / 2026-11-29"


def test_the_first_logged_error_is_kept_however_many_follow():
    logger = logging.getLogger("great_expectations.render")
    with first_logged_error() as errors:
        for number in range(10_000):
            logger.error("page %d", number)
    assert [error.getMessage() for error in errors] == ["page 0"]
