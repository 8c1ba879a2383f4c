"""What the paper says about each of its figures, and the numbers it prints, as checks of ours."""

from ..findings import Statements
from .curves import digits, fig7, fig8
from .sweeps import fig2, fig3, fig4, fig4_printed, fig5, fig6, fig9, fig10

STATEMENTS: dict[str, Statements] = dict(
    fig2=fig2,
    fig3=fig3,
    fig4=fig4,
    fig5=fig5,
    fig6=fig6,
    fig7=fig7,
    fig8=fig8,
    fig9=fig9,
    fig10=fig10,
    fig11=digits,
    fig12=digits,
)
PRINTED: dict[str, Statements] = {"fig4": fig4_printed}

__all__ = ["PRINTED", "STATEMENTS"]
