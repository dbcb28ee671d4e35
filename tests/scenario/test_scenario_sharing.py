"""Scenarios over several files: the deployed configuration, files among objects, and documents that extend others."""

from __future__ import annotations

import textwrap

import pytest

from pumice.scenario import format as scenario_format
from pumice.scenario import manifests, policies, runner, suite

CONFIG = 'actions: "allocate"\ntiers:\n- plugins: [{name: gang}, {name: predicates}]\n'
STEPS = "steps: [{expect: {counts: {binds: 0}}}]\n"


def node(name):
    return f"{{apiVersion: v1, kind: Node, metadata: {{name: {name}}}, status: {{allocatable: {{cpu: '4'}}}}}}"


def config_map(*keys, text=CONFIG, kind="ConfigMap", name="conf"):
    head = f"apiVersion: v1\nkind: {kind}\nmetadata: {{name: {name}}}\ndata:\n"
    return head + "".join(f"  {key}: |\n{textwrap.indent(text, '    ')}" for key in keys)


@pytest.fixture
def write(tmp_path):
    """Write files by name; give a scenario file, read."""

    def written(scenario, **files):
        for name, text in files.items():
            (tmp_path / f"{name}.yaml").write_text(text)
        path = tmp_path / "policy.yaml"
        path.write_text(scenario)
        return scenario_format.load(path)

    return written


def names(scenario):
    return [manifest["metadata"]["name"] for manifest in manifests.expand(scenario.given)]


# -- the deployed configuration ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "text"),
    [
        ("{file: conf.yaml}", CONFIG),
        ("{file: conf.yaml}", config_map("volcano-scheduler.conf")),
        ("{file: conf.yaml}", config_map("volcano-scheduler.conf", "other")),
        ("{file: conf.yaml}", config_map("anything")),
        ("{file: conf.yaml, key: b}", config_map("a", "b")),
        (
            "{file: conf.yaml}",
            "apiVersion: v1\nkind: Namespace\nmetadata: {name: x}\n---\n" + config_map("scheduler.conf"),
        ),
        ("{file: conf.yaml}", config_map("unrelated", text="x\n", name="a") + "---\n" + config_map("scheduler.conf")),
        (
            "{file: conf.yaml}",
            "kind: List\nitems:\n- " + textwrap.indent(config_map("scheduler.conf"), "  ").lstrip(),
        ),
    ],
)
def test_configuration_is_that_of_the_file_or_of_the_config_map_in_it(config, text, write):
    found = write(f"scenario: one\nconfig: {config}\n{STEPS}", conf=text)
    assert found.problems == ()
    assert found.scenarios[0].config == CONFIG
    assert runner.run(found.scenarios[0]).status == "passed"


def test_config_map_may_stand_in_the_scenario_itself(write):
    inside = textwrap.indent(config_map("volcano-scheduler.conf"), "  ")
    assert write(f"scenario: one\nconfig:\n{inside}{STEPS}").scenarios[0].config == CONFIG


def test_flat_map_of_kube_batch_is_the_config_map_as_a_whole(write):
    text = 'kind: ConfigMap\ndata: {actions: allocate, plugins: "gang, predicates"}\n'
    (scenario,) = write(f"scenario: one\nconfig: {{file: conf.yaml}}\n{STEPS}", conf=text).scenarios
    assert runner.run(scenario).status == "passed"


@pytest.mark.parametrize(
    ("config", "text", "told"),
    [
        ("{file: none.yaml}", "", "none.yaml: cannot be read: No such file"),
        ("{key: a}", "", "the name of a file is missing"),
        ("{file: conf.yaml, kez: a}", CONFIG, "unknown key 'kez' in a configuration in a file; did you mean 'key'?"),
        (
            "{file: conf.yaml, key: a}",
            CONFIG,
            "conf.yaml: no ConfigMap but a plain configuration, which has no key 'a'",
        ),
        (
            "{file: conf.yaml}",
            config_map("x", kind="Secret"),
            "conf.yaml: manifests, but no ConfigMap with data among them",
        ),
        (
            "{file: conf.yaml}",
            config_map("a", "b"),
            "the ConfigMap has no key that is known to hold a configuration, it has the keys a, b",
        ),
        ("{file: conf.yaml, key: c}", config_map("a"), "conf.yaml:1: the ConfigMap has no key 'c', it has the keys a"),
        (
            "{file: conf.yaml}",
            config_map("scheduler.conf", name="one") + "---\n" + config_map("scheduler.conf", name="two"),
            "2 ConfigMaps may hold the configuration: one, two; leave the others out",
        ),
        (
            "{file: conf.yaml}",
            "kind: ConfigMap\ndata: {a: 3}",
            "conf.yaml:1: data.a: expected text, found the integer 3",
        ),
        (
            "{kind: ConfigMap, data: {a: x, b: y}}",
            "",
            "the ConfigMap has the keys a, b, none known to hold a configuration",
        ),
        ("{kind: Secret, data: {a: x}}", "", "expected a ConfigMap with data, found the kind 'Secret'"),
    ],
)
def test_file_without_a_configuration_makes_the_scenario_invalid_on_the_line_that_names_it(config, text, told, write):
    (problem,) = write(f"scenario: one\nconfig: {config}\n{STEPS}", conf=text).problems
    assert problem.line == 2
    assert told in problem.message


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (CONFIG.replace("gang", "gnag"), "conf.yaml:3: "),
        (config_map("volcano-scheduler.conf", text=CONFIG.replace("gang", "gnag")), "conf.yaml:8: "),
        ('kind: ConfigMap\ndata: {scheduler.conf: "actions: a\\ntiers: []"}', "conf.yaml: scheduler.conf: line 1: "),
        ("actions: [", "conf.yaml:"),
    ],
)
def test_refused_configuration_is_told_with_file_line_and_key(text, place, write, tmp_path):
    (scenario,) = write(f"scenario: one\nconfig: {{file: conf.yaml}}\n{STEPS}", conf=text).scenarios
    result = runner.run(scenario)
    assert result.status == "failed"
    assert result.mismatches[0].line == 2
    assert result.mismatches[0].found.startswith(f"the configuration is refused: {tmp_path}/{place}")


