"""A `StreamPipeline` in a model's file: its transformers, as far as they are ours, and the model.

Only what can be said in names, numbers and arrays is written, so of transformers those alone that
Conche brings; a pipeline with others is refused by name.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .common.arrays import Array
from .errors import ParameterError
from .estimators import StreamPipeline
from .estimators.base import LinearModel
from .tasks import CosineFeatures, ReLUFeatures
from .tasks.features import RandomFeatures

STEPS: dict[str, type[RandomFeatures]] = {
    "CosineFeatures": CosineFeatures,
    "ReLUFeatures": ReLUFeatures,
}
FITTED = ("directions_", "offsets_")


def taken_apart(model: Any) -> tuple[Any, list[dict[str, Any]] | None, dict[str, Array]]:
    """The model itself; the pipeline's steps, if it is one, the last by its name alone; and the
    steps' arrays."""
    if not isinstance(model, StreamPipeline):
        return model, None, {}
    *before, (name, last) = model.steps
    steps, arrays = [], {}
    for i, (own, step) in enumerate(before):
        kind = type(step).__name__
        if STEPS.get(kind) is not type(step):
            known = ", ".join(STEPS)
            raise ParameterError(f"cannot save a pipeline with a {kind} ({own!r}): only {known}")
        for key in FITTED:
            if not hasattr(step, key):
                raise ParameterError(f"{own!r} of this pipeline has not learnt anything yet")
            arrays[f"step{i}.{key}"] = getattr(step, key)
        steps.append({"name": own, "class": kind, "parameters": step.get_params()})
    return last, [*steps, {"name": name}], arrays


def put_together(
    model: LinearModel, steps: list[dict[str, Any]] | None, arrays: dict[str, Array]
) -> Any:
    """Back from `taken_apart`."""
    if steps is None:
        return model
    made: list[tuple[str, Any]] = []
    for i, described in enumerate(steps[:-1]):
        step = STEPS[described["class"]](**described["parameters"])
        directions, offsets = (arrays[f"step{i}.{key}"] for key in FITTED)
        if directions.ndim != 2 or offsets.shape != directions.shape[1:]:
            raise ValueError(f"step {described['name']!r} does not fit itself")
        step.directions_, step.offsets_ = directions, offsets
        step.n_features_in_ = len(directions)
        made.append((str(described["name"]), step))
    if made and made[-1][1].directions_.shape[1] != model.n_features_in_:
        raise ValueError("the features are not as many as the model has columns")
    if any(not np.all(np.isfinite(a)) for _, step in made for a in (step.directions_,)):
        raise ValueError("directions that are no numbers")
    return StreamPipeline([*made, (str(steps[-1]["name"]), model)])
