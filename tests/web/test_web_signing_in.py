"""Signing in inside a cluster: a token or a certificate, cookies out of reach, sessions and attempts that are bounded, TLS alone."""

from __future__ import annotations

import asyncio
import base64
import datetime as dt
import json
import ssl
import time
from types import SimpleNamespace

import aiohttp
import msgspec
import pytest
import web_people
import web_worlds as worlds
from web_people import People, inside

from pumice.kube import errors
from pumice.local_cluster import platforms
from pumice.server.logs import logs
from pumice.web import guarding, reviewing, reviews, serving, sessions, showing_certificates
from pumice.web.relaying import Begin
from pumice.web.reviewing import COOKIE
from pumice.web.reviews import ApiReviews, Person, Question, ReviewError
from testbed import certificates as testbed_certificates
from testbed import waiting


def served(run, people=None, **options):
    """Run something with a page that is served inside a cluster."""

    async def live():
        known = people or People({"admin": web_people.EVERYTHING})
        async with inside(worlds.small(), known, **options) as found:
            return await run(found)

    return asyncio.run(live())


def test_token_becomes_a_cookie_that_no_script_and_no_other_site_can_use():
    async def run(found):
        page = await found.open()
        before = await page.get("/api/scene")
        async with page.session.post(f"{page.address}/api/session", json={"token": "token-of-admin"}) as response:
            cookie = response.headers["Set-Cookie"]
        after = await page.get("/api/scene")
        other = await (await found.open()).get("/api/scene", Cookie=f"{COOKIE}=guessed")
        async with page.session.delete(f"{page.address}/api/session") as gone:
            assert gone.status == 200
        return before, cookie, after, other, await page.get("/api/scene"), len(found.guard.sessions)

    before, cookie, after, other, gone, left = served(run)
    assert before[0] == other[0] == gone[0] == 401
    assert "sign in with a token of this cluster" in before[1]["problem"]
    assert after[0] == 200
    for word in ("HttpOnly", "SameSite=Strict", "Secure", "Path=/", "__Host-"):
        assert word in cookie
    assert "token-of-admin" not in cookie
    assert left == 0


def test_wrong_tokens_get_a_clear_answer_and_soon_none():
    async def run(found):
        page = await found.open()
        answers = [await page.post("/api/session", body) for body in ({"token": "nobody's"}, {"token": ""}, ["x"], {"token": "x" * 20_000})]  # fmt: skip
        many = [await page.sign_in("nobody") for _ in range(20)]
        return answers, many

    people = People({"admin": set()})
    answers, many = served(run, people)
    assert [status for status, _ in answers] == [401] * 4
    assert "does not know this token" in answers[0][1]["problem"]
    assert "kubectl create token" in answers[1][1]["problem"]
    assert many[-1][0] == 429
    assert "try again in" in many[-1][1]["problem"]
    assert people.tokens < 10  # which is all that the API server sees of it


def test_attempts_without_a_token_cost_nobody_else_theirs():
    async def run(found):
        page = await found.open()
        for _ in range(50):
            await page.post("/api/session", {"token": ""})
        return found.guard.attempts.wait("good"), [found.guard.attempts.wait_for_all() for _ in range(30)]

    assert served(run) == (0.0, [0.0] * 30)


DEEP = b"[" * 30_000
BODIES = [
    (b'{"token": "\xff"}', "application/json"),
    (b'{"token": "\\ud800"}', "application/json"),
    (b'{"token": "x"}', "application/json; charset=nothing"),
    ('{"token": "token-of-admin"}'.encode("utf-16"), "application/json; charset=utf-16"),
    (b'{"token": "x", "y": ' + DEEP, "application/json"),
    (DEEP, "application/json"),
    (b"a" * 500 * 1024 + b"-" + b"9" * 1024, "application/json; charset=punycode"),
]


