"""Reading scenario files: what is valid, what is not, and where it says so."""

from __future__ import annotations

import textwrap

import pytest

from pumice.scenario import format as scenario_format
from pumice.scenario import manifests, steps

EXPECT = "- expect: {pods: {a/p: {bound: true}}}"


def parse(text):
    return scenario_format.parse(textwrap.dedent(text), "file.yaml")


def one(*step_lines, top=""):
    """Read a scenario with the given steps and an expectation; give the parsed file."""
    body = "\n".join(textwrap.dedent(step) for step in step_lines)
    return scenario_format.parse(f"scenario: one\n{top}\nsteps:\n{body}\n{EXPECT}\n", "file.yaml")


def step(*lines):
    parsed = one(*lines)
    assert parsed.problems == ()
    return parsed.scenarios[0].steps[0]


def test_smallest_scenario():
    (scenario,) = parse(f"scenario: one\nsteps:\n{EXPECT}\n").scenarios
    assert (scenario.name, scenario.file, scenario.line) == ("one", "file.yaml", 1)
    assert (scenario.config, scenario.given, scenario.period, scenario.flags) == (None, (), 1_000_000, {})


def test_several_documents_are_several_scenarios_and_empty_ones_are_none():
    text = f"---\nscenario: one\nsteps:\n{EXPECT}\n---\n---\nscenario: two\nsteps:\n{EXPECT}\n"
    assert [(scenario.name, scenario.line) for scenario in parse(text).scenarios] == [("one", 2), ("two", 7)]


def test_top_level_settings():
    top = 'period: 500ms\nconfig: "actions: allocate"\nflags: {node-selector: ["zone:a"], scheduler-name: [volcano]}'
    (scenario,) = one(top=top).scenarios
    assert scenario.period == 500_000
    assert scenario.config == "actions: allocate"
    assert scenario.flags == {"node-selector": ["zone:a"], "scheduler-name": ["volcano"]}


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("- cycles: 2", {"count": 2}),
        ("- advance: 1m30s", {"duration": 90_000_000}),
        ("- {config: 'x: y', rejected: true}", {"text": "x: y", "rejected": True}),
        ("- config: 'x: y'", {"rejected": False}),
        ("- {until: {counts: {binds: 1}}, within: 5}", {"within": 5}),
        ("- delete: [pod/a/g-0, node/n2, podgroup/a/g, queue/q]", {"grace": None}),
        ("- {delete: [pod/a/g-0], grace: 30s}", {"grace": 30_000_000}),
        (
            "- fail: {verb: bind, object: pod/a/g-*, times: 2, error: lost-reply}",
            {"verb": "bind", "times": 2, "error": "lost-reply"},
        ),
        ("- fail: {verb: status, error: conflict}", {"object": None, "times": 1}),
        ("- expect: {counts: {binds: 0}}", {}),
        ("- apply: []", {"entries": ()}),
        ("- patch: []", {"entries": ()}),
    ],
)
def test_each_kind_of_step(text, fields):
    read = step(text)
    assert {key: getattr(read, key) for key in fields} == fields


def test_references_keep_their_parts():
    read = step("- delete: [pod/a/g-0, node/n2]")
    assert isinstance(read, steps.Delete)
    assert [(part.kind, part.namespace, part.name) for part in read.references] == [
        ("pod", "a", "g-0"),
        ("node", "", "n2"),
    ]


def test_repeat_numbers_every_string_and_key():
    text = """\
    - apply:
      - repeat: 2
        object: {apiVersion: v1, kind: Pod, metadata: {name: "p-{i}", labels: {"l-{i}": "{i}{i}"}}, spec: {list: ["{i}", 3]}}
      - {repeat: 0, object: {apiVersion: v1, kind: Pod, metadata: {name: none}}}
    """
    made = manifests.expand(step(text).entries)
    assert [manifest["metadata"] for manifest in made] == [
        {"name": "p-0", "labels": {"l-0": "00"}},
        {"name": "p-1", "labels": {"l-1": "11"}},
    ]
    assert made[1]["spec"] == {"list": ["1", 3]}


def test_copies_of_a_manifest_share_nothing():
    entry = manifests.Entry(line=1, body={"metadata": {"labels": {}}}, repeat=2)
    first, second = entry.manifests()
    first["metadata"]["labels"]["x"] = "y"
    assert second["metadata"]["labels"] == {}
    assert entry.body == {"metadata": {"labels": {}}}


def test_list_as_kubectl_prints_it_is_its_items():
    node = "{apiVersion: v1, kind: Node, metadata: {name: n1}}"
    read = step(f"- apply: [{{apiVersion: v1, kind: List, items: [{node}, {node}]}}]")
    assert [manifest["kind"] for manifest in manifests.expand(read.entries)] == ["Node", "Node"]


