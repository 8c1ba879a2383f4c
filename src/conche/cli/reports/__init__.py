"""What people see: tables, plots, progress, JSON."""

from .matrix import draw_evaluation
from .models import known_of, print_known
from .objects import print_object
from .plans import FORMATS, draw_plan, print_json, print_plan, waiting
from .streams import (
    Learning,
    check_writable,
    hints,
    print_evaluation,
    print_evaluation_json,
    trained,
    write_predictions,
)

__all__ = [
    "FORMATS",
    "Learning",
    "check_writable",
    "draw_evaluation",
    "draw_plan",
    "hints",
    "known_of",
    "print_evaluation",
    "print_evaluation_json",
    "print_json",
    "print_known",
    "print_object",
    "print_plan",
    "trained",
    "waiting",
    "write_predictions",
]
