"""Where nothing keeps two publishers apart, every run says so."""

from __future__ import annotations

from strandline.lake.store.lake import Lake
from strandline.pipeline.notes.notes import of_publishers


def test_a_run_says_that_there_may_be_one_publisher_where_the_user_has_said_so(
    tmp_path, monkeypatch
):
    assert not list(of_publishers(Lake.at("s3://bucket/lake")))
    monkeypatch.setenv("STRANDLINE_PUBLISHERS", "one")
    (said,) = of_publishers(Lake.at("s3a://bucket/lake"))
    assert said.startswith("publishers: one")
    assert not list(of_publishers(Lake.at(str(tmp_path))))
