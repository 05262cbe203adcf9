/* writer.h: writes one body of a kernel: the macros its skeleton wants, the index function, the skeleton's
 * text. A number is written as a literal, or, when bodies are shared by pieces or by shapes, read from a row
 * of numbers. Layer 4. */
#ifndef XTI_CUDA_WRITER_H
#define XTI_CUDA_WRITER_H

#include "base/log.h"
#include "base/str.h"
#include "cuda/plan.h"

/* What the index function does with a dim of the piece. */
enum xti_role {
    XTI_FROM_INDEX, /* a digit of the running index */
    XTI_FROM_STEP,  /* the thread's step: `a` */
    XTI_IN_BODY     /* the skeleton adds it */
};

struct xti_digit {
    int64_t n;
    const char *out; /* "*u", "*v"; NULL: dim */
    int dim;
};

/* Ranks that a generic body is padded to, when several pieces share it. */
struct xti_emit_pad {
    int n_dims, n_divs, n_guards;
};

/* The numbers of bodies: one row a piece, of which a body reads its own. */
struct xti_emit_table {
    struct xti_str text; /* "1u, 2u, .." */
    int64_t n;           /* numbers in it */
};

struct xti_writer {
    const struct xti_cuda_plan *p;
    const struct xti_cuda_step *s;
    const struct xti_piece *q;
    struct xti_emit_pad size;     /* dims, divs and guards that are written */
    int skip;                     /* outermost dims that are padding */
    struct xti_emit_table *table; /* NULL: literals */
    int n_numbers;
    struct xti_str *b;
    /* the piece as the skeleton sees it: a family may turn a dim round */
    struct xti_dim dim[XTI_MAX_DIMS];
    int64_t soff, doff;
    enum xti_role role[XTI_MAX_DIMS];
    struct xti_digit digit[4]; /* the fastest digits, handed on to the skeleton */
    int n_digits;
};

/* Appends the function <prefix><step->body> of a step. table NULL: its numbers are literals. Otherwise they
 * are read from a row of the table, which is appended to *table; the text is then the same for every step of
 * the body. */
void xti_emit_body(const struct xti_cuda_plan *p, const struct xti_cuda_step *s, const char *prefix,
                   const struct xti_emit_pad *pad, struct xti_emit_table *table, struct xti_str *b);

/* For families: "#define NAME 12", the same in all pieces of a body; and a number, which may differ. */
void xti_write_constant(struct xti_writer *w, const char *name, int64_t v);
void xti_write_number(struct xti_writer *w, const char *name, int64_t v);
/* The fastest digit of the running index not yet taken goes to `out`: "*u" or "*v". */
void xti_write_digit(struct xti_writer *w, int64_t n, const char *out);

/* "12u" or "12ull", as the plan's index is 32 or 64 bits wide; negative numbers wrap. */
void xti_emit_number(const struct xti_cuda_plan *p, int64_t v, struct xti_str *b);

/* Number of the piece's fill value among the map's fill pieces. */
int xti_emit_fill(const struct xti_cuda_plan *p, int piece);

/* The skeleton's text; NULL: templates/cuda has no such file. */
const char *xti_skeleton_text(const char *name);

/* XT_DEBUG: a long text, line by line. */
void xti_cuda_log_text(enum xti_log what, const char *name, const char *text);

#endif
