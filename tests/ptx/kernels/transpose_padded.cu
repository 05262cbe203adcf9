/* transpose_padded.cu: words, rows x cols to cols x rows, through a tile of 32 rows of PITCH words. 33 keeps
 * a column in 32 different banks, 32 puts it into one. */
extern "C" __global__ void transpose(unsigned *__restrict__ dst, const unsigned *__restrict__ src, int rows,
                                     int cols)
{
    __shared__ unsigned tile[32][PITCH];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int k = 0; k < 32; k += 8)
        if (x < cols && y + k < rows)
            tile[threadIdx.y + k][threadIdx.x] = src[(size_t)(y + k) * cols + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x, y = blockIdx.x * 32 + threadIdx.y;
    for (int k = 0; k < 32; k += 8)
        if (x < rows && y + k < cols)
            dst[(size_t)(y + k) * rows + x] = tile[threadIdx.x][threadIdx.y + k];
}
