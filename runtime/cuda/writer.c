/* writer.c: see writer.h. In: a step of the plan. Out: source text, its numbers, its structure. What always
 * holds: whatever decides the text, but for names and numbers, is a fact of the structure. Layer 4. */
#include "cuda/writer.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "cuda/family.h"

struct xti_divisor xti_divisor_of(int64_t n)
{
    int l = n > 1 ? 64 - __builtin_clzll((uint64_t)n - 1) : 0;
    uint64_t most = UINT64_C(1) << (31 + l);
    return (struct xti_divisor){(uint32_t)((most + (uint64_t)n - 1) / (uint64_t)n), l};
}

void xti_emit_number(const struct xti_cuda_plan *p, int64_t v, struct xti_str *b)
{
    if (p->index32)
        xti_str_addf(b, "%" PRIu32 "u", (uint32_t)v);
    else
        xti_str_addf(b, "%" PRIu64 "ull", (uint64_t)v);
}

void xti_write_large_fact(struct xti_writing *e, uint64_t v)
{
    char byte[10];
    size_t n = 0;
    struct xti_str *b = e->structure;
    if (!b)
        return;
    for (; v > 127; v >>= 7)
        byte[n++] = (char)(v | 128);
    byte[n++] = (char)v;
    xti_facts_end(e);
    xti_str_addn(b, byte, n);
    e->fact = b->failed ? NULL : b->s + b->n;
    e->facts_end = b->failed ? NULL : b->s + b->cap - 1;
}

void xti_facts_end(struct xti_writing *e)
{
    if (e->fact)
        e->structure->n = (size_t)(e->fact - e->structure->s);
    e->fact = e->facts_end = NULL;
}

__attribute__((cold, noinline)) static void say_it(struct xti_writer *w, const char *text)
{
    xti_str_add(w->e->text, text);
}

static void say(struct xti_writer *w, const char *text)
{
    if (w->e->text)
        say_it(w, text);
}

void xti_write_some(struct xti_writer *w, const char *fmt, ...)
{
    char line[256];
    va_list a;
    va_start(a, fmt);
    vsnprintf(line, sizeof line, fmt, a);
    va_end(a);
    xti_str_add(w->e->text, line);
}

static void put_literal(struct xti_writer *w, int64_t v)
{
    if (w->e->text)
        xti_emit_number(w->p, v, w->e->text);
}

/* Where the number is, whatever it is. */
static void put(struct xti_writer *w, int64_t v)
{
    if (w->in == XTI_IN_LITERALS) {
        put_literal(w, v);
        return;
    }
    xti_write_text(w, "t[%zu]", (w->e->numbers.n - w->row) / 8);
    xti_str_u64le(&w->e->numbers, (uint64_t)v);
}

/* The same, where the structure knows a zero. */
static void put_optional(struct xti_writer *w, int64_t v)
{
    if (w->in == XTI_IN_ROW)
        xti_write_fact(w->e, v != 0);
    if (w->in == XTI_IN_ROW && v == 0)
        put_literal(w, 0);
    else
        put(w, v);
}

/* " + 3u * x1"; nothing for a zero that is known. */
static void put_term(struct xti_writer *w, int64_t coef, const char *name, int i)
{
    bool known = w->in != XTI_IN_TABLE, one = known && (coef == 1 || coef == -1);
    bool minus = w->in == XTI_IN_LITERALS ? coef < 0 : one && coef < 0;
    if (w->in == XTI_IN_ROW)
        xti_write_fact(w->e, coef == 0 ? 0 : !one ? 1 : minus ? 2 : 3);
    if (known && coef == 0)
        return;
    say(w, minus ? " - " : " + ");
    if (!one) {
        put(w, minus ? (int64_t)xti_abs64(coef) : coef);
        say(w, " * ");
    }
    xti_write_text(w, "%s%d", name, i);
}

