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
    """The parent of everything that Conche raises on purpose."""


class ParameterError(ConcheError, ValueError):
    """An argument or option that cannot be; the message names it and what it may be."""


class DataError(ConcheError, ValueError):
    """A task whose features or targets cannot be learnt."""


class StreamError(DataError):
    """A stream that cannot be read; the message names the file, and the column if there is one."""


class SpecError(ConcheError, ValueError):
    """A figure's spec that cannot be run; the message names the entry."""


class ModelFileError(ConcheError, ValueError):
    """A file that is not a whole Conche model this version can read."""


class NodeError(ConcheError, ValueError):
    """What went wrong on one node, told to all of them."""


class NetworkError(ConcheError, RuntimeError):
    """A network that is closed, lost, or has no task under way."""


class DivergenceError(ConcheError, ArithmeticError):
    """The rounds overflowed; the model is as it was before the task."""


class DeviceError(ConcheError, RuntimeError):
    """A GPU that is not there, or has too little memory; the message says what to do."""


class MissingExtraError(ConcheError, ImportError):
    """An optional dependency that is not installed; the message says which extra brings it."""


class NearSquareWarning(UserWarning):
    """A node's block is nearly square: the paper's theory gives an infinite expected error."""


class CorrelationWarning(UserWarning):
    """The features are correlated: the theory assumes that they are not."""


class DeviceWarning(UserWarning):
    """What was to be learnt on a GPU is learnt on the processor; the message says why."""


class OfflineGapWarning(UserWarning):
    """Memory of limited rank has lost more than a percent of the offline objective."""
