"""What users see of plugins that break down: scenarios with plugins of their own, and the key that lets a scenario go on."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from pumice.cli.program import program

HERE = Path(__file__).parent / "broken"


def run(file, *arguments):
    return CliRunner().invoke(program, ["test", str(file), *arguments], prog_name="pumice")


def test_scenarios_with_plugins_that_break_down_pass():
    result = run(HERE / "broken.yaml", "--plugins-dir", str(HERE / "plugins"))
    assert "5 passed, 0 failed" in result.output


def test_a_breakdown_that_the_scenario_does_not_allow_fails_it(tmp_path):
    strict = tmp_path / "strict.yaml"
    strict.write_text((HERE / "broken.yaml").read_text().replace("breakdowns: allowed\n", ""))
    result = run(strict, "--plugins-dir", str(HERE / "plugins"))
    assert result.exit_code == 1
    assert "LookupError: no rack is known for it" in result.output


def test_anything_but_allowed_is_refused_with_its_line(tmp_path):
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text((HERE / "broken.yaml").read_text().replace("breakdowns: allowed\n", "breakdowns: yes\n", 1))
    result = run(wrong, "--plugins-dir", str(HERE / "plugins"))
    assert result.exit_code == 2
    assert "wrong.yaml:2: breakdowns: expected `allowed`" in result.output
