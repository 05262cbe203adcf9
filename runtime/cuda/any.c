/* any.c: the source of the kernels that run any plan, and the numbers they take for one. In: a plan's map.
 * Out: records as templates/cuda/any.cu reads them. Layer 4. */
#include "cuda/any.h"

#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "cuda/writer.h"

enum { STEPS = 4, HEAD = 9, GRID_LIMIT = 0x7fffffff };

const char *const xti_any_suffix[XTI_ANY_ENTRIES] = {"_1", "_2", "_4", "_8", "_16"};
static const char *const name_of[] = {"xt_any32", "xt_any64"};

static bool is_wide(const struct xti_cuda_plan *p) { return !p->index32 || !p->elem->index32; }

const char *xti_any_name(const struct xti_cuda_plan *p) { return name_of[is_wide(p)]; }

bool xti_any_is_name(const char *name) { return !strcmp(name, name_of[0]) || !strcmp(name, name_of[1]); }

/* ---- source */

void xti_any_source(const struct xti_cuda_plan *p, struct xti_str *b)
{
    bool wide = is_wide(p);
    xti_str_addf(b, "/* %s: made by xt. dst, source, numbers are the parameters. */\n", name_of[wide]);
    xti_str_add(b, xti_skeleton_text("prelude"));
    xti_str_add(b, xti_skeleton_text("numbers"));
    xti_str_addf(b,
                 "#define xt_index unsigned %s\n#define xt_signed %s\n#define XT_WIDE %d\n"
                 "#define XT_ANY_STEPS %d\n#define XT_ANY_NUMBERS %d\n#define XT_ANY_DIVS %d\n",
                 wide ? "long long" : "int", wide ? "long long" : "int", wide, STEPS,
                 XTI_ANY_PARAM_BYTES / (wide ? 8 : 4), XTI_MAX_DIVS);
    for (int i = 0; i < XTI_ANY_ENTRIES; i++) {
        xti_str_addf(b, "\n#define XT_ANY %s%s\n#define XT_ANY_AT(x) xt_any%s_##x\n#define XT_UNIT %d\n",
                     name_of[wide], xti_any_suffix[i], xti_any_suffix[i], 1 << i);
        xti_str_add(b, xti_skeleton_text("any"));
        xti_str_add(b, "#undef XT_ANY\n#undef XT_ANY_AT\n#undef XT_UNIT\n");
    }
}

/* ---- numbers */

struct writer {
    const struct xti_cuda_plan *p;
    int width, most; /* bytes of a number; how many fit */
    struct xti_any *any;
    int room, used; /* launches there is room for; numbers in the last one */
    int last;       /* where its last record begins */
};

static struct xti_any_launch *current(const struct writer *w) { return &w->any->launch[w->any->n - 1]; }

static void set(struct writer *w, int at, uint64_t v)
{
    memcpy(current(w)->numbers + w->width * at, &v, (size_t)w->width); /* lowest byte first */
}

static void put(struct writer *w, int64_t v) { set(w, w->used++, (uint64_t)v); }

static void put_all(struct writer *w, int n, const int64_t *v)
{
    for (int i = 0; i < n; i++)
        put(w, v[i]);
}

/* The kernel divides 64-bit numbers as they are. */
static void put_divisor(struct writer *w, int64_t n)
{
    struct xti_divisor d = w->width == 4 ? xti_divisor_of(n) : (struct xti_divisor){0, 0};
    put(w, n);
    put(w, d.m);
    put(w, d.l);
}

static int record_numbers(const struct writer *w, const struct xti_piece *q)
{
    int row = q->n_dims + q->n_divs;
    return HEAD + 16 / w->width + 5 * q->n_dims + q->n_divs * (row + 4) + q->n_guards * (row + 1) + q->n_divs;
}

static int64_t blocks_of(const struct xti_piece *q)
{
    return (xti_piece_numel(q) - 1) / (STEPS * XTI_CUDA_THREADS) + 1;
}

