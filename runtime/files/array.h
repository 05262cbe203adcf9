/* array.h: an array in a file, or in a directory of chunks, as one long row of elements: the virtual file. Of
 * a .npy file that is its elements as they lie; of zarr chunk after chunk, row-major by number, edge chunks
 * with their padding. It is cut into parts of equal length, each in a file of its own: a chunk number is an
 * address digit. Layer 6. */
#ifndef XTI_FILES_ARRAY_H
#define XTI_FILES_ARRAY_H

#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <xt/xt_files.h>

#include "base/err.h"
#include "base/str.h"

/* How a file is opened to be read: a FIFO of its name keeps nobody waiting. */
enum { XTI_FILE_READ = O_RDONLY | O_CLOEXEC | O_NONBLOCK };

enum xti_array_kind { XTI_ARRAY_NPY, XTI_ARRAY_ZARR2, XTI_ARRAY_ZARR3, XTI_ARRAY_TILES };

struct xti_array {
    enum xti_array_kind kind;
    char *path; /* of the file, or the directory with a slash at its end */
    char *said; /* as the caller named it */
    xt_dtype dtype;
    bool raw; /* as of struct xt_npy */
    int rank;
    int64_t shape[XT_MAX_RANK];
    bool fortran;                                  /* npy: the array, zarr: each chunk is column-major */
    int64_t chunk[XT_MAX_RANK], grid[XT_MAX_RANK]; /* a file is one chunk */
    unsigned char fill[16];                        /* of chunks that are not there */
    char separator;                                /* zarr: of a chunk's name .. */
    bool prefix;                                   /* .. which begins with "c" */
    int64_t at;                                    /* bytes before the first element */
    int64_t elements, part_elements;
    int64_t esize;
    bool buffered;    /* the file system takes no O_DIRECT, or it is turned off */
    bool shared;      /* other processes write into it, too */
    struct stat stat; /* of the file, or of what describes the array, when it was opened; of the one that is
                         replaced */
    int64_t since_ns; /* zarr that is read: no chunk of it may be changed later; 0: it may */
};

/* Opens what is there. Fails with XT_EIO, XT_EUNSUPPORTED, or XT_ENOMEM; the message begins with the path. */
xt_status xti_array_open(const char *path, struct xti_array *out, struct xti_err *err);
void xti_array_free(struct xti_array *s);

bool xti_array_is_zarr(const struct xti_array *s);
/* Sets grid, elements and part_elements by shape and chunk. XT_EOVERFLOW. */
xt_status xti_array_measure(struct xti_array *s, struct xti_err *err);

/* Makes what there is before the first element is written: the file with its header and room, or the
 * directory with its description. What is there is kept when it is of that size: a run goes on. */
xt_status xti_array_create(struct xti_array *s, struct xti_err *err);

/* Appends the path of a part. */
void xti_array_part(const struct xti_array *s, int64_t part, struct xti_str *b);

/* XT_EIO when the file is not any more what was opened. */
xt_status xti_array_same(const struct xti_array *s, struct xti_err *err);

/* Whatever was written is durable. */
xt_status xti_array_sync(const struct xti_array *s, struct xti_err *err);

/* All of it, in as many calls as it takes. 0, or errno. */
int xti_file_write_all(int fd, const void *from, int64_t bytes, int64_t at);

/* "PATH: WHAT: strerror(e)", or that the disk is full. */
xt_status xti_file_fail(struct xti_err *err, const char *path, const char *what, int e);

/* A virtual file as a row-major array: stride[i] = extent[i+1]*stride[i+1], the last is 1. */
struct xti_axes {
    int n;
    int64_t extent[XT_MAX_RANK], stride[XT_MAX_RANK];
};

/* What is contiguous of a box lo .. lo + n of the axes: from axis *axis on, *axis being cut or whole, those
 * behind it whole. Gives its elements. */
int64_t xti_box_run(const struct xti_axes *a, const int64_t *n, int *axis);

/* ---- zarr.c */
bool xti_zarr_there(const char *path); /* a directory with .zarray or zarr.json in it */
xt_status xti_zarr_open(struct xti_array *s, struct xti_err *err);
/* .zarray or zarr.json. */
void xti_zarr_describe(const struct xti_array *s, struct xti_str *b);
const char *xti_zarr_file(const struct xti_array *s); /* its name */

#endif