@pytest.mark.parametrize(("data", "kind"), BODIES)
def test_whatever_is_given_for_a_token_costs_little_and_is_refused_like_any_other(data, kind):
    async def run(found):
        page = await found.open()
        began = time.process_time()
        async with page.session.post(
            f"{page.address}/api/session", data=data, headers={"Content-Type": kind}
        ) as response:
            await response.read()
            return response.status, response.headers.get("Content-Security-Policy"), time.process_time() - began

    status, policy, seconds = served(run)
    assert status == 401
    assert policy
    assert seconds < 10  # as the quadratic encoding of half a megabyte takes minutes


def test_body_that_is_not_packed_as_it_says_is_no_token():
    async def run(found):
        page = await found.open()
        async with page.session.post(
            f"{page.address}/api/session", data=b"not packed", headers={"Content-Encoding": "gzip"}
        ) as response:
            return response.status, response.headers.get("Content-Security-Policy")

    status, policy = served(run)
    assert status == 401
    assert policy


def test_body_that_does_not_come_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(guarding, "PATIENCE", 0.05)

    async def run(found):
        async def slowly():
            yield b'{"token": '
            await asyncio.Event().wait()

        page = await found.open()
        async with asyncio.timeout(waiting.PATIENCE):
            async with page.session.post(f"{page.address}/api/session", data=slowly()) as response:
                return response.status

    assert served(run) == 401


def test_only_one_review_of_a_token_however_many_requests_follow():
    async def run(found):
        page = await found.open()
        await page.sign_in("admin")
        for _ in range(100):
            await page.get("/api/scene")
        return len(people.asked)

    people = People({"admin": web_people.EVERYTHING})
    assert served(run, people) == 6
    assert people.tokens == 1


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 421),
        ({"Host": "pumice.example.com"}, 200),
        ({"Host": "PUMICE.example.com:443"}, 200),
        ({"Host": "pumice.example.com", "Origin": "https://pumice.example.com"}, 200),
        ({"Host": "pumice.example.com", "Origin": "http://pumice.example.com"}, 403),
        ({"Host": "pumice.example.com", "Origin": "https://evil.example"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
    ],
)
def test_only_names_that_were_given_are_answered_and_only_our_own_page(headers, status):
    async def run(found):
        page = await found.open()
        await page.sign_in("admin")
        cookie = next(each for each in page.session.cookie_jar)
        return await page.get("/api/scene", Cookie=f"{cookie.key}={cookie.value}", **headers)

    assert served(run, hosts=["pumice.example.com"])[0] == status


def test_plain_http_is_not_spoken():
    async def run(found):
        async with aiohttp.ClientSession() as session:
            with pytest.raises(aiohttp.ClientError):
                await session.get(found.address.replace("https", "http"))

    served(run)


def test_certificate_of_a_named_authority_stands_for_user_and_groups(tmp_path):
    folders = [tmp_path / name for name in ("ours", "theirs")]
    for folder in folders:
        folder.mkdir()
    ours, theirs = map(testbed_certificates.Authority, folders)
    people = People({"ada": {"podgroups@a"}})
    met = []

    async def run(found):
        page, stranger, nobody = [await found.open(pair) for pair in (ours.client("ada", ["team", "x"]), theirs.client("ada"), None)]  # fmt: skip
        scene = await page.get("/api/scene")
        met.extend(dict.fromkeys(person for person, _ in people.met))
        with pytest.raises((aiohttp.ClientError, ssl.SSLError)):
            await stranger.get("/api/scene")
        return scene, await page.get("/api/session"), await nobody.get("/api/scene")

    scene, session, nobody = served(run, people, client_ca=ours.pair.certificate)
    assert scene[0] == 200
    assert session[1]["user"] == "ada"
    assert nobody[0] == 401
    assert met == [Person("ada", ("team", "x", "system:authenticated"))]
    assert people.tokens == 0


def test_certificate_that_ends_while_its_connection_is_kept_is_good_no_more(tmp_path, monkeypatch):
    ours = testbed_certificates.Authority(tmp_path)

    async def run(found):
        page = await found.open(ours.client("ada"))
        before = await page.get("/api/scene")
        later = time.time() + 100 * 365 * 86400
        monkeypatch.setattr(reviewing, "time", SimpleNamespace(time=lambda: later))
        return before[0], (await page.get("/api/scene"))[0]

    assert served(run, People({"ada": set()}), client_ca=ours.pair.certificate) == (200, 401)


