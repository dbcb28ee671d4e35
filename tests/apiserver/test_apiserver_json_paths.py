"""The JSON paths of printer columns lead where kubectl's do."""

from __future__ import annotations

import pytest

from pumice.apiserver.tables import json_paths

VALUE = {"a": [{"t": "x", "n": 1}, {"t": "y", "n": 2}, {"t": "z", "n": 3}], "none": [], "text": "abc", "d.e": 4}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".a[0].n", [1]),
        (".a[-1].n", [3]),
        (".a[5].n", []),
        (".a[-1:].t", ["z"]),
        (".a[1:].n", [2, 3]),
        (".a[:2].n", [1, 2]),
        (".a[0:1].n", [1]),
        (".a[-2:-1].n", [2]),
        (".none[-1:].t", []),
        (".text[-1:]", []),
        (".a[*].n", [1, 2, 3]),
        ('.a[?(@.t=="y")].n', [2]),
        (".d\\.e", [4]),
    ],
)
def test_a_path_leads_to_what_it_names(path, found):
    assert json_paths.find(VALUE, path) == found
