"""check_mpi4py.py LIBRARY: xtview.mpi on the ranks that mpirun started, against NumPy. Exit status 1:
wrong."""
import sys

import numpy as np
from mpi4py import MPI
from xtview import mpi

mpi.library = sys.argv[1]
comm = MPI.COMM_WORLD
n, me = comm.size, comm.rank
whole = np.arange(37 * 53, dtype=np.float64).reshape(37, 53)


def block(length):
    c = -(-length // n)
    return slice(min(c * me, length), min(c * (me + 1), length))


p = mpi.plan(f"mesh r[{n}]; x: f64[37 r,53]; x.T[::-1] -> [53 r,37]", comm)
src, dst = np.ascontiguousarray(whole[block(37)]), np.full(p.shape(), -1.0)
assert p.shape(0) == src.shape and p.dtype() == "f64" and p.inputs == 1
assert p(dst, src) is dst
wrong = int(not np.array_equal(dst, whole.T[::-1][block(53)]))
for bad in ((dst, src[:, ::2]), (dst.astype(np.float32), src), (dst,)):
    try:
        p(*bad)
        wrong += 1
    except (ValueError, TypeError):
        pass
p.free()
p.free()
try:
    mpi.plan(f"mesh r[{n + 1}]; x: f64[37]; x", comm)
    wrong += 1
except ValueError as e:
    wrong += f"the mesh has {n + 1} ranks, the communicator {n}" not in str(e)
try:
    mpi.plan(f"mesh r[{n}]; x: f64[{37 + (me > 0)}]; x", comm)
    wrong += n > 1
except RuntimeError as e:
    wrong += n == 1 or "rank" not in str(e)
sys.exit(comm.allreduce(wrong) != 0)
