"""What users hand in, checked before anything is learnt from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import is_array_api_obj
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from ..common.arrays import (
    MOST_SQUARES,
    Array,
    column_squares,
    here,
    in_double,
    is_double,
    on_gpu,
    space,
    sum_of_squares,
)
from ..common.words import TOO_LARGE, one_line, too_large
from ..errors import DataError
from ..nodes.home import Home
from ..tasks.chosen import warn_of_absent
from ..tasks.columns import Aligned, Columns
from ..tasks.encoding import text_of, values_beside
from ..tasks.masks import unmasked

DTYPES = (np.float64, np.float32)
MOST_WEIGHT = 1e100  # of a sample: beyond, it is the weight that makes squares overflow
FILLS = "missing='mean' fills them"


@dataclass(frozen=True)
class Schema:
    """The columns of a stream: how many, what they are called, in which precision, and whether its
    first task had them sparse."""

    n_features: int
    names: tuple[str, ...] | None
    dtype: str
    sparse: bool = False
    homes: tuple[Home, ...] = ()  # where nodes keep their weights, where those stay with them


class Inputs(NamedTuple):
    """A task's X and y as they are learnt, and the columns that they have."""

    X: Any
    y: Array
    schema: Schema


def check_task(
    name: str, X: Any, y: Any, schema: Schema | None, gaps: bool, **checks: bool
) -> Inputs:
    """A task that can be learnt, or a `DataError` that says why not.

    Parameters
    ----------
    name : of the estimator, for messages.
    schema : the stream's columns; None where this task is the first, and fixes them.
    gaps : whether NaN may stand for a missing value.
    checks : of the target, as scikit-learn's ``validate_data`` takes them.
    """
    if y is None:
        raise DataError(f"{name} requires y to be passed, but the target y is None")
    if schema is not None:
        X, schema = aligned(X, schema, gaps)
    X, y = unmasked(X, "X", gaps, FILLS), unmasked(y, "the target")
    if isinstance(X, Columns):
        return _check_columns(X, y, schema)
    if on_gpu(X):
        return _check_there(name, X, y, schema, gaps, **checks)
    if schema is not None and _is_plain(X, schema) and _is_plain_target(y, X, **checks):
        return Inputs(X, y, schema)
    X, y = _target(X), _target(y)  # of PyTorch's, on the processor
    stand_in = _stand_in(name, schema)
    dtype = list(DTYPES) if schema is None else np.dtype(schema.dtype)
    X, y = _validated(stand_in, X, gaps, y=y, reset=schema is None, dtype=dtype, **checks)
    names = getattr(stand_in, "feature_names_in_", None)
    named = None if names is None else tuple(names.tolist())
    _check_size(X, y, named)
    is_sparse = sparse.issparse(X) if schema is None else schema.sparse
    return Inputs(X, y, Schema(X.shape[1], named, np.dtype(X.dtype).name, is_sparse))


def _check_size(X: Any, y: Any, names: Sequence[str] | None) -> None:
    """Refuse what would overflow, before anything is learnt from it."""
    if X.shape[1] and np.max(_squares(X)) >= MOST_SQUARES:
        raise DataError(name_overflow(X, y, names))
    check_target_size(y)


def check_target_size(y: Any) -> None:
    """The same of a target alone."""
    if y.dtype.kind == "f" and not sum_of_squares(y.astype(float, copy=False)) < MOST_SQUARES:
        raise DataError(too_large("the target"))


def name_overflow(X: Any, y: Any, names: Sequence[str] | None, weights: Array | None = None) -> str:
    """What to say where sums have overflowed: the first column, or else the target, whose squares
    do so in double precision; if none does, the largest column.

    Parameters
    ----------
    X, y : a task, of finite numbers or NaN.
    names : of its columns, where they have any.
    weights : of the samples, where they have any.
    """
    if weights is not None and np.max(weights) > MOST_WEIGHT:
        return f"sample_weight {np.max(weights):g} of sample {np.argmax(weights)} is too large"
    squares = _squares(X)
    large = squares >= MOST_SQUARES
    if not large.any() and not np.sum(_squares(y.reshape(len(y), -1))) < MOST_SQUARES:
        return too_large("the target")
    j = int(np.argmax(large if large.any() else squares))
    return too_large(f"column {j}" if names is None else f"column {names[j]!r}")


def named(error: BaseException, task: Inputs, weights: Array | None) -> BaseException:
    """What went wrong in learning a task; of an overflow, with its culprit's name."""
    overflowed = isinstance(error, DataError) and str(error) == TOO_LARGE
    if not overflowed or isinstance(task.X, Columns):  # files are checked when they are read
        return error
    return DataError(name_overflow(task.X, task.y, task.schema.names, weights))


