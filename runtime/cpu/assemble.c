/* assemble.c: runs a plan whose steps share lines of the destination, part by part of the destination. A line
 * that one row covers whole is streamed at once, where the kernel can; the others are put together in a small
 * buffer, by all steps, and streamed from there. So no line is read for ownership, none is written twice, and
 * threads share none. Layer 4. */
#include <string.h>

#include "cpu/cursor.h"

/* So small that the stores of one part drain while the next one is put together. */
enum { LINE = 64, PART_BYTES = 64 * LINE };

struct assembly {
    struct xtk_part part;
    struct xtk_job piece; /* of the cursors' kernels: jobs are cleared once */
    xtk_fn copy;          /* of what is left in the part's buffer, */
    struct xtk_job rest;  /* by this job */
    struct xti_cursor cursor[XTI_ASSEMBLE_STEPS];
    int64_t room[XTI_ASSEMBLE_ROOM];
    char buffer[LINE + PART_BYTES + LINE] __attribute__((aligned(64))); /* columns may reach over the ends */
};

/* Cursors of all steps, at byte `from`. */
static void begin(const struct xti_copy *c, int64_t from, struct xti_cursor *cursor, int64_t *room)
{
    const struct xti_plan *p = c->plan;
    for (int i = 0; i < p->n_steps; i++) {
        xti_cursor_begin(&cursor[i], c, &p->step[i], room);
        xti_cursor_seek(&cursor[i], from);
        room += xti_cursor_room(&p->step[i], &p->map.piece[p->step[i].piece]);
    }
}

/* Writes bytes [lo, hi) of the part but for the lines that are done. */
static void flush(struct assembly *t, int64_t lo, int64_t hi)
{
    const struct xtk_part *p = &t->part;
    while (lo < hi) {
        uint64_t left = p->done >> lo / LINE;
        int64_t end = left ? (lo / LINE + __builtin_ctzll(left)) * LINE : hi;
        t->rest.cols = (end < hi ? end : hi) - lo;
        if (t->rest.cols > 0)
            t->copy(&t->rest, p->dst + lo, p->buffer + lo);
        /* past the lines that are done */
        uint64_t gap = left ? ~(left >> __builtin_ctzll(left)) : 0;
        lo = !left ? hi : gap ? end + __builtin_ctzll(gap) * LINE : hi;
    }
}

/* Bytes [at, end) of the destination, part by part. */
static __attribute__((noinline)) void run_parts(const struct xti_copy *c, int64_t at, int64_t end)
{
    struct assembly t; /* 15 KB */
    int64_t next;
    t.part.buffer = t.buffer + LINE;
    t.piece = (struct xtk_job){.beside.part = &t.part};
    t.copy = xtk_find(c->plan->target.isa, XTI_CPU_BLOCKS, 1, 0)->fn;
    t.rest = (struct xtk_job){.rows = 1,
                              .s_col = 1,
                              .d_col = 1,
                              .store.stream = true,
                              .machine.hints = c->plan->target.machine->hints};
    begin(c, at, t.cursor, t.room);
    for (; at < end; at = next) {
        int64_t before = (int64_t)((uintptr_t)(c->dst + at) & (LINE - 1)); /* 0, but for the first part */
        next = at - before + PART_BYTES < end ? at - before + PART_BYTES : end;
        t.part.dst = c->dst + at - before;
        t.part.done = 0;
        for (int i = 0; i < c->plan->n_steps; i++)
            if (t.cursor[i].next < next)
                xti_cursor_run(&t.cursor[i], &t.piece, t.part.buffer, at - before, next);
        flush(&t, before, before + next - at);
    }
}

void xti_run_assembled(const struct xti_copy *c, struct xti_share share)
{
    const struct xti_plan *p = c->plan;
    int64_t first = p->map.dst_lo * p->map.esize, last = (p->map.dst_hi + 1) * p->map.esize;
    run_parts(c, xti_cut(c->dst, first, last, share.part, share.parts),
              xti_cut(c->dst, first, last, share.part + 1, share.parts));
}
