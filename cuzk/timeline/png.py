"""A picture as PNG. Browsers and their like draw SVG; chats and reports often take nothing but pixels.

The drawing is done by resvg, in one package without dependencies of its own: Cairo's needs a system library.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from types import ModuleType

from cuzk.errors import ResourceError

#: Pixels of the file for one of the picture: text stays sharp when it is enlarged.
ZOOM = 2
_A_WORD = '<svg xmlns="http://www.w3.org/2000/svg" width="20" height="20">{}</svg>'


def png(picture: str) -> bytes:
    """The pixels of an SVG picture, on its light ground. Raises ResourceError without the package."""
    return bytes(_resvg().svg_to_bytes(svg_string=picture, zoom=ZOOM))


@cache
def has_fonts() -> bool:
    """Whether words come out: without a font on the machine they are left out."""
    draw = _resvg().svg_to_bytes
    with_word = draw(svg_string=_A_WORD.format('<text x="2" y="15">M</text>'))
    return bytes(with_word) != bytes(draw(svg_string=_A_WORD.format("")))


def _resvg() -> ModuleType:
    try:
        return import_module("resvg_py")
    except ImportError as error:
        raise ResourceError(
            "pictures as PNG take a package that is not installed: resvg-py",
            next="pip install '.[png]' in a clone of cuzk, or write .svg or .html",
        ) from error
