"""PyTorch's tensors, through its table of C functions."""

import numpy as np
import pytest

import xtview as xt

torch = pytest.importorskip("torch")


def same(a, b):
    b = b.contiguous()
    return a.dtype == b.dtype and a.shape == b.shape and torch.equal(a.reshape(-1).view(torch.uint8),
                                                                     b.reshape(-1).view(torch.uint8))


@pytest.fixture
def t():
    return torch.arange(24.0).reshape(2, 3, 4)


def test_tensors_come_out(t):
    y = xt.copy(t, "x.permute(0,2,1)[:, ::-1]")
    assert type(y) is torch.Tensor and same(y, t.permute(0, 2, 1).flip(1))
    assert same(xt.view(t).flip(0)[1].copy(), t.flip(0)[1])
    assert same(xt.concat([t, t[:, 1:]], axis=1), torch.cat([t, t[:, 1:]], 1))
    assert same(xt.rearrange(t, "a b (c d) -> c a b d", d=2), t.reshape(2, 3, 2, 2).permute(2, 0, 1, 3))
    assert xt.ascontiguousarray(t) is t
    assert same(xt.ascontiguousarray(t.permute(2, 0, 1)), t.permute(2, 0, 1))
    assert same(xt.copy(t.expand(5, 2, 3, 4), "x"), t.expand(5, 2, 3, 4))


def test_every_type():
    names = "bool uint8 int8 uint16 int16 uint32 int32 uint64 int64 float16 bfloat16 float32 " \
            "float64 complex64 complex128 " \
            " float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz float8_e8m0fnu"
    for name in names.split():
        if not hasattr(torch, name):
            continue
        a = torch.randint(0, 2, (4, 6)).to(torch.float32).to(getattr(torch, name))
        assert same(xt.copy(a, "x.T"), a.T), name


def test_rank_0_and_nothing():
    assert xt.copy(torch.tensor(3.0), "x") == 3
    assert xt.copy(torch.zeros(0, 3), "x.T").shape == (3, 0)


def test_kernels_and_out(t):
    k = xt.compile("x: f32[2,3,4]; x.permute(2,0,1)")
    out = torch.empty(4, 2, 3)
    assert k(t, out=out) is out and same(out, t.permute(2, 0, 1)) and same(k(t), out)
    d = torch.zeros(4, 6)
    xt.copyto(d[::2, 1:4], torch.arange(3.0))
    assert d.sum() == 6 and d[2, 3] == 2
    n = np.empty((4, 2, 3), "f4")
    assert k(t, out=n) is n and n.tobytes() == out.numpy().tobytes()


def test_what_a_pointer_cannot_say_is_refused(t):
    with pytest.raises(ValueError, match="requires grad"):
        xt.copy(torch.ones(3, requires_grad=True), "x")
    z = torch.tensor([1 + 2j])
    for lazy in (z.conj(), z.conj().imag):
        with pytest.raises(ValueError, match="lazily"):
            xt.copy(lazy, "x")
    for strange in (torch.ones(3, device="meta"), torch.eye(3).to_sparse()):
        with pytest.raises((RuntimeError, ValueError, TypeError, BufferError)):
            xt.copy(strange, "x")
    with pytest.raises(ValueError, match="overlaps"):
        xt.copy(t, "x[::-1]", out=t)
    with pytest.raises(ValueError, match="share one address"):
        xt.copy(t, "x", out=torch.zeros(1).expand(2, 3, 4))


def test_results_live_on_their_own():
    y = [xt.copy(torch.full((1000, 100), float(i)), "x.T") for i in range(50)]
    assert all((a == i).all() for i, a in enumerate(y))