/* c + sum x[i] * x<i> + sum q[j] * q<j>; coefficients of padding are 0. */
static void put_row(struct xti_writer *w, int64_t c, const int64_t *x, const int64_t *q, int n_q)
{
    put_optional(w, c);
    for (int i = 0; i < w->size.n_dims; i++)
        put_term(w, x && i >= w->skip ? x[i - w->skip] : 0, "x", i);
    for (int j = 0; j < n_q; j++)
        put_term(w, q && j < w->q->n_divs ? q[j] : 0, "q", j);
}

/* Fastest first: those of the family, then dims, or parts of them, as they lie in the destination. */
static int list_digits(const struct xti_writer *w, struct xti_digit *digit)
{
    int n = 0;
    for (int k = 0; k < w->n_digits; k++)
        if (w->digit[k].dim < 0)
            digit[n++] = w->digit[k];
    for (int i = w->size.n_dims - 1; i >= 0; i--) {
        if (w->role[i] == XTI_FROM_INDEX)
            digit[n++] = (struct xti_digit){w->dim[i].n, NULL, i, w->dim[i].s, w->dim[i].d};
        for (int k = 0; k < w->n_digits; k++)
            if (w->digit[k].dim == i)
                digit[n++] = w->digit[k];
    }
    return n;
}

static void put_digit_name(struct xti_writer *w, const struct xti_digit *digit)
{
    if (digit->out)
        xti_write_text(w, "    %s = ", digit->out);
    else
        xti_write_text(w, "    const xt_index x%d = ", digit->dim);
}

/* "xt_divide(": the operand and the pair that the divisor became follow. A table's body divides by 1, too. */
static void open_division(struct xti_writer *w)
{
    static const char *const name[] = {
        [XTI_IN_LITERALS] = "__umulhi(", [XTI_IN_ROW] = "xt_divide(", [XTI_IN_TABLE] = "xt_divide_any("};
    say(w, name[w->in]);
}

static void close_division(struct xti_writer *w, int64_t n)
{
    struct xti_divisor d = xti_divisor_of(n);
    say(w, ", ");
    put(w, d.m);
    say(w, w->in == XTI_IN_LITERALS ? ") >> (" : ", ");
    put(w, w->in == XTI_IN_TABLE ? d.l : d.l - 1);
    say(w, ")");
}

/* By multiplication: the quotient first, then what is left, i - quotient * n. */
static void put_divided_digit(struct xti_writer *w, const struct xti_digit *digit, int i)
{
    xti_write_text(w, "    const xt_index i%d = ", i);
    open_division(w);
    say(w, "i");
    close_division(w, digit->n);
    say(w, ";\n");
    put_digit_name(w, digit);
    xti_write_text(w, "i + i%d * ", i);
    put(w, -digit->n);
    xti_write_text(w, ";\n    i = i%d;\n", i);
}

/* Compilers divide by constants themselves, but do not know that an index that counts down is below 2^31. */
static bool divides_by_multiplication(const struct xti_writer *w, int64_t n)
{
    return w->p->index32 && (w->in != XTI_IN_LITERALS || (w->down && !w->straight && (n & (n - 1))));
}

/* One digit i % n, and i /= n. A digit of one value is known to the structure. */
static void put_digit(struct xti_writer *w, const struct xti_digit *digit, int i)
{
    if (w->in == XTI_IN_ROW)
        xti_write_fact(w->e, digit->n == 1);
    if (w->in == XTI_IN_ROW && digit->n == 1) {
        put_digit_name(w, digit);
        say(w, "0;\n");
    } else if (divides_by_multiplication(w, digit->n)) {
        put_divided_digit(w, digit, i);
    } else {
        put_digit_name(w, digit);
        say(w, "i % ");
        put(w, digit->n);
        say(w, ";\n    i /= ");
        put(w, digit->n);
        say(w, ";\n");
    }
}

/* Those of several values; the structure knows which. */
static int list_steps(struct xti_writer *w, struct xti_digit *digit)
{
    int n = 0, all = list_digits(w, digit);
    xti_write_fact(w->e, (uint64_t)all);
    for (int k = 0; k < all; k++) {
        xti_write_fact(w->e, digit[k].n == 1);
        if (digit[k].n > 1)
            digit[n++] = digit[k];
    }
    return n;
}

