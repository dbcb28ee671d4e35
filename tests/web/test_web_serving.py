"""Who may look, and what the server says to whoever asks wrongly, too much, or takes nothing."""

from __future__ import annotations

import asyncio
import contextlib

import pytest
import web_worlds as worlds

from pumice.web import serving, streaming
from testbed import waiting


def asked(*calls):
    """Make calls one after the other as somebody who has signed in; returns the answers."""

    async def run():
        async with worlds.served(worlds.small()) as page:
            await page.sign_in()
            return [await getattr(page, call)(*rest, **headers) for call, rest, headers in calls]

    return asyncio.run(run())


def get(path, **headers):
    return ("get", (path,), headers)


def test_nothing_but_the_files_is_given_to_who_has_not_signed_in():
    async def run():
        async with worlds.served(worlds.small()) as page:
            paths = ("/api/scene", "/api/changes?since=0", "/api/job?name=a/runs", "/api/explain?what=job&name=a/runs")
            refused = [await page.get(path) for path in paths]
            wrong = await page.post("/api/session", {"token": "guessed"})
            odd = await page.post("/api/session", ["token"])
            async with page.session.get(f"{page.address}/") as index:
                headers, text = index.headers, await index.text()
            right = await page.sign_in()
            return refused, wrong, odd, headers, text, right, await page.get("/api/scene")

    refused, wrong, odd, headers, text, right, scene = asyncio.run(run())
    assert {status for status, _ in refused} == {401}
    assert all("printed" in body["problem"] for _, body in refused)
    assert wrong[0] == odd[0] == 401
    assert "a restart prints a new one" in wrong[1]["problem"]
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert "unsafe" not in headers["Content-Security-Policy"]
    assert "<script>" not in text  # the policy allows none
    assert "style=" not in text
    assert right[0] == 200
    assert set(scene[1]["rows"]["jobs"]) == {"a/runs", "a/waits"}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example:80"}, 421),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Sec-Fetch-Site": "same-origin"}, 200),
    ],
)
def test_requests_from_other_pages_and_for_other_names_are_refused(headers, status):
    ((answered, body),) = asked(get("/api/scene", **headers))
    assert answered == status
    assert ("problem" in body) == (status != 200)


def test_cookie_is_out_of_reach_of_scripts_and_other_sites():
    async def run():
        async with worlds.served(worlds.small()) as page:
            token = {"token": page.guard.token}
            response = await page.session.post(f"{page.address}/api/session", json=token)
            return response.headers["Set-Cookie"]

    cookie = asyncio.run(run())
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie


@pytest.mark.parametrize(
    ("path", "status", "told"),
    [
        ("/api/job?name=a/nobody", 404, "there is no job a/nobody any more"),
        ("/api/node?name=nowhere", 404, "there is no node nowhere any more"),
        ("/api/scene?at=yesterday", 400, "microseconds"),
        ("/api/changes?since=-1", 400, "whole number"),
        ("/api/explain?what=cluster&name=x", 400, "what"),
        ("/api/nothing", 404, "not found"),
        ("/page/../serving.py", 404, ""),
    ],
)
def test_bad_questions_get_a_clear_answer(path, status, told):
    ((answered, body),) = asked(get(path))
    assert answered == status
    assert told in body["problem"]


def test_too_large_a_body_and_what_is_no_question_are_refused():
    large, odd, nothing = asked(
        ("post", ("/api/what-if", {"type": "what-if", "manifests": "x" * serving.MOST_BODY}), {}),
        ("post", ("/api/what-if", {"type": "what-if", "drain": "all"}), {}),
        ("post", ("/api/what-if", {"type": "what-if"}), {}),
    )
    assert [large[0], odd[0], nothing[0]] == [413, 400, 400]
    assert "say what is to change" in nothing[1]["problem"]


def test_question_that_is_too_deep_or_no_text_is_told_so():
    async def run():
        async with worlds.served(worlds.small()) as page:
            await page.sign_in()
            for data in (b'{"type": "what-if", "x": ' + b"[" * 30_000, b'{"manifests": "\xff"}'):
                async with page.session.post(f"{page.address}/api/what-if", data=data) as response:
                    yield response.status, await response.json()

    async def gathered():
        return [each async for each in run()]

    for status, told in asyncio.run(gathered()):
        assert status == 400
        assert "cannot be read" in told["problem"]


def test_what_breaks_down_is_told_without_details_and_with_all_headers(monkeypatch):
    async def run():
        cluster = worlds.small()
        async with worlds.served(cluster) as page:
            odd = await page.get("/api/scene", Cookie=f"{page.guard.cookie}=\udcff")
            await page.sign_in()
            monkeypatch.setattr(cluster.board, "whole", lambda: 1 / 0)
            async with page.session.get(f"{page.address}/api/scene") as response:
                return odd, response.status, response.headers, await response.json()

    odd, status, headers, told = asyncio.run(run())
    assert odd[0] == 401
    assert status == 500
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert told == {"problem": "the answer breaks down; the log of the page says why"}


def test_job_and_node_come_with_their_pods():
    job, node = asked(get("/api/job?name=a/runs"), get("/api/node?name=n-0"))
    assert [(each["name"], each["node"], each["request"]["cpu"]) for each in job[1]["pods"]] == [
        ("runs-0", "n-0", 6000)
    ]
    assert [each["name"] for each in node[1]["pods"]] == ["runs-0"]
    assert job[1]["row"]["held"]["cpu"] == 6000


