"""Pages, lines, discovery and waiting times, without a server."""

import asyncio
import random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drawing import drawn
from pumice.api import decoding, kinds
from pumice.kube import errors
from pumice.kube.watches import arrivals, discovery, nested_json, recovery

NESTED = b"[" * 5000 + b'"]"' + b"]" * 5000


def test_a_page_gives_its_objects_undecoded_its_version_and_the_next_token():
    text = b'{"kind":"PodList","metadata":{"resourceVersion":"7","continue":"abc"},"items":[{"a":1},{"b":[]}]}'
    page = arrivals.page(text)
    assert ([bytes(item) for item in page.items], page.version, page.token) == ([b'{"a":1}', b'{"b":[]}'], "7", "abc")


def test_a_list_of_nothing_may_be_null():
    assert arrivals.page(b'{"metadata":{"resourceVersion":"7"},"items":null}').items == []


def test_an_object_nested_too_deeply_spoils_itself_alone():
    good, bad = b'{"metadata":{"name":"g","uid":"1"}}', b'{"spec":%s,"metadata":{"name":"d","uid":"2"}}' % NESTED
    page = arrivals.page(b'{"items":[%s,%s,%s],"metadata":{"resourceVersion":"7"}}' % (good, bad, good))
    found = [arrivals.arrival(kinds.POD_GROUP, item, keep=False).object for item in page.items]
    assert [each.metadata.name for each in found] == ["g", "d", "g"]
    assert isinstance(found[1], decoding.Malformed)
    assert found[1].message == "PodGroup d: is nested too deeply to be read"


DEEP = b"[" * 50_000 + b"]" * 50_000


@pytest.mark.parametrize(
    "text",
    [b"", b"{", b"[]", b'{"metadata":', b'{"items":[]}', b"\xff\xfe", b"null", b'{"metadata":{"a":' + DEEP + b"}}"],
)
def test_an_answer_that_is_no_list_is_an_error_that_says_so(text):
    with pytest.raises(arrivals.GarbledError, match=f"{len(text)} bytes"):
        arrivals.page(text)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"[]",
        b"{}",
        b'{"type":"ADDED"}',
        b'{"type":"EATEN","object":{}}',
        b'{"type":"ADDED","object":{"met',
        b"\xff",
        b'{"type":' + DEEP + b',"object":{}}',
    ],
)
def test_a_line_that_is_no_event_is_an_error_that_says_so(text):
    with pytest.raises(arrivals.GarbledError, match=f"{len(text)} bytes"):
        arrivals.line(text)


def test_an_error_event_is_raised_as_what_it_reports():
    text = b'{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old"}}'
    with pytest.raises(arrivals.ReportedError, match=r"too old \(410 Expired\)"):
        arrivals.line(text)
    with pytest.raises(arrivals.ReportedError, match="cannot be read"):
        arrivals.line(b'{"type":"ERROR","object":7}')


def test_an_object_of_a_line_keeps_its_json_if_asked():
    event = arrivals.line(b'{"type":"ADDED","object":{"metadata":{"name":"a"}}}')
    assert arrivals.arrival(kinds.NODE, event.object, keep=True).raw == b'{"metadata":{"name":"a"}}'
    assert arrivals.arrival(kinds.NODE, event.object, keep=False).raw == b""


def test_a_kind_without_a_struct_keeps_its_identity_only():
    event = arrivals.line(b'{"type":"ADDED","object":{"metadata":{"name":"a","uid":"u"},"spec":{}}}')
    found = arrivals.arrival(kinds.COMMAND, event.object, keep=False).object
    assert isinstance(found, decoding.Opaque)
    assert found.metadata.uid == "u"


@pytest.mark.parametrize("kind", kinds.KINDS, ids=lambda kind: f"{kind.name}-{kind.group}")
def test_every_kind_has_tombstones(kind):
    key = ("ns" if kind.namespaced else "", "a")
    buried = arrivals.tombstone(kind, key, ("u", "7"))
    assert not isinstance(buried.object, decoding.Malformed)
    assert arrivals.identify(buried) == (key, ("u", "7"))
    assert msgspec.json.decode(buried.raw)["kind"] == kind.name


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3) | st.just("items"), inner, max_size=3)
    ),
    max_leaves=12,
)