/* Digit k is i<k> - n * i<k+1>: its step is one of i<k>, and -n of i<k+1>. All modulo 2^64. */
static void put_steps(struct xti_writer *w, bool dst, const struct xti_digit *digit, int n)
{
    uint64_t c = (uint64_t)(dst ? w->doff : w->soff), before = 0;
    for (int k = 0; k < n && w->down; k++)
        c += (uint64_t)(digit[k].n - 1) * (uint64_t)(dst ? digit[k].d : digit[k].s);
    say(w, dst ? "    *d = " : "    *s = ");
    put(w, (int64_t)c);
    for (int k = 0; k < n; k++) {
        uint64_t once = (uint64_t)(dst ? digit[k].d : digit[k].s), step = w->down ? -once : once;
        say(w, " + ");
        put(w, (int64_t)(step - before));
        xti_write_text(w, " * i%d", k);
        before = step * (uint64_t)digit[k].n;
    }
    say(w, ";\n");
}

static void put_straight(struct xti_writer *w)
{
    struct xti_digit digit[XTI_MAX_DIMS + 4];
    int n = list_steps(w, digit);
    say(w, "    const xt_index i0 = i;\n");
    for (int k = 0; k + 1 < n; k++) {
        bool multiply = divides_by_multiplication(w, digit[k].n);
        xti_write_text(w, "    const xt_index i%d = ", k + 1);
        if (multiply)
            open_division(w);
        xti_write_text(w, multiply ? "i%d" : "i%d / ", k);
        if (multiply)
            close_division(w, digit[k].n);
        else
            put(w, digit[k].n);
        say(w, ";\n");
    }
    put_steps(w, false, digit, n);
    put_steps(w, true, digit, n);
}

static void put_digits(struct xti_writer *w)
{
    struct xti_digit digit[XTI_MAX_DIMS + 4];
    int n = list_digits(w, digit);
    xti_write_fact(w->e, (uint64_t)w->n_digits);
    for (int i = 0; i + 1 < n; i++)
        put_digit(w, &digit[i], i);
    if (n) {
        put_digit_name(w, &digit[n - 1]);
        say(w, "i;\n");
    }
}

static void put_divs(struct xti_writer *w)
{
    for (int j = 0; j < w->size.n_divs; j++) {
        const struct xti_div *d = j < w->q->n_divs ? &w->q->div[j] : NULL;
        bool multiply = divides_by_multiplication(w, d ? d->den : 1);
        xti_write_text(w, "    const xt_index q%d = ", j);
        if (multiply)
            open_division(w);
        else
            say(w, "(");
        put_row(w, d ? d->c : 0, d ? d->x : NULL, d ? d->q : NULL, j);
        if (multiply) {
            close_division(w, d ? d->den : 1);
        } else {
            say(w, ") / ");
            put(w, d ? d->den : 1);
        }
        say(w, ";\n");
    }
    for (int j = 0; j < w->size.n_guards; j++) {
        const struct xti_guard *g = j < w->q->n_guards ? &w->q->guard[j] : NULL;
        say(w, "    if ((xt_signed)(");
        put_row(w, g ? g->c : 0, g ? g->x : NULL, g ? g->q : NULL, w->size.n_divs);
        say(w, ") < 0)\n        return 0;\n");
    }
}

static void put_address(struct xti_writer *w, bool dst)
{
    int64_t x[XTI_MAX_DIMS];
    for (int i = 0; i + w->skip < w->size.n_dims; i++) {
        const struct xti_dim *d = &w->dim[i + w->skip];
        x[i] = w->role[i + w->skip] == XTI_IN_BODY ? 0 : dst ? d->d : d->s;
    }
    say(w, dst ? "    *d = " : "    *s = ");
    put_row(w, dst ? w->doff : w->soff, x, dst ? NULL : w->q->sq, dst ? 0 : w->size.n_divs);
    say(w, ";\n");
}

