"""Optional dependencies: imported when they are needed, and missed in one line."""

from __future__ import annotations

import importlib
from typing import Any

from ..errors import MissingExtraError


def need(module: str, extra: str, why: str) -> Any:
    """Import ``module``, or say which extra of Conche brings it.

    Parameters
    ----------
    module : what to import, such as ``"pyarrow.parquet"``.
    extra : the extra that installs it, such as ``"files"``.
    why : what cannot be done without it, for the message.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise MissingExtraError(
            f"{why} needs {package}: pip install 'conche[{extra}]' ({error})"
        ) from error
