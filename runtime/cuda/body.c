/* body.c: one body of a kernel: the macros its skeleton wants, the index function, the skeleton's text.
 * In: a step of the plan. Out: source text, and its numbers as literals or as a row of a table. Layer 4. */
#include "cuda/emit.h"

#include <inttypes.h>
#include <string.h>

#include "base/num.h"

/* What the index function does with a dim of the piece. */
enum role {
    FROM_INDEX, /* a digit of the running index */
    FROM_STEP,  /* the thread's step: `a` */
    IN_BODY     /* the skeleton adds it */
};

struct digit {
    int64_t n;
    const char *out; /* "*u", "*v"; NULL: dim */
    int dim;
};

struct writer {
    const struct xti_plan *p;
    const struct xti_cuda_step *s;
    const struct xti_piece *q;
    struct xti_emit_pad size;     /* dims, divs and guards that are written */
    int skip;                     /* outermost dims that are padding */
    struct xti_emit_table *table; /* NULL: literals */
    int n_numbers;
    struct xti_str *b;
    /* the piece, with a reversed dim of a transpose turned round */
    struct xti_dim dim[XTI_MAX_DIMS];
    int64_t soff, doff;
    enum role role[XTI_MAX_DIMS];
};

void xti_emit_number(const struct xti_plan *p, int64_t v, struct xti_str *b)
{
    if (p->index32)
        xti_str_addf(b, "%" PRIu32 "u", (uint32_t)v);
    else
        xti_str_addf(b, "%" PRIu64 "ull", (uint64_t)v);
}

static void put(struct writer *w, int64_t v)
{
    if (!w->table) {
        xti_emit_number(w->p, v, w->b);
        return;
    }
    xti_str_addf(w->b, "t[%d]", w->n_numbers++);
    xti_emit_number(w->p, v, &w->table->text);
    xti_str_add(&w->table->text, w->table->n++ % 12 == 11 ? ",\n    " : ", ");
}

/* " + 3u * x1"; nothing for a zero that is known. */
static void put_term(struct writer *w, int64_t coef, const char *name, int i)
{
    if (!w->table && coef == 0)
        return;
    bool minus = !w->table && coef < 0;
    xti_str_add(w->b, minus ? " - " : " + ");
    if (w->table || (coef != 1 && coef != -1)) {
        put(w, minus ? (int64_t)xti_abs64(coef) : coef);
        xti_str_add(w->b, " * ");
    }
    xti_str_addf(w->b, "%s%d", name, i);
}

/* c + sum x[i] * x<i> + sum q[j] * q<j>; coefficients of padding are 0. */
static void put_row(struct writer *w, int64_t c, const int64_t *x, const int64_t *q, int n_q)
{
    put(w, c);
    for (int i = 0; i < w->size.n_dims; i++)
        put_term(w, x && i >= w->skip ? x[i - w->skip] : 0, "x", i);
    for (int j = 0; j < n_q; j++)
        put_term(w, q && j < w->q->n_divs ? q[j] : 0, "q", j);
}

/* Fastest first. */
static int list_digits(const struct writer *w, struct digit *digit)
{
    const struct xti_cuda_step *s = w->s;
    int n = 0;
    if (!strcmp(s->strategy->skeleton, "rows")) {
        int64_t group = s->vec_bytes / w->p->map.esize,
                last = w->q->n_dims ? w->q->dim[w->q->n_dims - 1].n : 1;
        digit[n++] = (struct digit){(last + group - 1) / group, "*u", 0};
    } else if (!strcmp(s->strategy->skeleton, "realign")) {
        digit[n++] = (struct digit){(w->q->dim[w->q->n_dims - 1].n * w->p->map.esize + 30) / 16, "*u", 0};
    } else if (s->shared_bytes) {
        digit[n++] = (struct digit){(w->dim[s->dim_a].n + s->tile_a - 1) / s->tile_a, "*u", 0};
        digit[n++] = (struct digit){(w->dim[s->dim_b].n + s->tile_b - 1) / s->tile_b, "*v", 0};
    }
    for (int i = w->size.n_dims - 1; i >= 0; i--)
        if (w->role[i] == FROM_INDEX)
            digit[n++] = (struct digit){w->dim[i].n, NULL, i};
    return n;
}

static void put_digits(struct writer *w)
{
    struct digit digit[XTI_MAX_DIMS + 2];
    int n = list_digits(w, digit);
    for (int i = 0; i < n; i++) {
        if (digit[i].out)
            xti_str_addf(w->b, "    %s = i", digit[i].out);
        else
            xti_str_addf(w->b, "    const xt_index x%d = i", digit[i].dim);
        if (i + 1 < n) {
            xti_str_add(w->b, " % ");
            put(w, digit[i].n);
            xti_str_add(w->b, ";\n    i /= ");
            put(w, digit[i].n);
        }
        xti_str_add(w->b, ";\n");
    }
}