static void put_sums(struct xti_writer *w)
{
    xti_write_fact(w->e, (uint64_t)w->n_sums);
    for (int i = 0; i < w->n_sums; i++) {
        xti_write_text(w, "    %s = ", w->sum[i].out);
        put_row(w, w->sum[i].c, w->sum[i].x, NULL, 0);
        say(w, ";\n");
    }
}

static void put_by_digits(struct xti_writer *w)
{
    if (w->down) {
        say(w, "    i = ");
        put(w, w->s->blocks - 1);
        say(w, " - i;\n");
    }
    put_digits(w);
    for (int i = 0; i < w->size.n_dims; i++)
        if (w->role[i] != XTI_FROM_INDEX)
            xti_write_text(w, "    const xt_index x%d = %s;\n", i, w->role[i] == XTI_FROM_STEP ? "a" : "0");
    put_divs(w);
    put_address(w, false);
    put_address(w, true);
    put_sums(w);
}

static void put_index_function(struct xti_writer *w)
{
    xti_write_text(
        w,
        "XT_FN int %s%d_at(const xt_index *t, xt_index i, const xt_index a, xt_index *s, xt_index *d, "
        "xt_index *u, xt_index *v)\n{\n",
        w->e->prefix, w->s->body);
    for (int i = 0; i < w->size.n_dims; i++)
        xti_write_fact(w->e, w->role[i]);
    xti_write_fact(w->e, w->straight);
    if (w->straight)
        put_straight(w);
    else
        put_by_digits(w);
    say(w, "    return 1;\n}\n");
}

void xti_write_constant_of(struct xti_writer *w, const char *name, int k, int64_t v)
{
    xti_write_fact(w->e, (uint64_t)v);
    xti_write_text(w, "#define %s%d %" PRId64 "\n", name, k, v);
}

void xti_write_number(struct xti_writer *w, const char *name, int64_t v)
{
    xti_write_text(w, "#define %s ", name);
    put(w, v);
    say(w, "\n");
}

void xti_write_number_of(struct xti_writer *w, const char *name, int k, int64_t v)
{
    xti_write_text(w, "#define %s%d ", name, k);
    put(w, v);
    say(w, "\n");
}

void xti_write_optional(struct xti_writer *w, const char *name, int64_t v)
{
    xti_write_text(w, "#define %s ", name);
    put_optional(w, v);
    say(w, "\n");
}

void xti_write_digit(struct xti_writer *w, int64_t n, const char *out)
{
    w->digit[w->n_digits++] = (struct xti_digit){n, out, -1, 0, 0};
}

void xti_write_part(struct xti_writer *w, int dim, int64_t n, const char *out)
{
    xti_write_fact(w->e, (uint64_t)dim);
    w->digit[w->n_digits++] = (struct xti_digit){n, out, dim, 0, 0};
}

void xti_write_step(struct xti_writer *w, int dim, int64_t n, int64_t s, int64_t d)
{
    w->digit[w->n_digits++] = (struct xti_digit){n, NULL, dim, s, d};
}

void xti_write_box(struct xti_writer *w, int n_dims, const struct xti_dim *dim, int64_t soff, int64_t doff)
{
    w->size = (struct xti_rank){n_dims, 0, 0};
    w->soff = soff;
    w->doff = doff;
    memcpy(w->dim, dim, (size_t)n_dims * sizeof *dim);
    memset(w->role, 0, (size_t)n_dims * sizeof *w->role);
}

void xti_write_sum(struct xti_writer *w, const char *out, int64_t c, const int64_t *x)
{
    w->sum[w->n_sums++] = (struct xti_sum){out, c, x};
}

