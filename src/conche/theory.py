"""The paper's theory, under its public name: `conche.theory`."""

from .paper.theory import *  # noqa: F403  # exactly what it lists as public
from .paper.theory import __all__ as __all__