static void put_divs(struct writer *w)
{
    for (int j = 0; j < w->size.n_divs; j++) {
        const struct xti_div *d = j < w->q->n_divs ? &w->q->div[j] : NULL;
        xti_str_addf(w->b, "    const xt_index q%d = (", j);
        put_row(w, d ? d->c : 0, d ? d->x : NULL, d ? d->q : NULL, j);
        xti_str_add(w->b, ") / ");
        put(w, d ? d->den : 1);
        xti_str_add(w->b, ";\n");
    }
    for (int j = 0; j < w->size.n_guards; j++) {
        const struct xti_guard *g = j < w->q->n_guards ? &w->q->guard[j] : NULL;
        xti_str_add(w->b, "    if ((xt_signed)(");
        put_row(w, g ? g->c : 0, g ? g->x : NULL, g ? g->q : NULL, w->size.n_divs);
        xti_str_add(w->b, ") < 0)\n        return 0;\n");
    }
}

static void put_address(struct writer *w, bool dst)
{
    int64_t x[XTI_MAX_DIMS];
    for (int i = 0; i < w->q->n_dims; i++) {
        const struct xti_dim *d = &w->dim[i + w->skip];
        x[i] = w->role[i + w->skip] == IN_BODY ? 0 : dst ? d->d : d->s;
    }
    xti_str_add(w->b, dst ? "    *d = " : "    *s = ");
    put_row(w, dst ? w->doff : w->soff, x, dst ? NULL : w->q->sq, dst ? 0 : w->size.n_divs);
    xti_str_add(w->b, ";\n");
}

static void put_index_function(struct writer *w, const char *prefix)
{
    xti_str_addf(
        w->b,
        "XT_FN int %s%d_at(const xt_index *t, xt_index i, const xt_index a, xt_index *s, xt_index *d, "
        "xt_index *u, xt_index *v)\n{\n",
        prefix, w->s->body);
    put_digits(w);
    for (int i = 0; i < w->size.n_dims; i++)
        if (w->role[i] != FROM_INDEX)
            xti_str_addf(w->b, "    const xt_index x%d = %s;\n", i, w->role[i] == FROM_STEP ? "a" : "0");
    put_divs(w);
    put_address(w, false);
    put_address(w, true);
    xti_str_add(w->b, "    return 1;\n}\n");
}

static void define(struct writer *w, const char *name, int64_t v)
{
    xti_str_addf(w->b, "#define %s %" PRId64 "\n", name, v);
}

/* A number that differs between the pieces of a table. */
static void define_number(struct writer *w, const char *name, int64_t v)
{
    xti_str_addf(w->b, "#define %s ", name);
    put(w, v);
    xti_str_add(w->b, "\n");
}

static void define_rows(struct writer *w)
{
    int64_t group = w->s->vec_bytes / w->p->map.esize, points = 1;
    int64_t n = w->q->n_dims ? w->q->dim[w->q->n_dims - 1].n : 1, chunks = (n + group - 1) / group;
    for (int i = 0; i + 1 < w->q->n_dims; i++)
        points *= w->q->dim[i].n;
    define(w, "XT_VEC", w->s->vec_bytes);
    define(w, "XT_STEPS", w->s->per_thread);
    define_number(w, "XT_POINTS", points * chunks);
    define_number(w, "XT_CHUNKS", chunks);
    define_number(w, "XT_TAIL", n % group);
}

static void define_realign(struct writer *w)
{
    int64_t points = 1, bytes = w->q->dim[w->q->n_dims - 1].n * w->p->map.esize;
    for (int i = 0; i + 1 < w->q->n_dims; i++)
        points *= w->q->dim[i].n;
    define(w, "XT_STEPS", w->s->per_thread);
    define_number(w, "XT_POINTS", points * ((bytes + 30) / 16));
    define_number(w, "XT_LENGTH", bytes);
}

static void define_transpose(struct writer *w)
{
    define(w, "XT_VS", w->s->src_bytes);
    define(w, "XT_VD", w->s->dst_bytes);
    define(w, "XT_TA", w->s->tile_a);
    define(w, "XT_TB", w->s->tile_b);
    define_number(w, "XT_NA", w->dim[w->s->dim_a].n);
    define_number(w, "XT_NB", w->dim[w->s->dim_b].n);
    define_number(w, "XT_DA", w->dim[w->s->dim_a].d);
    define_number(w, "XT_SB", w->dim[w->s->dim_b].s);
}

static void define_generic(struct writer *w)
{
    int repeat = w->s->dim_a >= 0;
    define(w, "XT_STEPS", w->s->per_thread);
    define(w, "XT_REPEAT", repeat);
    define_number(w, "XT_POINTS", xti_piece_numel(w->q) / (repeat ? w->s->per_thread : 1));
}

