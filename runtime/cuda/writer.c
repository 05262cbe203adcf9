/* writer.c: see writer.h. In: a step of the plan. Out: source text, and its numbers as literals or as a row
 * of a table. Layer 4. */
#include "cuda/writer.h"

#include <inttypes.h>
#include <string.h>

#include "base/num.h"
#include "cuda/family.h"

void xti_emit_number(const struct xti_cuda_plan *p, int64_t v, struct xti_str *b)
{
    if (p->index32)
        xti_str_addf(b, "%" PRIu32 "u", (uint32_t)v);
    else
        xti_str_addf(b, "%" PRIu64 "ull", (uint64_t)v);
}

static void put(struct xti_writer *w, int64_t v)
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
static void put_term(struct xti_writer *w, int64_t coef, const char *name, int i)
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
static void put_row(struct xti_writer *w, int64_t c, const int64_t *x, const int64_t *q, int n_q)
{
    put(w, c);
    for (int i = 0; i < w->size.n_dims; i++)
        put_term(w, x && i >= w->skip ? x[i - w->skip] : 0, "x", i);
    for (int j = 0; j < n_q; j++)
        put_term(w, q && j < w->q->n_divs ? q[j] : 0, "q", j);
}

/* Fastest first. */
static int list_digits(const struct xti_writer *w, struct xti_digit *digit)
{
    int n = w->n_digits;
    memcpy(digit, w->digit, sizeof w->digit);
    for (int i = w->size.n_dims - 1; i >= 0; i--)
        if (w->role[i] == XTI_FROM_INDEX)
            digit[n++] = (struct xti_digit){w->dim[i].n, NULL, i};
    return n;
}

static void put_digits(struct xti_writer *w)
{
    struct xti_digit digit[XTI_MAX_DIMS + 4];
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

static void put_divs(struct xti_writer *w)
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

static void put_address(struct xti_writer *w, bool dst)
{
    int64_t x[XTI_MAX_DIMS];
    for (int i = 0; i < w->q->n_dims; i++) {
        const struct xti_dim *d = &w->dim[i + w->skip];
        x[i] = w->role[i + w->skip] == XTI_IN_BODY ? 0 : dst ? d->d : d->s;
    }
    xti_str_add(w->b, dst ? "    *d = " : "    *s = ");
    put_row(w, dst ? w->doff : w->soff, x, dst ? NULL : w->q->sq, dst ? 0 : w->size.n_divs);
    xti_str_add(w->b, ";\n");
}

static void put_index_function(struct xti_writer *w, const char *prefix)
{
    xti_str_addf(
        w->b,
        "XT_FN int %s%d_at(const xt_index *t, xt_index i, const xt_index a, xt_index *s, xt_index *d, "
        "xt_index *u, xt_index *v)\n{\n",
        prefix, w->s->body);
    put_digits(w);
    for (int i = 0; i < w->size.n_dims; i++)
        if (w->role[i] != XTI_FROM_INDEX)
            xti_str_addf(w->b, "    const xt_index x%d = %s;\n", i, w->role[i] == XTI_FROM_STEP ? "a" : "0");
    put_divs(w);
    put_address(w, false);
    put_address(w, true);
    xti_str_add(w->b, "    return 1;\n}\n");
}

void xti_write_constant(struct xti_writer *w, const char *name, int64_t v)
{
    xti_str_addf(w->b, "#define %s %" PRId64 "\n", name, v);
}

void xti_write_number(struct xti_writer *w, const char *name, int64_t v)
{
    xti_str_addf(w->b, "#define %s ", name);
    put(w, v);
    xti_str_add(w->b, "\n");
}

void xti_write_digit(struct xti_writer *w, int64_t n, const char *out)
{
    w->digit[w->n_digits++] = (struct xti_digit){n, out, 0};
}

static void undefine(struct xti_writer *w, const char *names)
{
    for (const char *end; *names; names = *end ? end + 1 : end) {
        end = strchr(names, ' ');
        end = end ? end : names + strlen(names);
        xti_str_add(w->b, "#undef ");
        xti_str_addn(w->b, names, (size_t)(end - names));
        xti_str_add(w->b, "\n");
    }
}

static void copy_piece(struct xti_writer *w)
{
    const struct xti_piece *q = w->q;
    w->soff = q->src < 0 ? 0 : q->soff;
    w->doff = q->doff;
    for (int i = 0; i < w->skip; i++)
        w->dim[i] = (struct xti_dim){1, 0, 0};
    for (int i = 0; i < q->n_dims; i++)
        w->dim[i + w->skip] = q->dim[i];
}

static void put_comment(struct xti_writer *w)
{
    const struct xti_cuda_step *s = w->s;
    xti_str_addf(w->b, "\n/* %s", xti_cuda_family_name(s->family));
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

void xti_emit_body(const struct xti_cuda_plan *p, const struct xti_cuda_step *s, const char *prefix,
                   const struct xti_emit_pad *pad, struct xti_emit_table *table, struct xti_str *b)
{
    static const char *const from[] = {"XT_COPY", "XT_REVERSE", "XT_SPLAT", "XT_FILL"};
    struct xti_writer w = {.p = p, .s = s, .q = &p->map.piece[s->piece], .table = table, .b = b};
    const struct xti_family *f = xti_cuda_families[s->family];
    w.size = (struct xti_emit_pad){w.q->n_dims, w.q->n_divs, w.q->n_guards};
    if (table && s->family == XTI_CUDA_GENERIC)
        w.size = *pad;
    w.skip = w.size.n_dims - w.q->n_dims;
    copy_piece(&w);
    f->index(&w);
    put_comment(&w);
    put_index_function(&w, prefix);
    xti_str_addf(b, "#define XT_BODY %s%d\n#define XT_AT %s%d_at\n", prefix, s->body, prefix, s->body);
    xti_write_constant(&w, "XT_UNIT", p->map.esize);
    xti_str_addf(b, "#define XT_FROM %s\n", from[s->from]);
    xti_write_constant(&w, "XT_LOOP", p->grid < p->blocks);
    f->define(&w);
    xti_str_add(b, xti_skeleton_text(f->skeleton));
    undefine(&w, "XT_BODY XT_AT XT_UNIT XT_FROM XT_LOOP");
    undefine(&w, f->macros);
}
