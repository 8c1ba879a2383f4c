"""The same class with other defaults."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from .base import LinearModel

M = TypeVar("M", bound=LinearModel)


def with_defaults(**defaults: Any) -> Callable[[type[M]], type[M]]:
    """Give a class its parent's constructor with other defaults, which ``help`` shows."""

    def changed(cls: type[M]) -> type[M]:
        inherited = cls.__init__

        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
            inherited(self, *args, **(defaults | kwargs))

        known = inspect.signature(inherited, eval_str=True)
        parameters = [
            p.replace(default=defaults.get(p.name, p.default)) for p in known.parameters.values()
        ]
        new = known.replace(parameters=parameters)
        __init__.__signature__ = new  # type: ignore[attr-defined]  # inspect reads it there
        cls.__init__ = __init__  # type: ignore[method-assign]  # the point of the decorator
        return cls

    return changed
