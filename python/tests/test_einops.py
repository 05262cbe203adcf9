"""The examples of einops' documentation, against einops."""

import numpy as np
import pytest

import xtview as xt

einops = pytest.importorskip("einops")

IMAGES = (6, 12, 12, 3)
REARRANGE = [
    ("b h w c -> b h w c", {}), ("b h w c -> (b h) w c", {}), ("b h w c -> h (b w) c", {}),
    ("b h w c -> b c h w", {}), ("b h w c -> b (c h w)", {}),
    ("b (h1 h) (w1 w) c -> (b h1 w1) h w c", {"h1": 2, "w1": 2}),
    ("b (h h1) (w w1) c -> b h w (c h1 w1)", {"h1": 2, "w1": 2}), ("(b1 b2) h w c -> b1 b2 h w c", {"b1": 2}),
    ("(b1 b2) h w c -> (b1 h) (b2 w) c", {"b1": 2}), ("b h (w w2) c -> (h w2) (b w c)", {"w2": 2}),
    ("b h w c -> h w b c", {}), ("b ... -> ... b", {}), ("b h w c -> b 1 h w c ()", {}),
    ("b (h p1) (w p2) c -> b (h w) (p1 p2 c)", {"p1": 4, "p2": 3}),
]
REPEAT = [
    ("h w -> h w c", {"c": 3}), ("h w -> (repeat h) w", {"repeat": 2}),
    ("h w -> h (repeat w)", {"repeat": 3}),
    ("h w -> (h h2) (w w2)", {"h2": 2, "w2": 2}), ("h w -> h w 3", {}), ("... -> ... r", {"r": 2}),
]


@pytest.mark.parametrize("pattern, lengths", REARRANGE)
def test_rearrange(pattern, lengths):
    x = np.random.default_rng(1).random(IMAGES, "f4")
    got = xt.rearrange(x, pattern, **lengths)
    want = np.ascontiguousarray(einops.rearrange(x, pattern, **lengths))
    assert got.shape == want.shape and got.tobytes() == want.tobytes()
    assert xt.rearrange(xt.view(x), pattern, **lengths).copy().tobytes() == want.tobytes()


@pytest.mark.parametrize("pattern, lengths", REPEAT)
def test_repeat(pattern, lengths):
    x = np.random.default_rng(1).random((4, 5), "f4")
    got, want = xt.repeat(x, pattern, **lengths), np.ascontiguousarray(einops.repeat(x, pattern, **lengths))
    assert got.shape == want.shape and got.tobytes() == want.tobytes()


def test_lists_are_stacked_as_einops_does():
    xs = [np.full((2, 3), i) for i in range(4)]
    assert xt.rearrange(xs, "b h w -> h (b w)").tolist() == einops.rearrange(xs, "b h w -> h (b w)").tolist()


@pytest.mark.parametrize("pattern, lengths", [("b h w -> b w h", {}), ("b h w c -> b h", {}),
                                              ("b (h2 h) w c -> h2 b h w c", {"h2": 5}), ("b h w c -> ", {})])
def test_what_einops_refuses_is_refused(pattern, lengths):
    x = np.zeros(IMAGES)
    with pytest.raises(einops.EinopsError):
        einops.rearrange(x, pattern, **lengths)
    with pytest.raises(ValueError):
        xt.rearrange(x, pattern, **lengths)
