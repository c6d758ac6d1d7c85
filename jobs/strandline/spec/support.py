"""What a spec may say but this version cannot do yet: known, and refused by its name."""

from __future__ import annotations

from strandline.errors import InputError
from strandline.spec.pipeline import PipelineSpec


def unsupported_features(spec: PipelineSpec) -> list[str]:
    """The features of a spec that the engines do not have yet, each as `path: what`."""
    watermark, source = spec.watermark, spec.source
    features = []
    if watermark.strategy == "legacy_ascending":
        features.append(f"watermark.strategy: {watermark.strategy}")
    if watermark.idleness_in_effect:
        features.append("watermark.idleness: with periodic emission")
    if source.deduplicate is not None:
        features.append("source.deduplicate: duplicates by columns")
    return features


def require_support(spec: PipelineSpec, *, origin: str) -> None:
    """Refuse a spec that the engines cannot run yet.

    Raises:
        InputError: it uses a feature of a coming version; every such feature is named.
    """
    features = unsupported_features(spec)
    if features:
        raise InputError(
            origin,
            "not supported yet: " + "; ".join(features),
            "use no legacy_ascending, no idleness with ticks",
        )
