"""Text from elsewhere, and errors with such text."""

import pickle

import pytest

from deepbore.errors import DeepBoreError, MissingPackage, SettingError
from deepbore.text import visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, with ümlauts, 漢字 and 😀", "plain, with ümlauts, 漢字 and 😀"),
        ("\x1b[31mred", r"\x1b[31mred"),
        ("\u202egnirts \u2066 \u200b", r"\u202egnirts \u2066 \u200b"),
        ("a\nb\r\x00\x9b\x7f", r"a\nb\r\x00\x9b\x7f"),
        ("\udcff \u2028", r"\udcff \u2028"),
    ],
)
def test_what_is_not_printed_is_written_as_python_writes_it(text, shown):
    assert visible(text) == shown
    assert visible(shown) == shown


def test_line_ends_may_stay():
    assert visible("a\nb\tc\x1b", keep="\n\t") == "a\nb\tc\\x1b"


@pytest.mark.parametrize("kind", [DeepBoreError, SettingError, MissingPackage])
def test_an_error_shows_no_control_characters(kind):
    error = kind("a name \x1b[2J\nand \u202emore")
    assert str(error) == "a name \\x1b[2J\nand \\u202emore"
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
