from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import conche
from conche import demo


def run(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from conche.cli import main; main()", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, timeout=300)


def test_version_and_help():
    assert run("--version").stdout.strip() == f"conche {conche.__version__}"
    assert "demo" in run("--help").stdout


def test_bad_usage_is_exit_status_two_without_a_traceback(tmp_path):
    done = run("demmo")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    (tmp_path / "file").write_text("")
    done = run("demo", "--out", str(tmp_path / "file"))
    assert done.returncode == 2
    assert done.stderr.startswith("conche: ")
    assert done.stderr.count("\n") == 1


def test_demo_prints_tables_and_draws(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(demo, "SEEDS", 1)
    monkeypatch.setattr(demo, "NODES", (1, 4))
    demo.main(tmp_path / "new" / "folder")
    text = capsys.readouterr().out
    assert all(word in text for word in ("Algorithm 1", "Conche", "offline", "forgetting", "8/9"))
    assert (tmp_path / "new" / "folder" / "demo.png").read_bytes().startswith(b"\x89PNG")


def test_public_names():
    assert all(hasattr(conche, name) for name in conche.__all__)
    with pytest.raises(AttributeError):
        _ = conche.nonsense