def test_certificate_has_one_name():
    parts = [(("commonName", "ada"),), (("organizationName", "team"),)]
    assert reviews.of_certificate(parts) == Person("ada", ("team", "system:authenticated"))
    assert reviews.of_certificate([*parts, (("commonName", "root"),)]) is None
    assert reviews.of_certificate([(("commonName", ""),)]) is None
    assert reviews.of_certificate(parts[1:]) is None


def test_connections_with_certificates_are_never_taken_up_again(tmp_path):
    ours = testbed_certificates.Authority(tmp_path)
    begin = Begin(address=":0", client_ca=str(ours.pair.certificate))
    context = showing_certificates.Shown(begin, logs.Log(0, "text"), lambda: None).context
    assert context.num_tickets == 0
    assert context.options & ssl.OP_NO_TICKET


def test_who_signs_in_again_leaves_no_session_behind():
    async def run(found):
        page = await found.open()
        await page.sign_in("admin")
        await page.sign_in("admin")
        return len(found.guard.sessions), (await page.get("/api/scene"))[0]

    assert served(run) == (1, 200)


def test_thousand_connections_are_bounded_and_lock_nobody_out():
    platforms.allow_many_files()  # both ends are in this process

    async def run(found):
        viewer = await found.open()
        await viewer.sign_in("admin")
        version = (await viewer.get("/api/scene"))[1]["version"]
        watching = await viewer.session.get(f"{viewer.address}/api/changes?since={version}")
        trust = ssl.create_default_context(cadata=found.bundle.authorities.decode())
        port = int(found.address.rpartition(":")[2])
        opened = []
        for _ in range(1000):
            _, writer = await asyncio.open_connection("localhost", port, ssl=trust)
            opened.append(writer)
        held = len(found.server._listener._runner.server.connections)  # noqa: SLF001  clients are not told how many there are
        page = await found.open()
        answer = await page.sign_in("admin")
        for writer in opened:
            writer.transport.abort()
        found.server.stream.tell()
        still = found.server.stream.viewers, watching.closed
        watching.close()
        return held, answer, still

    held, answer, still = served(run)
    assert held <= serving.MOST_CONNECTIONS
    assert still == (1, False)  # whoever watches is not pushed out
    assert answer[0] == 200


# -- sessions ----------------------------------------------------------------------------------------------------------


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def test_sessions_end_with_their_token_after_an_idle_hour_and_after_half_a_day():
    clock = Clock()
    kept = sessions.Sessions(clock)
    short, idle, busy = kept.begin(Person("a"), 600.0), kept.begin(Person("b")), kept.begin(Person("c"))
    assert len({short, idle, busy}) == 3
    clock.now = 599.0
    assert kept.find(short).person.name == "a"
    clock.now = 601.0
    assert kept.find(short) is None
    while clock.now < sessions.LONGEST - 1:
        assert kept.find(busy) is not None
        clock.now += 600.0
    clock.now = sessions.LONGEST + 1
    assert kept.find(idle) is None
    assert kept.find(busy) is None
    kept.begin(Person("d"))
    assert len(kept) == 1  # who is gone is forgotten


def test_sessions_are_bounded_in_all_and_for_one_person():
    kept = sessions.Sessions(Clock())
    first = kept.begin(Person("one"))
    others = [kept.begin(Person("one")) for _ in range(sessions.MOST_OF_ONE)]
    assert kept.find(first) is None
    assert kept.find(others[-1]) is not None
    for number in range(sessions.MOST + 50):
        kept.begin(Person(f"p{number}"))
    assert len(kept) <= sessions.MOST


def test_attempts_in_vain_of_one_address_do_not_use_up_those_of_others():
    clock = Clock()
    kept = sessions.Attempts(clock)
    assert sum(not kept.wait("evil") for _ in range(50)) == sessions.FAILURES[1]
    assert 0 < kept.wait("evil") <= 1 / sessions.FAILURES[0]
    for _ in range(20):  # a whole team behind one ingress
        assert kept.wait("good") == kept.wait_for_all() == 0
        kept.succeeded("good")
    assert sum(not kept.wait_for_all() for _ in range(500)) == sessions.ALL_ATTEMPTS[1] - 20
    clock.now += 3600
    assert kept.wait("evil") == 0


