"""The model on the page: the one that was given, or one that was dropped in."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..errors import ModelFileError, ParameterError

Loading = Callable[[], dict[str, Any]]


class Shown:
    """What the command line gave: read when the page first asks for it, then remembered.

    Parameters
    ----------
    load : describes it; None where nothing was given.
    """

    def __init__(self, load: Loading | None = None):
        self._load = load
        self._lock = threading.Lock()
        self._known: dict[str, Any] | None = None

    def described(self) -> dict[str, Any]:
        """The description; an empty one where nothing was given."""
        if self._load is None:
            return {"none": True}
        with self._lock:
            if self._known is None:
                self._known = self._load()
        return self._known

    def dropped(self, data: bytes, name: str) -> dict[str, Any]:
        """A model's file that was dropped on the page; it is gone when it has been read."""
        from ..model_file import load_run
        from .model import description

        plain = Path(name.replace("\\", "/")).name[:100] or "model.conche"
        if not data:
            raise ParameterError(f"{plain}: is empty")
        with tempfile.TemporaryDirectory(prefix="conche-") as folder:
            file = Path(folder) / "model.conche"
            file.write_bytes(data)
            try:
                model, run = load_run(file)
            except ModelFileError as error:
                raise ModelFileError(str(error).replace(str(file), plain)) from None
            return description(model, run, file, name=plain)
