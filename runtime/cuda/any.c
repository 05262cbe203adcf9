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
    int n;           /* launches */
    struct xti_str launches, numbers;
    int last; /* where the last record of the last launch begins */
};

static struct xti_any_launch *current(const struct writer *w)
{
    return (struct xti_any_launch *)(void *)w->launches.s + w->n - 1;
}

/* Numbers of the last launch. */
static int used(const struct writer *w) { return (int)(w->numbers.n - current(w)->at) / w->width; }

static void set(struct writer *w, int i, uint64_t v)
{
    if (!w->numbers.failed)
        memcpy(w->numbers.s + current(w)->at + (size_t)(w->width * i), &v, (size_t)w->width);
}

/* Lowest byte first: of 8 bytes that are there the first ones stay. */
static void put(struct writer *w, int64_t v)
{
    struct xti_str *b = &w->numbers;
    if (b->failed || b->cap - b->n <= sizeof v) {
        xti_str_addn(b, &v, (size_t)w->width);
        return;
    }
    memcpy(b->s + b->n, &v, sizeof v);
    b->n += (size_t)w->width;
}

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
        for (int i = k; i < q->n_divs; i++)
            put(w, 0);
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
    if (used(w) > 1)
        set(w, w->last + 1, (uint64_t)used(w));
    w->last = used(w);
    l->blocks += blocks_of(q);
    const int64_t head[HEAD] = {l->blocks,   0,          xti_piece_numel(q),       q->n_dims, q->n_divs,
                                q->n_guards, q->src < 0, q->src < 0 ? 0 : q->soff, q->doff};
    put_all(w, HEAD, head);
    xti_str_addn(&w->numbers, q->value, 16);
    for (int i = 0; i < q->n_dims; i++) {
        put_divisor(w, q->dim[i].n);
        put(w, q->src < 0 ? 0 : q->dim[i].s);
        put(w, q->dim[i].d);
    }
    put_rows(w, q);
    l->grid = l->blocks < GRID_LIMIT ? l->blocks : GRID_LIMIT;
    set(w, 0, (uint64_t)l->blocks);
}

static bool begin_launch(struct writer *w, int src)
{
    const struct xti_any_launch l = {.src = src, .at = w->numbers.n};
    xti_str_addn(&w->launches, &l, sizeof l);
    w->n += !w->launches.failed;
    put(w, 0); /* its blocks */
    return !w->launches.failed;
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
        if ((!begun || used(w) + n > w->most) && !begin_launch(w, src))
            return xti_fail(err, XT_ENOMEM, "numbers of %d launches", w->n);
        begun = true;
        put_piece(w, q);
        current(w)->bytes = w->numbers.n - current(w)->at;
    }
    return XT_OK;
}

/* All in one block. NULL: no memory. */
static struct xti_any *pack(const struct writer *w)
{
    bool failed = w->launches.failed || w->numbers.failed;
    struct xti_any *any = failed ? NULL : xti_alloc(sizeof *any + w->launches.n + w->numbers.n);
    if (!any)
        return NULL;
    any->entry = __builtin_ctz((unsigned)w->p->map.esize);
    any->n = w->n;
    any->numbers = (unsigned char *)memcpy((char *)any->launch + w->launches.n, w->numbers.s, w->numbers.n);
    memcpy(any->launch, w->launches.s, w->launches.n);
    return any;
}

void xti_any_param(const struct xti_any *any, const struct xti_any_launch *l,
                   unsigned char param[XTI_ANY_PARAM_BYTES])
{
    memcpy(param, any->numbers + l->at, l->bytes);
    memset(param + l->bytes, 0, XTI_ANY_PARAM_BYTES - l->bytes);
}

static xt_status make_one(struct xti_cuda_plan *p, int width, struct xti_err *err)
{
    _Alignas(struct xti_any_launch) char launches[4 * sizeof(struct xti_any_launch)];
    char numbers[1024];
    struct xti_any *any = NULL, *nothing = NULL;
    struct writer w = {.p = p, .width = width, .most = XTI_ANY_PARAM_BYTES / width};
    struct xti_err why = {0};
    xt_status s = XT_OK;
    w.launches = XTI_STR_ON(launches);
    w.numbers = XTI_STR_ON(numbers);
    for (int i = 0; i < (p->map.n_srcs ? p->map.n_srcs : 1) && !s; i++)
        s = put_source(&w, i, i == 0, &why);
    if (!s && !w.n)
        s = xti_fail(&why, XT_EINTERNAL, "a plan without pieces");
    if (!s && !(any = pack(&w)))
        s = xti_fail(&why, XT_ENOMEM, "numbers of %d launches", w.n);
    xti_str_free(&w.launches);
    xti_str_free(&w.numbers);
    if (s)
        return xti_fail(err, s, "%s", why.e.message);
    if (!atomic_compare_exchange_strong(&p->any, &nothing, any))
        xti_free(any);
    return XT_OK;
}

xt_status xti_any_make(struct xti_cuda_plan *p, struct xti_err *err)
{
    int width = is_wide(p) ? 8 : 4;
    xt_status s = atomic_load(&p->any) ? XT_OK : make_one(p, width, err);
    return s || atomic_load(&p->elem->any) ? s : make_one(p->elem, width, err);
}
