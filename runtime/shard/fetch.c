/* fetch.c: how a box is read out of another process's memory, and unpacked from a buffer of this one. The
 * system copies runs. One costs what 4 KiB of it do, so that shorter gaps are read along. A byte through a
 * board costs what BOARD of it do: its lines go from one processor's cache to the other's and back. Measured:
 * bench/notes/mpi.md. Layer 5. */
#include "shard/plan.h"

#include "base/num.h"

/* RUN_SHARE: 4 KiB of the longest message. Of the destination pairs of lines are enough, since longer runs of
 * the source are worth more. */
enum { RUN_SHARE = 256, BOARD = 4, LINE = 64, PAGE = 4096, DESTINATION_BYTES = 2 * LINE };

struct fetcher {
    const struct xti_piece *box;
    int esize;
    int64_t run_bytes, buffer_bytes;
    int by_source[XTI_MAX_DIMS], n; /* dims that are sent, the shortest stride first */
    struct xti_fetch *f;
};

static void sort_dims(struct fetcher *b)
{
    for (int i = 0; i < b->box->n_dims; i++) {
        int k = b->n;
        if (!b->box->dim[i].s)
            continue;
        for (b->n++; k > 0 && xti_abs64(b->box->dim[b->by_source[k - 1]].s) > xti_abs64(b->box->dim[i].s);
             k--)
            b->by_source[k] = b->by_source[k - 1];
        b->by_source[k] = i;
    }
}

/* Where f->n elements lie in the buffer: runs with the source's strides, one after another in lines of their
 * own. Pitches of whole pages would share sets of the caches. */
static void lay_out(const struct fetcher *b)
{
    struct xti_fetch *f = b->f;
    int i = 0;
    f->run = 1;
    f->inside = 0;
    for (; i < b->n; i++) {
        int k = b->by_source[i];
        int64_t s = b->box->dim[k].s;
        if (f->n[k] > 1 && (s < f->run || (s - f->run) * b->esize > b->run_bytes))
            break;
        f->pos[k] = f->n[k] > 1 ? s : 1;
        f->run += f->n[k] > 1 ? s * (f->n[k] - 1) : 0;
        f->inside |= (uint64_t)1 << k;
    }
    int64_t bytes = (f->run * b->esize + LINE - 1) / LINE * LINE;
    int64_t pitch = (bytes % PAGE ? bytes : bytes + LINE) / b->esize;
    for (; i < b->n; i++) {
        f->pos[b->by_source[i]] = pitch;
        pitch *= f->n[b->by_source[i]];
    }
    f->elements = pitch;
}

/* As much of dim k as the buffer has room for, in equal shares. */
static bool grow(const struct fetcher *b, int k, int64_t most)
{
    int64_t n = b->box->dim[k].n, was = b->f->n[k], all = b->buffer_bytes / b->esize + 1, times;
    most = most < all ? most : all;
    for (b->f->n[k] = most < n ? most : n;; b->f->n[k] = (b->f->n[k] + 1) / 2) {
        lay_out(b);
        if (b->f->n[k] <= was || b->f->elements * b->esize <= b->buffer_bytes)
            break;
    }
    b->f->n[k] = b->f->n[k] > was ? b->f->n[k] : was;
    times = (n + b->f->n[k] - 1) / b->f->n[k];
    b->f->n[k] = (n + times - 1) / times;
    lay_out(b);
    return b->f->n[k] == n;
}

/* Of the destination as long runs as are worth a line or some. */
static void grow_destination(const struct fetcher *b)
{
    int64_t run = 1;
    for (bool whole = true, any = true; whole && any && run * b->esize < DESTINATION_BYTES;) {
        any = false;
        for (int i = 0; i < b->box->n_dims && !any; i++) {
            if (b->box->dim[i].d != run || b->box->dim[i].n < 2)
                continue;
            any = true;
            whole = !b->box->dim[i].s || grow(b, i, (DESTINATION_BYTES / b->esize + run - 1) / run);
            run *= b->box->dim[i].n;
        }
    }
}

bool xti_box_fetch(const struct xti_piece *box, int esize, int64_t most_bytes, struct xti_fetch *out)
{
    struct fetcher b = {.box = box, .esize = esize, .f = out};
    b.run_bytes = most_bytes / RUN_SHARE;
    b.buffer_bytes = most_bytes;
    if (box->n_divs || box->n_guards)
        return false;
    for (int i = 0; i < box->n_dims; i++) {
        out->pos[i] = 0;
        out->n[i] = box->dim[i].s ? 1 : box->dim[i].n;
    }
    sort_dims(&b);
    lay_out(&b);
    grow_destination(&b);
    for (int i = 0; i < b.n && grow(&b, b.by_source[i], INT64_MAX); i++)
        ;
    int64_t useful = 1, runs = 1;
    for (int i = 0; i < b.n; i++) {
        int k = b.by_source[i];
        useful *= out->n[k];
        runs *= out->inside >> k & 1 ? 1 : out->n[k];
    }
    return runs * (out->run * esize + b.run_bytes) <= BOARD * useful * esize;
}
