/* entry.c: writes one entry of a kernel: the bodies of its pieces, the numbers that they read, and the
 * function that sends every block to its piece. The text's size is bounded by XTI_CUDA_MAX_BODIES bodies and
 * a line or two a piece. Layer 4. */
#include <inttypes.h>

#include "base/mem.h"
#include "cuda/segments.h"
#include "cuda/writer.h"

struct entry {
    struct xti_writing *e;
    const struct xti_cuda_plan *p;
    struct xti_str *b; /* the text */
    size_t *row;       /* [n_steps] where each step's row of numbers begins */
    size_t bounds;     /* where the numbers of blocks begin */
};

static size_t count(const struct xti_writing *e) { return e->numbers.n / 8; }

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

/* Each body once, from its first step; every step's row of numbers where bodies are shared. */
static void write_bodies(struct entry *y)
{
    struct xti_writing *e = y->e;
    struct xti_str *text = e->text, *structure = e->structure;
    struct xti_rank padded = widest(y->p);
    int written = 0;
    for (int i = 0; i < y->p->n_steps; i++) {
        bool first = y->p->step[i].body == written;
        e->text = first ? text : NULL;
        e->structure = first ? structure : NULL;
        if (y->row)
            y->row[i] = count(e);
        xti_write_body(e, &y->p->step[i], &padded);
        written += first;
    }
    e->text = text;
    e->structure = structure;
}

/* Of the structure tier: where every piece but the first begins, then, when blocks loop, where the last one
 * ends. */
static void number_blocks(struct entry *y)
{
    y->bounds = count(y->e);
    if (y->e->tier == XTI_TIER_EXACT)
        return;
    for (int i = 1; i < y->p->n_steps; i++)
        xti_str_u64le(&y->e->numbers, (uint64_t)y->p->step[i].first_block);
    if (y->p->grid < y->p->blocks)
        xti_str_u64le(&y->e->numbers, (uint64_t)y->p->blocks);
}

/* The first block of step i; of n_steps, the number of blocks. */
static void put_first_block(struct entry *y, int i)
{
    int64_t v = i < y->p->n_steps ? y->p->step[i].first_block : y->p->blocks;
    if (i == 0 || y->e->tier == XTI_TIER_EXACT)
        xti_emit_number(y->p, v, y->b);
    else
        xti_str_addf(y->b, "n.v[%zu]", y->bounds + (size_t)i - 1);
}

static bool in_table(const struct entry *y) { return y->e->tier == XTI_TIER_EXACT && y->p->table; }

/* What a body's `t` points to, but for its row. */
static void put_numbers(struct entry *y)
{
    if (in_table(y))
        xti_str_addf(y->b, "%stable", y->e->prefix);
    else
        xti_str_add(y->b, "n.v");
}

/* The exact tier's table, or the type of the structure tier's parameter. */
static void put_numbers_type(struct entry *y)
{
    const struct xti_str *numbers = &y->e->numbers;
    size_t n = count(y->e);
    if (in_table(y))
        xti_str_addf(y->b, "static __device__ const xt_index %stable[%zu] = {\n    ", y->e->prefix, n);
    for (size_t i = 0; i < n && in_table(y) && !numbers->failed; i++) {
        uint64_t v = 0;
        for (int k = 0; k < 8; k++)
            v |= (uint64_t)(unsigned char)numbers->s[8 * i + (size_t)k] << 8 * k;
        xti_emit_number(y->p, (int64_t)v, y->b);
        xti_str_add(y->b, i % 12 == 11 ? ",\n    " : ", ");
    }
    if (in_table(y))
        xti_str_add(y->b, "\n};\n");
    if (y->e->tier == XTI_TIER_STRUCTURE)
        xti_str_addf(y->b, "typedef struct %s_numbers { xt_index v[%zu]; } %s_numbers;\n", y->e->prefix, n,
                     y->e->prefix);
}

static void put_params(struct entry *y)
{
    xti_str_add(y->b, "unsigned char *__restrict__ dst");
    for (int i = 0; i < y->p->map.n_srcs; i++)
        xti_str_addf(y->b, ", const unsigned char *__restrict__ s%d", i);
    if (y->e->tier == XTI_TIER_STRUCTURE)
        xti_str_addf(y->b, ", const __grid_constant__ %s_numbers n", y->e->prefix);
    for (int i = 0, n = xti_emit_fill(y->p, y->p->map.n_pieces); i < n; i++)
        xti_str_addf(y->b, ", const xt_b16 f%d", i);
}

