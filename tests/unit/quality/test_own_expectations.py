"""The names of the audit's own expectations, by which findings are told apart without the audit."""

from __future__ import annotations

from strandline.quality.audit import lean as _lean  # noqa: F401 - before Great Expectations

# isort: split
from strandline.quality.audit import declared, expectations
from strandline.quality.findings.check import EXPECTATIONS, OF_THE_RANGE


def test_each_expectation_of_the_audit_belongs_to_a_key_of_quality_or_to_no_key():
    own = {
        kind.expectation_type
        for module in (declared, expectations)
        for name, kind in vars(module).items()
        if name.startswith("Expect") and kind.__module__ == module.__name__
    }
    assert own == {*OF_THE_RANGE, *EXPECTATIONS.values()}
