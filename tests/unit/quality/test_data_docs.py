"""The pages of the Data Docs, as far as they need no engine."""

from __future__ import annotations

import pytest

from strandline.quality.audit.data_docs import EscapingPageRenderer


@pytest.mark.parametrize("run_id", ["9079001157-1", "20130101-1", "3c173eccfa-1"])
def test_a_run_of_any_id_has_a_page_whose_title_names_it(run_id):
    """Also one of digits alone, which a parser of dates takes for a year."""
    title = EscapingPageRenderer()._determine_page_title(run_id, "2026-11-29", "", "windows")
    assert title == f"Validations / windows / {run_id} / 2026-11-29"
