"""Great Expectations is imported without what usual audits leave alone, and has it where asked."""

from __future__ import annotations

import subprocess
import sys

import pytest

_KNOWN = """
from great_expectations.expectations import registry
for name in registry._registered_expectations:
    print(name)
for name, one in registry._registered_metrics.items():
    print(name, sorted({*one["providers"]} - {"RedshiftExecutionEngine"}))  # of its data source
"""
_LEFT_ALONE = """
import sys
from strandline.quality.audit.lean import _Later
assert all(type(sys.modules[name]) is _Later for name in ("altair", "scipy.stats"))
assert not {"sqlalchemy", "pyspark.ml", "pyspark.ml.feature"} & set(sys.modules)
from great_expectations.datasource.fluent.sources import DataSourceManager
assert {*DataSourceManager.type_lookup.type_names()} == {"pandas", "spark"}
"""
_ASKED = """
from importlib.util import find_spec
import altair, scipy.stats
assert altair.Chart and scipy.stats.norm.cdf(0) == 0.5
from great_expectations.compatibility import pyspark
try:
    pyspark.Bucketizer(splits=[0.0, 1.0, 2.0], inputCol="a", outputCol="b")
except AssertionError:  # of pyspark: there is no session
    assert isinstance(sys.modules["pyspark.ml.feature"].Bucketizer, type)
else:
    raise ValueError("no bucketizer was asked for")
from great_expectations.datasource.fluent.sqlite_datasource import SqliteDatasource
assert SqliteDatasource(name="a", connection_string="sqlite:///a.db").type == "sqlite"
assert find_spec("sqlalchemy") is None or __import__("sqlalchemy.orm").orm.Session
"""


def lines_of(program: str) -> set[str]:
    """What a program prints."""
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    return set(ran.stdout.splitlines())


@pytest.fixture(scope="module")
def known_in_full():
    return lines_of("import great_expectations" + _KNOWN)


@pytest.mark.parametrize("entry", ["run", "data_docs"])
def test_what_few_audits_ask_for_is_loaded_when_it_is_asked_for(entry, known_in_full):
    known = lines_of(f"import strandline.quality.audit.{entry}{_KNOWN}{_LEFT_ALONE}{_ASKED}")
    assert "expect_column_kl_divergence_to_be_less_than" in known
    assert known >= known_in_full
