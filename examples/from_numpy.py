"""from_numpy.py: NumPy's arrays in, NumPy's arrays out: photos to what a network wants, and new keys into a
cache that has room for more."""

import numpy as np

import xtview as xt

photos = np.arange(2 * 4 * 6 * 3, dtype="u1").reshape(2, 4, 6, 3)
planes = xt.copy(photos, "x[:, ::-1].permute(0,3,1,2)")  # upside down, colours first: one copy
assert np.array_equal(planes, photos[:, ::-1].transpose(0, 3, 1, 2))

patches = xt.rearrange(photos, "n (h p) (w q) c -> n (h w) (p q c)", p=2, q=3)
print("patches", patches.shape)

keys = np.zeros((2, 8, 16, 4), "f2")  # batch, heads, room for 16 positions, width
append = xt.compile("x.permute(0,2,1,3)", np.empty((2, 1, 8, 4), "f2"))  # once; then 0.2 us beside the copy
for position in range(3):
    new = np.full((2, 1, 8, 4), position + 1, "f2")
    xt.copyto(keys[:, :, position : position + 1], append(new))
print("kept", keys[0, 0, :5, 0].tolist())

try:
    xt.copy(photos, "x.reshape(2,4,6,4)")
except ValueError as e:
    print(e)
