/* buffered.c: a step of strategy buffered. While a block is put together in one buffer, the one before it is
 * streamed from another and the source of the next group of blocks is fetched, a part of each after every
 * call of the kernel, or in turns while it is at work. Layer 4. */
#include "cpu/run.h"

enum { LINE = 64, ALL = INT32_MAX };

/* Goes over runs in the order of their dims, the first one fastest. */
struct walk {
    const struct xti_runs *runs;
    int64_t point[XTI_BLOCK_DIMS], off; /* of the current run, */
    int64_t at;                         /* of which so many bytes are done */
    bool done;                          /* all runs are */
};

struct xti_buffered {
    const struct xti_blocks *blocks;
    struct xtk_job job[2][2]; /* of the blocks' kernels */
    xtk_fn kernel[2][2], stream;
    struct xtk_job stream_job;
    const struct xti_block *block; /* that is put together, by `fn` */
    xtk_fn fn;
    struct walk in, out; /* of the group that is fetched, of the block that is streamed */
    char *dst;           /* of the block that is streamed */
    const char *from;    /* what is left of it */
    const char *next;    /* source of the group that is fetched */
    int group, turn;
    bool deep; /* xtk_job */
    char buffer[2][XTI_BLOCK_BYTES] __attribute__((aligned(64)));
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
    for (int64_t left = lines * LINE; left > 0 && !w->done; left -= b->stream_job.cols) {
        char *d = b->dst + w->off + w->at;
        int64_t to_end = w->runs->bytes - w->at, n = left + (int64_t)(-(uintptr_t)d & (LINE - 1));
        b->stream_job.cols = n < to_end ? n : to_end;
        b->stream(&b->stream_job, d, b->from);
        b->from += b->stream_job.cols;
        if ((w->at += b->stream_job.cols) == w->runs->bytes)
            next_run(w);
    }
}

/* So many lines more of the next group. */
static void fetch(struct xti_buffered *b, int64_t lines)
{
    struct walk *w = &b->in;
    while (lines > 0 && !w->done) {
        const char *s = b->next + w->off + w->at, *line = s - ((uintptr_t)s & (LINE - 1));
        int64_t left = w->runs->bytes - w->at, n = (s + left - line + LINE - 1) / LINE;
        n = n < lines ? n : lines;
        for (int64_t i = 0; i < n; i++)
            if (b->deep)
                __builtin_prefetch(line + i * LINE, 0, 3);
            else
                __builtin_prefetch(line + i * LINE, 0, 2);
        lines -= n;
        w->at += line + n * LINE - s;
        if (w->at >= w->runs->bytes)
            next_run(w);
    }
}

/* Lines that a run covers in part go through the cache: a miss would hold up all stores behind it. */
static void fetch_ends(const struct xti_runs *runs, const char *d)
{
    struct walk w;
    for (begin(&w, runs); !w.done; next_run(&w)) {
        const char *from = d + w.off, *to = from + runs->bytes;
        if ((uintptr_t)from & (LINE - 1))
            __builtin_prefetch(from, 1);
        if ((uintptr_t)to & (LINE - 1))
            __builtin_prefetch(to, 1);
    }
}

/* One of so many turns beside a call of the kernel. */
static void between(const struct xtk_job *j, int64_t turns)
{
    struct xti_buffered *b = j->buffered;
    stream(b, (b->block->stream_lines + turns - 1) / turns);
    fetch(b, (b->blocks->fetch_lines + turns - 1) / turns);
}

static void kernel(const struct xtk_job *j, char *d, const char *s)
{
    j->buffered->fn(j, d, s);
    if (!j->between)
        between(j, 1);
}

/* What is left of the group that begins, then the one after it. */
static void next_group(struct xti_buffered *b, const struct xtk_job *j)
{
    fetch(b, ALL);
    b->next = xti_nest_after(j, b->group);
    begin(&b->in, &b->blocks->in);
    b->in.done = !b->next;
}

static void run_block(const struct xtk_job *j, char *d, const char *s)
{
    struct xti_buffered *b = j->buffered;
    bool row = j->rows < b->blocks->rows, col = j->cols < b->blocks->cols;
    char *buffer = b->buffer[b->turn];
    b->block = &b->blocks->block[row][col];
    b->fn = b->kernel[row][col];
    fetch_ends(&b->block->out, d);
    if (xti_nest_begins(j, b->group))
        next_group(b, j);
    const struct xti_step *step = &b->block->step;
    xti_run_nest(step, kernel, &b->job[row][col], buffer + step->d_byte, s + step->s_byte,
                 (struct xti_share){0, 1});
    stream(b, ALL);
    begin(&b->out, &b->block->out);
    b->dst = d;
    b->from = buffer;
    b->turn ^= 1;
}

void xti_run_buffered(const struct xti_step *step, const struct xti_target *target, char *d, const char *s,
                      struct xti_share share)
{
    struct xti_buffered b;
    struct xtk_job job = xti_job_of(step, target, NULL);
    for (int i = 0; i < 4; i++) {
        const struct xti_step *inner = &step->blocks->block[i / 2][i % 2].step;
        if (!inner->strategy)
            continue;
        b.kernel[i / 2][i % 2] = xti_kernel_of(inner, target);
        b.job[i / 2][i % 2] = xti_job_of(inner, target, NULL);
        b.job[i / 2][i % 2].buffered = &b;
        b.job[i / 2][i % 2].between = inner->turns ? between : NULL;
        b.job[i / 2][i % 2].mosaic = step->blocks->block[i / 2][i % 2].mosaic;
    }
    b.stream = xtk_find(target->isa, XTI_CPU_BLOCKS, 1, 0)->fn;
    b.stream_job = (struct xtk_job){.rows = 1, .s_col = 1, .d_col = 1, .stream = true};
    b.blocks = step->blocks;
    b.turn = 0;
    b.group = step->group;
    b.deep = target->prefetch_deep;
    b.out.done = b.in.done = true;
    job.buffered = &b;
    xti_run_nest(step, run_block, &job, d, s, share);
    stream(&b, ALL);
}
