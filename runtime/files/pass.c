/* pass.c: the pipeline. While a tile is written the next one is read; with two in memory it is also copied.
 * Layer 6. */
#include "files/pass.h"

#include <string.h>

#include "base/num.h"
#include "base/os.h"

enum { MAX_SPLITS = 64, COMMITS = 32 };
static const int64_t COMMIT_NS = 1000000000, TELL_NS = 100000000;

struct box {
    int64_t lo[XT_MAX_RANK], n[XT_MAX_RANK];
};

struct slot {
    char *src, *dst;
    int64_t src_bytes;
    struct xti_file_tile tile;
    struct xti_transfer *read, write; /* read: [n_boxes] */
    bool reading, writing;
    int64_t number, write_number; /* of the grid's tile; of what is being written */
    bool last, write_last;        /* which ends with this one */
};

struct run {
    struct xti_pass *p;
    struct xti_err *err;
    struct slot slot[2];
    int64_t next, src_room, dst_room;
    struct box part[MAX_SPLITS]; /* of the grid's tile that is at hand: still to come, the last first */
    int n_parts;
    int64_t commit_bytes, commit_ns, tell_ns;
    int64_t set_bytes; /* written since the last commit */
};

/* ---- which tile is next */

static void whole_tile(const struct run *r, int64_t number, struct box *b)
{
    const struct xti_axes *a = &r->p->task->to;
    for (int i = a->n - 1; i >= 0; i--) {
        int64_t n = r->p->cut->n[i], grid = xti_ceil_div(a->extent[i], n);
        b->lo[i] = number % grid * n;
        b->n[i] = a->extent[i] - b->lo[i] < n ? a->extent[i] - b->lo[i] : n;
        number /= grid;
    }
}

static int64_t box_bytes(const struct run *r, const struct box *b)
{
    int64_t bytes = r->p->task->out->esize;
    for (int i = 0; i < r->p->task->to.n; i++)
        bytes *= b->n[i];
    return bytes;
}

/* The longest axis in two. */
static bool halve(struct run *r, const struct box *b)
{
    int axis = -1;
    for (int i = 0; i < r->p->task->to.n; i++)
        if (b->n[i] > 1 && (axis < 0 || b->n[i] > b->n[axis]))
            axis = i;
    if (axis < 0 || r->n_parts + 2 > MAX_SPLITS)
        return false;
    struct box *second = &r->part[r->n_parts++], *first = &r->part[r->n_parts++];
    *second = *first = *b;
    first->n[axis] = b->n[axis] / 2;
    second->lo[axis] += first->n[axis];
    second->n[axis] -= first->n[axis];
    return true;
}

/* Into the slot, whose source buffer is free. *any false: there is none. */
static xt_status take_tile(struct run *r, struct slot *s, bool *any)
{
    struct xti_pass *p = r->p;
    while (!r->n_parts && r->next < p->journal->to) {
        int64_t number = r->next++;
        whole_tile(r, number, &r->part[0]);
        if (xti_journal_has(p->journal, p->number, number))
            p->done += box_bytes(r, &r->part[0]);
        else
            r->n_parts = 1;
    }
    *any = r->n_parts > 0;
    while (r->n_parts) {
        struct box b = r->part[--r->n_parts];
        xt_status st = xti_file_tile_make(p->task, b.lo, b.n, true, &s->tile, r->err);
        if (st)
            return st;
        if (s->tile.src_bytes <= r->src_room && s->tile.dst_bytes <= r->dst_room) {
            s->number = r->next - 1;
            s->last = !r->n_parts;
            return XT_OK;
        }
        xti_file_tile_free(&s->tile);
        if (!halve(r, &b))
            return xti_fail(r->err, XT_ENOMEM,
                            "a tile needs more than the %lld bytes of memory that there are: give more, or, "
                            "where a run is taken up that had more, begin anew (--restart)",
                            (long long)r->p->room);
    }
    return XT_OK;
}

/* ---- the steps of a tile */

static xt_status read_tile(struct run *r, struct slot *s)
{
    struct xti_task *t = r->p->task;
    s->read = xti_alloc_array((size_t)s->tile.n_boxes + 1, sizeof *s->read);
    if (!s->read)
        return xti_fail(r->err, XT_ENOMEM, "a tile");
    for (int i = 0; i < s->tile.n_boxes; i++) {
        const struct xti_box *b = &s->tile.box[i];
        xti_io_start(r->p->io, &s->read[i], t->in[b->input], &t->from[b->input], b->lo, b->n, s->src + b->at,
                     false);
    }
    s->reading = true;
    return XT_OK;
}

static xt_status end_read(struct run *r, struct slot *s)
{
    xt_status st = XT_OK;
    for (int i = 0; s->reading && i < s->tile.n_boxes; i++) {
        xt_status one = xti_io_wait(r->p->io, &s->read[i], r->err);
        st = st ? st : one;
    }
    s->reading = false;
    xti_free(s->read);
    s->read = NULL;
    return st;
}

static xt_status commit(struct run *r)
{
    xt_status s = xti_array_sync(r->p->task->out, r->err);
    r->set_bytes = 0;
    r->commit_ns = xti_now_ns();
    return s ? s : xti_journal_commit(r->p->journal, r->p->number, r->err);
}

