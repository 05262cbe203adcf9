"""from_files.py: files larger than the memory they may take: photos to what a network wants, as zarr chunks,
and back."""

import os
import tempfile

import numpy as np

import xtview as xt

with tempfile.TemporaryDirectory() as d:
    photos = np.arange(64 * 96 * 128 * 3, dtype="u4").astype("u1").reshape(64, 96, 128, 3)
    np.save(f"{d}/photos.npy", photos)

    seen = []  # bytes done, of all: some times a second in a long run
    tell = lambda done, total: seen.append(done <= total)
    xt.run(
        "x; x.permute(0,3,1,2)",
        f"{d}/photos.npy",
        f"{d}/planes.zarr",
        mem="1MB",
        chunks=(16, 3, 96, 128),
        progress=tell,
    )
    print("chunks", sorted(os.listdir(f"{d}/planes.zarr/c")))

    xt.run("x; x.permute(0,2,3,1)", f"{d}/planes.zarr", f"{d}/back.npy", mem="1MB", progress=False)
    print("the same", np.array_equal(np.load(f"{d}/back.npy"), photos) and all(seen))

    try:
        xt.run("x; x.T", f"{d}/none.npy", f"{d}/back.npy", progress=False)
    except OSError as e:
        print(str(e).replace(d, "DIR"))