@settings(max_examples=drawn(200), deadline=None)
@given(
    st.dictionaries(st.text(max_size=3), JSON, max_size=3),
    st.lists(JSON.filter(lambda each: isinstance(each, dict | list)), max_size=4),
    st.booleans(),
)
def test_taking_json_apart_agrees_with_decoding_it(others, items, first):
    others.pop("items", None)
    whole = {"items": items, **others} if first else {**others, "items": items}
    rest, inner = nested_json.cut(msgspec.json.encode(whole), "items")
    assert msgspec.json.decode(rest) == {**whole, "items": None}
    assert [msgspec.json.decode(element) for element in nested_json.elements(inner)] == items


def test_taking_out_what_is_not_there_changes_nothing():
    assert nested_json.cut(b'{"a":{"items":[1]},"b":"items"}', "items") == (b'{"a":{"items":[1]},"b":"items"}', b"")


# -- recovery


@pytest.mark.parametrize(
    ("error", "once", "again"),
    [
        (errors.ApiError(410, "Expired", "too old"), "relist", "relist"),
        (errors.ApiError(504, "Timeout", "Timeout: Too large resource version: 9, current: 7"), "relist", "relist"),
        (arrivals.ReportedError(410, "Expired", "too old"), "relist", "relist"),
        (arrivals.ReportedError(500, "InternalError", "etcd"), "resume", "relist"),
        (errors.ApiError(403, "Forbidden", "no"), "forbidden", "forbidden"),
        (errors.ApiError(404, "NotFound", "no"), "absent", "absent"),
        (errors.ApiError(401, "Unauthorized", "no"), "resume", "resume"),
        (errors.ApiError(429, "TooManyRequests", "no"), "resume", "resume"),
        (errors.ApiError(503, "ServiceUnavailable", "no"), "resume", "resume"),
        (errors.ApiError(400, "BadRequest", "invalid resource version"), "relist", "relist"),
        (errors.SilenceError("90 s"), "resume", "relist"),
        (errors.OversizeError("a line"), "resume", "relist"),
        (arrivals.GarbledError("a line"), "resume", "relist"),
        (errors.UnreachableError("refused"), "resume", "resume"),
        (errors.BrokenConnectionError("reset"), "resume", "resume"),
        (errors.CredentialsError("the plugin failed"), "resume", "resume"),
    ],
)
def test_each_failure_has_its_remedy(error, once, again):
    assert recovery.remedy(error, again=False) == once
    assert recovery.remedy(error, again=True) == again


def test_waiting_grows_to_a_limit_and_starts_over():
    backoff = recovery.Backoff(random.Random(3), first=1.0, longest=5.0)  # noqa: S311  jitter
    assert [limit / 2 <= backoff.delay() <= limit for limit in (1, 2, 4, 5, 5)] == [True] * 5
    backoff.reset()
    assert backoff.delay() <= 1.0
    assert backoff.delay(asked=3.0) == 3.0
    assert backoff.delay(asked=60.0) == 5.0


# -- discovery


class Api:
    def __init__(self, answers):
        self.answers = answers

    async def request(self, method, path):
        assert method == "GET"
        answer = self.answers.get(path, 404)
        if isinstance(answer, int):
            raise errors.ApiError(answer, "", "as the test says")
        return answer


def test_what_is_served_is_told_with_subresources():
    api = Api(
        {
            "/api/v1": b'{"resources":[{"name":"pods","kind":"Pod"},{"name":"pods/binding"}]}',
            "/apis/scheduling.volcano.sh/v1beta1": b'{"resources":[{"name":"podgroups"},{"name":"podgroups/status"}]}',
            "/apis/apps/v1": b'{"resources":null}',
        }
    )
    assert asyncio.run(discovery.served(api)) == {
        ("v1", "pods"),
        ("v1", "pods/binding"),
        ("scheduling.volcano.sh/v1beta1", "podgroups"),
        ("scheduling.volcano.sh/v1beta1", "podgroups/status"),
    }


@pytest.mark.parametrize("answer", [403, 500, b"<html>"])
def test_a_failure_is_not_taken_for_nothing_served(answer):
    with pytest.raises(errors.KubeError):
        asyncio.run(discovery.served(Api({"/api/v1": answer}), ["v1"]))
