import json

import pytest
from fake_programs import program

from testbed import building, old_etcd

STREAMED = (
    "/api/v1/namespaces?watch=1&sendInitialEvents=true&allowWatchBookmarks=true"
    "&resourceVersionMatch=NotOlderThan&timeoutSeconds=1"
)


@pytest.mark.parametrize(
    ("text", "old"),
    [
        ("etcd Version: 3.4.23\nGit SHA: abc", True),
        ("etcd Version: 3.4.30", True),
        ("etcd Version: 3.4.31", False),
        ("etcd Version: 3.5.12", True),
        ("etcd Version: 3.5.13", False),
        ("etcd Version: 3.6.8", False),
        ("etcd Version: 3.6.0-rc.1", False),
    ],
)
def test_old_is_what_streams_no_lists(text, old):
    version = old_etcd.parse_version(text)
    assert version is not None
    assert old_etcd.is_old(version) is old


def test_text_without_a_version_is_no_version():
    assert old_etcd.parse_version("etcd: command not found") is None


@pytest.fixture
def apt(bare, on_path, monkeypatch):
    """A machine without etcd whose apt-get and dpkg-deb are scripts."""
    monkeypatch.setattr(old_etcd, "SYSTEM", bare / "nowhere")

    def put(download, version="3.4.23"):
        program(bare / "apt", "apt-get", download)
        content = f'/bin/mkdir -p "$3/usr/bin"; echo "#!/bin/sh\necho etcd Version: {version}" > "$3/usr/bin/etcd"; chmod +x "$3/usr/bin/etcd"'
        program(bare / "apt", "dpkg-deb", content)
        on_path(bare / "apt")

    return put


def test_the_distributions_package_is_unpacked_once(apt):
    apt("touch etcd-server_3.4.23.deb")
    said = []
    found = old_etcd.provide(said.append)
    assert found == building.cache_folder() / "old-etcd" / "etcd"
    assert len(said) == 1
    assert old_etcd.provide(said.append) == found
    assert len(said) == 1


def test_empty_package_lists_are_updated_by_root(apt, bare, monkeypatch):
    monkeypatch.setattr(old_etcd.os, "geteuid", lambda: 0)
    apt(f'[ "$2" = update ] && exec touch {bare}/lists; [ -e {bare}/lists ] && exec touch etcd.deb; exit 100')
    said = []
    old_etcd.provide(said.append)
    assert said[1:] == ["updating the package lists first"]


def test_who_is_not_root_is_told_to_update(apt, monkeypatch):
    monkeypatch.setattr(old_etcd.os, "geteuid", lambda: 1000)
    apt("echo E: Unable to locate package >&2; exit 100")
    with pytest.raises(old_etcd.OldEtcdError, match="Unable to locate package; as root, `apt-get update` may help"):
        old_etcd.provide(lambda _: None)


def test_a_distribution_with_a_newer_etcd_is_named_with_its_version(apt):
    apt("touch etcd.deb", version="3.5.21")
    with pytest.raises(old_etcd.OldEtcdError, match=r"is 3\.5\.21, not older"):
        old_etcd.provide(lambda _: None)


def test_a_machine_without_apt_says_so(bare, monkeypatch):
    monkeypatch.setattr(old_etcd, "SYSTEM", bare / "nowhere")
    with pytest.raises(old_etcd.OldEtcdError, match="no apt-get"):
        old_etcd.provide(lambda _: None)


def test_lists_are_streamed(api_server):
    events = [json.loads(line) for line in api_server.call("GET", STREAMED).splitlines()]
    assert [event["type"] for event in events].count("BOOKMARK") == 1


def test_over_an_old_etcd_no_list_is_streamed(old_api_server):
    event = old_api_server.call("GET", STREAMED)
    assert (event["type"], event["object"]["code"]) == ("ERROR", 500)
    assert "RequestWatchProgress is disabled" in event["object"]["message"]
