"""JAX's arrays, through DLPack."""

import numpy as np
import pytest

import xtview as xt

jax = pytest.importorskip("jax")
jnp = jax.numpy


def test_arrays_come_out():
    x = jnp.arange(24.0).reshape(2, 3, 4)
    y = xt.copy(x, "x.permute(2,0,1)[::-1]")
    assert isinstance(y, jax.Array) and (y == x.transpose(2, 0, 1)[::-1]).all()
    assert xt.concat([x, x], axis=0).shape == (4, 3, 4)
    assert xt.copy(jnp.zeros((0, 3)), "x.T").shape == (3, 0) and xt.copy(jnp.float32(3), "x") == 3
    for t in (jnp.bfloat16, jnp.float8_e4m3fn, jnp.int8, jnp.bool_, jnp.complex64, jnp.uint32):
        a = jnp.arange(6).reshape(2, 3).astype(t)
        assert xt.copy(a, "x.T").dtype == a.dtype and (xt.copy(a, "x.T") == a.T).all()
    out = np.empty((4, 2, 3), "f4")
    assert (xt.copy(x, "x.permute(2,0,1)", out=out) == np.asarray(x).transpose(2, 0, 1)).all()
    with pytest.raises(ValueError, match="read-only"):
        xt.copy(x, "x", out=x + 1)


def test_results_live_on_their_own():
    y = [xt.copy(jnp.full((100, 100), float(i)), "x.T") for i in range(50)]
    assert all((a == i).all() for i, a in enumerate(y))
