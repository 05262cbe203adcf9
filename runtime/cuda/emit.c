/* emit.c: plan -> CUDA source: prelude, and for each of the two entries its bodies and the function that
 * sends every block to its piece. What always holds: the text depends on the maps, the target's numbers and
 * the templates alone; its size is bounded by XTI_CUDA_MAX_BODIES bodies and a line or two a piece. Layer 4.
 */
#include "cuda/cuda.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/env.h"
#include "base/log.h"
#include "cuda/writer.h"
#include "cuda/skeletons.h"

/* ptx: 4096 bytes of parameters on every device, 32764 from sm_70 with CUDA 12.1. */
enum { MAX_PARAM_BYTES = 32764 };

const char *xti_skeleton_text(const char *name)
{
    for (int i = 0; i < xti_n_skeletons; i++)
        if (!strcmp(xti_skeletons[i].name, name))
            return xti_skeletons[i].text;
    return NULL;
}

void xti_cuda_log_text(enum xti_log what, const char *name, const char *text)
{
    if (!xti_log_on(what))
        return;
    xti_logf(what, "%s:", name);
    while (*text) {
        int n = (int)strcspn(text, "\n");
        xti_logf(what, "%.*s", n, text);
        text += n + (text[n] == '\n');
    }
}

int xti_emit_fill(const struct xti_cuda_plan *p, int piece)
{
    int n = 0;
    for (int i = 0; i < piece; i++)
        n += p->map.piece[i].src < 0;
    return n;
}

static void put_params(const struct xti_cuda_plan *p, struct xti_str *b)
{
    xti_str_add(b, "unsigned char *__restrict__ dst");
    for (int i = 0; i < p->map.n_srcs; i++)
        xti_str_addf(b, ", const unsigned char *__restrict__ s%d", i);
    for (int i = 0, n = xti_emit_fill(p, p->map.n_pieces); i < n; i++)
        xti_str_addf(b, ", const xt_b16 f%d", i);
}

/* "s0, xt_zero()" */
static void put_operands(const struct xti_cuda_plan *p, int piece, struct xti_str *b)
{
    if (p->map.piece[piece].src < 0)
        xti_str_addf(b, "0, f%d", xti_emit_fill(p, piece));
    else
        xti_str_addf(b, "s%d, xt_zero()", p->map.piece[piece].src);
}

/* A function for each piece: a chain of ifs. */
static void put_chain(const struct xti_cuda_plan *p, const char *prefix, struct xti_str *b)
{
    for (int i = 0; i < p->n_steps; i++) {
        const struct xti_cuda_step *s = &p->step[i];
        if (i + 1 < p->n_steps) {
            xti_str_add(b, "if (block < ");
            xti_emit_number(p, s->first_block + s->blocks, b);
            xti_str_add(b, ")\n        ");
        }
        xti_str_addf(b, "    %s%d(dst, ", prefix, s->body);
        put_operands(p, s->piece, b);
        xti_str_add(b, ", block - ");
        xti_emit_number(p, s->first_block, b);
        xti_str_add(b, ", 0, tile);\n");
        if (i + 1 < p->n_steps)
            xti_str_add(b, "    else ");
    }
}

static void put_leaf(const struct xti_cuda_plan *p, int i, const int64_t *row, struct xti_str *b)
{
    const struct xti_cuda_step *s = &p->step[i];
    int src = p->map.piece[s->piece].src;
    xti_str_add(b, "first = ");
    xti_emit_number(p, s->first_block, b);
    xti_str_addf(b, ", row = %" PRId64 "u, body = %du", row[i], s->body);
    if (src < 0)
        xti_str_addf(b, ", f = f%d", xti_emit_fill(p, s->piece));
    else
        xti_str_addf(b, ", s = s%d", src);
    xti_str_add(b, ";\n");
}

/* What is still to be written of a tree: a text, or the search among steps lo..hi. */
struct pending {
    const char *text;
    int lo, hi;
};

