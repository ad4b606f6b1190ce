"""The page, put together from the files of `page`: one HTML text that loads nothing.

Styles and scripts stand inside it and are named by their digests in the policy that goes with it, so that a
browser runs these and no others.
"""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.resources import files

_FOLDER = files("cuzk.server") / "page"
_SCRIPTS = ("words.js", "feed.js", "lanes.js", "panels.js", "main.js")


def _read(name: str) -> str:
    return (_FOLDER / name).read_text(encoding="utf-8")


@cache
def _style() -> str:
    return f"\n{_read('style.css')}"


@cache
def _script() -> str:
    body = "".join(_read(name) for name in _SCRIPTS)
    return f'\n"use strict";\n(() => {{\n{body}}})();\n'


@cache
def page() -> str:
    return _read("page.html").replace("/*STYLE*/", _style()).replace("/*SCRIPT*/", _script())


@cache
def content_security_policy() -> str:
    """Nothing from anywhere but the page's own style, script and events."""
    return "; ".join(
        (
            "default-src 'none'",
            f"style-src {_digest(_style())}",
            f"script-src {_digest(_script())}",
            "connect-src 'self'",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        )
    )


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
