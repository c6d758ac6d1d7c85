"""What an engine raises where a query fails, by whichever way it is asked."""

from __future__ import annotations

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

ENGINE_ERRORS: tuple[type[Exception], ...] = (PySparkException, Py4JError)
"""Of PySpark, and of the gateway to a JVM: it raises the errors that PySpark does not know."""