/* Number of the fill parameter that a step takes, or -1. */
static int fill_of(const struct xti_cuda_plan *p, const struct xti_cuda_step *s)
{
    int piece = s->rows ? s->rows->ground : p->map.piece[s->piece].src < 0 ? s->piece : -1;
    return piece < 0 ? -1 : xti_emit_fill(p, piece);
}

/* Sources that a step's body takes, and the k-th. */
static int count_sources(const struct xti_cuda_plan *p, const struct xti_cuda_step *s)
{
    return s->rows ? s->rows->n_segments : p->map.piece[s->piece].src >= 0;
}

static int source_of(const struct xti_cuda_plan *p, const struct xti_cuda_step *s, int k)
{
    return p->map.piece[s->rows ? s->rows->segment[k].piece : s->piece].src;
}

/* "s0, xt_zero()", "0, f1", "xt_sources(s0, s2, 0, 0), f1" */
static void put_operands(struct entry *y, const struct xti_cuda_step *s)
{
    int n = count_sources(y->p, s), fill = fill_of(y->p, s);
    if (n > 1)
        xti_str_add(y->b, "xt_sources(");
    for (int k = 0; k < (n > 1 ? XTI_MAX_SEGMENTS : 1); k++)
        if (k < n)
            xti_str_addf(y->b, "%ss%d", k ? ", " : "", source_of(y->p, s, k));
        else
            xti_str_add(y->b, k ? ", 0" : "0");
    xti_str_add(y->b, n > 1 ? "), " : ", ");
    if (fill < 0)
        xti_str_add(y->b, "xt_zero()");
    else
        xti_str_addf(y->b, "f%d", fill);
}

/* A function for each piece: a chain of ifs. */
static void put_chain(struct entry *y)
{
    const struct xti_cuda_plan *p = y->p;
    for (int i = 0; i < p->n_steps; i++) {
        if (i + 1 < p->n_steps) {
            xti_str_add(y->b, "if (block < ");
            put_first_block(y, i + 1);
            xti_str_add(y->b, ")\n        ");
        }
        xti_str_addf(y->b, "    %s%d(dst, ", y->e->prefix, p->step[i].body);
        put_operands(y, &p->step[i]);
        xti_str_add(y->b, ", block - ");
        put_first_block(y, i);
        if (y->e->tier == XTI_TIER_EXACT)
            xti_str_add(y->b, ", 0, tile);\n");
        else
            xti_str_addf(y->b, ", n.v + %zu, tile);\n", y->row[i]);
        if (i + 1 < p->n_steps)
            xti_str_add(y->b, "    else ");
    }
}

static void put_leaf(struct entry *y, int i)
{
    const struct xti_cuda_step *s = &y->p->step[i];
    int fill = fill_of(y->p, s);
    xti_str_add(y->b, "first = ");
    put_first_block(y, i);
    xti_str_addf(y->b, ", row = %zuu, body = %du", y->row[i], s->body);
    if (fill >= 0)
        xti_str_addf(y->b, ", f = f%d", fill);
    for (int k = 0; k < count_sources(y->p, s); k++)
        xti_str_addf(y->b, ", s.p[%d] = s%d", k, source_of(y->p, s, k));
    xti_str_add(y->b, ";\n");
}

/* What is still to be written of a tree: a text, or the search among steps lo..hi. */
struct pending {
    const char *text;
    int lo, hi;
};

/* Few functions for many pieces: a tree of ifs finds the piece's row. Its depth is log2(XTI_MAX_PIECES). */
static void put_tree(struct entry *y)
{
    struct pending stack[4 * 16];
    int n = 0;
    stack[n++] = (struct pending){NULL, 0, y->p->n_steps};
    while (n) {
        struct pending at = stack[--n];
        if (at.text) {
            xti_str_add(y->b, at.text);
        } else if (at.hi - at.lo == 1) {
            put_leaf(y, at.lo);
        } else {
            int mid = at.lo + (at.hi - at.lo) / 2;
            xti_str_add(y->b, "if (block < ");
            put_first_block(y, mid);
            xti_str_add(y->b, ") {\n");
            stack[n++] = (struct pending){"}\n", 0, 0};
            stack[n++] = (struct pending){NULL, mid, at.hi};
            stack[n++] = (struct pending){"} else {\n", 0, 0};
            stack[n++] = (struct pending){NULL, at.lo, mid};
        }
    }
}