def test_of_so_many_addresses_that_attempts_of_all_are_remembered_the_longest_silent_is_forgotten():
    kept = sessions.Attempts(Clock())
    while not kept.wait("evil"):
        pass
    for number in range(sessions.MOST_ADDRESSES - 1):
        kept.wait(f"another-{number}")
    assert kept.wait("evil") > 0
    for number in range(sessions.MOST_ADDRESSES):
        kept.wait(f"yet-another-{number}")
    assert kept.wait("evil") == 0


@pytest.mark.parametrize(
    ("token", "ends"),
    [
        ("opaque", None),
        ("a.b.c", None),
        ("a." + base64.urlsafe_b64encode(json.dumps({"exp": 1234}).encode()).decode().rstrip("=") + ".c", 1234.0),
        ("a." + base64.urlsafe_b64encode(b'{"exp": "soon"}').decode() + ".c", None),
        ("a." + base64.urlsafe_b64encode(b"[1]").decode() + ".c", None),
        ("a.\udcff.c", None),
    ],
)
def test_end_of_a_token_is_read_where_it_says_one(token, ends):
    assert reviews.ends(token) == ends


# -- reviews -----------------------------------------------------------------------------------------------------------


class Api:
    def __init__(self, *answers):
        self.answers, self.sent = list(answers), []

    async def create(self, kind, manifest):
        self.sent.append((kind.plural, manifest["spec"]))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return {"status": answer}


def test_reviews_send_who_it_is_and_take_only_a_clear_yes():
    user = {"username": "ada", "uid": "7", "groups": ["g"], "extra": {"k": ["v"], reviews.CHANGES_EACH_TIME: ["JTI=1"]}}
    api = Api({"authenticated": True, "user": user}, {"allowed": True}, {"allowed": False}, {}, {"allowed": "true"})

    async def run():
        asked = ApiReviews(api)
        person = await asked.person("secret")
        return person, [await asked.may(person, Question("", "pods", "a")) for _ in range(4)]

    person, allowed = asyncio.run(run())
    assert person == Person("ada", ("g",), "7", (("k", ("v",)),))
    assert allowed == [True, False, False, False]
    assert api.sent[0] == ("tokenreviews", {"token": "secret"})
    plural, spec = api.sent[1]
    assert plural == "subjectaccessreviews"
    assert spec["resourceAttributes"] == {"verb": "list", "group": "", "resource": "pods", "namespace": "a"}
    assert (spec["user"], spec["groups"], spec["extra"]) == ("ada", ["g"], {"k": ["v"]})


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ({"authenticated": False}, "does not know this token"),
        ({}, "does not know this token"),
        ({"authenticated": True, "user": {}}, "does not know this token"),
        (errors.UnreachableError("no connection"), "cannot be checked just now; the log of the page says why$"),
    ],
)
def test_who_is_not_known_is_told_what_to_do(answer, told):
    with pytest.raises(ReviewError, match=told):
        asyncio.run(ApiReviews(Api(answer)).person("secret"))


# -- the certificate that is shown -------------------------------------------------------------------------------------


def test_certificate_is_made_for_the_names_that_are_given_and_files_go_before(tmp_path):
    async def shown(begin):
        log = logs.Log(0, "text")
        keeper = showing_certificates.keeper(begin, showing_certificates.Shown(begin, log, lambda: None), log)
        await keeper.start()
        return keeper.shown

    made = asyncio.run(shown(Begin(address=":0", hosts=("pumice.example.com",))))
    names = showing_certificates.certificates.names_of(
        showing_certificates.certificates.x509.load_pem_x509_certificate(made.certificate)
    )
    assert names == {"pumice.example.com", "localhost", "127.0.0.1"}
    certificate, key = tmp_path / "tls.crt", tmp_path / "tls.key"
    certificate.write_bytes(made.certificate)
    key.write_bytes(made.key)
    given = Begin(address=":0", certificate=str(certificate), key=str(key))
    assert asyncio.run(shown(given)).certificate == made.certificate
    key.write_text("no key")
    with pytest.raises(showing_certificates.certificate_sources.CertificateError, match="cannot be used"):
        asyncio.run(shown(given))
    key.unlink()
    with pytest.raises(showing_certificates.certificate_sources.CertificateError, match=r"tls\.key cannot be read"):
        asyncio.run(shown(given))


