"""Kubeconfig files: merged in order, one context taken out, and every mistake named by file, entry and field."""

from __future__ import annotations

import asyncio
import base64
import os

import pytest
import yaml

from pumice.kube import errors
from pumice.kube.access import connection
from pumice.kube.access.endpoint import Scheduled


def config(**parts):
    """A whole kubeconfig: `cluster`, `user` and `context` add to what works."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "prod",
        "clusters": [{"name": "c", "cluster": {"server": "http://one:8080", **parts.get("cluster", {})}}],
        "users": [{"name": "eve", "user": parts.get("user", {})}],
        "contexts": [{"name": "prod", "context": {"cluster": "c", "user": "eve", **parts.get("context", {})}}],
    }


@pytest.fixture
def write(tmp_path):
    def write(content, name="config"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
        return path

    return write


def load(path, **options):
    return connection.load(str(path), environ={}, **options)


def headers(found):
    return dict(asyncio.run(found.credentials.headers()))


def test_a_context_joins_cluster_user_and_namespace(write):
    found = load(write(config(user={"token": "tok"}, context={"namespace": "batch"}, cluster={"tls-server-name": "x"})))
    assert (found.server, found.namespace, found.tls_server_name) == ("http://one:8080", "batch", "x")
    assert found.origin.startswith("user 'eve' of context 'prod' in ")
    assert headers(found) == {"Authorization": "Bearer tok"}


@pytest.mark.parametrize(
    ("extension", "names", "policy"),
    [
        ({"configuration": "policy.yaml"}, (), "policy.yaml"),
        ({"names": ["a", "b"]}, ("a", "b"), ""),
        ({"names": ["a"], "configuration": "x/policy.yaml", "more": 1}, ("a",), "x/policy.yaml"),
        ({"configuration": 1}, (), ""),
        ({"names": "a"}, (), ""),
        ("policy.yaml", (), ""),
        (None, (), ""),
    ],
)
def test_extension_says_whose_pods_are_scheduled_and_by_which_file_beside_it(write, tmp_path, extension, names, policy):
    named = {"name": "pumice.dev/scheduled-by", "extension": extension}
    found = load(write(config(cluster={"extensions": [{"name": "other", "extension": {"names": ["x"]}}, named]})))
    assert found.scheduled == Scheduled(names, str(tmp_path / policy) if policy else "")
    assert load(write(config(cluster={"extensions": None}))).scheduled == Scheduled()


def test_another_context_and_another_server_can_be_asked_for(write):
    content = config()
    content["contexts"].append({"name": "dev", "context": {"cluster": "c", "namespace": "dev"}})
    path = write(content)
    assert load(path, context="dev").namespace == "dev"
    assert load(path, master="https://two:6443").server == "https://two:6443"
    assert load(path).namespace == "default"


USERS = {
    "basic": ({"username": "u", "password": "p"}, {"Authorization": "Basic " + base64.b64encode(b"u:p").decode()}),
    "nobody": ({}, {}),
    "null": ({"token": None, "exec": None}, {}),
    "file-before-token": ({"token": "inline", "tokenFile": "tok"}, {"Authorization": "Bearer from-file"}),
    "as": (
        {"token": "t", "as": "bob", "as-groups": ["g"], "as-uid": "7"},
        {"Authorization": "Bearer t", "Impersonate-User": "bob", "Impersonate-Group": "g", "Impersonate-Uid": "7"},
    ),
}


@pytest.mark.parametrize("case", USERS)
def test_users(write, case):
    user, expected = USERS[case]
    write("from-file\n", "tok")
    assert headers(load(write(config(user=user)))) == expected


def test_of_several_files_the_first_wins_each_entry(write):
    first = {"current-context": "", "clusters": [{"name": "c", "cluster": {"server": "http://first"}}]}
    second = config(user={"tokenFile": "tok"})
    write("from-second", "b/tok")
    paths = [write(first, "a/one"), write(second, "b/two"), "/no/such/file", ""]
    found = connection.load(environ={"KUBECONFIG": ":".join(map(str, paths))})
    assert found.server == "http://first"
    assert headers(found) == {"Authorization": "Bearer from-second"}


def test_an_explicit_file_stands_before_the_environment(write):
    other = write(config(cluster={"server": "http://other"}), "other")
    path = write(config())
    assert connection.load(str(path), environ={"KUBECONFIG": str(other)}).server == "http://one:8080"


def test_the_default_place_is_in_the_home_folder(write, tmp_path):
    write(config(), ".kube/config")
    assert connection.load(environ={"HOME": str(tmp_path)}).server == "http://one:8080"


def test_an_exec_user_is_a_plugin_beside_the_file(write):
    plugin = write(
        '#!/bin/sh\necho \'{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","status":{"token":"'
        "'$(basename $0)'\"}}'\n",
        "plug",
    )
    plugin.chmod(0o755)
    settings = {
        "command": "./plug",
        "apiVersion": "client.authentication.k8s.io/v1",
        "interactiveMode": "IfAvailable",
        "args": None,
        "env": [{"name": "A", "value": "b"}],
        "provideClusterInfo": True,
    }
    assert headers(load(write(config(user={"exec": settings})))) == {"Authorization": "Bearer plug"}


def _without(section):
    content = config()
    del content[section]
    return content


def _entry(section, entry):
    return {**config(), section: entry}


MISTAKES = {
    "missing-context": ({**config(), "current-context": "gone"}, ["context 'gone' does not exist", "prod", "get-contexts"]),
    "no-context": ({**config(), "current-context": ""}, ["current-context is not set", "contexts: prod", "use-context"]),
    "no-contexts": (_without("contexts"), ["context 'prod' does not exist; contexts: none"]),
    "missing-cluster": (_without("clusters"), ["context 'prod': cluster names 'c'", "clusters: none"]),
    "missing-user": (_without("users"), ["context 'prod': user names 'eve'", "users: none"]),
    "unnamed-cluster": (config(context={"cluster": ""}), ["context 'prod': cluster is not set"]),
    "no-server": (config(cluster={"server": ""}), ["cluster 'c': server is not set", "https://HOST:PORT"]),
    "bad-server": (config(cluster={"server": "ftp://x"}), ["cluster 'c': server", "https://HOST:PORT"]),
    "bad-port": (config(cluster={"server": "https://x:99999999"}), ["cluster 'c': server"]),
    "secret-server": (config(cluster={"server": "https://u:hush@x"}), ["cluster 'c': server", "users section"]),
    "bad-type": (config(cluster={"server": 5}), ["cluster 'c'", "Expected `str`, got `int`", "$.server"]),
    "bad-switch": (config(cluster={"insecure-skip-tls-verify": "hush"}), ["Expected `bool`", "insecure-skip-tls-verify"]),
    "bad-token": (config(user={"token": 12345678}), ["user 'eve'", "Expected `str`", "$.token"]),
    "token-line": (config(user={"token": "hush\nhush"}), ["user 'eve': token", "no header can carry"]),
    "bad-base64": (config(user={"client-certificate-data": "hush!", "client-key-data": "aHVzaA=="}), ["user 'eve': client-certificate-data", "base64"]),
    "half-pair": (config(user={"client-certificate-data": "aHVzaA=="}), ["user 'eve': client-key is missing"]),
    "other-half": (config(user={"client-key": "hush"}), ["user 'eve': client-certificate is missing"]),
    "both-ways": (config(user={"username": "u", "token": "hush"}), ["user 'eve': username", "remove one"]),
    "auth-provider": (config(user={"auth-provider": {"name": "gcp", "config": {"access-token": "hush"}}}), ["user 'eve': auth-provider 'gcp' is not supported", "exec"]),
    "exec-version": (config(user={"exec": {"command": "x", "args": ["hush"]}}), ["user 'eve': exec.apiVersion", "client.authentication.k8s.io/v1"]),
    "exec-type": (config(user={"exec": {"command": "x", "env": "hush"}}), ["user 'eve'", "$.exec.env"]),
    "groups-alone": (config(user={"as-groups": ["g"]}), ["user 'eve': as is not set"]),
    "two-groups": (config(user={"as": "b", "as-groups": ["g", "h"]}), ["user 'eve': as-groups"]),
    "as-two-lines": (config(user={"as": "b\r\nX-Evil: 1"}), ["user 'eve': as", "no header can carry"]),
    "extra": (config(user={"as": "b", "as-user-extra": {"k": ["hush"]}}), ["user 'eve': as-user-extra"]),
    "insecure-and-ca": (config(cluster={"insecure-skip-tls-verify": True, "certificate-authority-data": "aHVzaA=="}), ["insecure-skip-tls-verify", "remove one"]),
    "bad-ca": (config(cluster={"server": "https://x", "certificate-authority-data": "aHVzaA=="}), ["cluster 'c': certificate-authority-data", "BEGIN CERTIFICATE"]),
    "ca-gone": (config(cluster={"server": "https://x", "certificate-authority": "gone.crt"}), ["cluster 'c': certificate-authority", "gone.crt", "No such file"]),
    "bad-pair": (config(cluster={"server": "https://x"}, user={"client-certificate-data": "aHVzaA==", "client-key-data": "aHVzaA=="}), ["user 'eve': client-certificate-data", "PEM pair"]),
    "socks": (config(cluster={"proxy-url": "socks5://hush:hush@x:1"}), ["cluster 'c': proxy-url: socks5:// is not supported"]),
    "twice": (_entry("users", [{"name": "eve"}, {"name": "eve"}]), ["users[1] 'eve' stands twice"]),
    "nameless": (_entry("users", [{"user": {"token": "hush"}}]), ["users[0] has no name"]),
    "no-list": (_entry("clusters", {"c": {}}), ["clusters must be a list"]),
    "no-map": (_entry("clusters", [{"name": "c", "cluster": "hush"}]), ["clusters[0] 'c': cluster must be a map"]),
    "kind": ({**config(), "kind": "Pod"}, ["kind is not Config"]),
    "context-type": ({**config(), "current-context": 5}, ["current-context must be a string"]),
    "list": ("- hush", ["one map with clusters"]),
    "two-documents": ("a: 1\n---\nb: hush\n", ["one map with clusters"]),
    "yaml": ("clusters: [\ntoken: hush: hush\n", ["line 2 is not valid YAML"]),
    "tag": ("users: !!int hush\n", ["line 1 is not valid YAML"]),
    "empty": ("", ["current-context is not set", "contexts: none"]),
}  # fmt: skip


@pytest.mark.parametrize("case", MISTAKES)
def test_a_mistake_is_named_by_file_entry_and_field_and_shows_no_value(write, case):
    content, words = MISTAKES[case]
    path = write(content)
    with pytest.raises(errors.ConfigurationError) as caught:
        load(path)
    text = str(caught.value)
    assert str(path) in text
    for word in words:
        assert word in text
    assert "hush" not in text
    assert "aHVz" not in text
    assert caught.value.failure.code == "refused"


def test_files_that_cannot_be_read_are_named(write, tmp_path):
    with pytest.raises(errors.ConfigurationError, match="gone: no such kubeconfig"):
        load(tmp_path / "gone")
    with pytest.raises(errors.ConfigurationError, match="cannot be read: it is a folder; name a file"):
        load(tmp_path)
    path = write("")
    path.write_bytes(b"\xff\xfe\xff")
    with pytest.raises(errors.ConfigurationError, match="not UTF-8"):
        load(path)


ENDLESS = {
    "an authority": {"cluster": {"server": "https://one", "certificate-authority": "/dev/zero"}},
    "a certificate": {"cluster": {"server": "https://one"}, "user": {"client-certificate": "/dev/zero", "client-key": "/dev/zero"}},
    "a token": {"user": {"tokenFile": "fifo"}},
}  # fmt: skip


@pytest.mark.parametrize("what", ENDLESS)
def test_files_that_a_kubeconfig_names_are_files_and_no_larger_than_such_are(write, tmp_path, what):
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(
        errors.ConfigurationError,
        match=r"(certificate|certificate-authority|tokenFile): cannot read .*, which may never end; name a file",
    ):
        load(write(config(**ENDLESS[what])))
    (tmp_path / "ca.pem").write_bytes(b"-" * (4 << 20) + b"-")
    large = {"server": "https://one", "certificate-authority": "ca.pem"}
    with pytest.raises(errors.ConfigurationError, match=r"ca\.pem is larger than 4194304 bytes; this is no PEM"):
        load(write(config(cluster=large)))


def test_a_kubeconfig_that_is_no_file_is_not_read_without_end():
    with pytest.raises(
        errors.ConfigurationError, match="/dev/zero: cannot be read: it is a device, which may never end; name a file"
    ):
        load("/dev/zero")


def test_nothing_to_be_found_lists_the_places_and_the_flags():
    with pytest.raises(errors.ConfigurationError, match=r"/none/\.kube/config.*--kubeconfig FILE or --master URL"):
        connection.load(environ={"HOME": "/none"})
    with pytest.raises(errors.ConfigurationError, match=r"/a, /b \(\$KUBECONFIG\)"):
        connection.load(environ={"HOME": "/none", "KUBECONFIG": "/a:/b"})


@pytest.mark.parametrize(
    ("master", "server"),
    [("localhost:8080", "http://localhost:8080"), ("https://h:6443/", "https://h:6443"), ("http://h/p/", "http://h/p")],
)
def test_a_master_alone_is_used_without_credentials(master, server):
    found = connection.load(master=master, environ={"KUBECONFIG": "/none"})
    assert (found.server, headers(found)) == (server, {})


@pytest.mark.parametrize(
    "master", ["ftp://x", "://", "https://", "https://u:hush@x", "https://x/?token=hush", "http://[::1"]
)
def test_a_master_that_is_no_address_is_refused(master):
    with pytest.raises(errors.ConfigurationError, match="--master") as caught:
        connection.load(master=master, environ={})
    assert "hush" not in str(caught.value)
