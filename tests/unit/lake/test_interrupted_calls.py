"""An interrupted call of the JVM: py4j logs the interruption, and what its clean-up ran into."""

import logging

import pytest

from strandline.lake.sessions.interruptions import _is_no_interruption, log_no_interruption

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
