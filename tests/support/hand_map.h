/* hand_map.h: maps made by hand and at random, what they copy, and their keys: what the tests of units, keys,
 * text and index width share. */
#ifndef TESTS_SUPPORT_HAND_MAP_H
#define TESTS_SUPPORT_HAND_MAP_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "map/map.h"
#include "support/pick.h"
#include "support/suite.h"

#define LEN(a) ((int)(sizeof(a) / sizeof *(a)))

enum { DIMS = 4, DIVS = 2, GUARDS = 2, SRCS = 3, PIECES = 4 };

/* A map whose arrays lie beside it. */
struct hand {
    struct xti_map m;
    struct xti_piece piece[PIECES];
    struct parts {
        struct xti_dim dim[DIMS];
        struct xti_div div[DIVS];
        struct xti_guard guard[GUARDS];
        int64_t div_x[DIVS][DIMS], div_q[DIVS][DIVS], guard_x[GUARDS][DIMS], guard_q[GUARDS][DIVS], sq[DIVS];
    } part[PIECES];
    int64_t lo[SRCS], hi[SRCS];
};

static inline bool count_point(void *arg, const struct xti_piece *p, int64_t d, int64_t s)
{
    struct xti_map *m = arg;
    bool first = m->numel++ == 0;
    m->dst_lo = first || d < m->dst_lo ? d : m->dst_lo;
    m->dst_hi = first || d > m->dst_hi ? d : m->dst_hi;
    if (p->src < 0)
        return true;
    int64_t *lo = &m->src_lo[p->src], *hi = &m->src_hi[p->src];
    bool unread = *hi < *lo;
    *lo = unread || s < *lo ? s : *lo;
    *hi = unread || s > *hi ? s : *hi;
    return true;
}

/* Points the map's arrays at its own storage and works out its bounds by visiting every point. */
static inline void link_map(struct hand *h)
{
    h->m.piece = h->piece;
    h->m.n_srcs = SRCS;
    h->m.src_lo = h->lo;
    h->m.src_hi = h->hi;
    for (int i = 0; i < SRCS; i++)
        h->lo[i] = 0, h->hi[i] = -1;
    for (int i = 0; i < h->m.n_pieces; i++) {
        struct parts *a = &h->part[i];
        struct xti_piece *p = &h->piece[i];
        p->dim = a->dim, p->div = a->div, p->guard = a->guard, p->sq = a->sq;
        for (int j = 0; j < DIVS; j++)
            a->div[j].x = a->div_x[j], a->div[j].q = a->div_q[j];
        for (int j = 0; j < GUARDS; j++)
            a->guard[j].x = a->guard_x[j], a->guard[j].q = a->guard_q[j];
    }
    h->m.numel = 0;
    h->m.dst_lo = 0, h->m.dst_hi = -1;
    xti_map_visit(&h->m, count_point, &h->m);
}

/* One affine piece of source src. */
static inline void add_piece(struct hand *h, int src, int64_t soff, int64_t doff, int n_dims,
                             const struct xti_dim *dim)
{
    int i = h->m.n_pieces++;
    h->piece[i] = (struct xti_piece){.src = src, .soff = soff, .doff = doff, .n_dims = n_dims};
    for (int k = 0; k < n_dims; k++)
        h->part[i].dim[k] = dim[k];
    link_map(h);
}

static inline struct hand new_hand(int esize) { return (struct hand){.m.esize = esize}; }

static inline void free_map(struct xti_map *m) { xti_arena_free(&m->arena); }

/* ------------------------------------------------------------------------------------------ running a map */

enum { CANARY = 64 };

struct buffers {
    unsigned char *dst, *src[SRCS];
    size_t dst_bytes;
};

/* Buffers that hold every address of m, sources full of different bytes, the destination of 0xee with
 * canaries. */
static inline struct buffers new_buffers(const struct xti_map *m)
{
    struct buffers b = {.dst_bytes = (size_t)(m->dst_hi + 1) * (size_t)m->esize + 2 * CANARY};
    b.dst = malloc(b.dst_bytes);
    memset(b.dst, 0xee, b.dst_bytes);
    for (int i = 0; i < SRCS; i++) {
        size_t n = i < m->n_srcs ? (size_t)(m->src_hi[i] + 1) * (size_t)m->esize : 0;
        b.src[i] = malloc(n + 1);
        for (size_t k = 0; k < n; k++)
            b.src[i][k] = (unsigned char)((k * 2654435761u >> 8) + k + 77 * (size_t)i);
    }
    return b;
}

static inline void free_buffers(struct buffers *b)
{
    free(b->dst);
    for (int i = 0; i < SRCS; i++)
        free(b->src[i]);
}

static inline void run_map(const struct xti_map *m, unsigned char *dst, unsigned char *const *src)
{
    const void *s[SRCS] = {0};
    for (int i = 0; i < m->n_srcs; i++)
        s[i] = src[i];
    xti_map_eval(m, dst, s);
}

static inline void print_map(const struct xti_map *m)
{
    struct xti_str t = {0};
    xti_map_text(m, &t);
    fprintf(stderr, "esize %d\n%s", m->esize, t.s ? t.s : "");
    xti_str_free(&t);
}

