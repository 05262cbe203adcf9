/* writer.h: writes one body of a kernel: the macros its skeleton wants, the index function, the skeleton's
 * text. A number of a piece is a literal, or is read from a row of numbers, when bodies are shared by pieces
 * or by shapes. The same run gives the text, the numbers that it reads, and its structure: the facts that
 * decide the text. Layer 4. */
#ifndef XTI_CUDA_WRITER_H
#define XTI_CUDA_WRITER_H

#include <inttypes.h>

#include "base/log.h"
#include "base/str.h"
#include "cuda/cuda.h"

/* Where the numbers of a body are, and what of them is known when it is written. */
enum xti_numbers_in {
    XTI_IN_LITERALS, /* everything */
    XTI_IN_ROW,      /* one piece, any shape: which coefficients are 0, 1 or -1 */
    XTI_IN_TABLE     /* any of several pieces: nothing */
};

/* One entry that is being written. The row of a step is what xti_write_body adds to `numbers`. */
struct xti_writing {
    const struct xti_cuda_plan *p;
    enum xti_cuda_tier tier;
    const char *prefix;             /* of its functions */
    const struct xti_writing *twin; /* the kernel's entry before this one, or NULL */
    struct xti_str *text;           /* NULL: not wanted */
    struct xti_str *structure;      /* NULL: not wanted. Bytes: equal ones mean equal text; */
    char *fact, *facts_end;         /* the last ones may lie here still, up to `fact` (xti_facts_end) */
    struct xti_str numbers;         /* words of 8 bytes, lowest first; literals are not among them */
};

/* What the index function does with a dim of the piece. */
enum xti_role {
    XTI_FROM_INDEX, /* a digit of the running index */
    XTI_FROM_STEP,  /* the thread's step: `a` */
    XTI_IN_BODY     /* the skeleton adds it */
};

struct xti_digit {
    int64_t n;
    const char *out; /* "*u", "*v"; NULL: the dim's point */
    int dim;         /* whose place in the order it has; -1: it comes first */
    int64_t s, d;    /* what a step of it adds to *s and *d, where the writer is straight */
};

/* c + sum x[i] * (dim i), for the skeleton. */
struct xti_sum {
    const char *out;
    int64_t c;
    const int64_t *x;
};

struct xti_rank {
    int n_dims, n_divs, n_guards;
};

struct xti_writer {
    const struct xti_cuda_plan *p;
    const struct xti_cuda_step *s;
    const struct xti_piece *q;
    struct xti_writing *e;
    enum xti_numbers_in in;
    struct xti_rank size; /* dims, divs and guards that are written */
    int skip;             /* outermost dims that are padding */
    size_t row;           /* e->numbers.n where the row begins */
    int64_t soff, doff;
    bool down; /* the step's blocks begin with the last one, by facts of the structure: roles and shifts */
    /* digits are wanted for *s and *d alone, which are sums of the running index and its quotients: nothing
     * finds the digits. Of the factors the structure knows nothing. For pieces without divs and guards */
    bool straight;
    int n_digits, n_sums;
    /* of all that follows as many as there are */
    struct xti_digit digit[4]; /* handed on to the skeleton */
    struct xti_sum sum[8];     /* handed on as well */
    /* the piece as the skeleton sees it: a family may turn a dim round */
    struct xti_dim dim[XTI_MAX_DIMS];
    enum xti_role role[XTI_MAX_DIMS];
};

/* Appends the function <prefix><step->body> of a step, and its row of numbers.
 * post: steps of the same structure have the same text, and rows of the same length. */
void xti_write_body(struct xti_writing *e, const struct xti_cuda_step *s);

/* Appends the bodies of e->p, and, where text is wanted, the function `name` that sends every block to its
 * body. (entry.c) */
void xti_write_entry(struct xti_writing *e, const char *name);

/* ---- for families: what their skeletons want. Each is a "#define NAME ..".
 *
 * A constant is part of the structure, the same in all pieces of a body and in all shapes of a kernel:
 * widths, counts of a thread's accesses, sides of tiles; whatever an #if, an array's size or an unrolled loop
 * needs. Every value that it takes is a kernel more to compile: keep to a few powers of two.
 *
 * A number is anything else: extents, strides, offsets, counts. It is a literal or "t[3]", of type xt_index,
 * where t is the parameter of XT_BODY and of XT_AT: a helper that wants numbers takes t, too. No skeleton may
 * want a number as a constant, or divide by it (see xti_write_digit). */
