"""The paper's figures as data: a spec each, the table it makes, its plot, and its checks."""

from .checks import check
from .findings import Finding, passed
from .run import Machine, make
from .spec import Spec, built_in, read_spec
from .work import Figure

__all__ = [
    "Figure",
    "Finding",
    "Machine",
    "Spec",
    "built_in",
    "check",
    "make",
    "passed",
    "read_spec",
]
