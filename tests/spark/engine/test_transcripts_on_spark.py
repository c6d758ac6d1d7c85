"""The set-based engine gives, transcript by transcript, what was worked out by hand.

Every other one of a file, as the reference gives all and the engine is held to it by laws and
goldens; all where ALL_GOLDENS is set.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from strandline.conformance.answer import AnyAnswer
from strandline.conformance.compare import compare
from strandline.conformance.scenario import Unsupported
from strandline.conformance.spark_runner import SparkEngine
from transcripts import read_transcripts

pytestmark = pytest.mark.spark

TRANSCRIPTS = read_transcripts()[:: 1 if os.environ.get("ALL_GOLDENS") else 2]
AT_ONCE = 2
"""Spark is mostly waiting for itself on small input."""


@pytest.fixture(scope="module")
def answers(request, session) -> Iterator[dict[str, Future[AnyAnswer]]]:
    """The answers to the transcripts that this run asks for."""
    here = [item for item in request.session.items if item.path == request.path]
    asked = [item.callspec.params["transcript"] for item in here]
    engine, pool = SparkEngine(session), ThreadPoolExecutor(AT_ONCE)
    yield {t.title: pool.submit(engine, t.scenario) for t in asked}
    pool.shutdown(cancel_futures=True)


@pytest.mark.parametrize("transcript", TRANSCRIPTS, ids=lambda t: t.title)
def test_the_engine_tells_the_story_as_it_stands(answers, transcript):
    try:
        answer = answers[transcript.title].result()
    except Unsupported as error:
        pytest.skip("; ".join(error.features))
    assert [str(d) for d in compare(transcript.title, transcript.expected, answer)] == []