static inline void xti_write_constant(struct xti_writer *w, const char *name, int64_t v);
void xti_write_number(struct xti_writer *w, const char *name, int64_t v);
/* NAME<k>: the name is put together only where text is wanted. */
void xti_write_constant_of(struct xti_writer *w, const char *name, int k, int64_t v);
void xti_write_number_of(struct xti_writer *w, const char *name, int k, int64_t v);
/* A number of which the structure knows whether it is 0; then it is the constant. */
void xti_write_optional(struct xti_writer *w, const char *name, int64_t v);
/* The fastest digit of the running index not yet taken goes to `out`: "*u" or "*v". n is a number. */
void xti_write_digit(struct xti_writer *w, int64_t n, const char *out);
/* A digit that takes the place of the piece's dim in the order: which of n parts of it. The dim's role is
 * XTI_IN_BODY. */
void xti_write_part(struct xti_writer *w, int dim, int64_t n, const char *out);
/* The same, dim -1: it comes first, where the writer is straight: a step of it adds s and d to *s and *d. */
void xti_write_step(struct xti_writer *w, int dim, int64_t n, int64_t s, int64_t d);
/* The index function runs over these dims instead of the piece's, and leaves its divs and guards out. */
void xti_write_box(struct xti_writer *w, int n_dims, const struct xti_dim *dim, int64_t soff, int64_t doff);
/* It also sets `out` to c + sum x[i] * (dim i). x must live as long as the plan. */
void xti_write_sum(struct xti_writer *w, const char *out, int64_t c, const int64_t *x);

/* Text of at most 255 bytes, put together where it is wanted alone. What decides it is a constant, or a fact
 * of the structure. */
#define xti_write_text(w, ...) ((w)->e->text ? xti_write_some(w, __VA_ARGS__) : (void)0)
void xti_write_some(struct xti_writer *w, const char *fmt, ...) __attribute__((format(printf, 2, 3), cold));
/* A fact of the structure: any number >= 0, seven bits a byte, the last one below 128: no fact is the
 * beginning of another. Most are small. */
void xti_write_large_fact(struct xti_writing *e, uint64_t v) __attribute__((noinline));
static inline void xti_write_fact(struct xti_writing *e, uint64_t v)
{
    if (v < 128 && e->fact < e->facts_end)
        *e->fact++ = (char)v;
    else
        xti_write_large_fact(e, v);
}
/* All facts are in the structure, whose bytes are counted; more may follow. */
void xti_facts_end(struct xti_writing *e);

static inline void xti_write_constant(struct xti_writer *w, const char *name, int64_t v)
{
    xti_write_fact(w->e, (uint64_t)v);
    if (w->e->text)
        xti_write_some(w, "#define %s %" PRId64 "\n", name, v);
}

/* "12u" or "12ull", as the plan's index is 32 or 64 bits wide; negative numbers wrap. */
void xti_emit_number(const struct xti_cuda_plan *p, int64_t v, struct xti_str *b);

/* Division of 0 <= i < 2^31 by n, 1 <= n < 2^31, by a multiplication:
 *     l = ceil(log2 n), m = ceil(2^(31+l) / n); floor(i / n) == floor(i*m / 2^(31+l))
 * m < 2^32 because 2^l <= 2n - 2 for n >= 2 (n = 1: m = 2^31). It is exact because m = (2^(31+l) + e) / n
 * with 0 <= e < n <= 2^l: i*m / 2^(31+l) = i/n + i*e / (n * 2^(31+l)), which is more than i/n by less than
 * 1/n, as i*e < 2^31 * 2^l. In 32-bit words that is umulhi(2*i, m) >> l, or umulhi(i, m) >> l - 1 where n
 * >= 2. */
struct xti_divisor {
    uint32_t m;
    int l;
};
struct xti_divisor xti_divisor_of(int64_t n);

/* Number of the piece's fill value among the map's fill pieces. */
int xti_emit_fill(const struct xti_cuda_plan *p, int piece);

/* The skeleton's text; NULL: templates/cuda has no such file. */
const char *xti_skeleton_text(const char *name);

/* XT_DEBUG: a long text, line by line. */
void xti_cuda_log_text(enum xti_log what, const char *name, const char *text);

#endif
