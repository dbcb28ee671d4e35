"""Which proxy is used, by kubeconfig and environment, and that requests go through it."""

from __future__ import annotations

import asyncio
import base64

import pytest
from scripted import ScriptedServer, refuse, reply

from pumice.api import kinds
from pumice.kube import errors
from pumice.kube.access import connection, incluster, proxies
from pumice.kube.access.endpoint import Connection
from pumice.kube.calls.client import Client

PROXY = "http://proxy:3128"


@pytest.mark.parametrize(
    ("server", "configured", "environ", "expected"),
    [
        ("https://h:6443", "", {}, ""),
        ("https://h:6443", "http://mine:1", {"HTTPS_PROXY": PROXY}, "http://mine:1"),
        ("https://h:6443", "", {"HTTPS_PROXY": PROXY}, PROXY),
        ("https://h:6443", "", {"https_proxy": PROXY}, PROXY),
        ("https://h:6443", "", {"HTTP_PROXY": PROXY}, ""),
        ("http://h:80", "", {"HTTP_PROXY": PROXY}, PROXY),
        ("http://h:80", "", {"HTTP_PROXY": PROXY, "REQUEST_METHOD": "GET"}, ""),
        ("https://h:6443", "", {"HTTPS_PROXY": "proxy:3128"}, PROXY),
        ("https://h:6443", "", {"HTTPS_PROXY": PROXY, "NO_PROXY": "h"}, ""),
        ("https://h:6443", "http://mine:1", {"NO_PROXY": "*"}, "http://mine:1"),
        ("https://127.0.0.1:6443", "", {"HTTPS_PROXY": PROXY}, ""),
        ("https://localhost:6443", "", {"HTTPS_PROXY": PROXY}, ""),
        ("https://[::1]:6443", "", {"HTTPS_PROXY": PROXY}, ""),
    ],
)
def test_the_kubeconfig_stands_before_the_environment(server, configured, environ, expected):
    assert proxies.choose(server, configured, "proxy-url", environ) == expected


@pytest.mark.parametrize(
    ("host", "rules", "expected"),
    [
        ("api.example.com", "", False),
        ("api.example.com", "*", True),
        ("api.example.com", "example.com", True),
        ("api.example.com", ".example.com", True),
        ("api.example.com", "*.example.com", True),
        ("example.com", "example.com", True),
        ("example.com", ".example.com", False),
        ("notexample.com", "example.com", False),
        ("API.example.com", "other, EXAMPLE.com ", True),
        ("api.example.com", "example.com:6443", True),
        ("api.example.com", "example.com:443", False),
        ("10.1.2.3", "10.0.0.0/8", True),
        ("11.1.2.3", "10.0.0.0/8", False),
        ("10.1.2.3", "10.1.2.3", True),
        ("10.1.2.3", "10.1.2.3:6443", True),
        ("10.1.2.3", "10.1.2.3:80", False),
        ("fd00::1", "fd00::/8", True),
        ("fd00::1", "fd00::1", True),
        ("fd00::1", "[fd00::1]:6443", True),
        ("h", "not/a/network", False),
    ],
)
def test_no_proxy_rules(host, rules, expected):
    assert proxies.exempt(host, 6443, rules) is expected


@pytest.mark.parametrize("url", ["socks5://u:hush@h:1", "http://", "://hush", "http://[::1"])
def test_a_proxy_that_cannot_be_used_is_refused_without_showing_it(url):
    with pytest.raises(errors.ConfigurationError, match=r"\$HTTPS_PROXY") as caught:
        proxies.choose("https://h", "", "x", {"HTTPS_PROXY": url})
    assert "hush" not in str(caught.value)


def test_a_request_goes_through_the_proxy_with_its_own_credentials():
    async def run():
        async with ScriptedServer([reply(200)]).running() as proxy:
            url = proxy.url.replace("//", "//user:hush@")
            target = Connection("http://cluster.invalid:8080", proxy_url=url)
            async with Client(target) as api:
                await api.get(kinds.NODE, "", "n")
            assert "hush" not in repr(target)
            return proxy.asked[0]

    asked = asyncio.run(run())
    assert asked.path == "http://cluster.invalid:8080/api/v1/nodes/n"
    assert asked.headers["proxy-authorization"] == "Basic " + base64.b64encode(b"user:hush").decode()
    assert "authorization" not in asked.headers


def test_a_proxy_that_refuses_means_that_nothing_was_sent():
    async def run():
        async with ScriptedServer([refuse(407, "no")]).running() as proxy:
            url = proxy.url.replace("//", "//user:hush@")
            async with Client(Connection("https://cluster.invalid", proxy_url=url)) as api:
                await api.request("POST", "/x", body={}, attempts=1)

    with pytest.raises(errors.UnreachableError, match="proxy refused with 407") as caught:
        asyncio.run(run())
    assert "hush" not in str(caught.value)


def test_a_proxy_that_is_not_there_is_named():
    async def run():
        async with Client(Connection("https://cluster.invalid", proxy_url="http://u:hush@127.0.0.1:1")) as api:
            await api.request("POST", "/x", body={}, attempts=1)

    with pytest.raises(errors.UnreachableError, match=r"proxy 127\.0\.0\.1: Connection refused") as caught:
        asyncio.run(run())
    assert "hush" not in str(caught.value)


def test_a_proxy_of_the_environment_serves_every_way_to_a_connection(tmp_path):
    environ = {"HTTPS_PROXY": PROXY, "KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    (tmp_path / "token").write_text("t")
    assert incluster.load(environ, tmp_path).proxy_url == PROXY
    assert connection.load(master="https://h:6443", environ=environ).proxy_url == PROXY
    assert connection.load(master="https://h:6443", environ={**environ, "NO_PROXY": "h"}).proxy_url == ""