/* clang-format off */
static const struct family {
    const char *skeleton;
    void (*define)(struct writer *w);
    const char *undefine;
} families[] = {
    {"rows",      define_rows,      "XT_VEC XT_STEPS XT_POINTS XT_CHUNKS XT_TAIL"},
    {"realign",   define_realign,   "XT_STEPS XT_POINTS XT_LENGTH"},
    {"transpose", define_transpose, "XT_VS XT_VD XT_TA XT_TB XT_NA XT_NB XT_DA XT_SB"},
    {"generic",   define_generic,   "XT_STEPS XT_REPEAT XT_POINTS"},
};
/* clang-format on */

static const struct family *find_family(const char *skeleton)
{
    size_t i = 0;
    while (strcmp(families[i].skeleton, skeleton))
        i++;
    return &families[i];
}

static void undefine(struct writer *w, const char *names)
{
    for (const char *end; *names; names = *end ? end + 1 : end) {
        end = strchr(names, ' ');
        end = end ? end : names + strlen(names);
        xti_str_add(w->b, "#undef ");
        xti_str_addn(w->b, names, (size_t)(end - names));
        xti_str_add(w->b, "\n");
    }
}

/* Copies the dims, says who computes which, and turns a transpose's reversed dim round, so that its s is 1.
 */
static void set_dims(struct writer *w)
{
    const struct xti_piece *q = w->q;
    const char *skeleton = w->s->strategy->skeleton;
    w->soff = q->src < 0 ? 0 : q->soff;
    w->doff = q->doff;
    for (int i = 0; i < w->skip; i++)
        w->dim[i] = (struct xti_dim){1, 0, 0};
    for (int i = 0; i < q->n_dims; i++)
        w->dim[i + w->skip] = q->dim[i];
    if ((!strcmp(skeleton, "rows") || !strcmp(skeleton, "realign")) && q->n_dims)
        w->role[q->n_dims - 1] = IN_BODY;
    if (!strcmp(skeleton, "generic") && w->s->dim_a >= 0)
        w->role[w->s->dim_a] = FROM_STEP;
    if (strcmp(skeleton, "transpose"))
        return;
    struct xti_dim *a = &w->dim[w->s->dim_a];
    w->role[w->s->dim_a] = w->role[w->s->dim_b] = IN_BODY;
    if (a->s < 0) {
        w->soff -= a->n - 1;
        w->doff += (a->n - 1) * a->d;
        a->s = 1;
        a->d = -a->d;
    }
}

static void put_comment(struct writer *w)
{
    const struct xti_cuda_step *s = w->s;
    xti_str_addf(w->b, "\n/* %s", s->strategy->name);
    if (w->table) {
        xti_str_addf(w->b, ", %d-byte accesses, numbers from the table */\n", s->vec_bytes);
        return;
    }
    xti_str_addf(w->b, ", piece %d, %d-byte accesses; extent (source, destination stride):", s->piece,
                 s->vec_bytes);
    for (int i = 0; i < w->q->n_dims; i++)
        xti_str_addf(w->b, " %" PRId64 "(%" PRId64 ",%" PRId64 ")", w->q->dim[i].n, w->q->dim[i].s,
                     w->q->dim[i].d);
    xti_str_add(w->b, " */\n");
}

void xti_emit_body(const struct xti_plan *p, const struct xti_cuda_step *s, const char *prefix,
                   const struct xti_emit_pad *pad, struct xti_emit_table *table, struct xti_str *b)
{
    static const char *const from[] = {"XT_COPY", "XT_REVERSE", "XT_SPLAT", "XT_FILL"};
    struct writer w = {.p = p, .s = s, .q = &p->map.piece[s->piece], .table = table, .b = b};
    const struct family *f = find_family(s->strategy->skeleton);
    w.size = (struct xti_emit_pad){w.q->n_dims, w.q->n_divs, w.q->n_guards};
    if (table && !strcmp(f->skeleton, "generic"))
        w.size = *pad;
    w.skip = w.size.n_dims - w.q->n_dims;
    set_dims(&w);
    put_comment(&w);
    put_index_function(&w, prefix);
    xti_str_addf(b, "#define XT_BODY %s%d\n#define XT_AT %s%d_at\n", prefix, s->body, prefix, s->body);
    define(&w, "XT_UNIT", p->map.esize);
    xti_str_addf(b, "#define XT_FROM %s\n", from[s->from]);
    define(&w, "XT_LOOP", p->grid < p->blocks);
    f->define(&w);
    xti_str_add(b, xti_skeleton_text(f->skeleton));
    undefine(&w, "XT_BODY XT_AT XT_UNIT XT_FROM XT_LOOP");
    undefine(&w, f->undefine);
}
