"""What is handed on: a source distribution builds by itself, and has the licence."""

import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def test_a_source_distribution_has_the_library(tmp_path):
    pytest.importorskip("setuptools")
    if not (ROOT.parent / "Makefile").exists():
        pytest.skip("the sources of the library are not beside the package")
    subprocess.run([sys.executable, "setup.py", "-q", "egg_info", "-e", tmp_path, "sdist", "-d", tmp_path],
                   cwd=ROOT, check=True)
    (made,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(made) as t:
        t.extractall(tmp_path)
    here = tmp_path / made.name.removesuffix(".tar.gz")
    assert (here / "LICENSE").read_text() == (ROOT.parent / "LICENSE").read_text()
    assert {p.name for p in (here / "src/core").iterdir()} == {p.name for p in (ROOT / "src/core").iterdir()}
    said = subprocess.run(["make", "-n", "lib", "V=1"], cwd=here / "library", capture_output=True, text=True)
    assert not said.returncode and "libxtview.a" in said.stdout, said.stderr
    said = subprocess.run([sys.executable, "setup.py", "--version"], cwd=here, capture_output=True, text=True)
    assert f"-{said.stdout.split()[-1]}.tar.gz" in made.name
