/* unknown.cu: an instruction that the interpreter does not model and must not ignore. */
extern "C" __global__ void unknown(unsigned *dst) { atomicAdd(dst, 1u); }
