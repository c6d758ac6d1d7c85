"""The columns of a table of pairs, before any row is read."""

from __future__ import annotations

import pytest
from joined import JOIN

from strandline.engine.history.inputs import HistoryOfTwo, Input
from strandline.engine.pairs.rebuild import PairRebuild
from strandline.engine.records.identity import SourceColumns
from strandline.errors import InputError
from strandline.spec import parse_spec


def a_rebuild(left: tuple[str, ...], key: str = "device") -> PairRebuild:
    sources = {
        name: side | {"key": {key: "device"}, "table": f"landing/{name}"}
        for name, side in JOIN["sources"].items()
    }
    spec = parse_spec(JOIN | {"sources": sources}, origin="near.yaml")
    columns = {"left": SourceColumns(left), "right": SourceColumns(("amount",))}
    inputs = {name: Input(None, of_side, None) for name, of_side in columns.items()}
    nothing = {"axis": None, "timeline": None, "crossings": None}
    history = HistoryOfTwo(spec=spec, inputs=inputs, **nothing)
    return PairRebuild(None, None, history, None, None, None, None, None, 0)


@pytest.mark.parametrize(
    ("left", "key", "place", "column"),
    [
        (("amount", "record_id"), "device", "sources.left.table", "left_record_id"),
        (("amount", "AMOUNT"), "device", "sources.left.table", "left_AMOUNT"),
        (("amount",), "right_amount", "sources.right.table", "right_amount"),
        (("amount",), "pair_ts", "sources.left.key.pair_ts", "pair_ts"),
    ],
)
def test_two_columns_of_one_name_are_refused_with_their_place(left, key, place, column):
    with pytest.raises(InputError) as refused:
        a_rebuild(left, key).windows()
    told = str(refused.value)
    assert told.startswith(f"near: {place}: the table pairs would have two columns {column}")


def test_of_pairs_nothing_fires():
    with pytest.raises(TypeError, match="pairs have no firings"):
        a_rebuild(("amount",)).firings()