def test_bad_values_inside_manifests_do_not_make_the_file_invalid():
    bad = '{cpu: "-1", memory: abc, nvidia.com/gpu: 1e30}'
    pod = f"{{apiVersion: v1, kind: Pod, metadata: {{name: p}}, spec: {{containers: [{{resources: {{requests: {bad}}}}}]}}}}"
    group = "{apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup, metadata: {name: g}, spec: {minMember: -3, other: [true]}}"
    assert one(f"- apply: [{pod}, {group}]").problems == ()


WRONG_STEPS = [
    ("- cyles: 3", 4, "unknown key 'cyles' in a step; did you mean 'cycles'?"),
    ("- cycles: three", 4, "expected a whole number, found the string"),
    ("- cycles: -1", 4, "0 or more"),
    ("- cycles: true", 4, "expected a whole number, found the boolean true"),
    ("- {cycles: 1, advance: 3s}", 4, "exactly one kind, this one has 2: cycles, advance"),
    ("- {}", 4, "the step is empty"),
    ("- grace: 3s", 4, "'grace' stands only beside 'delete'"),
    ("- {cycles: 1, within: 3}", 4, "'within' stands only beside 'until'"),
    ("- {expect: {counts: {binds: 0}}, rejected: true}", 4, "'rejected' stands only beside 'config'"),
    ("- until: {counts: {binds: 1}}", 4, "until needs 'within: N'"),
    ("- advance: 30", 4, "expected a duration such as 30s, found the integer 30"),
    ('- advance: ""', 4, "expected a duration such as"),
    ("- advance: 30 s", 4, "expected a duration such as"),
    ("- advance: -3s", 4, "backwards"),
    ("- config: {actions: x}", 4, "expected text: the scheduler configuration as a block"),
    ("- {config: x, rejected: maybe}", 4, "expected true or false"),
    ("- delete: pod/a/b", 4, "expected a list of references"),
    ("- delete: [pod/a]", 4, "'pod/a' does not name an object: Pod is namespaced, write pod/namespace/name"),
    ("- delete: [node/a/b]", 4, "Node is cluster-scoped, write node/name"),
    ("- delete: [nod/n1]", 4, "unknown kind 'nod' in 'nod/n1'; did you mean 'node'?"),
    ("- delete: [pod/a/*]", 4, "is a pattern; name one object here"),
    ("- delete: [n]", 4, "put quotes around it"),
    ("- fail: {verb: bnd, error: refused}", 4, "'bnd' is none of bind, evict, status; did you mean 'bind'?"),
    ("- fail: {verb: bind, error: lost}", 4, "'lost' is none of conflict, refused, unavailable, lost-reply"),
    ("- fail: {verb: bind}", 4, "fail needs the key 'error'"),
    ("- fail: {error: refused}", 4, "fail needs the key 'verb'"),
    ("- fail: {verb: bind, error: refused, times: 0}", 4, "1 or more"),
    ("- fail: {verb: bind, error: refused, object: pod/x}", 4, "write pod/namespace/name"),
    ("- fail: {verb: bind, error: refused, objects: pod/a/x}", 4, "did you mean 'object'?"),
    (
        "- expect:\n    pods:\n      a/p: {bond: true}",
        6,
        "unknown key 'bond' in a pod expectation; did you mean 'bound'?",
    ),
    ("- apply: {kind: Pod}", 4, "expected a list of manifests"),
    ("- apply: [5]", 4, "expected a manifest (a map)"),
    ("- apply: [{kind: Pod, metadata: {name: p}}]", 4, "the manifest has no apiVersion"),
    ("- apply: [{apiVersion: v1, metadata: {name: p}}]", 4, "the manifest has no kind"),
    ("- apply: [{apiVersion: v1, kind: Pod, metadata: {}}]", 4, "the manifest has no metadata.name"),
    (
        "- apply:\n  - {apiVersion: v1, kind: Pod,\n     metadata: {name: n}}",
        6,
        "metadata.name: expected text, found the boolean false; put quotes",
    ),
    ("- apply: [{apiVersion: v1, kind: Pod, metadata: {name: 5}}]", 4, "expected text, found the integer 5"),
    (
        "- apply: [{apiVersion: v1, kind: Pod, metadata: {name: p, labels: {a: on}}}]",
        4,
        "labels.a: expected text, found the boolean true",
    ),
    (
        "- apply: [{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {nodeName: 1}}]",
        4,
        "spec.nodeName: expected text",
    ),
    ("- apply: [{apiVersion: v1, kind: Pot, metadata: {name: p}}]", 4, "unknown kind 'Pot'; did you mean 'Pod'?"),
    ("- apply: [{apiVersion: v2, kind: Pod, metadata: {name: p}}]", 4, "Pod is not served as 'v2' but as v1"),
    ("- apply: [{repeat: 2}]", 4, "needs the key 'object'"),
    ("- apply: [{repat: 2, object: {}}]", 4, "unknown key 'repat' in a repeated manifest; did you mean 'repeat'?"),
    ("- apply: [{repeat: -1, object: {apiVersion: v1, kind: Pod, metadata: {name: p}}}]", 4, "0 or more"),
    ("- patch: [{kind: Pod}]", 4, "the manifest has no metadata.name"),
    ("- 3", 4, "a step (a map), found the integer 3"),
]


