from fake_programs import go, program, programs

from testbed import building, old_etcd, provide

THREE = provide.PROGRAMS


def test_programs_in_the_assets_folder_win_over_those_on_path(bare, on_path, monkeypatch):
    assets = programs(bare / "assets", *THREE)
    on_path(programs(bare / "bin", *THREE))
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(assets))
    assert provide.binaries() == assets


def test_programs_on_path_win_over_those_built(bare, on_path):
    on_path(go(bare / "go").parent)
    building.build(THREE, lambda _: None)
    assert provide.binaries() == building.built_folder()
    on_path(programs(bare / "bin", *THREE))
    assert provide.binaries() == bare / "bin"


def test_programs_in_several_folders_of_path_are_linked_into_one(bare, on_path):
    on_path(programs(bare / "a", "etcd"), programs(bare / "b", "kube-apiserver", "kubectl"))
    folder = provide.binaries()
    assert folder is not None
    assert {path.name: path.resolve().parent.name for path in folder.iterdir()} == {
        "etcd": "a",
        "kube-apiserver": "b",
        "kubectl": "b",
    }
    assert folder.is_relative_to(bare / "cache" / "pumice" / "kube")
    assert provide.binaries() == folder


def test_a_kubectl_without_an_api_server_is_not_enough(bare, on_path):
    on_path(programs(bare / "bin", "kubectl", "etcd"))
    assert provide.binaries() is None


def test_an_incomplete_assets_folder_is_named_and_left_aside(bare, on_path, monkeypatch, capsys):
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(programs(bare / "assets", "etcd")))
    on_path(programs(bare / "bin", *THREE))
    assert provide.main([]) == 0
    shown = capsys.readouterr()
    assert shown.out == f"{bare / 'bin'}\n"
    assert shown.err == f"KUBEBUILDER_ASSETS={bare / 'assets'} lacks kube-apiserver, kubectl: it is left aside\n"


def test_what_is_missing_is_built_once_and_the_last_line_is_the_folder(bare, on_path, capsys):
    on_path(go(bare / "go").parent)
    assert provide.main([]) == 0
    first = capsys.readouterr()
    folder = bare / "cache" / "pumice" / "kube" / "v1.36.3"
    assert first.out.splitlines()[-1] == str(folder)
    assert "kube-apiserver v1.36.3: built in" in first.err
    assert sorted(path.name for path in folder.iterdir() if path.is_file()) == sorted(THREE)
    (bare / "go" / "go").unlink()
    assert provide.main([]) == 0
    second = capsys.readouterr()
    assert (second.out, second.err) == (first.out, "")


def test_if_present_builds_nothing_and_says_how(bare, on_path, capsys):
    on_path(go(bare / "go").parent)
    assert provide.main(["--if-present"]) == 3
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err == "no folder holds etcd, kube-apiserver, kubectl: run `make kube` to get one\n"
    assert not building.built_folder().exists()


def test_if_present_names_an_extra_that_is_missing(bare, on_path, capsys):
    on_path(programs(bare / "bin", *THREE))
    assert provide.main(["--if-present", "--with", "helm"]) == 3
    assert capsys.readouterr().err == "there is no helm: run `make kube WITH=helm` to get one\n"


def test_an_extra_is_built_beside_programs_found_elsewhere(bare, on_path, capsys):
    on_path(programs(bare / "bin", *THREE), go(bare / "go").parent)
    assert provide.program("kube-scheduler") is None
    assert provide.main(["--with", "kube-scheduler"]) == 0
    shown = capsys.readouterr()
    assert shown.out == f"{bare / 'bin'}\n"
    assert shown.err.endswith(f"kube-scheduler: {building.built_folder() / 'kube-scheduler'}\n")
    assert provide.program("kube-scheduler") == building.built_folder() / "kube-scheduler"
    assert provide.program("kubectl") == bare / "bin" / "kubectl"


def test_a_pinned_extra_wins_over_one_on_path(bare, on_path):
    on_path(programs(bare / "bin", "helm"), go(bare / "go").parent)
    assert provide.program("helm") == bare / "bin" / "helm"
    building.build(["helm"], lambda _: None)
    assert provide.program("helm") == building.built_folder() / "helm"


def test_an_operator_is_only_taken_if_it_was_built_with_its_definitions(bare, on_path):
    on_path(programs(bare / "bin", "argo", "helm"))
    assert provide.program("helm") == bare / "bin" / "helm"
    assert provide.program("argo") is None


def test_a_failed_build_says_why_in_the_compilers_words(bare, on_path, capsys):
    on_path(go(bare / "go", behaviour='echo "go: no such module" >&2; exit 1').parent)
    assert provide.main([]) == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "error: etcd v3.6.8 could not be built" in shown.err
    assert shown.err.endswith("go: no such module\n")


def test_an_old_etcd_is_an_extra_that_is_not_built(bare, on_path, monkeypatch, capsys):
    monkeypatch.setattr(old_etcd, "SYSTEM", bare / "nowhere")
    on_path(programs(bare / "bin", *THREE))
    assert provide.main(["--with", "old-etcd", "--if-present"]) == 3
    assert capsys.readouterr().err == "there is no old-etcd: run `make kube WITH=old-etcd` to get one\n"
    program(bare / "old", "etcd", "echo etcd Version: 3.4.23")
    monkeypatch.setattr(old_etcd, "SYSTEM", bare / "old" / "etcd")
    assert provide.main(["--with", "old-etcd"]) == 0
    shown = capsys.readouterr()
    assert shown.out == f"{bare / 'bin'}\n"
    assert shown.err == f"old-etcd: {bare / 'old' / 'etcd'}\n"


def test_an_old_etcd_that_cannot_be_had_is_an_error(bare, on_path, monkeypatch, capsys):
    monkeypatch.setattr(old_etcd, "SYSTEM", bare / "nowhere")
    on_path(programs(bare / "bin", *THREE))
    assert provide.main(["--with", "old-etcd"]) == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "error: this machine has no apt-get" in shown.err
