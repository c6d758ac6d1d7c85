"""Where nothing keeps two publishers apart, every run says so."""

from __future__ import annotations

from strandline.lake.store import Lake
from strandline.pipeline.notes import of_publishers


def test_on_an_object_store_a_run_says_that_there_may_be_one_publisher(tmp_path):
    (said,) = of_publishers(Lake.at("s3a://bucket/lake"))
    assert said.startswith("publishers: one")
    assert not list(of_publishers(Lake.at(str(tmp_path))))