static xt_status tell(struct run *r)
{
    struct xti_pass *p = r->p;
    int64_t now = xti_now_ns();
    if (!p->progress || now - r->tell_ns < TELL_NS)
        return XT_OK;
    r->tell_ns = now;
    return p->progress(p->arg, p->done, p->total)
               ? xti_fail(r->err, XT_ESTOPPED, "stopped: the next run goes on from here")
               : XT_OK;
}

static xt_status end_write(struct run *r, struct slot *s)
{
    if (!s->writing)
        return XT_OK;
    s->writing = false;
    xt_status st = xti_io_wait(r->p->io, &s->write, r->err);
    if (st)
        return st;
    int64_t bytes = s->write.run_bytes;
    for (int i = 0; i < s->write.outer; i++)
        bytes *= s->write.n[i];
    r->p->done += bytes;
    r->set_bytes += bytes;
    if (s->write_last)
        xti_journal_set(r->p->journal, r->p->number, s->write_number);
    if (r->set_bytes >= r->commit_bytes || xti_now_ns() - r->commit_ns >= COMMIT_NS)
        st = commit(r);
    return st ? st : tell(r);
}

static xt_status copy_tile(struct run *r, struct slot *s)
{
    const struct xti_plan *plan;
    const void **src = xti_alloc_array((size_t)s->tile.n_boxes + 1, sizeof *src);
    xt_status st = src ? xti_file_tile_kernel(r->p->task, &s->tile, &plan, r->err)
                       : xti_fail(r->err, XT_ENOMEM, "a tile");
    if (!st) {
        for (int i = 0; i < s->tile.n_boxes; i++)
            src[i] = s->src + s->tile.box[i].at;
        xti_cpu_run(plan, s->dst, src, r->p->threads);
    }
    xti_free(src);
    return st;
}

static void write_tile(struct run *r, struct slot *s)
{
    s->write_number = s->number;
    s->write_last = s->last;
    xti_io_start(r->p->io, &s->write, r->p->task->out, &r->p->task->to, s->tile.lo, s->tile.n, s->dst, true);
    s->writing = true;
    xti_file_tile_free(&s->tile);
}

/* ---- all */

/* *t: how many have been written, or were begun to be. */
static xt_status all_tiles(struct run *r, int64_t *t)
{
    int depth = r->p->cut->depth;
    int64_t read = 0;
    bool any = true;
    for (;; ++*t) {
        for (; any && read < *t + depth; read += any) {
            struct slot *s = &r->slot[read % depth];
            xt_status st = take_tile(r, s, &any);
            if (!st && any)
                st = read_tile(r, s);
            if (st)
                return st;
        }
        if (*t == read)
            break;
        struct slot *s = &r->slot[*t % depth];
        xt_status st = end_read(r, s);
        if (!st)
            st = end_write(r, s);
        if (!st)
            st = copy_tile(r, s);
        if (st)
            return st;
        write_tile(r, s);
    }
    return XT_OK;
}

/* What is under way ends, after a failure, too: buffers are in use until then. `first`: the slot that was
 * written first. A tile's parts are written in order, so that the last one's end is that of all. */
static xt_status end_all(struct run *r, int first, xt_status s)
{
    struct xti_err ignored = {0}, *err = r->err;
    for (int i = 0; i < 2; i++) {
        struct slot *slot = &r->slot[(first + i) % 2];
        r->err = s ? &ignored : err;
        xt_status read = end_read(r, slot);
        s = s ? s : read;
        if (!s)
            s = end_write(r, slot);
        if (slot->writing)
            xti_io_wait(r->p->io, &slot->write, &ignored);
    }
    r->err = err;
    return s;
}

/* Tiles of a run that began with more memory than there is now are halved: both sides have a part of it, and
 * the source, which a result that repeats it exceeds a thousandfold, no less than it needs or a quarter. */
static void share_room(struct run *r)
{
    const struct xti_tiling *c = r->p->cut;
    int64_t room = r->p->room / c->depth, dst = xti_io_padded(c->dst_bytes);
    double need = (double)c->src_bytes + (double)dst;
    if (need > (double)room) {
        int64_t src = xti_io_padded(c->src_bytes), quarter = room / 4 / XTI_IO_BLOCK * XTI_IO_BLOCK;
        int64_t most = room - (src < quarter ? src : quarter);
        dst = xti_io_padded((int64_t)((double)room * ((double)dst / need)));
        dst = dst < most ? dst : most;
    }
    r->dst_room = dst;
    r->src_room = room - dst;
    for (int i = 0; i < c->depth; i++) {
        r->slot[i].src = r->p->buffer + i * room;
        r->slot[i].dst = r->slot[i].src + r->src_room;
    }
}

xt_status xti_pass_run(struct xti_pass *p, struct xti_err *err)
{
    struct run r = {.p = p, .err = err, .next = p->journal->from, .commit_ns = xti_now_ns()};
    share_room(&r);
    r.commit_bytes = p->task->out->elements * p->task->out->esize / COMMITS + 1;
    int64_t written = 0;
    xt_status s = all_tiles(&r, &written);
    s = end_all(&r, p->cut->depth > 1 ? (int)(written % 2) : 0, s);
    if (!s || s == XT_ESTOPPED) {
        xt_status kept = commit(&r);
        s = s ? s : kept;
    }
    for (int i = 0; i < 2; i++)
        xti_file_tile_free(&r.slot[i].tile);
    return s;
}
