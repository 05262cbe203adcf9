/* cursor.h: runs a step in the order of the destination, from any of its bytes to any other (order.c makes
 * such steps). The only way to run pieces with divs and guards. Internal to cpu. Layer 4. */
#ifndef XTI_CPU_CURSOR_H
#define XTI_CPU_CURSOR_H

#include "cpu/run.h"
#include "plan/loops.h"

struct xti_cursor {
    const struct xti_step *step;
    const struct xti_piece *piece;
    int esize;
    xtk_fn kernel;
    int64_t ahead; /* xtk_job */
    const struct xti_machine *hints;
    int64_t per_col;   /* units of the kernel in a column */
    int64_t width;     /* bytes from the first to behind the last of a column .. */
    int64_t row_bytes; /* .. and of a row */
    int64_t next;     /* the destination's byte that comes next, INT64_MAX: none. Bytes of the destination are
                         counted from its start */
    int64_t row, col; /* where that is in the kernel's box .. */
    int64_t d;        /* .. which begins here */
    const char *s;    /* with divs: without the quotients' part */
    int64_t *at;      /* [n_loops] */
    int64_t *numerator; /* [n_divs + n_guards] the x part of every div's and guard's row, at column 0 */
    unsigned char value[16];
};

/* Numbers that a cursor needs: room[0 .. n - 1] belongs to it as long as it is used. */
int xti_cursor_room(const struct xti_step *step, const struct xti_piece *piece);
/* At the first byte. The cursor must stay where it is. */
void xti_cursor_begin(struct xti_cursor *c, const struct xti_copy *copy, const struct xti_step *step,
                      int64_t *room);
/* Skips all columns that end at or before byte `from`. Wants strides that nest, as has the next. */
void xti_cursor_seek(struct xti_cursor *c, int64_t from);
/* Bytes from the first to behind the last one. */
int64_t xti_cursor_span(const struct xti_cursor *c);
/* Runs every column that begins before byte `to`. The byte d goes to out + (d - at). A column that reaches
 * beyond `to` is run whole, and remains the next. Kernels get the job, which any cursor may use before and
 * after: what the step says is set, the rest stays. */
void xti_cursor_run(struct xti_cursor *c, struct xtk_job *job, char *out, int64_t at, int64_t to);

/* Bytes [lo, hi) of a step whose box has no gaps: the second and last of a covered plan, since what is hidden
 * is written anew, too. False: it is another, or not the same in each point of a loop. (pattern.c) */
bool xti_run_pattern(const struct xti_copy *c, const struct xti_step *step, int64_t lo, int64_t hi);

#endif
