"""Answers over HTTP/1.1, held against the standard library's reading of the same bytes, however the network cuts them."""

from __future__ import annotations

import http.client
import io
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.kube import errors
from pumice.kube.calls.http_answers import LARGEST_HEAD, Answer, GarbledAnswerError

names = st.from_regex(r"X-[A-Za-z][A-Za-z0-9-]{0,8}", fullmatch=True)
values = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=12)


@st.composite
def written_answers(draw):
    """Bytes before an answer, the answer, whether the connection serves more after it, and whether it ends with the connection."""
    status = draw(st.sampled_from([200, 201, 204, 304, 400, 401, 404, 409, 422, 429, 500, 503]))
    body = draw(st.binary(max_size=300))
    version = draw(st.sampled_from(["1.0", "1.1"]))
    lines = [f"HTTP/{version} {status}{draw(st.sampled_from(['', ' Text', ' Two words']))}"]
    lines += [f"{name}: {value}" for name, value in draw(st.dictionaries(names, values, max_size=4)).items()]
    closing = draw(st.booleans())
    lines += ["Connection: close"] if closing else []
    # The standard library looks for chunks even where there is no body.
    form = draw(st.sampled_from(["length", "end"] if status in (204, 304) else ["length", "chunked", "end"]))
    if form == "length":
        lines.append(f"Content-Length: {len(body)}")
    elif form == "chunked":
        lines.append("Transfer-Encoding: chunked")
    interim = draw(st.sampled_from([b"", b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Hints\r\nLink: x\r\n\r\n"]))
    data = "\r\n".join(lines).encode() + b"\r\n\r\n"
    if status not in (204, 304):
        data += _chunked(draw, body) if form == "chunked" else body
    keeps = version == "1.1" and not closing and (form != "end" or status in (204, 304))
    return interim, data, keeps, form == "end" and status not in (204, 304)


def _chunked(draw, body):
    data, extension = b"", draw(st.sampled_from([b"", b";name=value", b" ;x"]))
    while body:
        size = draw(st.integers(1, len(body)))
        data += b"%x%b\r\n%b\r\n" % (size, extension, body[:size])
        body = body[size:]
    trailer = draw(st.sampled_from([b"", b"X-Trailer: y\r\n"]))
    return data + b"0\r\n" + trailer + b"\r\n"


class _Socket:
    def __init__(self, data):
        self._data = data

    def makefile(self, *_):
        return io.BytesIO(self._data)


def plain(data):
    response = http.client.HTTPResponse(_Socket(data), method="GET")
    response.begin()
    headers = {name.lower(): value for name, value in response.getheaders()}
    return response.status, headers, response.read()


def fed(data, cuts, answer):
    edges = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    for start, end in itertools.pairwise(edges):
        answer.feed(data[start:end])
    return answer


@given(written_answers(), st.lists(st.integers(0, 10_000), max_size=20))
def test_an_answer_is_what_the_standard_library_reads_wherever_it_is_cut(written, cuts):
    before, data, keeps, ends_with_connection = written
    answer = fed(before + data, cuts, Answer(1000))
    assert answer.done is not ends_with_connection
    if ends_with_connection:
        answer.end()
    assert (answer.status, answer.headers, answer.body) == plain(data)
    assert answer.done
    assert answer.keeps is keeps


@given(written_answers(), st.lists(st.integers(0, 10_000), max_size=20), st.integers(0, 400))
def test_an_answer_beyond_the_limit_is_refused_and_none_below_it(written, cuts, most):
    before, data, _, ends_with_connection = written
    size = len(plain(data)[2])
    answer = Answer(most)
    if size > most:
        with pytest.raises(errors.OversizeError, match=f"{most}"):
            fed(before + data, cuts, answer)
    else:
        fed(before + data, cuts, answer)
        assert answer.done is not ends_with_connection


@given(written_answers(), st.integers(0, 10_000))
def test_an_answer_that_is_cut_off_is_none(written, at):
    before, data, _, ends_with_connection = written
    whole = before + data
    answer = fed(whole[: at % len(whole)], [], Answer(None))
    if answer.done or (ends_with_connection and answer.status):
        answer.end()
        return
    with pytest.raises(GarbledAnswerError, match="ended within"):
        answer.end()


@given(st.lists(st.sampled_from([b"HTTP/1.1 200 OK\r\n", b"\r\n", b":", b"a: b\r\n", b"0", b"\0", b"\n", b"zz"])))
def test_noise_breaks_nothing(pieces):
    answer = Answer(10)
    try:
        for piece in pieces:
            answer.feed(piece)
        answer.end()
    except (GarbledAnswerError, errors.OversizeError):
        return
    assert answer.done


@pytest.mark.parametrize(
    "data",
    [
        b"HTTP/2 200 OK\r\n\r\n",
        b"HTTP/1.1 99 Odd\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno header\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n folded: x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\na : b\r\n\r\n",
        b"HTTP/1.1 200 OK\r\na: b\nc: d\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1, 2\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1" * 2000,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n" + b"a: b\r\n" * 20_000,
        b"HTTP/1.1 200 OK\r\n" + b"a" * (LARGEST_HEAD + 10),
    ],
)
def test_what_could_be_read_in_two_ways_is_not_read(data):
    with pytest.raises(GarbledAnswerError):
        Answer(None).feed(data)


def test_the_same_length_twice_is_one_length():
    answer = Answer(None)
    answer.feed(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok")
    assert (answer.done, answer.keeps, answer.body) == (True, True, b"ok")


def test_a_connection_on_which_more_came_than_was_asked_for_is_not_used_again():
    answer = Answer(None)
    answer.feed(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n")
    assert (answer.done, answer.keeps, answer.body) == (True, False, b"ok")


def test_an_answer_to_head_has_no_body():
    answer = Answer(None, bodiless=True)
    answer.feed(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n")
    assert (answer.done, answer.keeps, answer.body) == (True, True, b"")
