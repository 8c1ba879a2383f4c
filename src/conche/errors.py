"""Everything that Conche refuses or fails at, on one page.

    ConcheError
    ├── ParameterError      an argument or option that cannot be               (also ValueError)
    ├── DataError           a task's X or y that cannot be learnt              (also ValueError)
    │   └── StreamError     a file or folder of tasks that cannot be read
    ├── SpecError           a figure's spec that cannot be run                 (also ValueError)
    ├── ModelFileError      a file that is not a whole Conche model            (also ValueError)
    ├── NodeError           what went wrong on one node, told to all of them   (also ValueError)
    ├── NetworkError        a network that is closed, lost or not started      (also RuntimeError)
    ├── DivergenceError     rounds that overflowed; the model is as it was    (also ArithmeticError)
    ├── DeviceError         a GPU that is not there, or too small                (also RuntimeError)
    └── MissingExtraError   an optional dependency that is not installed       (also ImportError)

After any of them a model is what it was before the call. The command line turns them, and the
system's own errors on files, into one line; anything else is a bug.
"""

from __future__ import annotations


class ConcheError(Exception):
    """The parent of everything that Conche raises on purpose.

    Examples
    --------
    >>> import conche
    >>> try:
    ...     conche.CoCoARegressor(n_nodes=3).fit([[1.0, 2.0]], [1.0])
    ... except conche.ConcheError as error:
    ...     print(error)
    n_nodes=3: 2 columns fit on 1 to 2 nodes
    """


class ParameterError(ConcheError, ValueError):
    """An argument or option that cannot be; the message names it and what it may be.

    Examples
    --------
    >>> import conche
    >>> conche.gaussian_tasks(n_tasks=1, n_samples=10, n_features=4, n_shared=5)
    Traceback (most recent call last):
    ...
    conche.errors.ParameterError: n_shared=5 must be a whole number of at least 0 and at most 4
    """


class DataError(ConcheError, ValueError):
    """A task whose features or targets cannot be learnt.

    Examples
    --------
    >>> import conche
    >>> conche.CoCoARegressor().fit([[1.0], [float("nan")]], [1.0, 2.0])
    Traceback (most recent call last):
    ...
    conche.errors.DataError: Input X contains NaN. (first at row 1, column 0)
    """


class StreamError(DataError):
    """A stream that cannot be read; the message names the file, and the column if there is one.

    Examples
    --------
    >>> import conche
    >>> conche.FileStream("no_such_folder")
    Traceback (most recent call last):
    ...
    conche.errors.StreamError: no_such_folder: no such file or folder
    """


class SpecError(ConcheError, ValueError):
    """A figure's spec that cannot be run; the message names the entry.

    Examples
    --------
    >>> import conche
    >>> from conche.paper.figures import read_spec
    >>> try:
    ...     read_spec("fig99")
    ... except conche.SpecError as error:
    ...     print(str(error).partition(":")[0])
    no figure 'fig99'
    """


class ModelFileError(ConcheError, ValueError):
    """A file that is not a whole Conche model this version can read.

    Examples
    --------
    >>> import conche
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:  # which is empty
    ...     conche.load(file.name)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    conche.errors.ModelFileError: ...: not a whole model file (...)
    """


class NodeError(ConcheError, ValueError):
    """What went wrong on one node, told to all of them.

    Examples
    --------
    >>> import conche
    >>> issubclass(conche.NodeError, conche.ConcheError)  # on MPI every rank raises the same
    True
    """


class NetworkError(ConcheError, RuntimeError):
    """A network that is closed, lost, or has no task under way.

    Examples
    --------
    >>> import conche
    >>> task = conche.gaussian_tasks(1, 30, 4)[0]
    >>> model = conche.CoCoARegressor(n_nodes=2).fit(task.X, task.y)
    >>> model.network_.propose(task.y)
    Traceback (most recent call last):
    ...
    conche.errors.NetworkError: no task is under way: call begin first
    """


class DivergenceError(ConcheError, ArithmeticError):
    """The rounds overflowed; the model is as it was before the task.

    Examples
    --------
    >>> import conche
    >>> import numpy as np
    >>> with np.errstate(all="ignore"):
    ...     conche.CoCoARegressor().fit(np.full((6, 2), 1e-200), np.full(6, 1e149))
    ... # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    conche.errors.DivergenceError: task 1: the estimate overflowed in round 1; ...
    """


class DeviceError(ConcheError, RuntimeError):
    """A GPU that is not there, or too little memory; the message says what to do.

    Examples
    --------
    >>> import conche
    >>> task = conche.gaussian_tasks(1, 30, 4)[0]
    >>> try:
    ...     model = conche.CoCoARegressor(device="cuda").fit(task.X, task.y)
    ... except (conche.DeviceError, conche.MissingExtraError):  # no GPU, or no PyTorch
    ...     model = conche.CoCoARegressor().fit(task.X, task.y)
    >>> model.n_tasks_seen_
    1
    """


class MissingExtraError(ConcheError, ImportError):
    """An optional dependency that is not installed; the message says which extra brings it.

    Examples
    --------
    >>> import conche
    >>> issubclass(conche.MissingExtraError, ImportError)  # as Python's own, with what to install
    True
    """


class NearSquareWarning(UserWarning):
    """A node's block is nearly square: the paper's theory gives an infinite expected error.

    Examples
    --------
    >>> import conche
    >>> import warnings
    >>> task = conche.gaussian_tasks(n_tasks=1, n_samples=10, n_features=20)[0]
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     _ = conche.CoCoARegressor(n_nodes=2).fit(task.X, task.y)  # 10 columns on each node
    >>> caught[0].category is conche.NearSquareWarning
    True
    """


class CorrelationWarning(UserWarning):
    """The features are correlated: the theory assumes that they are not.

    Examples
    --------
    >>> import conche
    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     _ = conche.theory.estimate(conche.gaussian_tasks(4, 100, 20, correlation=0.9))
    >>> caught[0].category is conche.CorrelationWarning
    True
    """


class DeviceWarning(UserWarning):
    """What was to be learnt on a GPU is learnt on the processor; the message says why.

    Examples
    --------
    >>> import conche
    >>> import warnings
    >>> with warnings.catch_warnings():  # sparse columns stay on the processor: be it so
    ...     warnings.simplefilter("ignore", conche.DeviceWarning)
    """


class OfflineGapWarning(UserWarning):
    """Memory of limited rank has lost more than a percent of the offline objective."""


class ReplayWarning(UserWarning):
    """A task has come again: its rows are no news of how many rows there are.

    Examples
    --------
    >>> import conche
    >>> import warnings
    >>> task = conche.gaussian_tasks(1, 30, 4)[0]
    >>> model = conche.ConcheRegressor().fit(task.X, task.y)
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     _ = model.partial_fit(task.X, task.y)
    >>> caught[0].category is conche.ReplayWarning
    True
    """