def _squares(X: Any) -> Array:
    """Every column's squares, in double precision; what is missing counts for nothing."""
    with np.errstate(over="ignore", invalid="ignore"):
        squares = np.asarray(here(column_squares(X)))
        if np.isnan(squares).any():
            squares = column_squares(np.where(np.isnan(X), 0.0, X))
    return squares


def aligned(X: Any, schema: Schema, gaps: bool, may_grow: bool = True) -> tuple[Any, Schema]:
    """X with its columns in the order of the stream's, and the schema with those that are new.

    Only columns with names can come later, or stay away: what a task does not have counts as
    missing, but ``sky=grey`` is zero beside ``sky=rain``.
    """
    names = _names(X)
    if names is None or schema.names is None or names == schema.names:
        return X, schema
    there, known = set(names), set(schema.names)
    zero = values_beside(schema.names, there)
    absent = [name for name in schema.names if name not in there and name not in zero]
    new = tuple(name for name in names if name not in known)
    if absent and not gaps:
        raise DataError(
            f"column {absent[0]!r} of the stream is missing; with missing='mean' it would count as "
            f"missing"
        )
    if len(there) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise DataError(f"column {twice!r} is there twice")
    was_text = {text_of(name) for name in schema.names} - {text_of(name) for name in names}
    for name in new:
        if name in was_text:
            raise DataError(f"column {name!r} has numbers here, and was a text before")
    if new and not may_grow:
        raise DataError(f"column {new[0]!r} was not there in training")
    if len(absent) == len(schema.names):
        raise DataError(f"none of the stream's columns is there, such as {absent[0]!r}")
    whole = replace(schema, n_features=len(known) + len(new), names=schema.names + new)
    assert whole.names is not None
    if isinstance(X, Columns):
        return Aligned.to(X, whole.names), whole
    frame = X.reindex(columns=list(whole.names))
    for name, beside in zero.items():
        frame[name] = X[beside] * 0  # what is missing stays so
    return frame, whole


def _names(X: Any) -> tuple[str, ...] | None:
    """The columns' names, if all are texts."""
    names = X.names if isinstance(X, Columns) else getattr(X, "columns", None)
    if names is None or not all(isinstance(name, str) for name in names):
        return None
    return tuple(names) if isinstance(X, Columns) or hasattr(X, "reindex") else None


def check_weights(weights: Any, n_samples: int) -> Array | None:
    """What samples weigh: numbers that are not negative, and not all zero."""
    if weights is None:
        return None
    weights = unmasked(weights, "sample_weight")
    try:
        w = np.asarray(weights, dtype=float)
    except (TypeError, ValueError):
        raise DataError("sample_weight must be numbers, one per sample") from None
    if w.ndim == 0:
        w = np.full(n_samples, float(w))
    if w.shape != (n_samples,):
        raise DataError(f"sample_weight has shape {w.shape}, for {n_samples} samples")
    bad = np.flatnonzero(~(np.isfinite(w) & (w >= 0)))
    if len(bad):
        raise DataError(f"sample_weight {w[bad[0]]} of sample {bad[0]}: must be zero or more")
    if not np.any(w > 0):
        raise DataError("sample_weight is zero for every sample")
    return None if np.all(w == 1.0) else w


def check_features(name: str, X: Any, schema: Schema, gaps: bool) -> Any:
    """Features to predict from: columns like the stream's. Those that are missing altogether may be
    filled, but not in silence."""
    X = unmasked(X, "X", gaps, FILLS)
    if gaps or values_beside(schema.names or (), _names(X) or ()):
        before = X
        X, _ = aligned(X, schema, gaps, may_grow=False)
        if before is not X:
            _tell_absent(before, schema)
    if on_gpu(X):
        return _there(X, schema.n_features, gaps)
    if _is_plain(X, schema):
        return X
    if not isinstance(X, Columns):
        return _validated(_stand_in(name, schema), X, gaps, reset=False, dtype=list(DTYPES))
    if X.shape[1] != schema.n_features:
        raise DataError(f"X has {X.shape[1]} columns, the model {schema.n_features}")
    return X.read()


def _tell_absent(X: Any, schema: Schema) -> None:
    """Warn of columns of the stream's that X has none of."""
    names, there = schema.names or (), _names(X) or ()
    zero = values_beside(names, there)
    absent = [name for name in names if name not in there and name not in zero]
    if absent:
        warn_of_absent("X", absent, names)


def _is_plain(X: Any, schema: Schema) -> bool:
    """Whether X is as scikit-learn's checks would leave it: an array of the stream's own columns
    and precision, all finite. They take longer than a small task does."""
    return (
        type(X) is np.ndarray
        and X.ndim == 2
        and schema.names is None
        and X.dtype == schema.dtype
        and X.shape[1] == schema.n_features
        and X.shape[0] > 0
        and _is_finite(X)
    )


