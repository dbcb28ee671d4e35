"""Log lines."""

from __future__ import annotations

import asyncio
import datetime as dt
import errno
import io
import json
import logging

import pytest
from server_desk import Lines

from pumice.server.logs import logs


def caught(error):
    """Give an error that has been raised, so that it knows where."""
    with pytest.raises(type(error)):
        raise error
    return error


def test_text_lines_are_key_and_value_and_one_line_each():
    stream = io.StringIO()
    log = logs.Log(0, "text", stream)
    log.info("bind", pod="a/b", node="n 1", reason="two\nlines\rof=it", queue="\x1b[2Jq\u202e")
    line = stream.getvalue()
    assert line.count("\n") == 1
    assert 'level=info msg=bind pod=a/b node="n 1" reason="two\\nlines\\\\rof=it" queue=' in line
    assert line.rstrip("\n").isprintable()
    assert line.startswith("time=20")


@pytest.mark.parametrize(
    ("value", "text", "as_json"),
    [
        ("plain", "plain", '"plain"'),
        ("", "", '""'),
        ("two words", '"two words"', '"two words"'),
        ("a=b", '"a=b"', '"a=b"'),
        ('say "no"', '"say \\"no\\""', '"say \\"no\\""'),
        ("C:\\a", "C:\\a", '"C:\\\\a"'),
        ("C:\\a b", '"C:\\\\a b"', '"C:\\\\a b"'),
        ("a\nb", "a\\nb", '"a\\nb"'),
        ("é", "é", '"\\u00e9"'),
        ("a\x1bb", "a\\x1bb", '"a\\u001bb"'),
        (None, "", "null"),
        (True, "true", "true"),
        (False, "false", "false"),
        (1.5, "1.5", "1.5"),
        (["a", 1], "\"['a', 1]\"", '["a", 1]'),
        ({3}, "{3}", '"{3}"'),
    ],
)
def test_values_are_written_so_that_the_next_key_is_found(value, text, as_json):
    for form, expected in (("text", f"level=info msg=m v={text} n=1"), ("json", f'"msg": "m", "v": {as_json}, "n": 1')):
        stream = io.StringIO()
        logs.Log(0, form, stream).info("m", v=value, n=1)
        assert expected in stream.getvalue()


@pytest.mark.parametrize("form", ["text", "json"])
def test_no_field_takes_the_place_of_when_how_bad_and_what(form):
    stream = io.StringIO()
    logs.Log(0, form, stream).info("m", time="never", level=4, msg="other", pod="p")
    assert "never" not in stream.getvalue()
    assert "other" not in stream.getvalue()
    assert stream.getvalue().index("level") < stream.getvalue().index("pod")


def test_times_are_those_of_utc_with_a_z():
    lines = Lines()
    lines.log.info("m")
    written = dt.datetime.fromisoformat(lines.all[0]["time"])
    assert lines.all[0]["time"].endswith("Z")
    assert abs(dt.datetime.now(dt.UTC) - written) < dt.timedelta(days=1)


def test_json_lines_begin_like_lines_of_text():
    stream = io.StringIO()
    logs.Log(0, "json", stream).info("bind", pod="a/b")
    assert list(json.loads(stream.getvalue())) == ["time", "level", "msg", "pod"]


def test_details_are_written_as_far_as_the_verbosity_goes():
    lines = Lines(verbosity=3)
    for level in (2, 3, 4):
        lines.log.detail(level, f"level {level}")
    assert [line["msg"] for line in lines.all] == ["level 2", "level 3"]
    assert lines.log.shows(3)
    assert not lines.log.shows(4)


def test_an_exception_is_written_with_its_type_and_a_breakdown_with_its_places():
    lines = Lines()
    error = caught(ValueError("no good"))
    lines.log.error("failed", error=error)
    lines.log.broke("broke", error)
    assert lines.all[0]["error"] == "ValueError: no good"
    assert "test_server_logs.py" in lines.all[1]["exception"]


class Full(io.StringIO):
    """A disk without room."""

    def flush(self):
        raise OSError(errno.ENOSPC, "No space left on device")


def gone():
    """A stream whose reader has closed it."""
    stream = io.StringIO()
    stream.close()
    return stream


@pytest.mark.parametrize("stream", [gone(), Full()])
@pytest.mark.parametrize("form", ["text", "json"])
def test_line_that_nobody_can_take_is_lost_and_stops_nobody(stream, form):
    log = logs.Log(4, form, stream)
    log.info("begins")
    log.warning("slow")
    log.error("failed", error=OSError("gone"))
    log.broke("broke", caught(OSError("gone")))
    log.detail(4, "cycle")
    logs.Bridge(log).handle(logging.makeLogRecord({"msg": "odd %d", "args": ("text",), "levelno": logging.ERROR}))


def test_warning_of_a_library_that_does_not_fit_its_values_is_written_as_it_stands():
    lines = Lines()
    logs.Bridge(lines.log).handle(logging.makeLogRecord({"name": "asyncio", "msg": "odd %d", "args": ("text",)}))
    assert [line["msg"] for line in lines.all] == ["odd %d"]


def test_warnings_of_libraries_join_the_log():
    lines = Lines()
    logs.adopt_libraries(lines.log)
    logging.getLogger("asyncio").warning("slow %s", "task")
    logging.getLogger("aiohttp.server").error("request failed", exc_info=caught(OSError("gone")))
    logging.getLogger("asyncio").info("not shown")
    assert [(line["msg"], line["source"]) for line in lines.all] == [
        ("slow task", "asyncio"),
        ("request failed", "aiohttp.server"),
    ]
    asyncio.run(asyncio.sleep(0))
