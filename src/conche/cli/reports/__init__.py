"""What people see: tables, plots, progress, JSON."""

from .plans import FORMATS, draw_plan, print_json, print_plan, waiting
from .streams import (
    check_writable,
    draw_evaluation,
    hints,
    learning,
    print_evaluation,
    print_evaluation_json,
    trained,
    write_predictions,
)

__all__ = [
    "FORMATS",
    "check_writable",
    "draw_evaluation",
    "draw_plan",
    "hints",
    "learning",
    "print_evaluation",
    "print_evaluation_json",
    "print_json",
    "print_plan",
    "trained",
    "waiting",
    "write_predictions",
]
