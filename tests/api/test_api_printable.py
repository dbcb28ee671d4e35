from __future__ import annotations

import pytest

from pumice.api.printable import printable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain ünï 漢 text", "plain ünï 漢 text"),
        ("\x1b[2Jred", "\\x1b[2Jred"),
        ("a\nlevel=error\r\t", "a\\nlevel=error\\r\\t"),
        ("evil\u202etxt\u2028\x85\x9b\x7f", "evil\\u202etxt\\u2028\\x85\\x9b\\x7f"),
        ("\ud800", "\\ud800"),
    ],
)
def test_what_a_terminal_would_obey_is_written_out(text, shown):
    assert printable(text) == shown
