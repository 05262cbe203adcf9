/* transpose_swizzled.cu: words in tiles of 64 x 64, 16 bytes a thread both ways; rows and cols are multiples
 * of 4. Chunk c (16 bytes) of tile row r lies at c ^ (r / 4 % 8): the rows 4q + m of eight q are in eight
 * different chunk columns, so a warp that reads one word of each for four neighbouring columns touches every
 * bank once. */
typedef unsigned u32;

enum { T = 64, CHUNKS = T / 4, THREADS = 256 };

__device__ __forceinline__ u32 chunk_at(u32 row, u32 chunk)
{
    return row * CHUNKS + (chunk ^ (row >> 2 & 7));
}

extern "C" __global__ void __launch_bounds__(THREADS)
    transpose(u32 *__restrict__ dst, const u32 *__restrict__ src, u32 rows, u32 cols)
{
    __shared__ uint4 tile[T * CHUNKS];
    u32 x0 = blockIdx.x * T, y0 = blockIdx.y * T, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
    for (u32 k = 0; k < T * CHUNKS / THREADS; k++) {
        u32 e = threadIdx.x + k * THREADS, r = e / CHUNKS, c = e % CHUNKS;
        if (y0 + r < rows && x0 + 4 * c < cols)
            tile[chunk_at(r, c)] = *(const uint4 *)(src + (size_t)(y0 + r) * cols + x0 + 4 * c);
    }
    __syncthreads();
    /* A warp takes 8 chunks of the output row by 4 output rows; 8 warps take 2 x 16 of these in 4 rounds. */
#pragma unroll
    for (u32 k = 0; k < 4; k++) {
        u32 unit = warp + 8 * k, q = lane % 8 + 8 * (unit % 2), column = lane / 8 + 4 * (unit / 2);
        if (y0 + 4 * q >= rows || x0 + column >= cols)
            continue;
        const u32 *word = (const u32 *)tile;
        uint4 v;
        v.x = word[4 * chunk_at(4 * q + 0, column / 4) + column % 4];
        v.y = word[4 * chunk_at(4 * q + 1, column / 4) + column % 4];
        v.z = word[4 * chunk_at(4 * q + 2, column / 4) + column % 4];
        v.w = word[4 * chunk_at(4 * q + 3, column / 4) + column % 4];
        *(uint4 *)(dst + (size_t)(x0 + column) * rows + y0 + 4 * q) = v;
    }
}
