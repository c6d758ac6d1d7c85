"""A pipeline with its tables and its state, as one command has read them."""

from __future__ import annotations

from dataclasses import dataclass

from strandline.lake.ledger.state import PipelineState
from strandline.lake.store.store import Store
from strandline.spec import PipelineSpec


@dataclass(frozen=True)
class ReadPipeline:
    """A pipeline with its tables and its state, from which views are made.

    Attributes:
        spec: the pipeline.
        store: its tables.
        state: the pipeline's state, by its ledger.
    """

    spec: PipelineSpec
    store: Store
    state: PipelineState
