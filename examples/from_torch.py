"""from_torch.py: PyTorch's tensors in, PyTorch's tensors out; on a GPU in the current stream."""

import torch

import xtview as xt

device = "cuda" if torch.cuda.is_available() else "cpu"
x = torch.arange(2 * 5 * 12, device=device).to(torch.bfloat16).reshape(2, 5, 12)

heads = xt.rearrange(x, "b s (h d) -> b h s d", h=3)
assert torch.equal(heads, x.reshape(2, 5, 3, 4).permute(0, 2, 1, 3))

both = xt.concat([heads, heads.flip(2)], axis=1)
print(tuple(heads.shape), tuple(both.shape), heads.dtype)

out = torch.zeros(2, 3, 8, 4, dtype=torch.bfloat16, device=device)
xt.copyto(out[:, :, 3:], heads)
assert torch.equal(out[:, :, 3:], heads) and not out[:, :, :3].any()
