"""Conche: distributed continual learning with CoCoA.

What is public is listed in `conche.public`, which is loaded when something of it is first asked
for: so ``import conche`` is light, and ``conche --help`` answers at once.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from .common.version import __version__ as __version__

if TYPE_CHECKING:  # the same for type checkers and editors
    from .public import *  # noqa: F403
    from .public import __all__ as __all__
else:

    def __getattr__(name: str) -> Any:
        # ``from conche import training`` asks for the attribute first, and must load nothing else
        is_module = name.startswith("__") or find_spec(f"{__name__}.{name}") is not None
        if is_module and name not in ("__all__", "tasks", "theory"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        public = import_module(".public", __name__)
        globals().update({each: getattr(public, each) for each in public.__all__})
        globals()["__all__"] = public.__all__  # from here on it is a module like any other
        if name not in globals():
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return globals()[name]


def __dir__() -> list[str]:
    return [*import_module(".public", __name__).__all__, "__version__"]
