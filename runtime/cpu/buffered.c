/* buffered.c: a step of strategy buffered. While a block is put together in one buffer, the one before it is
 * streamed from another and the source of the next group of blocks is fetched, a part of each after every
 * call of the kernel. Layer 4. */
#include "cpu/run.h"

enum { LINE = 64, ALL = INT32_MAX };

/* Goes over runs in the order of their dims, the first one fastest. */
struct walk {
    const struct xti_runs *runs;
    int64_t point[XTI_BLOCK_DIMS], off; /* of the current run, */
    int64_t at;                         /* of which so many bytes are done */
    bool done;                          /* all runs are */
};

/* A kernel and what it is called with. */
struct call {
    xtk_fn fn;
    struct xtk_job job;
};

struct xti_buffered {
    const struct xti_copy *copy;
    const struct xti_step *step;
    const struct xti_blocks *blocks;
    struct call *call;             /* [n_parts] of the block that is put together .. */
    const struct xti_block *block; /* .. or was last; NULL: none yet */
    xtk_fn fn;                     /* of its part in work */
    struct call stream;
    struct walk in, out; /* of the part that is fetched, of the block that is streamed */
    char *dst;           /* of the block that is streamed */
    const char *from;    /* what is left of it */
    const char *src[XTI_MAX_PARTS], *next[XTI_MAX_PARTS]; /* sources, and of the group that is fetched */
    int part;                                             /* of it */
    int turn;
    bool first;                        /* fetches go to the first cache */
    const struct xti_block *filled[2]; /* of which the buffers have what no part writes */
    char *buffer[2];                   /* on lines */
};

static void begin(struct walk *w, const struct xti_runs *runs)
{
    w->runs = runs;
    w->off = runs->low;
    w->at = 0;
    w->done = false;
    for (int k = 0; k < runs->n_dims; k++)
        w->point[k] = 0;
}

static void next_run(struct walk *w)
{
    w->at = 0;
    for (int k = 0; k < w->runs->n_dims; k++) {
        w->off += w->runs->stride[k];
        if (++w->point[k] < w->runs->n[k])
            return;
        w->off -= w->runs->stride[k] * w->runs->n[k];
        w->point[k] = 0;
    }
    w->done = true;
}

/* About so many lines more of the block before; ends with one. */
static void stream(struct xti_buffered *b, int64_t lines)
{
    struct walk *w = &b->out;
    for (int64_t left = lines * LINE; left > 0 && !w->done; left -= b->stream.job.cols) {
        char *d = b->dst + w->off + w->at;
        int64_t to_end = w->runs->bytes - w->at, n = left + (int64_t)(-(uintptr_t)d & (LINE - 1));
        b->stream.job.cols = n < to_end ? n : to_end;
        b->stream.fn(&b->stream.job, d, b->from);
        b->from += b->stream.job.cols;
        if ((w->at += b->stream.job.cols) == w->runs->bytes)
            next_run(w);
    }
}

/* So many lines more of the next group. */
static void fetch(struct xti_buffered *b, int64_t lines)
{
    struct walk *w = &b->in;
    while (lines > 0 && !w->done) {
        const char *s = b->next[b->part] + w->off + w->at, *line = s - ((uintptr_t)s & (LINE - 1));
        int64_t left = w->runs->bytes - w->at, n = (s + left - line + LINE - 1) / LINE;
        n = n < lines ? n : lines;
        for (int64_t i = 0; i < n; i++)
            b->first ? __builtin_prefetch(line + i * LINE, 0, 3) : __builtin_prefetch(line + i * LINE, 0, 2);
        lines -= n;
        w->at += line + n * LINE - s;
        if (w->at >= w->runs->bytes)
            next_run(w);
        if (w->done && b->part + 1 < b->blocks->n_parts)
            begin(w, &b->blocks->part[++b->part].in);
    }
}

static void kernel(const struct xtk_job *j, char *d, const char *s)
{
    struct xti_buffered *b = j->beside.buffered;
    b->fn(j, d, s);
    stream(b, b->block->stream_lines);
    fetch(b, b->blocks->fetch_lines);
}

/* What is left of the group that begins, then the one after it. */
static void next_group(struct xti_buffered *b, const struct xtk_job *j)
{
    const struct xti_part *part = b->blocks->part;
    fetch(b, ALL);
    int loop = xti_nest_goes_on(j, b->step->stage.group);
    for (int k = 0; k < b->blocks->n_parts && loop >= 0; k++)
        b->next[k] = b->src[k] + xti_nest_offset(j, loop, part[k].s);
    begin(&b->in, &part->in);
    b->in.done = loop < 0;
    b->part = b->in.done ? b->blocks->n_parts : 0;
}

