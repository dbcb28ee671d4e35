import pytest
from fake_programs import go, program

from testbed import building, operator_files, provide


def silent(_line):
    pass


@pytest.fixture
def module(bare, on_path, monkeypatch):
    """The folder of a module that Go finds."""
    on_path(go(bare / "go").parent)
    monkeypatch.setenv("MODULE_FOLDER", str(bare / "module"))
    found = bare / "module/config/crd/bases"
    found.mkdir(parents=True)
    for name in ("ray.io_rayclusters.yaml", "ray.io_rayjobs.yaml", "README.md"):
        (found / name).write_text(name)
    return found


def test_the_definitions_of_an_operator_are_kept_as_its_module_has_them(module):
    assert operator_files.kept("kuberay") == []
    operator_files.fetch(["kuberay"], silent)
    names = [path.read_text() for path in operator_files.kept("kuberay")]
    assert names == ["ray.io_rayclusters.yaml", "ray.io_rayjobs.yaml"]


def test_definitions_of_another_version_are_fetched_anew(module, monkeypatch):
    operator_files.fetch(["kuberay"], silent)
    (module / "ray.io_rayjobs.yaml").unlink()
    operator_files.fetch(["kuberay"], silent)
    assert len(operator_files.kept("kuberay")) == 2
    other = building.RECIPES["kuberay"]._replace(definitions="config/crd/bases/ray*.yaml")
    monkeypatch.setitem(building.RECIPES, "kuberay", other)
    assert operator_files.kept("kuberay") == []
    operator_files.fetch(["kuberay"], silent)
    assert [path.name for path in operator_files.kept("kuberay")] == ["ray.io_rayclusters.yaml"]


def test_a_module_that_cannot_be_fetched_is_told_with_its_version(bare, on_path):
    said = 'echo \'{"Error": "no route"}\'; exit 1'
    on_path(program(bare / "go", "go", f'case "$1" in env) echo go1.26.1;; *) {said};; esac').parent)
    with pytest.raises(building.BuildError, match=r"kuberay/ray-operator v1.6.0 could not be fetched: no route"):
        operator_files.fetch(["kuberay"], silent)


def test_definitions_are_an_extra_that_is_there_when_all_are(module):
    assert provide.program(provide.DEFINITIONS) is None
    for recipe in {name: building.RECIPES[name] for name in provide.OPERATORS}.values():
        for pattern in recipe.definitions.split():
            path = module.parents[2] / pattern.replace("*", "x")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("{}")
    operator_files.fetch(provide.OPERATORS, silent)
    assert provide.program(provide.DEFINITIONS) == building.built_folder() / "definitions"