static void put_table_calls(struct entry *y)
{
    for (int i = 0; i < y->p->n_bodies; i++) {
        if (i + 1 < y->p->n_bodies)
            xti_str_addf(y->b, "%sif (body == %du)\n        ", i ? "    else " : "    ", i);
        else if (i)
            xti_str_add(y->b, "    else\n        ");
        else
            xti_str_add(y->b, "    ");
        int k = 0;
        while (y->p->step[k].body != i)
            k++;
        xti_str_addf(y->b, "%s%d(dst, %s, f, block - first, ", y->e->prefix, i,
                     count_sources(y->p, &y->p->step[k]) > 1 ? "s" : "s.p[0]");
        put_numbers(y);
        xti_str_add(y->b, " + row, tile);\n");
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
static void put_entry(struct entry *y, const char *name)
{
    bool loop = y->p->grid < y->p->blocks;
    int64_t shared = shared_bytes(y->p);
    xti_str_addf(y->b, "\nextern \"C\" __global__ void __launch_bounds__(XT_THREADS, 8)\n    %s(", name);
    put_params(y);
    xti_str_add(y->b, ")\n{\n");
    if (shared)
        xti_str_addf(y->b, "    __shared__ xt_b16 tile[%" PRId64 "];\n", (shared + 15) / 16);
    else
        xti_str_add(y->b, "    xt_b16 *const tile = 0;\n");
    if (loop) {
        xti_str_add(y->b, "    for (xt_index block = blockIdx.x; block < ");
        put_first_block(y, y->p->n_steps);
        xti_str_add(y->b, "; block += gridDim.x) {\n");
    } else {
        xti_str_add(y->b, "    const xt_index block = blockIdx.x;\n");
    }
    if (y->p->table) {
        xti_str_add(y->b, "    xt_index first = 0;\n    unsigned int row = 0, body = 0;\n"
                          "    xt_many s = xt_sources(0, 0, 0, 0);\n    xt_b16 f = xt_zero();\n");
        put_tree(y);
        put_table_calls(y);
    } else {
        put_chain(y);
    }
    xti_str_add(y->b, loop ? "    __syncthreads();\n    }\n}\n" : "}\n");
}

static void put_head(struct entry *y, const char *name)
{
    const struct xti_cuda_plan *p = y->p;
    xti_str_addf(y->b, "\n/* %s: %d-byte units, pointers aligned to %d bytes", name, p->map.esize,
                 p->base_align);
    if (y->e->tier == XTI_TIER_EXACT)
        xti_str_addf(y->b, ", %" PRId64 " blocks", p->blocks);
    xti_str_addf(y->b,
                 " */\n#define xt_index unsigned %s\n#define xt_signed %s\n"
                 "#define XT_ASM_TYPE \"u%d\"\n#define XT_ASM_INDEX \"%c\"\n",
                 p->index32 ? "int" : "long long", p->index32 ? "int" : "long long", p->index32 ? 32 : 64,
                 p->index32 ? 'r' : 'l');
}

/* What decides the text beside the bodies. */
static void write_facts(struct entry *y)
{
    const struct xti_cuda_plan *p = y->p;
    const uint64_t fact[] = {(uint64_t)p->map.esize,
                             (uint64_t)p->base_align,
                             p->index32,
                             p->grid < p->blocks,
                             p->table,
                             (uint64_t)p->map.n_srcs,
                             (uint64_t)shared_bytes(p),
                             (uint64_t)xti_emit_fill(p, p->map.n_pieces),
                             (uint64_t)p->n_steps};
    for (size_t i = 0; i < sizeof fact / sizeof *fact; i++)
        xti_write_fact(y->e, fact[i]);
    for (int i = 0; i < p->n_steps; i++) {
        int n = count_sources(p, &p->step[i]);
        xti_write_fact(y->e, (uint64_t)n);
        for (int k = 0; k < n; k++)
            xti_write_fact(y->e, (uint64_t)source_of(p, &p->step[i], k));
        xti_write_fact(y->e, (uint64_t)(fill_of(p, &p->step[i]) + 1));
        if (p->table)
            xti_write_fact(y->e, (uint64_t)p->step[i].body);
    }
}

void xti_write_entry(struct xti_writing *e, const char *name)
{
    struct entry y = {.e = e, .p = e->p, .b = e->text};
    if (y.b && !(y.row = xti_alloc_array((size_t)y.p->n_steps, sizeof *y.row))) {
        y.b->failed = true;
        return;
    }
    if (e->structure)
        write_facts(&y);
    if (y.b)
        put_head(&y, name);
    write_bodies(&y);
    number_blocks(&y);
    if (y.b) {
        put_numbers_type(&y);
        put_entry(&y, name);
        xti_str_add(y.b, "#undef xt_index\n#undef xt_signed\n#undef XT_ASM_TYPE\n#undef XT_ASM_INDEX\n");
        y.b->failed |= e->numbers.failed;
    }
    xti_free(y.row);
}
