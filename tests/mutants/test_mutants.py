"""The tool that changes one thing at a time: what it changes, and that changed code is what runs."""

from __future__ import annotations

import ast
import importlib.util
import re
import signal
import subprocess
import sys

import pytest

from tests.mutants import __main__ as command
from tests.mutants import changing, explained, noticing, putting_in, tracing

SOURCE = """
LIMIT = 3


def room(free, asked, log):
    if free < asked or asked == 0:
        log.append("no")
        return False
    return free - asked > 1


def kept(size):
    return lambda function: function


class Box:
    @kept(7)
    def holds(self, what):
        return all(each in self.things for each in what)

    def pairs(self, what):
        return list(zip(self.things, what, strict=True))
"""


RUN_WHERE_THERE_IS_ROOM = ("    if free < asked or asked == 0:", "    return free - asked > 1")


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "small_module.py"
    file.write_text(SOURCE)
    return str(file)


@pytest.fixture
def module(path, monkeypatch):
    spec = importlib.util.spec_from_file_location("small_module", path)
    made = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "small_module", made)
    spec.loader.exec_module(made)
    return made


def the_change(path, after):
    (found,) = [each for each in changing.mutants(path) if each.after == after]
    return found


def test_comparisons_signs_limits_conditions_and_calls_are_changed_inside_functions_alone(path):
    found = [(each.function, each.before, each.after) for each in changing.mutants(path)]
    assert sorted(found) == sorted(
        [
            ("room", "free < asked or asked == 0", "free < asked and asked == 0"),
            ("room", "free < asked", "free <= asked"),
            ("room", "asked == 0", "asked != 0"),
            ("room", "0", "1"),
            ("room", "log.append('no')", "pass"),
            ("room", "False", "True"),
            ("room", "free - asked > 1", "free - asked >= 1"),
            ("room", "free - asked", "free + asked"),
            ("room", "1", "2"),
            ("Box.holds", "return all((each in self.things for each in what))", "return None"),
            ("Box.holds", "each in self.things", "each not in self.things"),
            ("Box.pairs", "return list(zip(self.things, what, strict=True))", "return None"),
        ]
    )


def test_each_change_is_one_and_can_be_compiled(path):
    before = ast.unparse(ast.parse(SOURCE))
    texts = [ast.unparse(changing.changed(path, each.number)) for each in changing.mutants(path)]
    assert len({before, *texts}) == len(texts) + 1
    for text in texts:
        compile(text, path, "exec")


def test_functions_that_others_hold_run_the_changed_code(path, module):
    held = module.room
    change = the_change(path, "free + asked")
    assert held(5, 4, []) is False
    assert putting_in.put_in(change, putting_in.functions((path,))) == 1
    assert held(5, 4, []) is True


@pytest.mark.usefixtures("module")
def test_a_change_inside_a_comprehension_is_put_in(path):
    box = sys.modules["small_module"].Box()
    box.things = [1]
    assert putting_in.put_in(the_change(path, "each not in self.things"), putting_in.functions((path,))) == 1
    assert not box.holds([1])


def test_the_lines_and_functions_that_a_test_runs_are_taken_down(path, module):
    with tracing.Tracer((path,)) as tracer:
        module.room(1, 1, [])
    run = tracer.run()
    assert run.lines == {path: {SOURCE.splitlines().index(line) + 1 for line in RUN_WHERE_THERE_IS_ROOM}}
    assert run.functions == {path: {"room"}}


def test_tests_that_run_a_line_are_chosen_within_a_budget_quick_and_narrow_ones_first_and_else_those_that_call_the_function(
    path,
):
    change = the_change(path, "free + asked")
    line, function = {path: frozenset({change.line})}, {path: frozenset({"room"})}
    around = {"calls": tracing.Run(0.1, {}, function), "other": tracing.Run(0.1, {"x": line[path]}, {"x": {"room"}})}
    slow, quick, usual = (tracing.Run(seconds, line, function) for seconds in (9.0, 1.0, 2.0))
    runs = {**around, "slow": slow, "quick": quick, "usual": usual}
    assert tracing.able(change, runs, 4.0) == ["quick", "usual"]
    assert tracing.able(change, runs, 0.5) == ["quick"]
    assert tracing.able(change, around, 4.0) == ["calls"]
    broad = tracing.Run(0.5, {**line, "other": frozenset(range(9))}, function)
    assert tracing.able(change, {**runs, "broad": broad}, 4.0) == ["quick", "usual", "broad"]


def test_what_nobody_noticed_is_found_again_where_it_is_nearest_by_now():
    was = [changing.Mutant("src/a.py", n, line, "f", "1", "2") for n, line in enumerate((3, 9, 9, 20))]
    told = [str(noticing.Verdict(was[1], 4, None)), str(noticing.Verdict(was[2], 0, None))]
    told += [str(noticing.Verdict(was[3], 4, "a test")), "5 s"]
    now = [each._replace(line=each.line + 2) for each in was]
    assert command.unnoticed(now, told) == [now[1], now[2]]
    assert command.unnoticed([now[0]], told) == [now[0]]  # the other is gone


TWICE = """
def f(a, b):
    return a < b or (b == 3 and a < b)
"""


