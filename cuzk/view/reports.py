"""What `circuit info`, `prove --explain` and `doctor --plan` show: facts under headings, then tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import click

from cuzk.view.text import readable, show_facts, show_json, show_sections, show_table

if TYPE_CHECKING:
    from cuzk.reports.plan import Explanation


def show_explanation(explanation: Explanation, *, as_json: bool) -> None:
    """The plan of a proof: facts, then tables of the GPU's memory and of the sums."""
    facts, tables = explanation.facts(), [explanation.memory_rows(), explanation.sum_rows()]
    if as_json:
        show_json({**facts, "parts": tables[0], "sums": tables[1]})
        return
    for title, section in facts.items():
        show_facts(title, section)
    for rows in filter(None, tables):
        _show_rows(rows)


def show_explanations(explanations: Sequence[Explanation], *, as_json: bool) -> None:
    """A line for each sector size."""
    rows = [explanation.summary() for explanation in explanations]
    if as_json:
        show_json(rows)
    else:
        _show_rows(rows)


def _show_rows(rows: Sequence[Mapping[str, object]]) -> None:
    """A table of rows with the same names."""
    columns = [readable(name, None)[0].replace("_", " ") for name in rows[0]]
    show_table(columns, [[_cell(name, value) for name, value in row.items()] for row in rows])


def _cell(name: str, value: object) -> object:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return "" if value is None else readable(name, value)[1]


def show_circuit(
    sections: Mapping[str, Mapping[str, object]], templates: Sequence[Mapping[str, object]], *, as_json: bool
) -> None:
    """Facts about a circuit, then the templates that it is made of."""
    if as_json:
        show_json({**sections, "templates": templates})
        return
    show_sections(sections, as_json=False)
    click.secho("templates", bold=True)
    show_table(list(templates[0]), [list(template.values()) for template in templates])
