"""An interrupted call of the JVM: py4j logs the interruption, and what its clean-up ran into."""

import logging

import pytest

from strandline.lake.sessions.classic import _is_no_interruption


@pytest.fixture
def logged():
    """The messages that a logger with the filter lets pass."""
    messages: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: messages.append(record.getMessage())
    logger = logging.getLogger("test.interrupted")
    logger.addFilter(_is_no_interruption)
    logger.addHandler(handler)
    logger.propagate = False
    return logger, messages


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