/* The div's own q has fewer coefficients: those that it may name. */
static void put_rows(struct writer *w, const struct xti_piece *q)
{
    for (int k = 0; k < q->n_divs; k++) {
        put(w, q->div[k].c);
        put_all(w, q->n_dims, q->div[k].x);
        put_all(w, k, q->div[k].q);
        w->used += q->n_divs - k;
        put_divisor(w, q->div[k].den);
    }
    for (int k = 0; k < q->n_guards; k++) {
        put(w, q->guard[k].c);
        put_all(w, q->n_dims, q->guard[k].x);
        put_all(w, q->n_divs, q->guard[k].q);
    }
    put_all(w, q->n_divs, q->sq);
}

static void put_piece(struct writer *w, const struct xti_piece *q)
{
    struct xti_any_launch *l = current(w);
    if (w->used > 1)
        set(w, w->last + 1, (uint64_t)w->used);
    w->last = w->used;
    l->blocks += blocks_of(q);
    const int64_t head[HEAD] = {l->blocks,   0,          xti_piece_numel(q),       q->n_dims, q->n_divs,
                                q->n_guards, q->src < 0, q->src < 0 ? 0 : q->soff, q->doff};
    put_all(w, HEAD, head);
    memcpy(l->numbers + w->width * w->used, q->value, 16);
    w->used += 16 / w->width;
    for (int i = 0; i < q->n_dims; i++) {
        put_divisor(w, q->dim[i].n);
        put(w, q->src < 0 ? 0 : q->dim[i].s);
        put(w, q->dim[i].d);
    }
    put_rows(w, q);
    l->grid = l->blocks < GRID_LIMIT ? l->blocks : GRID_LIMIT;
    set(w, 0, (uint64_t)l->blocks);
}

static xt_status begin_launch(struct writer *w, int src, struct xti_err *err)
{
    if (!w->any || w->any->n == w->room) {
        int room = w->room ? 4 * w->room : 1, n = w->any ? w->any->n : 0;
        struct xti_any *more = xti_realloc(w->any, sizeof *more + (size_t)room * sizeof more->launch[0]);
        if (!more)
            return xti_fail(err, XT_ENOMEM, "numbers of %d launches", room);
        more->n = n;
        w->any = more;
        w->room = room;
    }
    w->any->n++;
    *current(w) = (struct xti_any_launch){.src = src};
    w->used = 1;
    return XT_OK;
}

/* The pieces of one source; those of none (fills) go with the first. */
static xt_status put_source(struct writer *w, int src, bool fills, struct xti_err *err)
{
    bool begun = false;
    for (int i = 0; i < w->p->map.n_pieces; i++) {
        const struct xti_piece *q = &w->p->map.piece[i];
        if (q->src != src && !(fills && q->src < 0))
            continue;
        int n = record_numbers(w, q);
        if (1 + n > w->most)
            return xti_fail(err, XT_EUNSUPPORTED, "piece %d: %d numbers do not fit in %d bytes of parameters",
                            i, n, XTI_ANY_PARAM_BYTES);
        if ((!begun || w->used + n > w->most) && begin_launch(w, src, err))
            return err ? err->e.status : XT_ENOMEM;
        begun = true;
        put_piece(w, q);
    }
    return XT_OK;
}

static xt_status make_one(struct xti_cuda_plan *p, int width, struct xti_err *err)
{
    struct xti_any *nothing = NULL;

    struct writer w = {.p = p, .width = width};
    struct xti_err why = {0};
    xt_status s = XT_OK;
    w.most = XTI_ANY_PARAM_BYTES / w.width;
    for (int i = 0; i < (p->map.n_srcs ? p->map.n_srcs : 1) && !s; i++)
        s = put_source(&w, i, i == 0, &why);
    if (!s && !w.any)
        s = xti_fail(&why, XT_EINTERNAL, "a plan without pieces");
    if (s) {
        xti_free(w.any);
        return xti_fail(err, s, "%s", why.e.message);
    }
    w.any->entry = __builtin_ctz((unsigned)p->map.esize);
    if (!atomic_compare_exchange_strong(&p->any, &nothing, w.any))
        xti_free(w.any);
    return XT_OK;
}

xt_status xti_any_make(struct xti_cuda_plan *p, struct xti_err *err)
{
    int width = is_wide(p) ? 8 : 4;
    xt_status s = atomic_load(&p->any) ? XT_OK : make_one(p, width, err);
    return s || atomic_load(&p->elem->any) ? s : make_one(p->elem, width, err);
}
