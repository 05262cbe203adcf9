"""Chains on files: what comes out is NumPy's, progress is told, a run that was stopped goes on."""

import numpy as np
import pytest

import xtview as xt


def test_files_of_both_kinds(tmp_path):
    x = np.arange(300 * 200, dtype="f4").reshape(300, 200)
    np.save(tmp_path / "a.npy", x)
    told = []
    xt.run("x; x.T[::-1]", tmp_path / "a.npy", tmp_path / "b.zarr", mem="4MB", chunks=(64, 50), zarr_format=2,
           progress=lambda done, total: told.append((done, total)))
    xt.run("x; x.T", str(tmp_path / "b.zarr"), str(tmp_path / "c.npy"), mem=4 << 20, progress=False)
    assert np.array_equal(np.load(tmp_path / "c.npy"), x[:, ::-1])
    assert all(0 <= done <= total for done, total in told)
    xt.run("x; y; concat(0, x, y)", tmp_path / "a.npy", tmp_path / "c.npy", tmp_path / "d.npy")
    assert np.array_equal(np.load(tmp_path / "d.npy"), np.concatenate([x, x[:, ::-1]]))


def test_what_goes_wrong_is_said(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((4, 4), "f4"))
    with pytest.raises(OSError, match="No such file"):
        xt.run("x; x", tmp_path / "none.npy", tmp_path / "o.npy")
    with pytest.raises(ValueError, match="did you mean"):
        xt.run("x; x.permut(1,0)", tmp_path / "a.npy", tmp_path / "o.npy")
    with pytest.raises(ValueError, match="is no size"):
        xt.run("x; x", tmp_path / "a.npy", tmp_path / "o.npy", mem="much")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.npy"]


def test_a_callback_that_raises_stops_the_run_and_the_next_one_ends_it(tmp_path):
    x = np.arange(1 << 22, dtype="u4").reshape(1 << 8, 1 << 14)
    np.save(tmp_path / "a.npy", x)

    def refuse(done, total):
        raise KeyError("enough")

    with pytest.raises(KeyError, match="enough"):
        while True:  # a run may end before it has told anything
            xt.run("x; x[::-1]", tmp_path / "a.npy", tmp_path / "o.npy", mem="1MB", progress=refuse)
    xt.run("x; x[::-1]", tmp_path / "a.npy", tmp_path / "o.npy", mem="1MB", progress=False)
    assert np.array_equal(np.load(tmp_path / "o.npy"), x[::-1])
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.npy", "o.npy"]
