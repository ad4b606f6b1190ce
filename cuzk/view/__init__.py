"""All that a user sees: progress on stderr, results on stdout, JSON instead of both where it was asked for.

    text        what every command shows with: errors, notices, JSON, facts, tables
    progress    events of work under way
    proof, params, reports, bench, config, daemon, timeline, follow    what the commands of that name show

Rich is imported only to draw with it.
"""

from __future__ import annotations

from cuzk.view.progress import live
from cuzk.view.text import (
    show_error,
    show_facts,
    show_json,
    show_notice,
    show_paths,
    show_sections,
    show_table,
)

__all__ = [
    "live",
    "show_error",
    "show_facts",
    "show_json",
    "show_notice",
    "show_paths",
    "show_sections",
    "show_table",
]
