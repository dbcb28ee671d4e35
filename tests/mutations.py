"""Files as somebody with bad intentions, or a bad disk, would hand them in: valid ones with bits flipped, cut, repeated, nested, or with other values in them."""

from __future__ import annotations

import copy
import os

from hypothesis import strategies as st

EXAMPLES = 1_000 if os.environ.get("PUMICE_FUZZ") else 30

TOKENS = (
    b"[" * 3_000,
    b'{"a":' * 3_000,
    b"- " * 3_000,
    b"\xff\xfe\x00",
    b"1e999999999",
    b"9" * 400,
    b"-1",
    b"null",
    b"\n",
    b"\t",
    b"\x00",
    b"*a",
    b"&a [*a, *a]",
    b"!!python/object/apply:os.system [true]",
    b'"\\ud800"',
    b"<<: *a",
    b"__class__",
)
VALUES = (
    None,
    True,
    0,
    -1,
    2**31,
    2**63 - 1,
    -(2**63),
    1e308,
    "",
    "x" * 5_000,
    "\x00\x1b[2J",
    "__class__",
    "os.system",
    [],
    {},
    [[[[[[]]]]]],
    {"a": {"b": [None]}},
    ["x", -1, None],
)


@st.composite
def changed_bytes(draw, data: bytes) -> bytes:
    """Give a file with a few of its bytes changed, cut out, repeated, or with a token of ours among them."""
    made = bytearray(data)
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, max(len(made) - 1, 0)))
        end = min(len(made), start + draw(st.integers(1, 200)))
        match draw(st.sampled_from(("flip", "cut", "end", "repeat", "move", "token"))):
            case "flip" if made:
                made[start] ^= 1 << draw(st.integers(0, 7))
            case "cut":
                del made[start:end]
            case "end":
                del made[start:]
            case "repeat":
                made[start:start] = made[start:end] * draw(st.sampled_from((1, 2, 500)))
            case "move":
                place = draw(st.integers(0, len(made)))
                made[place:place] = made[start:end]
            case "token":
                made[start:start] = draw(st.sampled_from(TOKENS))
    return bytes(made)


def places(value, path=()):
    """List the paths of everything within plain data."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from places(inner, (*path, key))


@st.composite
def changed_value(draw, value, chosen=None):
    """Give plain data with some of its parts replaced by others, taken out, or put there twice."""
    made = copy.deepcopy(value)
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from(chosen or list(places(value))[1:]))
        *front, last = path
        holder = made
        try:
            for key in front:
                holder = holder[key]
            holder[last]
        except (LookupError, TypeError):
            continue  # gone by what was done before
        if not isinstance(holder, dict | list):
            continue  # as above
        match draw(st.sampled_from(("other", "other", "out", "twice", "swap"))):
            case "other":
                holder[last] = copy.deepcopy(draw(st.sampled_from(VALUES)))
            case "out":
                del holder[last]
            case "twice" if isinstance(holder, list):
                holder.insert(last, copy.deepcopy(holder[last]))
            case _:
                holder[last] = copy.deepcopy(_at(value, draw(st.sampled_from(chosen or list(places(value))))))
    return made


def _at(value, path):
    for key in path:
        value = value[key]
    return value