def test_step_may_name_a_file_too(write):
    steps = "steps:\n- {config: {file: bad.yaml}, rejected: true}\n- config: {file: conf.yaml}\n- expect: {}\n"
    (scenario,) = write("scenario: one\n" + steps, conf=CONFIG, bad="actions: nothing\n").scenarios
    assert runner.run(scenario).status == "passed"


# -- objects in files -------------------------------------------------------------------------------------------


def test_given_mixes_files_and_objects_in_their_order(write):
    last = node("'last-{i}'")
    given = f"given:\n- {node('n1')}\n- more.yaml\n- {{repeat: 2, object: {last}}}\n"
    found = write(f"scenario: one\n{given}{STEPS}", more=f"{node('n2')}\n---\n- {node('n3')}\n")
    assert names(found.scenarios[0]) == ["n1", "n2", "n3", "last-0", "last-1"]


def test_mistake_in_a_file_of_objects_is_told_with_its_file_and_line(write):
    found = write(f"scenario: one\ngiven:\n- more.yaml\n- none.yaml\n{STEPS}", more="kind: Node\nmetadata: {name: 1}\n")
    assert [(problem.line, problem.message) for problem in found.problems] == [
        (3, "given[0]: more.yaml:1: the document: the manifest has no apiVersion"),
        (3, "given[0]: more.yaml:2: metadata.name: expected text, found the integer 1; put quotes around it"),
        (4, "given[1]: none.yaml: cannot be read: No such file or directory"),
    ]


# -- extends ----------------------------------------------------------------------------------------------------

BASE = f"shared: small cluster\nperiod: 5s\nflags: {{scheduler-name: [mine]}}\nconfig: {{file: conf.yaml}}\ngiven: [{node('n1')}]\n"


@pytest.mark.parametrize(
    ("extends", "here"),
    [("small cluster", BASE + "---\n"), ("base.yaml#small cluster", ""), ("'#small cluster'", BASE + "---\n")],
)
def test_document_takes_what_it_does_not_say_from_the_one_it_extends(extends, here, write):
    found = write(f"{here}scenario: one\nextends: {extends}\ngiven: [{node('n2')}]\n{STEPS}", conf=CONFIG, base=BASE)
    assert found.problems == ()
    (scenario,) = found.scenarios
    assert (scenario.config, scenario.period) == (CONFIG, 5_000_000)
    assert scenario.flags == {"scheduler-name": ["mine"]}
    assert names(scenario) == ["n1", "n2"]


def test_document_replaces_configuration_and_period_and_adds_flags(write):
    own = "period: 0s\nconfig: 'x: y'\nflags: {default-queue: q}\n"
    (scenario,) = write(
        f"scenario: one\nextends: base.yaml#small cluster\n{own}{STEPS}", conf=CONFIG, base=BASE
    ).scenarios
    assert (scenario.config, scenario.period) == ("x: y", 0)
    assert scenario.flags == {"scheduler-name": ["mine"], "default-queue": "q"}


def test_scenario_that_is_extended_keeps_its_steps_to_itself(write):
    text = f"scenario: one\ngiven: [{node('n1')}]\nsteps: [{{cycles: 1}}, {{expect: {{}}}}]\n---\nscenario: two\nextends: one\n{STEPS}"
    one, two = write(text).scenarios
    assert names(two) == names(one) == ["n1"]
    assert len(two.steps) == 1


