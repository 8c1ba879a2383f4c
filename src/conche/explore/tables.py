"""The numbers of every figure as a table: what its CSV file has, and what ``--csv`` prints."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ..common.plain import defined

FORMULA = tuple("=+-@\t\r")  # how a text begins that a spreadsheet would compute


class Table(NamedTuple):
    """Names of the columns, and the rows; None where there is no (finite) value."""

    columns: list[str]
    rows: list[list[Any]]


def model_tables(known: Mapping[str, Any]) -> dict[str, Table]:
    """All figures of a model, from its description."""
    found, tables = known["matrix"], {}
    if found is not None:
        tables["error-matrix"] = _matrix(found, found["values"])
        if found["changes"] is not None:
            tables["forgetting"] = _matrix(found, found["changes"])
        if len(found["all"]) > 1:
            tables["average"] = _average(found)
    if known["history"]:
        tables["before-and-after"] = _picked(known["history"], ("before", "after"))
        timed = any(record.get("seconds") for record in known["history"])
        tables["costs"] = _picked(known["history"], ("bytes", "seconds") if timed else ("bytes",))
    if known["spectrum"] is not None:
        values = known["spectrum"]["values"]
        tables["spectrum"] = of_columns(
            {"direction": range(1, len(values) + 1), "curvature": values}
        )
    if any(record["round"] > 1 for record in known["rounds"]):
        names = list(known["rounds"][0])
        tables["rounds"] = Table(names, [list(record.values()) for record in known["rounds"]])
    return tables


def _matrix(found: Mapping[str, Any], values: Sequence[Sequence[float]]) -> Table:
    rows = [[name, *row] for name, row in zip(found["learnt"], values, strict=True)]
    return Table(["after", *found["tasks"]], rows)


def _average(found: Mapping[str, Any]) -> Table:
    count = len(found["all"])
    named = {"tasks learnt": range(1, count + 1), "seen": found["seen"], "all": found["all"]}
    named |= {method: [level] * count for method, level in found["beside"].items()}
    return of_columns({name: column for name, column in named.items() if column is not None})


def _picked(records: Sequence[Mapping[str, Any]], names: Sequence[str]) -> Table:
    columns = ["task", "name", *names]
    return Table(columns, [[record.get(name) for name in columns] for record in records])


def of_columns(named: Mapping[str, Any]) -> Table:
    """From columns that are equally long."""
    rows = zip(*named.values(), strict=True)
    return Table(list(named), [list(row) for row in rows])


def csv_text(table: Table, command: str) -> str:
    """The file that the page saves: the command in its first line, then the table."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerows([map(_cell, row) for row in [table.columns, *defined(table.rows)]])
    return f"# {' '.join(command.splitlines())}\n{out.getvalue()}"


def _cell(value: Any) -> Any:
    """Texts come from files of others: none must become a formula."""
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value
