"""No module of the core imports itself over others, be it at run time or for types alone; the circles that are still there may only become smaller."""

import import_circles
import pytest

# Modules that import each other today: whoever opens a circle takes its modules off here.
KNOWN = {
    "pumice.actions": [],
    "pumice.framework": [],
    "pumice.model": [],
    "pumice.cache": [],
}


@pytest.mark.parametrize("package", KNOWN)
def test_no_module_imports_itself_over_others_by_run_time_or_type_imports(package):
    known = [{f"{package}.{name}" for name in names.split()} for names in KNOWN[package]]
    found = import_circles.circles(import_circles.imports(package))
    assert [circle for circle in found if not any(set(circle) <= each for each in known)] == []


def test_circles_are_found_over_imports_of_types_and_inside_functions(tmp_path):
    package = tmp_path / "house"
    package.mkdir()
    for name, text in {
        "__init__": "",
        "roof": "from house import wall",
        "wall": "if TYPE_CHECKING:\n    from house.door import Door",
        "door": "def open():\n    import house.roof",
        "cellar": "from house.roof import Roof\nimport os",
    }.items():
        (package / f"{name}.py").write_text(text)
    graph = import_circles.imports("house", tmp_path)
    assert graph["house.cellar"] == ["house.roof"]
    assert import_circles.circles(graph) == [["house.door", "house.roof", "house.wall"]]