def test_extended_document_may_extend_another_and_its_files_are_beside_it(write, tmp_path):
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep/base.yaml").write_text(
        f"shared: a\ngiven: [{node('n1')}]\n---\nshared: b\nextends: a\ngiven: [more.yaml]\n"
    )
    (tmp_path / "deep/more.yaml").write_text(node("n2"))
    found = write(f"scenario: one\nextends: deep/base.yaml#b\n{STEPS}")
    assert found.problems == ()
    assert names(found.scenarios[0]) == ["n1", "n2"]


@pytest.mark.parametrize(
    ("extends", "base", "told"),
    [
        (
            "base.yaml#smal cluster",
            BASE,
            "base.yaml: no document has the name 'smal cluster'; did you mean 'small cluster'?",
        ),
        ("nothing", BASE, "policy.yaml: no document has the name 'nothing'; known: one"),
        ("none.yaml#x", BASE, "none.yaml: cannot be read: No such file"),
        ("base.yaml#x", "shared: [", "base.yaml:2: "),
        ("base.yaml#x", "shared: x\n---\nscenario: x\n", "2 documents have the name 'x', on the lines 1, 3"),
        ("base.yaml#x", "shared: x\nperiod: soon\n", "base.yaml:2: period: expected a duration"),
        (
            "base.yaml#x",
            "shared: x\nextends: z\n---\nshared: z\nperiod: soon\n",
            "base.yaml:5: period: expected a duration",
        ),
        ("base.yaml#x", "shared: x\nextends: policy.yaml#one\n", "a circle: "),
        ("one", BASE, "a circle: "),
        ("sub/../policy.yaml#one", BASE, "a circle: "),
        ("3", BASE, "expected text: NAME, or FILE#NAME, found the integer 3"),
    ],
)
def test_what_cannot_be_extended_is_told_on_the_line_that_extends_it(extends, base, told, write):
    problems = write(f"scenario: one\nextends: {extends}\n{STEPS}", base=base, conf=CONFIG).problems
    assert problems[0].line == 2
    assert told in problems[0].message, problems


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("shared: x\nsteps: []\n", "unknown key 'steps' in a shared document"),
        ("shared: 3\n", "expected text: the name by which others extend it"),
        ("shared: ''\n", "the name by which others extend it is missing"),
        ("shared: x\nperiod: soon\n", "period: expected a duration"),
        (f"shared: x\nscenario: y\n{STEPS}", "unknown key 'shared' in a scenario"),
    ],
)
def test_wrong_shared_document_is_refused(text, told, write):
    assert any(told in problem.message for problem in write(text).problems)


def test_refused_configuration_of_an_extended_document_is_told_with_its_own_file(write, tmp_path):
    base = "shared: x\nconfig: |\n  actions: allocate\n  tiers:\n  - plugins: [{name: gnag}]\n"
    (scenario,) = write(f"scenario: one\nextends: base.yaml#x\n{STEPS}", base=base).scenarios
    (mismatch,) = runner.run(scenario).mismatches
    assert mismatch.line == 2
    assert mismatch.found.startswith(
        f"the configuration is refused: {tmp_path}/base.yaml:5: tiers[0].plugins[0].name: unknown plugin"
    )


# -- which files are scenarios ----------------------------------------------------------------------------------


def test_files_that_scenarios_of_a_folder_name_are_no_scenarios_of_it(write, tmp_path):
    given = "given: [more.yaml]\n"
    write(
        f"scenario: one\nconfig: {{file: conf.yaml}}\n{given}{STEPS}", conf=CONFIG, more=node("n1"), base="shared: x\n"
    )
    assert [suite.name_of(item) for item in suite.collect([str(tmp_path)])] == ["one"]


def test_file_that_is_named_on_the_command_line_or_by_nobody_must_be_a_scenario(write, tmp_path):
    write(f"scenario: one\nconfig: {{file: conf.yaml}}\n{STEPS}", conf=CONFIG, stray=CONFIG)
    named = [str(tmp_path), str(tmp_path / "conf.yaml")]
    assert [suite.name_of(item) for item in suite.collect(named)] == [
        str(tmp_path / "conf.yaml"),
        "one",
        str(tmp_path / "stray.yaml"),
    ]


def test_nothing_but_shared_documents_is_nothing_to_run(write, tmp_path):
    write("shared: x\n")
    with pytest.raises(scenario_format.NothingFoundError, match="nothing but what other documents extend"):
        suite.collect([str(tmp_path)])


def test_policy_replaces_that_of_every_scenario(write, tmp_path):
    write(f"scenario: one\nconfig: 'x: y'\n{STEPS}---\nscenario: two\n{STEPS}")
    items = suite.collect([str(tmp_path)], policy=policies.Policy(text=CONFIG, file="conf.yaml"))
    assert [item.config for item in items] == [CONFIG, CONFIG]
