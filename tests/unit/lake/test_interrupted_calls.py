"""Interrupted calls of an engine: of other threads, and what py4j logs of them."""

import logging
from threading import Event
from types import SimpleNamespace

import pytest

from strandline.lake.sessions.interruptions import (
    _is_no_interruption,
    in_threads,
    log_no_interruption,
)

LOGGERS = ("root", "py4j.clientserver")


@pytest.fixture(params=LOGGERS)
def logged(request):
    """The messages that one of py4j's loggers lets pass."""
    messages: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: messages.append(record.getMessage())
    logger = logging.getLogger(request.param)
    logger.addHandler(handler)
    log_no_interruption()
    yield logger, messages
    logger.removeHandler(handler)
    for name in LOGGERS:
        logging.getLogger(name).removeFilter(_is_no_interruption)


def test_an_interruption_and_an_error_while_one_is_cleaned_up_are_not_logged(logged):
    logger, messages = logged
    try:
        raise KeyboardInterrupt
    except KeyboardInterrupt:
        logger.exception("KeyboardInterrupt while sending command.")
        try:
            raise BrokenPipeError
        except BrokenPipeError:
            logger.exception("Exception occurred while shutting down connection")
    assert messages == []


def test_other_errors_are_logged(logged):
    logger, messages = logged
    logger.error("no exception")
    try:
        raise BrokenPipeError
    except BrokenPipeError:
        logger.exception("a broken pipe")
    assert messages == ["no exception", "a broken pipe"]


@pytest.fixture
def session(monkeypatch):
    """A session whose queries run until it is stopped."""
    stopped = Event()
    session = SimpleNamespace(stopped=stopped, stop=stopped.set)
    monkeypatch.setattr(
        "strandline.lake.sessions.interruptions.session_of", lambda spark: spark.session
    )
    return session


def test_an_interruption_ends_the_session_and_with_it_the_queries_of_threads(session):
    """A run waited for them to the end, nine seconds after Ctrl-C and longer with more rows."""
    queries = []
    with pytest.raises(KeyboardInterrupt), in_threads(SimpleNamespace(session=session), 1) as pool:
        queries += [pool.submit(session.stopped.wait, 60) for _ in range(2)]
        raise KeyboardInterrupt
    assert queries[0].result(0) is True
    assert queries[1].cancelled()


def test_other_errors_and_none_leave_the_session_open(session):
    spark = SimpleNamespace(session=session)
    with in_threads(spark, 2) as pool:
        assert pool.submit(lambda: 5).result() == 5
    with pytest.raises(ValueError, match="odd"), in_threads(spark, 2):
        raise ValueError("odd")
    assert not session.stopped.is_set()
