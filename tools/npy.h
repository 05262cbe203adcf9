/* npy.h: headers of NumPy's .npy files, one array a file. Any bytes are safe to read.
 *
 * NumPy has no code for bf16 and fp8: ml_dtypes saves them as raw bytes, '<V2' and '|V1', and gets them back
 * with np.load(f).view(ml_dtypes.bfloat16). Written here the same way; see `raw` for reading. */
#ifndef XT_TOOLS_NPY_H
#define XT_TOOLS_NPY_H

#include <stddef.h>
#include <stdint.h>

#include <xt/xt_files.h>

struct npy {
    xt_dtype dtype;
    int rank;
    int64_t shape[XT_MAX_RANK];
    int fortran_order; /* the elements are column-major: first axis fastest */
    int raw;           /* the file says only how wide an element is; dtype is a guess: bf16, f8e4m3 .. */
    int64_t at;        /* where the elements begin, bytes from the header's start */
    size_t bytes;      /* of the elements: the product of the extents x the element's width */
};

/* Reads a header, of version 1, 2 or 3 and little-endian elements, and leaves fd at the elements. file: its
 * name, for messages. 0, or EXIT_BAD_INPUT after a message. */
int npy_read_header(int fd, const char *file, struct npy *out);
int npy_read_bytes(int fd, const char *file, void *p, size_t bytes); /* exactly so many. The same */

/* Are the elements of this type? Raw ones become so, if they are as wide. */
int npy_is(struct npy *a, xt_dtype dtype);

enum { NPY_HEADER_ROOM = XT_NPY_ROOM };
/* The header of dtype, fortran_order and shape. Returns its bytes. */
size_t npy_make_header(const struct npy *a, char out[NPY_HEADER_ROOM]);

#endif
