"""The command line: thin."""

from .main import main

__all__ = ["main"]