/* post of widen and normalize: running b (whose sides start at the given bytes) writes what a writes. */
static inline void check_same_copy(const struct xti_map *a, const struct xti_map *b,
                                   const struct xti_origin *o)
{
    struct buffers x = new_buffers(a), y = new_buffers(a);
    unsigned char *src[SRCS] = {y.src[0], y.src[1], y.src[2]}, *dst = y.dst + CANARY;
    if (o) {
        dst += o->dst_bytes;
        for (int i = 0; i < o->n_srcs; i++)
            src[i] = y.src[o->src_of[i]] + o->src_bytes[i];
    }
    run_map(a, x.dst + CANARY, x.src);
    run_map(b, dst, src);
    if (memcmp(x.dst, y.dst, x.dst_bytes)) {
        print_map(a);
        print_map(b);
        ck_abort_msg("the two maps write different bytes");
    }
    free_buffers(&x);
    free_buffers(&y);
}

static inline struct xti_map widened(const struct xti_map *m, int unit)
{
    struct xti_map w;
    ck_assert_int_eq(xti_map_widen(m, unit, &w, NULL), XT_OK);
    return w;
}

/* A multiple of step, with a chance of one off. */
static inline int64_t near_multiple(int64_t step, int64_t most)
{
    return step * pick(0, most) + (pick(0, 11) == 0);
}

static inline void random_rows(struct parts *a, struct xti_piece *p, int64_t step)
{
    p->n_divs = (int)pick(0, DIVS);
    p->n_guards = (int)pick(0, GUARDS);
    for (int j = 0; j < p->n_divs; j++) {
        a->div[j] = (struct xti_div){.den = near_multiple(step, 4) + 2,
                                     .c = pick(0, 2) ? near_multiple(step, 3) : pick(0, 9)};
        if (pick(0, 2))
            a->div[j].den = step * pick(2, 5);
        for (int k = 0; k < p->n_dims; k++)
            a->div_x[j][k] = k == p->n_dims - 1 ? pick(0, 2) / 2 : near_multiple(step, 3);
        for (int k = 0; k < j; k++)
            a->div_q[j][k] = near_multiple(step, 2);
        a->sq[j] = near_multiple(step, 2);
    }
    for (int j = 0; j < p->n_guards; j++) {
        a->guard[j].c = pick(0, 2) ? near_multiple(step, 4) : pick(-9, 19);
        for (int k = 0; k < p->n_dims; k++)
            a->guard_x[j][k] =
                k == p->n_dims - 1 ? pick(-1, 1) : (pick(0, 1) ? -1 : 1) * near_multiple(step, 2);
        for (int k = 0; k < p->n_divs; k++)
            a->guard_q[j][k] = near_multiple(step, 2) * (pick(0, 1) ? 1 : -1);
    }
}

/* A map of up to three pieces in which multiples of `step` are likely. Destinations of pieces do not overlap.
 */
static inline void random_map(struct hand *h, int esize, int64_t step)
{
    int64_t base = step * pick(0, 2);
    *h = new_hand(esize);
    h->m.n_pieces = (int)pick(1, 3);
    for (int i = 0; i < h->m.n_pieces; i++) {
        struct xti_piece *p = &h->piece[i];
        struct parts *a = &h->part[i];
        p->src = (int)pick(-1, SRCS - 1);
        p->n_dims = (int)pick(1, 3);
        p->soff = p->src < 0 ? 0 : 1024 + near_multiple(step, 3);
        p->doff = base;
        for (int k = 0; k < 16; k++)
            p->value[k] = (unsigned char)pick(0, 255);
        int64_t span = 1;
        for (int k = p->n_dims - 1; k >= 0; k--) {
            bool inner = k == p->n_dims - 1;
            struct xti_dim *d = &a->dim[k];
            d->n = inner ? step * pick(1, 4) : pick(2, 4);
            d->n = d->n < 2 ? 2 : d->n;
            d->d = inner ? 1 : (span + step - 1) / step * step + near_multiple(step, 1);
            d->s = p->src < 0 ? 0 : inner ? 1 : near_multiple(step, 3) * (pick(0, 1) ? 1 : -1);
            span += (d->n - 1) * d->d;
        }
        random_rows(a, p, step);
        base = (base + span + step - 1) / step * step + near_multiple(step, 1);
    }
    link_map(h);
}

static inline struct xti_str key_of(const struct xti_map *m)
{
    struct xti_str k = {0};
    xti_map_key(m, &k);
    ck_assert(!k.failed);
    return k;
}

static inline bool same_key(const struct xti_map *a, const struct xti_map *b)
{
    struct xti_str x = key_of(a), y = key_of(b);
    bool same = x.n == y.n && !memcmp(x.s, y.s, x.n);
    xti_str_free(&x);
    xti_str_free(&y);
    return same;
}

/* A map that has one of everything. */
static inline void rich_map(struct hand *h)
{
    *h = new_hand(4);
    h->m.n_pieces = 2;
    h->piece[0] =
        (struct xti_piece){.src = 1, .soff = 40, .doff = 3, .n_dims = 2, .n_divs = 2, .n_guards = 1};
    h->piece[1] = (struct xti_piece){.src = -1, .doff = 90, .n_dims = 1};
    struct parts *a = &h->part[0];
    memcpy(a->dim, (struct xti_dim[]){{4, 5, 20}, {6, 2, 3}}, 2 * sizeof *a->dim);
    a->div[0] = (struct xti_div){.den = 4, .c = 1};
    a->div[1] = (struct xti_div){.den = 3, .c = 2};
    memcpy(a->div_x, (int64_t[DIVS][DIMS]){{3, 1}, {1, 2}}, sizeof a->div_x);
    a->div_q[1][0] = 1;
    a->sq[0] = 7;
    a->sq[1] = -2;
    a->guard[0].c = 5;
    memcpy(a->guard_x[0], (int64_t[]){1, -1}, 16);
    memcpy(a->guard_q[0], (int64_t[]){1, -2}, 16);
    h->part[1].dim[0] = (struct xti_dim){9, 0, 2};
    link_map(h);
}

#endif