def test_pods_of_a_job_and_on_a_node_are_given_for_a_moment():
    async def run():
        cluster = worlds.small()
        async with worlds.served(cluster) as page:
            await page.sign_in()
            worlds.feed(cluster, "DELETED", worlds.pod("runs-0", "runs", "n-0"), worlds.group("runs"))
            cluster.board.update(worlds.NOW + 1_000_000)
            paths = ("/api/job?name=a/runs", "/api/node?name=n-0", f"/api/job?name=a/runs&at={worlds.NOW}", f"/api/node?name=n-0&at={worlds.NOW}", "/api/node?name=n-0&at=then")  # fmt: skip
            return [await page.get(path) for path in paths]

    gone, empty, job, node, odd = asyncio.run(run())
    assert gone[0] == 404
    assert empty[1]["pods"] == []
    assert [each["name"] for each in job[1]["pods"]] == [each["name"] for each in node[1]["pods"]] == ["runs-0"]
    assert odd[0] == 400
    assert "microseconds" in odd[1]["problem"]


def test_files_are_given_packed_and_only_once():
    async def run():
        async with worlds.served(worlds.small()) as page:
            async with page.session.get(f"{page.address}/page/app.js") as first:
                tag, kind = first.headers["ETag"], first.headers["Content-Type"]
                assert first.headers["Content-Encoding"] == "gzip"
            async with page.session.get(f"{page.address}/page/app.js", headers={"If-None-Match": tag}) as second:
                return second.status, kind

    status, kind = asyncio.run(run())
    assert status == 304
    assert kind.startswith("text/javascript")
    assert sum(len(file.packed) for file in serving.page_files().values()) < 200_000


# -- the stream --------------------------------------------------------------------------------------------------------


async def lines_until(response, wanted):
    found = []
    async with asyncio.timeout(waiting.PATIENCE):
        async for line in response.content:
            found.append(line.decode().rstrip("\n"))
            if wanted(found):
                return found
    return found


def test_changes_are_pushed_and_who_comes_back_gets_what_was_missed():
    async def run():
        cluster = worlds.small()
        async with worlds.served(cluster) as page:
            await page.sign_in()
            version = cluster.board.version
            stream = page.server.stream
            async with page.session.get(f"{page.address}/api/changes?since={version}") as response:
                await waiting.soon(lambda: stream.viewers == 1)
                worlds.feed(cluster, "ADDED", worlds.node("n-2"))
                cluster.turn()
                stream.tell()
                first = await lines_until(response, lambda found: any(each.startswith("data") for each in found))
            await waiting.soon(lambda: stream.viewers == 0)
            worlds.feed(cluster, "DELETED", worlds.node("n-1"))
            cluster.turn()
            headers = {"Last-Event-ID": str(version + 1)}
            async with page.session.get(f"{page.address}/api/changes?since=0", headers=headers) as response:
                second = await lines_until(response, lambda found: any(each.startswith("data") for each in found))
            async with page.session.get(f"{page.address}/api/changes?since={version + 99}") as response:
                third = await lines_until(response, lambda found: "event: reset" in found)
            return version, first, second, third

    version, first, second, third = asyncio.run(run())
    assert f"id: {version + 1}" in first
    assert any('"n-2":{' in line for line in first)
    assert any('"n-1":null' in line for line in second)
    assert not any('"n-2":{' in line for line in second)  # only what was missed
    assert "event: reset" in third


def test_viewer_that_takes_nothing_is_cut_off_and_costs_nobody_else_anything(monkeypatch):
    async def run():
        cluster = worlds.small()
        async with worlds.served(cluster) as page:
            await page.sign_in()
            stream = page.server.stream
            stream.patience = 0.2
            slow = await page.session.get(f"{page.address}/api/changes?since={cluster.board.version}")
            await waiting.soon(lambda: stream.viewers == 1)
            for number in range(400):  # until the buffers on the way are full
                worlds.feed(
                    cluster, "MODIFIED", *(worlds.node(f"{'n' * 200}-{each}", str(number + 1)) for each in range(100))
                )
                cluster.turn()
                stream.tell()
                await asyncio.sleep(0)
                if stream.viewers == 0:
                    break
            await waiting.soon(lambda: stream.viewers == 0)
            slow.close()
            return await page.get("/api/scene")

    status, scene = asyncio.run(run())
    assert status == 200
    assert len(scene["rows"]["nodes"]) == 102


def test_more_viewers_than_there_is_room_for_are_told_so():
    async def run():
        async with worlds.served(worlds.small()) as page, contextlib.AsyncExitStack() as open_streams:
            await page.sign_in()
            page.server.stream.most = 2
            for number in range(2):
                await open_streams.enter_async_context(page.session.get(f"{page.address}/api/changes?since=0"))
                await waiting.soon(lambda number=number: page.server.stream.viewers == number + 1)
            return await page.get("/api/changes?since=0")

    status, body = asyncio.run(run())
    assert status == 503
    assert body["problem"] == "2 pages watch already; close one"


def test_a_thousand_connections_do_not_keep_anybody_out():
    async def run():
        async with worlds.served(worlds.small()) as page:
            host, port = page.address.removeprefix("http://").split(":")
            idle = [await asyncio.open_connection(host, int(port)) for _ in range(600)]
            await page.sign_in()
            answer = await page.get("/api/scene")
            for _, writer in idle:
                writer.close()
            return answer, streaming.MOST_VIEWERS

    (status, _), most = asyncio.run(run())
    assert status == 200
    assert most < serving.MOST_CONNECTIONS


def test_server_that_cannot_listen_says_so():
    async def run():
        async with worlds.served(worlds.small()) as page:
            port = int(page.address.rpartition(":")[2])
            other = serving.Server(worlds.small(), page.guard)
            try:
                await other.start(worlds.Address("127.0.0.1", port))
            finally:
                await other.stop()

    with pytest.raises(OSError, match="address already in use"):
        asyncio.run(run())