static void undefine(struct xti_writer *w, const char *names)
{
    for (const char *end; *names && w->e->text; names = *end ? end + 1 : end) {
        end = strchr(names, ' ');
        end = end ? end : names + strlen(names);
        xti_str_add(w->e->text, "#undef ");
        xti_str_addn(w->e->text, names, (size_t)(end - names));
        xti_str_add(w->e->text, "\n");
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
    xti_write_text(w, "\n/* %s", xti_cuda_family_name(s->family));
    if (w->in == XTI_IN_TABLE) {
        xti_write_text(w, ", %d-byte accesses, numbers from the table */\n", s->vec_bytes);
        return;
    }
    xti_write_text(w, ", piece %d, %d-byte accesses", s->piece, s->vec_bytes);
    if (w->in == XTI_IN_ROW) {
        xti_write_text(w, ", rank %d, numbers from parameters */\n", w->q->n_dims);
        return;
    }
    say(w, "; extent (source, destination stride):");
    for (int i = 0; i < w->q->n_dims; i++)
        xti_write_text(w, " %" PRId64 "(%" PRId64 ",%" PRId64 ")", w->q->dim[i].n, w->q->dim[i].s,
                       w->q->dim[i].d);
    say(w, " */\n");
}

static void write_step_facts(struct xti_writer *w)
{
    const uint64_t fact[] = {w->s->family,
                             w->s->from,
                             (uint64_t)w->s->vec_bytes,
                             (uint64_t)w->size.n_dims,
                             (uint64_t)w->size.n_divs,
                             (uint64_t)w->size.n_guards};
    for (size_t i = 0; i < sizeof fact / sizeof *fact; i++)
        xti_write_fact(w->e, fact[i]);
}

/* The ranks of the generic body that several pieces share. */
static struct xti_rank widest(const struct xti_cuda_plan *p)
{
    struct xti_rank w = {0, 0, 0};
    for (int i = 0; i < p->map.n_pieces; i++) {
        const struct xti_piece *q = &p->map.piece[i];
        w.n_dims = q->n_dims > w.n_dims ? q->n_dims : w.n_dims;
        w.n_divs = q->n_divs > w.n_divs ? q->n_divs : w.n_divs;
        w.n_guards = q->n_guards > w.n_guards ? q->n_guards : w.n_guards;
    }
    return w;
}

void xti_write_body(struct xti_writing *e, const struct xti_cuda_step *s)
{
    static const char *const from[] = {"XT_COPY", "XT_REVERSE", "XT_SPLAT", "XT_FILL"};
    const struct xti_cuda_plan *p = e->p;
    const struct xti_family *f = xti_cuda_families[s->family];
    struct xti_writer w;
    memset(&w, 0, offsetof(struct xti_writer, digit));
    w.p = p, w.s = s, w.q = &p->map.piece[s->piece], w.e = e, w.row = e->numbers.n;
    w.in = p->table ? XTI_IN_TABLE : e->tier == XTI_TIER_EXACT ? XTI_IN_LITERALS : XTI_IN_ROW;
    w.size = (struct xti_rank){w.q->n_dims, w.q->n_divs, w.q->n_guards};
    if (p->table && !s->rows)
        w.size = s->family == XTI_CUDA_GENERIC
                     ? widest(p)
                     : (struct xti_rank){xti_cuda_table_rank(p, s->piece), w.q->n_divs, w.q->n_guards};
    w.skip = w.size.n_dims - w.q->n_dims;
    copy_piece(&w);
    memset(w.role, 0, (size_t)w.size.n_dims * sizeof *w.role);
    f->index(&w);
    write_step_facts(&w);
    put_comment(&w);
    put_index_function(&w);
    xti_write_text(&w, "#define XT_BODY %s%d\n#define XT_AT %s%d_at\n", e->prefix, s->body, e->prefix,
                   s->body);
    xti_write_constant(&w, "XT_UNIT", p->map.esize);
    xti_write_text(&w, "#define XT_FROM %s\n", from[s->from]);
    xti_write_constant(&w, "XT_LOOP", p->grid < p->blocks);
    f->define(&w);
    if (e->text)
        xti_str_add(e->text, xti_skeleton_text(f->skeleton));
    undefine(&w, "XT_BODY XT_AT XT_UNIT XT_FROM XT_LOOP");
    undefine(&w, f->macros);
}