def _is_plain_target(y: Any, X: Array, multi_output: bool = False, y_numeric: bool = False) -> bool:
    """The same of a target."""
    if type(y) is not np.ndarray or not 1 <= y.ndim <= 1 + multi_output or len(y) != len(X):
        return False
    return y.dtype.kind in "iu" or (y_numeric and y.dtype == np.float64 and _is_finite(y))


def _is_finite(array: Array) -> bool:
    """Whether all entries are, and their squares; False too where the sum of those overflows."""
    return sum_of_squares(array) < MOST_SQUARES


def _stand_in(name: str, schema: Schema | None) -> Any:
    """What scikit-learn may write the columns' names on, so that the model itself stays as it is
    until the task has been learnt."""
    stand_in = type(name, (BaseEstimator,), {})()
    if schema is not None:
        stand_in.n_features_in_ = schema.n_features
    if schema is not None and schema.names is not None:
        stand_in.feature_names_in_ = np.array(schema.names, dtype=object)
    return stand_in


def _validated(stand_in: Any, X: Any, gaps: bool, **checks: Any) -> Any:
    finite = "allow-nan" if gaps else True
    try:
        return validate_data(
            stand_in, X, accept_sparse=["csr", "csc"], ensure_all_finite=finite, **checks
        )
    except ValueError as error:  # a TypeError is what scikit-learn asks for, and stays one
        text = one_line(error)
        if text.startswith("Input X contains"):
            text = f"{str(error).splitlines()[0]} {_first_bad(X)}".strip()
        raise DataError(text) from None


def _first_bad(X: Any) -> str:
    """Where the first missing or infinite entry of a dense X is, counted from 0."""
    try:
        bad = np.argwhere(~np.isfinite(np.asarray(X, dtype=np.float64)))
    except (TypeError, ValueError):
        return ""
    return f"(first at row {bad[0][0]}, column {bad[0][1]})" if len(bad) else ""


def _check_there(
    name: str, X: Any, y: Any, schema: Schema | None, gaps: bool, **checks: bool
) -> Inputs:
    """Columns on a GPU, which stay there; the target comes here."""
    X = _there(X, None if schema is None else schema.n_features, gaps)
    rows = np.zeros((X.shape[0], 1))  # scikit-learn looks at a target only beside columns
    _, y = _validated(_stand_in(name, None), rows, gaps, y=_target(y), reset=True, **checks)
    _check_size(X, y, None)
    if schema is None:
        return Inputs(X, y, Schema(X.shape[1], None, "float64" if is_double(X) else "float32"))
    return Inputs(X, y, schema)


def _target(y: Any) -> Any:
    return here(y) if is_array_api_obj(y) else y


def _there(X: Any, n_features: int | None, gaps: bool) -> Any:
    """A matrix on a GPU with numbers that can be learnt from, as it is."""
    if X.ndim != 2:
        raise DataError(f"X has {X.ndim} dimension(s), not two")
    if n_features is not None and X.shape[1] != n_features:
        raise DataError(f"X has {X.shape[1]} columns, the stream {n_features}")
    if min(X.shape) == 0:
        raise DataError(f"X has {X.shape[0]} rows and {X.shape[1]} columns")
    xp = space(X)
    if X.dtype not in (xp.float32, xp.float64):
        X = in_double(X)
    if not bool(xp.all(xp.isfinite(X) | xp.isnan(X) if gaps else xp.isfinite(X))):
        raise DataError("X has missing or infinite values")
    return X


def _check_columns(X: Columns, y: Any, schema: Schema | None) -> Inputs:
    """Columns that nobody has read yet: their number and names; the target as it is."""
    names = None if X.names is None else tuple(X.names)
    is_sparse = X.sparse if schema is None else schema.sparse
    homes = X.homes if schema is None else schema.homes
    new = Schema(X.shape[1], names, np.dtype(X.dtype).name, is_sparse, homes)
    if schema is not None and new.n_features != schema.n_features:
        raise DataError(f"X has {X.shape[1]} columns, the stream {schema.n_features}")
    known = schema is not None and schema.names is not None
    if schema is not None and known and names is not None and names != schema.names:
        raise DataError("the columns' names are not those of the first task")
    y = np.asarray(y)
    if len(y) != X.shape[0]:
        raise DataError(f"X has {X.shape[0]} rows but y has {len(y)}")
    if y.dtype.kind == "f" and not np.all(np.isfinite(y)):
        raise DataError("the target has missing or infinite values")
    check_target_size(y)
    return Inputs(X, y, new)
