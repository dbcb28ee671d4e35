import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from fake_programs import go

from testbed import building, waiting

ROOT = Path(building.__file__).parents[1]


def silent(_line):
    pass


def test_versions_come_from_the_pinned_modules():
    versions = {program: recipe.version for program, recipe in building.RECIPES.items()}
    assert versions == {
        "argo": "v3.7.9",
        "etcd": "v3.6.8",
        "helm": "v3.22.0",
        "jobset": "v0.11.1",
        "kube-apiserver": "v1.36.3",
        "kube-controller-manager": "v1.36.3",
        "kube-controllers": "v1.36.3",
        "kube-scheduler": "v1.36.3",
        "kubectl": "v1.36.3",
        "vc-controller-manager": "v1.14.1",
        "vc-scheduler": "v1.14.1",
        "vc-webhook-manager": "v1.14.1",
        "kuberay": "v1.6.0",
        "lws": "v0.8.0",
        "mpi": "v0.8.0",
        "spark": "v2.5.1",
        "trainer": "v2.1.0",
    }


def test_each_staged_module_is_replaced_by_the_release_of_the_same_day():
    lines = (building.MODULES / "kubernetes" / "go.mod").read_text().splitlines()
    replaced = [line.split() for line in lines if "=>" in line]
    assert len(replaced) == 33
    assert all(words[0] == words[2] and words[3] == "v0.36.3" for words in replaced)


def test_the_version_is_stamped_where_discovery_and_user_agent_read_it():
    linking = building.RECIPES["kube-apiserver"].linking.split()
    for package in ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version"):
        assert f"{package}.gitVersion=v1.36.3" in linking
        assert f"{package}.gitMajor=1" in linking
        assert f"{package}.gitMinor=36" in linking


@pytest.mark.parametrize(
    ("setting", "relative"),
    [("{base}", "pumice/kube"), ("", ".cache/pumice/kube"), ("not/absolute", ".cache/pumice/kube")],
)
def test_the_cache_folder_follows_the_users_setting_if_it_is_absolute(monkeypatch, tmp_path, setting, relative):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", setting.format(base=tmp_path))
    assert building.cache_folder() == tmp_path / relative


def test_an_interrupted_build_is_not_taken_for_a_program(bare, on_path):
    on_path(go(bare / "go", behaviour='echo half > "$2"; touch "$2.started"; exec sleep 60').parent)
    code = "from testbed import building; building.build(['etcd'], print)"
    with subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, start_new_session=True
    ) as process:
        started = building.built_folder() / ".unfinished" / "etcd.started"
        waiting.until(started.exists)
        os.killpg(process.pid, signal.SIGKILL)
    assert not building.is_built("etcd")
    assert not (building.built_folder() / "etcd").exists()
    on_path(go(bare / "go2").parent)
    building.build(["etcd"], silent)
    assert building.is_built("etcd")
    assert sorted(path.name for path in building.built_folder().iterdir()) == [".built", "etcd"]


def test_a_program_without_its_mark_is_built_again(bare, on_path):
    on_path(go(bare / "go").parent)
    folder = building.build(["etcd"], silent)
    (folder / ".built" / "etcd").unlink()
    assert not building.is_built("etcd")
    building.build(["etcd"], silent)
    assert building.is_built("etcd")


def test_a_changed_pin_makes_the_old_program_count_as_missing(bare, on_path, monkeypatch):
    on_path(go(bare / "go").parent)
    building.build(["etcd"], silent)
    assert building.is_built("etcd")
    changed = building.RECIPES["etcd"]._replace(package="example.com/other")
    monkeypatch.setitem(building.RECIPES, "etcd", changed)
    assert not building.is_built("etcd")


def test_a_changed_source_of_our_own_makes_the_old_program_count_as_missing(bare, on_path, monkeypatch, tmp_path):
    shutil.copytree(building.MODULES, tmp_path / "go")
    monkeypatch.setattr(building, "MODULES", tmp_path / "go")
    on_path(go(bare / "go").parent)
    building.build(["kube-controllers", "kube-scheduler"], silent)
    with (tmp_path / "go" / "kubernetes" / "controllers" / "main.go").open("a") as file:
        file.write("// changed\n")
    assert not building.is_built("kube-controllers")
    assert building.is_built("kube-scheduler")


def test_what_is_built_already_stays_when_another_program_is_missing(bare, on_path):
    on_path(go(bare / "go").parent)
    said = []
    building.build(["etcd"], said.append)
    said.clear()
    building.build(["etcd", "kubectl"], said.append)
    assert said[0].startswith("building kubectl into")
    assert [line.split()[0] for line in said[1:]] == ["kubectl"]


def test_two_builds_at_once_take_turns_and_build_once(bare, on_path):
    on_path(go(bare / "go", behaviour='sleep 0.2; echo >> "$XDG_CACHE_HOME/builds"; echo x > "$2"').parent)
    (bare / "cache").mkdir()
    lines = [[], []]
    threads = [threading.Thread(target=building.build, args=(["etcd"], said.append)) for said in lines]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (bare / "cache" / "builds").read_text() == "\n"
    assert sum(line.startswith("waiting for another process") for said in lines for line in said) == 1


def test_a_long_build_shows_that_it_is_still_going(bare, on_path, monkeypatch):
    monkeypatch.setattr(building, "PROGRESS_SECONDS", 0)
    on_path(go(bare / "go").parent)
    said = []
    building.build(["etcd"], said.append)
    assert said[1] == "etcd: 0 s, 1 packages compiled"