/* Few functions for many pieces: a tree of ifs finds the piece's row. Its depth is log2(XTI_MAX_PIECES). */
static void put_tree(const struct xti_cuda_plan *p, const int64_t *row, struct xti_str *b)
{
    struct pending stack[4 * 16];
    int n = 0;
    stack[n++] = (struct pending){NULL, 0, p->n_steps};
    while (n) {
        struct pending at = stack[--n];
        if (at.text) {
            xti_str_add(b, at.text);
        } else if (at.hi - at.lo == 1) {
            put_leaf(p, at.lo, row, b);
        } else {
            int mid = at.lo + (at.hi - at.lo) / 2;
            xti_str_add(b, "if (block < ");
            xti_emit_number(p, p->step[mid].first_block, b);
            xti_str_add(b, ") {\n");
            stack[n++] = (struct pending){"}\n", 0, 0};
            stack[n++] = (struct pending){NULL, mid, at.hi};
            stack[n++] = (struct pending){"} else {\n", 0, 0};
            stack[n++] = (struct pending){NULL, at.lo, mid};
        }
    }
}

static void put_table_calls(const struct xti_cuda_plan *p, const char *prefix, struct xti_str *b)
{
    for (int i = 0; i < p->n_bodies; i++) {
        if (i + 1 < p->n_bodies)
            xti_str_addf(b, "%sif (body == %du)\n        ", i ? "    else " : "    ", i);
        else if (i)
            xti_str_add(b, "    else\n        ");
        else
            xti_str_add(b, "    ");
        xti_str_addf(b, "%s%d(dst, s, f, block - first, %stable + row, tile);\n", prefix, i, prefix);
    }
}

static int64_t shared_bytes(const struct xti_cuda_plan *p)
{
    int64_t most = 0;
    for (int i = 0; i < p->n_steps; i++)
        if (p->step[i].shared_bytes > most)
            most = p->step[i].shared_bytes;
    return most;
}

/* The loop exists only past the limit of grid.x: elsewhere it would cost a third (measured by others on
 * GH200). */
static void put_entry(const struct xti_cuda_plan *p, const char *name, const char *prefix, const int64_t *row,
                      struct xti_str *b)
{
    bool loop = p->grid < p->blocks;
    int64_t shared = shared_bytes(p);
    xti_str_addf(b, "\nextern \"C\" __global__ void __launch_bounds__(XT_THREADS)\n    %s(", name);
    put_params(p, b);
    xti_str_add(b, ")\n{\n");
    if (shared)
        xti_str_addf(b, "    __shared__ xt_b16 tile[%" PRId64 "];\n", (shared + 15) / 16);
    else
        xti_str_add(b, "    xt_b16 *const tile = 0;\n");
    if (loop) {
        xti_str_add(b, "    for (xt_index block = blockIdx.x; block < ");
        xti_emit_number(p, p->blocks, b);
        xti_str_add(b, "; block += gridDim.x) {\n");
    } else {
        xti_str_add(b, "    const xt_index block = blockIdx.x;\n");
    }
    if (p->table) {
        xti_str_add(b, "    xt_index first = 0;\n    unsigned int row = 0, body = 0;\n"
                       "    const unsigned char *s = 0;\n    xt_b16 f = xt_zero();\n");
        put_tree(p, row, b);
        put_table_calls(p, prefix, b);
    } else {
        put_chain(p, prefix, b);
    }
    xti_str_add(b, loop ? "    __syncthreads();\n    }\n}\n" : "}\n");
}

/* The ranks of the generic body that several pieces share. */
static struct xti_emit_pad widest(const struct xti_cuda_plan *p)
{
    struct xti_emit_pad w = {0, 0, 0};
    for (int i = 0; i < p->map.n_pieces; i++) {
        const struct xti_piece *q = &p->map.piece[i];
        w.n_dims = q->n_dims > w.n_dims ? q->n_dims : w.n_dims;
        w.n_divs = q->n_divs > w.n_divs ? q->n_divs : w.n_divs;
        w.n_guards = q->n_guards > w.n_guards ? q->n_guards : w.n_guards;
    }
    return w;
}

/* Writes each body once, from its first step, and every step's row of numbers; row[i] is where step i's
 * begins. */
