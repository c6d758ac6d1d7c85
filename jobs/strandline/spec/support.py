"""What a spec may say but this version cannot do yet: known, and refused by its name."""

from __future__ import annotations

from strandline.errors import InputError
from strandline.spec.pipeline import PipelineSpec
from strandline.spec.window import Session


def unsupported_features(spec: PipelineSpec) -> list[str]:
    """The features of a spec that the engines do not have yet, each as `path: what`."""
    features = []
    if isinstance(spec.window, Session):
        kind = next(iter(type(spec.window).model_fields))
        features.append(f"window.{kind}: {kind} windows")
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
            "use no sessions",
        )
