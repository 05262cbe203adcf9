/* emit.h: what the files of the emitter share. Layer 4. */
#ifndef XTI_CUDA_EMIT_H
#define XTI_CUDA_EMIT_H

#include "base/log.h"
#include "base/str.h"
#include "plan/plan.h"

/* The skeleton's text; NULL: templates/cuda has no such file. */
const char *xti_skeleton_text(const char *name);

/* The numbers of the pieces that share bodies: one row a piece, of which a body reads its own. */
struct xti_emit_table {
    struct xti_str text; /* "1u, 2u, .." */
    int64_t n;           /* numbers in it */
};

/* Appends the function <prefix><step->body> of a step: macros, index function, skeleton. table NULL: its
 * numbers are literals. Otherwise they are read from a row of the table, which is appended to *table; the
 * text is then the same for every step of the body. pad: ranks that a generic body is made for. */
struct xti_emit_pad {
    int n_dims, n_divs, n_guards;
};
void xti_emit_body(const struct xti_plan *p, const struct xti_cuda_step *s, const char *prefix,
                   const struct xti_emit_pad *pad, struct xti_emit_table *table, struct xti_str *b);

/* "12u" or "12ull", as the plan's index is 32 or 64 bits wide; negative numbers wrap. */
void xti_emit_number(const struct xti_plan *p, int64_t v, struct xti_str *b);

/* Number of the piece's fill value among the map's fill pieces. */
int xti_emit_fill(const struct xti_plan *p, int piece);

/* XT_DEBUG: a long text, line by line. */
void xti_cuda_log_text(enum xti_log what, const char *name, const char *text);

#endif
