"""The pages and docstrings against the tree: links lead somewhere, keys of papers are explained, once."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted([ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").glob("*.md")])
_ONE_KEY = r"(?:[A-Z][A-Za-z]*\d{1,2}|EFD|CycloneMSM|Sho)"
_KEY = re.compile(rf"(?<!\w)\[({_ONE_KEY}(?:, {_ONE_KEY})*)\](?!\()")


def keys(text: str) -> set[str]:
    """Keys of papers, [KAK96] or [EFD, CycloneMSM], in a text."""
    return {key for group in _KEY.findall(text) for key in group.split(", ")}


def explained_keys() -> list[str]:
    rows = (ROOT / "docs/papers.md").read_text(encoding="utf-8").splitlines()
    return [match[1] for row in rows if (match := re.match(r"\| \[(\w+)\] \|", row))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_relative_links_lead_to_files(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    assert [target for target in targets if not (page.parent / target).exists()] == []


def test_every_key_of_a_paper_is_explained_once() -> None:
    used = set()
    for path in [*(ROOT / "cuzk").rglob("*.py"), *(ROOT / "bench").glob("*.py"), *PAGES]:
        used |= keys(path.read_text(encoding="utf-8"))
    explained = explained_keys()
    assert len(set(explained)) == len(explained)
    assert used == set(explained)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Source: [KAK96] CIOS", {"KAK96"}),
        ("[EFD, CycloneMSM].", {"EFD", "CycloneMSM"}),
        ("x[T1](a.md) row[i]", set()),
        ("-> tuple[U64, U64]", set()),
    ],
)
def test_keys_are_recognised(text: str, found: set[str]) -> None:
    assert keys(text) == found


def test_every_weakness_is_answered_by_a_test_that_exists() -> None:
    rows = [
        row for row in (ROOT / "docs/known-weaknesses.md").read_text(encoding="utf-8").splitlines()
        if re.match(r"\| \d+ \|", row)
    ]  # fmt: skip
    assert [int(row.split("|")[1]) for row in rows] == list(range(1, 41))
    tests = {
        name
        for path in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"^ *def (test_\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    named = [re.findall(r"`(test_\w+)`", row) for row in rows]
    assert all(named)
    assert {name for names in named for name in names} - tests == set()