static void put_table_bodies(const struct xti_cuda_plan *p, const char *prefix, int64_t *row,
                             struct xti_str *b)
{
    struct xti_emit_table table = {{0}, 0};
    struct xti_emit_pad pad = widest(p);
    struct xti_str bodies = {0};
    int written = 0;
    for (int i = 0; i < p->n_steps; i++) {
        struct xti_str again = {0};
        bool first = p->step[i].body == written;
        row[i] = table.n;
        xti_emit_body(p, &p->step[i], prefix, &pad, &table, first ? &bodies : &again);
        written += first;
        bodies.failed |= again.failed;
        xti_str_free(&again);
    }
    xti_str_addf(b, "static __device__ const xt_index %stable[%" PRId64 "] = {\n    ", prefix, table.n);
    if (!table.text.failed && !bodies.failed) {
        xti_str_addn(b, table.text.s, table.text.n);
        xti_str_add(b, "\n};\n");
        xti_str_addn(b, bodies.s, bodies.n);
    }
    b->failed |= table.text.failed || bodies.failed;
    xti_str_free(&bodies);
    xti_str_free(&table.text);
}

static xt_status put_plan(const struct xti_cuda_plan *p, const char *name, const char *prefix,
                          struct xti_str *b, struct xti_err *err)
{
    int64_t *row = p->table ? xti_alloc_array((size_t)p->n_steps, sizeof *row) : NULL;
    if (p->table && !row)
        return xti_fail(err, XT_ENOMEM, "table of %d pieces", p->n_steps);
    xti_str_addf(b, "\n/* %s: %d-byte units, pointers aligned to %d bytes, %" PRId64 " blocks */\n", name,
                 p->map.esize, p->base_align, p->blocks);
    xti_str_addf(b, "#define xt_index unsigned %s\n#define xt_signed %s\n", p->index32 ? "int" : "long long",
                 p->index32 ? "int" : "long long");
    if (p->table)
        put_table_bodies(p, prefix, row, b);
    for (int i = 0; i < p->n_steps && !p->table; i++)
        xti_emit_body(p, &p->step[i], prefix, NULL, NULL, b);
    put_entry(p, name, prefix, row, b);
    xti_str_add(b, "#undef xt_index\n#undef xt_signed\n");
    xti_free(row);
    return XT_OK;
}

/* XT_OVERRIDE: the file <name>.cu there takes the place of the source. */
static void override(const char *name, struct xti_str *source)
{
    char path[4096], part[4096];
    const char *dir = xti_env(XTI_ENV_OVERRIDE);
    int n = dir && *dir ? snprintf(path, sizeof path, "%s/%s.cu", dir, name) : -1;
    FILE *f = n > 0 && (size_t)n < sizeof path ? fopen(path, "rb") : NULL;
    if (!f)
        return;
    xti_str_free(source);
    *source = (struct xti_str){0};
    for (size_t got; (got = fread(part, 1, sizeof part, f)) > 0;)
        xti_str_addn(source, part, got);
    fclose(f);
    xti_logf(XTI_LOG_SRC, "%s: replaced by %s", name, path);
}

xt_status xti_cuda_emit(const struct xti_cuda_plan *p, const char *name, struct xti_str *source,
                        struct xti_err *err)
{
    char elem[128];
    xt_status s;
    int n_fills = xti_emit_fill(p, p->map.n_pieces);
    if (8 * (1 + p->map.n_srcs) + 16 * (n_fills + 1) > MAX_PARAM_BYTES)
        return xti_fail(err, XT_EUNSUPPORTED,
                        "a CUDA kernel takes %d bytes of parameters: %d inputs and %d fills are more",
                        MAX_PARAM_BYTES, p->map.n_srcs, n_fills);
    snprintf(elem, sizeof elem, "%s_e", name);
    xti_str_addf(source, "/* %s: made by xt for sm_%d. dst, sources and fill values are the parameters. */\n",
                 name, p->target.sm);
    xti_str_add(source, xti_skeleton_text("prelude"));
    s = put_plan(p, name, "xt_a", source, err);
    if (!s)
        s = put_plan(p->elem, elem, "xt_e", source, err);
    if (!s)
        override(name, source);
    if (!s && (source->failed || !source->s))
        s = xti_fail(err, XT_ENOMEM, "source of %s", name);
    if (!s)
        xti_cuda_log_text(XTI_LOG_SRC, name, source->s);
    return s;
}
