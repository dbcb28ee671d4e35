"""What a container does is read from what anybody may write: no command ends the kubelet that reads it, or keeps it busy."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.api import duration
from pumice.sim.kubelets import environment, plans

CENTURY = 100 * 365 * 24 * duration.HOUR


def pod(command, env=(), annotations=None):
    container = {"name": "c", "image": "x", "command": command, "env": [{"name": n, "value": v} for n, v in env]}
    return {"metadata": {"name": "p", "annotations": annotations or {}}, "spec": {"containers": [container]}}


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (["sleep", "9" * 5000], plans.Plan()),
        (["sleep", *["3000000000"] * 2], plans.Plan()),
        (["sh", "-c", "sleep 3000000000; " * 3000], plans.Plan()),
        (["sleep", "1e999"], plans.Plan()),
        (["sh", "-c", "sleep 2 && sleep 1m;exit 3"], plans.Plan(62 * duration.SECOND, 3)),
        (["sh", "-c", f"exit {'9' * 5000}"], plans.Plan(0, int("9" * 18) % 256)),
        (["sh", "-c", f"true{' ' * 100_000}; false"], plans.Plan(0, 1)),
        (["sh", "-c", f"true{' ' * 1_000_000}; false"], plans.Plan()),
    ],
)
def test_numbers_and_scripts_without_measure_are_read(command, expected):
    assert plans.of_pod(pod(command)) == (expected, [])


def test_an_exit_code_without_measure_is_none():
    _, problems = plans.of_pod(pod(["true"], annotations={"pumice.dev/exit-code": "9" * 5000}))
    assert len(problems) == 1
    assert "is no exit code" in problems[0]


def test_variables_that_double_each_other_do_not_grow_without_measure():
    env = [("v0", "x" * 10), *((f"v{number}", f"$(v{number - 1})" * 2) for number in range(1, 60))]
    command = ["sh", "-c", "echo $v59 $v3", *["$(v13)"] * 1000]
    made = pod(command, env)
    (container,) = made["spec"]["containers"]
    known = environment.of_container(container, made)
    assert known["v3"] == "x" * 80
    assert sum(map(len, known.values())) < 2 * environment.LONGEST
    assert sum(map(len, environment.words_of(command, known))) < 2 * environment.LONGEST
    assert plans.of_container(container, made).run_time == 0


PIECES = st.sampled_from(["sleep", "exit", "echo", "true", ";", "&&", "\n", "$", "$(", "a", ")", "${a}", "'", '"', "\\", "9" * 4400, "1.5h", " "])  # fmt: skip
WORDS = st.lists(PIECES | st.text(max_size=5), max_size=12).map("".join)


@given(command=st.lists(WORDS, max_size=4), shell=st.booleans(), value=WORDS, code=WORDS, coded=st.booleans())
def test_any_command_is_read(command, shell, value, code, coded):
    words = ["sh", "-c", *command] if shell else command
    plan, _ = plans.of_pod(pod(words, [("a", value)], {"pumice.dev/exit-code": code} if coded else None))
    assert plan.run_time is None or 0 <= plan.run_time <= CENTURY
    assert 0 <= plan.exit_code <= 255