def test_authority_that_changes_is_another_from_then_on_and_who_came_by_the_old_one_comes_again(tmp_path):
    folders = [tmp_path / name for name in ("old", "new")]
    for folder in folders:
        folder.mkdir()
    old, new = map(testbed_certificates.Authority, folders)
    trusted = tmp_path / "ca.crt"
    trusted.write_bytes(old.pair.certificate.read_bytes())
    pairs = (old.client("ada"), new.client("bob"))

    async def comes(page):
        try:
            return (await page.get("/api/scene"))[0]
        except (aiohttp.ClientError, ssl.SSLError):
            return "refused"

    async def run(found):
        begin = Begin(address=":0", client_ca=str(trusted))
        source = showing_certificates.WithClients(showing_certificates.SelfMade(()), begin.client_ca)
        pages = [await found.open(pair) for pair in pairs]
        seen = [[await comes(page) for page in pages]]
        watching = await pages[0].session.get(f"{pages[0].address}/api/changes?since=0")
        for authority, shown in ((b"nothing", False), (new.pair.certificate.read_bytes(), True)):
            trusted.write_bytes(authority)
            bundle = msgspec.structs.replace(await source.read(), certificate=found.bundle.certificate, key=found.bundle.key)  # fmt: skip
            assert found.shown.show(bundle) is shown
            seen.append([await comes(page) for page in pages])
        with pytest.raises(aiohttp.ClientError):
            await watching.content.read()
        watching.close()
        return seen

    people = People({"ada": {"pods"}, "bob": {"pods"}})
    before, unusable, after = served(run, people, client_ca=trusted)
    assert before == unusable == [200, "refused"]
    assert after == ["refused", 200]


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_certificate_that_changes_is_shown_to_who_comes_next_by_name_or_number(host):
    async def run(found):
        port = int(found.address.rpartition(":")[2])
        seen = []
        for _ in range(2):
            bundle = showing_certificates.certificates.make([host], dt.datetime.now(dt.UTC))
            found.shown.show(bundle)
            trust = ssl.create_default_context(cadata=bundle.authorities.decode())
            _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trust, server_hostname=host)
            seen.append(writer.get_extra_info("peercert")["serialNumber"])
            writer.close()
        return seen

    first, second = served(run)
    assert first != second


def test_authority_that_cannot_be_used_is_told_at_the_start(tmp_path):
    (tmp_path / "ca.crt").write_text("nothing")
    begin = Begin(address=":0", client_ca=str(tmp_path / "ca.crt"))
    log = logs.Log(0, "text")
    keeper = showing_certificates.keeper(begin, showing_certificates.Shown(begin, log, lambda: None), log)
    with pytest.raises(showing_certificates.certificate_sources.CertificateError, match=r"--web-client-ca .*ca\.crt cannot be used"):  # fmt: skip
        asyncio.run(keeper.start())


def test_session_whose_token_has_ended_gets_no_more_changes():
    async def run(found):
        page = await found.open()
        await page.sign_in("admin")
        version = (await page.get("/api/scene"))[1]["version"]
        async with page.session.get(f"{page.address}/api/changes?since={version}") as response:
            await waiting.soon(lambda: found.server.stream.viewers == 1)
            (session,) = page.session.cookie_jar
            found.guard.sessions.end(session.value)
            found.server.stream.tell()
            async with asyncio.timeout(waiting.PATIENCE):
                return await response.content.read(), await page.get("/api/scene")

    told, scene = served(run)
    assert b"event: reset" in told
    assert scene[0] == 401
