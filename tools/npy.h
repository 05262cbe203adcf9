/* npy.h: reads and writes NumPy's .npy files, one array a file, in memory and whole. Any bytes are safe to
 * read.
 *
 * NumPy has no code for bf16 and fp8: ml_dtypes saves them as raw bytes, '<V2' and '|V1', and gets them back
 * with np.load(f).view(ml_dtypes.bfloat16). Written here the same way; see `raw` for reading. */
#ifndef XT_TOOLS_NPY_H
#define XT_TOOLS_NPY_H

#include <stddef.h>
#include <stdint.h>

#include <xt/xt.h>

struct npy {
    xt_dtype dtype;
    int rank;
    int64_t shape[XT_MAX_RANK];
    int fortran_order; /* the data are column-major: first axis fastest. Left so, not converted */
    void *data;        /* malloc'ed, whoever reads frees; never NULL after a read that succeeded */
    size_t bytes;      /* of data: the product of the extents x the element's width */
    int raw;           /* the file says only how wide an element is; dtype is a guess: bf16, f8e4m3 .. */
};

/* 0, or -1 with a message that names the file in err, and *out zeroed. Versions 1, 2 and 3, little-endian,
 * regular files of exactly the size that the header announces. */
int npy_read(const char *path, struct npy *out, char *err, size_t err_size);

/* The same; raw elements as wide as dtype's are of that type. Other files keep their own type: compare it. */
int npy_read_as(const char *path, xt_dtype dtype, struct npy *out, char *err, size_t err_size);

/* Writes dtype, shape, fortran_order and data to a temporary file beside path, then renames it: path holds
 * the old file or the new one, whole. What is there and is no regular file is refused; a symbolic link's
 * target is replaced, not the link. 0, or -1 with a message. */
int npy_write(const char *path, const struct npy *a, char *err, size_t err_size);

#endif