@pytest.mark.parametrize(("text", "line", "told"), WRONG_STEPS)
def test_wrong_step_is_refused_with_its_line(text, line, told):
    problems = one(text).problems
    assert [problem.line for problem in problems if told in problem.message] == [line], problems


@pytest.mark.parametrize(
    ("text", "line", "told"),
    [
        (
            f"scenario: n\nsteps:\n{EXPECT}",
            1,
            "scenario: expected text: the scenario's name, found the boolean false; put quotes",
        ),
        (f"scenario: ' '\nsteps:\n{EXPECT}", 1, "name is empty"),
        (f"steps:\n{EXPECT}", 1, "the scenario has no name"),
        ("scenario: x", 1, "the scenario has no steps"),
        ("scenario: x\nsteps: 3", 2, "expected a list of steps"),
        ("scenario: x\nsteps: []", 2, "no step has `expect` or `until`"),
        ("scenario: x\nsteps:\n- cycles: 3", 2, "no step has `expect` or `until`"),
        (f"scenario: x\nstep: []\nsteps:\n{EXPECT}", 2, "unknown key 'step' in a scenario; did you mean 'steps'?"),
        (f"scenario: x\ngiven: {{}}\nsteps:\n{EXPECT}", 2, "expected a list of manifests, found a map"),
        (f"scenario: x\nperiod: soon\nsteps:\n{EXPECT}", 2, "period: expected a duration such as 500ms"),
        (f"scenario: x\nconfig: [a]\nsteps:\n{EXPECT}", 2, "config: expected text"),
        (f"scenario: x\nflags: {{node-selecto: []}}\nsteps:\n{EXPECT}", 2, "node-selecto"),
        (f"scenario: x\nflags: {{scheduler-name: 3}}\nsteps:\n{EXPECT}", 2, "scheduler-name"),
        (f"scenario: x\nscenario: y\nsteps:\n{EXPECT}", 2, "written twice"),
        ("- a", 1, "a scenario (a map), found a list"),
        ("scenario: [x\nsteps:", 2, "while parsing a flow sequence"),
        ("", 1, "the file holds no scenario"),
        ("# nothing\n---\n", 1, "the file holds no scenario"),
    ],
)
def test_wrong_document_is_refused_with_its_line(text, line, told):
    parsed = parse(text)
    assert parsed.scenarios == ()
    assert next(problem.line for problem in parsed.problems if told in problem.message) == line, parsed.problems


def test_all_problems_of_a_file_are_reported_in_order_of_their_lines():
    text = f"scenario: n\nsteps:\n- cyles: 1\n- advance: 3\n{EXPECT}\n---\nscenario: fine\nsteps:\n- expect: {{pod: {{}}}}\n"
    assert [problem.line for problem in parse(text).problems] == [1, 3, 4, 9]


def test_patch_needs_no_api_version():
    assert one("- patch: [{kind: Node, metadata: {name: n1}, spec: {unschedulable: true}}]").problems == ()


def test_folders_are_searched_for_yaml_in_order_and_each_file_is_taken_once(tmp_path):
    for name in ("b.yaml", "a.yaml", "deep/c.yaml", "d.yml", "e.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    found = scenario_format.find([str(tmp_path), str(tmp_path / "a.yaml"), str(tmp_path / "d.yml")])
    assert [str(path.relative_to(tmp_path)) for path in found] == ["a.yaml", "b.yaml", "deep/c.yaml", "d.yml"]


def test_path_without_a_scenario_is_an_error(tmp_path):
    with pytest.raises(scenario_format.NothingFoundError, match="no scenario in this folder"):
        scenario_format.find([str(tmp_path)])
    with pytest.raises(scenario_format.NothingFoundError, match="no such file"):
        scenario_format.find([str(tmp_path / "none.yaml")])


def test_file_that_is_not_text_is_invalid(tmp_path):
    (tmp_path / "x.yaml").write_bytes(b"\xff\xfe\x00")
    (problem,) = scenario_format.load(tmp_path / "x.yaml").problems
    assert "cannot be read" in problem.message