def test_changes_that_read_alike_are_numbered_in_their_order(tmp_path):
    file = tmp_path / "twice.py"
    file.write_text(TWICE)
    changes = [each.change for each in changing.mutants(str(file))]
    assert [each for each in changes if " < " in each and " or " not in each and " and " not in each] == [
        "in f: a < b  ->  a <= b #1",
        "in f: a < b  ->  a <= b #2",
    ]
    assert "in f: b == 3  ->  b != 3" in changes
    told = [str(noticing.Verdict(changing.mutants(str(file))[1], 4, None))]
    there = [each._replace(path="src/a.py") for each in changing.mutants(str(file))]
    assert [each.change for each in command.unnoticed(there, [told[0].replace(str(file), "src/a.py")])] == [changes[1]]
    for alike in (each for each in there if each.alike):  # of those in one line the one that was told of
        assert command.unnoticed(there, [str(noticing.Verdict(alike, 4, None))]) == [alike]


LEDGER = """# path | change | kind | reason

src/a.py | in f: a | b < 1  ->  a | b <= 1 | limit | chosen freely
src/a.py | in f: x < 1  ->  x <= 1 #2 | equal | x is 7 | or 8
"""


def test_a_line_of_what_is_explained_has_a_path_a_change_a_kind_and_a_reason(tmp_path):
    file = tmp_path / "explained.txt"
    file.write_text(LEDGER)
    assert [tuple(each) for each in explained.read(file).values()] == [
        ("src/a.py", "in f: a | b < 1  ->  a | b <= 1", "limit", "chosen freely"),
        ("src/a.py", "in f: x < 1  ->  x <= 1 #2", "equal", "x is 7 | or 8"),
    ]


@pytest.mark.parametrize(
    "line",
    [
        "src/a.py | in f: x < 1  ->  x <= 1 | equal |",
        "src/a.py | in f: x < 1  ->  x <= 1 | equal",
        "src/a.py | in f: x < 1  ->  x <= 1 | hard | it is",
        "src/a.py | in f: x < 1 | equal | it is",
        "src/a.py:7: in f: x < 1  ->  x <= 1 | equal | it is",
        "in f: x < 1  ->  x <= 1 | equal | it is",
        "src/a.py | in f: x < 1  ->  x <= 1 #2 | cost | explained above",
    ],
)
def test_a_line_that_explains_nothing_is_an_error_that_names_it(tmp_path, line):
    file = tmp_path / "explained.txt"
    file.write_text(LEDGER + line)
    with pytest.raises(ValueError, match=re.escape("explained.txt:5: ") + ".*" + re.escape(line)):
        explained.read(file)


def test_what_is_explained_is_still_a_change_of_the_code():
    known = explained.read()
    assert not list(explained.dead(known)), "no such change: leave the line out, or put in what the code reads like now"


def test_explanations_of_what_is_gone_are_dead(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "src").mkdir()
    (tmp_path / "src/a.py").write_text(TWICE)
    changes = ("in f: b == 3  ->  b != 3", "in f: b == 4  ->  b != 4", "in f: a < b  ->  a <= b")
    told = [explained.Explanation("src/a.py", change, "equal", "so") for change in changes]
    told.append(explained.Explanation("src/b.py", changes[0], "equal", "so"))
    assert list(explained.dead({(each.path, each.change): each for each in told})) == told[1:]


def test_the_share_is_of_what_nobody_explained():
    each = changing.Mutant("src/pumice/a/b.py", 0, 3, "f", "1", "2")
    other = each._replace(path="src/pumice/c.py")
    verdicts = [noticing.Verdict(*verdict) for verdict in ((each, 4, "a test"), (each, 4, None), (other, 4, "a test"))]
    assert command.summary(verdicts, [each, each]) == [
        "src/pumice/a: 4 changes, 2 explained, 1 noticed, 1 left (50.0 % of those not explained noticed)",
        "src/pumice/c.py: 1 changes, 0 explained, 1 noticed, 0 left (100.0 % of those not explained noticed)",
        "in all: 5 changes, 2 explained, 2 noticed, 1 left (66.7 % of those not explained noticed)",
    ]


def test_a_copy_that_breaks_down_says_nothing_and_one_that_is_late_is_ended():
    said = "".join(map(str, range(100_000))).encode()  # more than a pipe holds
    for does, patience, told in (
        (lambda out: out.write(said), 60.0, said),
        (lambda _: 1 / 0, 60.0, b""),
        (lambda _: signal.pause(), -1.0, b""),
    ):
        (child,) = noticing.first_to_end([noticing.Child(does, patience)])
        assert child.told == told


TESTS = """
import pytest
import small_module


@pytest.mark.kube
def test_that_needs_a_server():
    assert small_module.room is not small_module.room


@pytest.mark.long
def test_that_takes_long():
    assert small_module.room is not small_module.room


def test_room():
    assert small_module.room(3, 1, [])


def test_too_slow():
    while small_module.room(3, 1, []):
        pass


def test_no_room():
    assert not small_module.room(1, 1, []), "one more would be too many"
"""


def test_every_change_is_tried_and_told_with_the_test_that_noticed_it(path, tmp_path):
    (tmp_path / "test_small.py").write_text(TESTS)
    code = (
        "from tests.mutants import changing, noticing\n"
        f"noticing.tried(changing.mutants({path!r}), [{str(tmp_path)!r}], ({path!r},), budget=5.0, longest=1.5, workers=2)"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.splitlines()
    by = {line.partition("  ->  ")[2]: line.partition(" ")[0] for line in told if "  ->  " in line}
    assert by == {
        "free < asked and asked == 0": "2",
        "free <= asked": "2",
        "asked != 0": "noticed",
        "1": "noticed",
        "pass": "2",
        "True": "2",
        "free - asked >= 1": "2",
        "free + asked": "noticed",
        "2": "noticed",
        "return None": "no",
        "each not in self.things": "no",
    }
