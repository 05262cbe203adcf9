/* share.c: what of a box goes into one message. What is packed and unpacked side by side should be whole
 * lines of the destination, and then runs of the source as long as there is room for: of rows far apart a few
 * at a time, each read on and on. Layer 5. */
#include "shard/plan.h"

#include "base/num.h"

enum { DESTINATION_BYTES = 128 };

struct sharer {
    const struct xti_piece *box;
    int64_t most, *n; /* elements */
};

static int64_t elements(const struct sharer *b)
{
    int64_t all = 1;
    for (int i = 0; i < b->box->n_dims; i++)
        all = b->box->dim[i].s ? xti_mul_most(all, b->n[i]) : all;
    return all;
}

/* As much of dim k as there is room for, `most` at most, in equal shares. Is it all? */
static bool grow(const struct sharer *b, int k, int64_t most)
{
    int64_t whole = b->box->dim[k].n, room = b->most / (elements(b) / b->n[k]);
    int64_t n = most < room ? most : room;
    if (n > b->n[k])
        b->n[k] = xti_ceil_div(whole, xti_ceil_div(whole, n < whole ? n : whole));
    return b->n[k] == whole;
}

static int dim_of_run(const struct xti_piece *box, int64_t run)
{
    for (int i = 0; i < box->n_dims; i++)
        if (box->dim[i].d == run && box->dim[i].n > 1)
            return i;
    return -1;
}

static void grow_destination(const struct sharer *b, int esize)
{
    int64_t run = 1;
    for (int k; run * esize < DESTINATION_BYTES && (k = dim_of_run(b->box, run)) >= 0;) {
        if (b->box->dim[k].s && !grow(b, k, xti_ceil_div(DESTINATION_BYTES / esize, run)))
            return;
        run *= b->box->dim[k].n;
    }
}

/* The dim with the next longer stride of the source than `after` has; -1: there is none. */
static int next_of_source(const struct xti_piece *box, int after)
{
    int best = -1;
    uint64_t a = after < 0 ? 0 : xti_abs64(box->dim[after].s);
    for (int i = 0; i < box->n_dims; i++) {
        uint64_t s = xti_abs64(box->dim[i].s);
        if (s && (s > a || (s == a && i > after)) && (best < 0 || s < xti_abs64(box->dim[best].s)))
            best = i;
    }
    return best;
}

void xti_box_share(const struct xti_piece *box, int esize, int64_t most, int64_t *n)
{
    const struct sharer b = {box, most, n};
    for (int i = 0; i < box->n_dims; i++)
        n[i] = box->dim[i].s ? 1 : box->dim[i].n;
    grow_destination(&b, esize);
    for (int k = next_of_source(box, -1); k >= 0 && grow(&b, k, INT64_MAX); k = next_of_source(box, k))
        ;
}
