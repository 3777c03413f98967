"""Text from elsewhere, made fit to be shown."""

import re
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

SURROGATES = re.compile("[\ud800-\udfff]")  # halves of characters, which no file of text can hold


def is_writable(text: str) -> bool:
    r"""Whether a text can be written into a file in UTF-8: it has no half of a character, a lone surrogate.

    Example:
        >>> is_writable("λ"), is_writable("\ud800")
        (True, False)
    """
    return SURROGATES.search(text) is None


def writable(text: str) -> str:
    r"""A text in which lone surrogates, as in file names that are not UTF-8, are written as Python writes them.

    Example:
        >>> writable("run-\udcff")
        'run-\\udcff'
    """
    return SURROGATES.sub(lambda found: f"\\u{ord(found[0]):x}", text)


def visible(text: str, keep: str = "") -> str:
    r"""A text with all that is not printed, as control characters are, written as Python writes it.

    A name in a received file can neither command the terminal, nor turn the order of letters, nor begin a line.

    Args:
        text: any text.
        keep: characters that may stay, such as line ends.

    Example:
        >>> visible("lr\x1b[2J"), visible("3\u202e4")
        ('lr\\x1b[2J', '3\\u202e4')
    """
    if text.isprintable():
        return text
    shown = (c if c.isprintable() or c in keep else c.encode("unicode_escape").decode() for c in text)
    return "".join(shown)


def as_html(title: str, rows: Iterable[Sequence[Any]], header: Sequence[str] = ()) -> str:
    """A small table for notebooks; all that stands in it is escaped.

    Example:
        >>> as_html("a < b", [["lr", 0.1]])
        '<b>a &lt; b</b><table><tr><td>lr</td><td>0.1</td></tr></table>'
    """

    def cell(tag: str, value: Any) -> str:
        text = f"{value:.6g}" if isinstance(value, float) else str(value)
        return f"<{tag}>{escape(visible(text))}</{tag}>"

    head = [f"<tr>{''.join(cell('th', each) for each in header)}</tr>"] if header else []
    body = [f"<tr>{''.join(cell('td', each) for each in row)}</tr>" for row in rows]
    return f"<b>{escape(visible(title))}</b><table>{''.join(head + body)}</table>"
