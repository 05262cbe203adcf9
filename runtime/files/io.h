/* io.h: moves boxes of virtual files into buffers and back: requests of bounded length by threads, many under
 * way at once. Past the page cache where the file system can; else what was moved is dropped from it.
 * Layer 6. */
#ifndef XTI_FILES_IO_H
#define XTI_FILES_IO_H

#include "files/array.h"

/* A box on its way; its own until xti_io_wait. The buffer has its elements one behind the other. */
struct xti_transfer {
    const struct xti_array *store;
    bool write;
    char *mem;
    int outer; /* axes before the run */
    int64_t n[XT_MAX_RANK], stride[XT_MAX_RANK];
    int64_t first;                              /* element */
    int64_t run_bytes, unit_bytes, piece_bytes; /* a unit lies in one part, a piece is a request */
    int64_t pieces, next, done;
    int error;
    bool cut; /* the file ended too early */
    struct xti_transfer *queued;
};

/* What O_DIRECT wants places and lengths to be multiples of. */
enum { XTI_IO_BLOCK = 4096 };
int64_t xti_io_padded(int64_t bytes); /* to such a multiple */

struct xti_io;

/* piece_bytes: of a request, at most. */
xt_status xti_io_new(int threads, int64_t piece_bytes, struct xti_io **out, struct xti_err *err);
void xti_io_free(struct xti_io *io);             /* nothing is on its way. Accepts NULL */
bool xti_io_saw_change(const struct xti_io *io); /* in a chunk that was read. Accepts NULL */
int64_t xti_io_memory(int threads, int64_t piece_bytes);

/* box NULL: nothing, of which waiting is done at once. */
void xti_io_start(struct xti_io *io, struct xti_transfer *t, const struct xti_array *s,
                  const struct xti_axes *a, const int64_t *lo, const int64_t *n, char *mem, bool write);
xt_status xti_io_wait(struct xti_io *io, struct xti_transfer *t, struct xti_err *err);

/* Page-aligned; NULL: there is none. */
char *xti_io_buffer(int64_t bytes);
void xti_io_buffer_free(char *p, int64_t bytes);

#endif