static __attribute__((noinline)) void fill_buffer(struct xti_buffered *b)
{
    xtk_fn fn = xtk_find(b->copy->plan->target.isa, XTI_CPU_FILL, 16, 0)->fn;
    struct xtk_job job = {.rows = 1, .cols = XTI_JOINT_BYTES / 16, .d_col = 16, .value = b->blocks->value};
    fn(&job, b->buffer[b->turn], (const char *)b->blocks->value);
}

/* What no part writes, where another block was before. A job for each block takes as long as 25 lines. */
static void fill(struct xti_buffered *b)
{
    if (b->blocks->value && b->filled[b->turn] != b->block)
        fill_buffer(b);
    b->filled[b->turn] = b->block;
}

/* The calls of the parts of another block: those at the ends of loops have fewer rows or columns. */
static __attribute__((noinline)) void take(struct xti_buffered *b, const struct xti_block *block)
{
    const struct xti_target *target = &b->copy->plan->target;
    b->block = block;
    for (int k = 0; k < b->blocks->n_parts; k++) {
        const struct xti_inner *inner = &block->inner[k];
        struct call *call = &b->call[k];
        call->fn = xti_kernel_of(&inner->step, target);
        call->job = xti_job_of(&inner->step, target, NULL);
        call->job.beside.buffered = b;
        call->job.mosaic = inner->mosaic;
    }
}

static void run_block(const struct xtk_job *j, char *d, const char *s)
{
    struct xti_buffered *b = j->beside.buffered;
    bool row = j->rows < b->blocks->rows, col = j->cols < b->blocks->cols;
    char *buffer = b->buffer[b->turn];
    const struct xti_part *part = b->blocks->part;
    int n = b->blocks->n_parts;
    if (b->block != &b->blocks->block[row][col])
        take(b, &b->blocks->block[row][col]);
    fill(b);
    if (xti_nest_begins(j, b->step->stage.group))
        next_group(b, j);
    for (int k = 0; k < n; k++) {
        const struct xti_step *step = &b->block->inner[k].step;
        const char *from = n == 1 ? s : b->src[k] + xti_nest_offset(j, INT32_MAX, part[k].s);
        b->fn = b->call[k].fn;
        xti_run_nest(step, kernel, &b->call[k].job, buffer + part[k].at + step->d_byte, from + step->s_byte,
                     (struct xti_share){0, 1});
    }
    stream(b, ALL);
    begin(&b->out, &b->block->out);
    b->dst = d;
    b->from = buffer;
    b->turn ^= 1;
}

/* calls: room for those of all parts. room: for two blocks of so many bytes. */
static inline void run(const struct xti_copy *c, const struct xti_step *step, struct xti_share share,
                       struct call *calls, char *room, int64_t bytes)
{
    const struct xti_target *target = &c->plan->target;
    struct xtk_job job = xti_job_of(step, target, NULL);
    struct xti_buffered b;
    b.copy = c;
    b.step = step;
    b.blocks = step->stage.blocks;
    b.call = calls;
    b.block = b.filled[0] = b.filled[1] = NULL;
    b.buffer[0] = room;
    b.buffer[1] = room + bytes;
    for (int k = 0; k < b.blocks->n_parts; k++)
        b.src[k] = (const char *)c->src[b.blocks->part[k].src] + b.blocks->part[k].s_byte;
    b.part = b.blocks->n_parts;
    b.stream.fn = xtk_find(target->isa, XTI_CPU_BLOCKS, 1, 0)->fn;
    b.stream.job = (struct xtk_job){
        .rows = 1, .s_col = 1, .d_col = 1, .store.stream = true, .machine.hints = xti_machine_careful->hints};
    b.turn = 0;
    b.first = xti_target_hints(target).of[XTI_FETCHES_TILES] == XTI_HINT_T0;
    b.out.done = b.in.done = true;
    job.beside.buffered = &b;
    xti_run_nest(step, run_block, &job, c->dst + step->d_byte, b.src[0], share);
    stream(&b, ALL);
}

static __attribute__((noinline)) void run_one(const struct xti_copy *c, const struct xti_step *step,
                                              struct xti_share share)
{
    struct call call;
    char room[2 * XTI_BLOCK_BYTES] __attribute__((aligned(64)));
    run(c, step, share, &call, room, XTI_BLOCK_BYTES);
}

static __attribute__((noinline)) void run_joint(const struct xti_copy *c, const struct xti_step *step,
                                                struct xti_share share)
{
    struct call calls[XTI_MAX_PARTS];
    char room[2 * XTI_JOINT_BYTES] __attribute__((aligned(64)));
    run(c, step, share, calls, room, XTI_JOINT_BYTES);
}

void xti_run_buffered(const struct xti_copy *c, const struct xti_step *step, struct xti_share share)
{
    if (c->plan->joint.n)
        run_joint(c, step, share);
    else
        run_one(c, step, share);
}
