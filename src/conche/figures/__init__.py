"""The paper's figures as data: a spec each, the table it makes, its plot, and its checks."""

from .checks import Finding, check
from .run import Figure, make
from .spec import Spec, SpecError, built_in, read_spec

__all__ = ["Figure", "Finding", "Spec", "SpecError", "built_in", "check", "make", "read_spec"]
