/* list.c: what guards let pass of a box, as runs of elements. Sender and receiver look at the same points in
 * the same order, each lists its own side, and a message holds what is listed and nothing else. Layer 5. */
#include "shard/plan.h"

#include <string.h>

#include "base/num.h"
#include "shard/visible.h"

struct listing {
    struct xti_list_run *run;
    int64_t n, cap;
    int64_t elements, below; /* listed; as many are too many */
    int64_t most, base;
    bool sending, memory;
};

static bool list_point(void *arg, int64_t s, int64_t d)
{
    struct listing *l = arg;
    int64_t at = (l->sending ? s : d) - l->base, step = 0;
    struct xti_list_run *r = l->n ? &l->run[l->n - 1] : NULL;
    if (++l->elements >= l->below)
        return false;
    if (r && (l->elements - 1) % l->most && r->n < INT32_MAX) {
        step = at - r->at;
        if (r->n == 1 ? step >= INT32_MIN && step <= INT32_MAX : step == (int64_t)r->n * r->step) {
            r->step = r->n == 1 ? (int32_t)step : r->step;
            r->n++;
            return true;
        }
    }
    r = xti_grown(l->run, sizeof *r, l->n, &l->cap);
    l->memory = r;
    if (!r)
        return false;
    l->run = r;
    l->run[l->n++] = (struct xti_list_run){at, 1, 0};
    return true;
}

xt_status xti_list_make(const struct xti_piece *box, const int64_t *pos, int64_t elements, int64_t most,
                        bool sending, int64_t *looks, struct xti_list_run **run, int64_t *n_runs)
{
    struct listing l = {.below = elements / 2, .most = most, .sending = sending, .memory = true};
    l.base = sending ? box->soff : box->doff;
    *run = NULL;
    *n_runs = -1;
    if (xti_box_visible(box, pos, looks, list_point, &l)) {
        *run = l.run;
        *n_runs = l.n;
        return XT_OK;
    }
    xti_free(l.run);
    return l.memory ? XT_OK : XT_ENOMEM;
}

/* n elements, `to` and `from` bytes apart. */
static inline void copy_few(char *dst, int64_t to, const char *src, int64_t from, int64_t n, size_t size)
{
    for (int64_t i = 0; i < n; i++)
        memcpy(dst + i * to, src + i * from, size);
}

static void copy_run(char *dst, int64_t to, const char *src, int64_t from, int64_t n, int esize)
{
    if (to == esize && from == esize) {
        memcpy(dst, src, (size_t)(n * esize));
        return;
    }
    switch (esize) {
    case 1:
        copy_few(dst, to, src, from, n, 1);
        break;
    case 2:
        copy_few(dst, to, src, from, n, 2);
        break;
    case 4:
        copy_few(dst, to, src, from, n, 4);
        break;
    case 8:
        copy_few(dst, to, src, from, n, 8);
        break;
    default:
        copy_few(dst, to, src, from, n, 16);
    }
}

void xti_list_move(const struct xti_stencil *s, enum xti_move move, int esize, char *array, int64_t off,
                   char *message)
{
    int64_t x[XTI_MAX_DIMS] = {0}, at = off;
    const struct xti_piece *p = &s->piece;
    int k;
    do { /* once, and on arrival to each place that wants the same */
        char *m = message;
        for (const struct xti_list_run *r = s->run; r < s->run + s->n_runs; r++) {
            char *a = array + (at + r->at) * esize;
            if (move == XTI_UNPACK)
                copy_run(a, (int64_t)r->step * esize, m, esize, r->n, esize);
            else
                copy_run(m, esize, a, (int64_t)r->step * esize, r->n, esize);
            m += (int64_t)r->n * esize;
        }
        for (k = move == XTI_UNPACK ? p->n_dims - 1 : -1; k >= 0; k--) {
            at += p->dim[k].d;
            if (++x[k] < p->dim[k].n)
                break;
            at -= x[k] * p->dim[k].d;
            x[k] = 0;
        }
    } while (k >= 0);
}
