/* entry.c: writes one entry of a kernel: the bodies of its pieces, the numbers that they read, and the
 * function that sends every block to its piece. The text is that of a few bodies (bodies.c), a line
 * or two a parameter, and numbers, so that thousands of pieces compile in a second. Layer 4. */
#include <inttypes.h>
#include <string.h>

#include "base/mem.h"
#include "cuda/segments.h"
#include "cuda/writer.h"

/* What a block reads of its step, when many steps share few functions: a column of numbers each. */
enum column { FIRST_BLOCK, ROW, BODY, FILL, SOURCE, COLUMNS = SOURCE + XTI_MAX_SEGMENTS };

struct entry {
    struct xti_writing *e;
    const struct xti_cuda_plan *p;
    struct xti_str *b; /* the text */
    size_t *row;       /* [n_steps] where each step's row of numbers begins */
    size_t bounds;     /* where the numbers of blocks begin */
    struct {
        bool same; /* in all steps: no number */
        size_t at; /* where it begins, or what it is */
    } column[COLUMNS];
};

static size_t count(const struct xti_writing *e) { return e->numbers.n / 8; }

/* Numbers are read by 16 bytes: rows of them begin and end so. */
static void fill_up(struct xti_writing *e)
{
    while (e->tier == XTI_TIER_STRUCTURE && !e->numbers.failed && count(e) % (e->p->index32 ? 4 : 2))
        xti_str_u64le(&e->numbers, 0);
}

/* Each body once, from its first step; every step's row of numbers where bodies are shared. */
static void write_bodies(struct entry *y)
{
    struct xti_writing *e = y->e;
    struct xti_str *text = e->text, *structure = e->structure;
    int written = 0;
    for (int i = 0; i < y->p->n_steps; i++) {
        bool first = y->p->step[i].body == written;
        if (!first)
            xti_facts_end(e);
        e->text = first ? text : NULL;
        e->structure = first ? structure : NULL;
        if (y->row)
            y->row[i] = count(e);
        xti_write_body(e, &y->p->step[i]);
        fill_up(e);
        written += first;
    }
    e->text = text;
    e->structure = structure;
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

static size_t cell(const struct entry *y, enum column c, int i)
{
    const struct xti_cuda_step *s = &y->p->step[i];
    int fill = fill_of(y->p, s), k = (int)c - SOURCE;
    switch (c) {
    case FIRST_BLOCK:
        return (size_t)s->first_block;
    case ROW:
        return y->row[i];
    case BODY:
        return (size_t)s->body;
    case FILL:
        return fill < 0 ? 0 : (size_t)fill;
    default:
        return k < count_sources(y->p, s) ? (size_t)source_of(y->p, s, k) : 0;
    }
}

static void number_column(struct entry *y, enum column c)
{
    int n = y->p->n_steps;
    size_t first = cell(y, c, 0);
    y->column[c].same = true;
    for (int i = 1; i < n && y->column[c].same; i++)
        y->column[c].same = cell(y, c, i) == first;
    y->column[c].at = y->column[c].same ? first : count(y->e);
    xti_write_fact(y->e, y->column[c].same ? 1 + first : 0);
    for (int i = 0; i < n && !y->column[c].same; i++)
        xti_str_u64le(&y->e->numbers, cell(y, c, i));
}

/* Of the structure tier: where every piece but the first begins, then, when blocks loop, where the last one
 * ends. */
static void number_blocks(struct entry *y)
{
    for (int c = 0; c < COLUMNS && y->p->table; c++)
        number_column(y, (enum column)c);
    y->bounds = count(y->e);
    if (y->e->tier == XTI_TIER_EXACT)
        return;
    for (int i = 1; i < y->p->n_steps && !y->p->table; i++)
        xti_str_u64le(&y->e->numbers, (uint64_t)y->p->step[i].first_block);
    if (y->p->grid < y->p->blocks)
        xti_str_u64le(&y->e->numbers, (uint64_t)y->p->blocks);
    fill_up(y->e);
}

/* The first block of step i; of n_steps, the number of blocks. */
static void put_first_block(struct entry *y, int i)
{
    int64_t v = i < y->p->n_steps ? y->p->step[i].first_block : y->p->blocks;
    if (i == 0 || y->e->tier == XTI_TIER_EXACT)
        xti_emit_number(y->p, v, y->b);
    else
        xti_str_addf(y->b, "n.v[%zu]", y->bounds + (y->p->table ? 0 : (size_t)i - 1));
}

static bool in_table(const struct entry *y) { return y->e->tier == XTI_TIER_EXACT && y->p->table; }

/* The entry that has the table: the other one's serves where both would be the same. */
static const struct xti_writing *table_of(const struct entry *y)
{
    const struct xti_writing *o = y->e->twin;
    bool same = o && o->p->table && o->p->index32 == y->p->index32 && o->numbers.n == y->e->numbers.n &&
                !memcmp(o->numbers.s, y->e->numbers.s, o->numbers.n);
    return same ? o : y->e;
}

/* What a body's `t` points to, but for its row. */
static void put_numbers(struct entry *y)
{
    if (in_table(y))
        xti_str_addf(y->b, "%stable", table_of(y)->prefix);
    else
        xti_str_add(y->b, "n.v");
}

static void put_table(struct entry *y)
{
    const struct xti_str *numbers = &y->e->numbers;
    size_t n = count(y->e);
    xti_str_addf(y->b, "static __device__ const xt_index %stable[%zu] = {\n    ", y->e->prefix, n);
    for (size_t i = 0; i < n && !numbers->failed; i++) {
        uint64_t v = 0;
        for (int k = 0; k < 8; k++)
            v |= (uint64_t)(unsigned char)numbers->s[8 * i + (size_t)k] << 8 * k;
        xti_emit_number(y->p, (int64_t)v, y->b);
        xti_str_add(y->b, i % 12 == 11 ? ",\n    " : ", ");
    }
    xti_str_add(y->b, "\n};\n");
}

/* The exact tier's table, and the types of parameters that are arrays. */
static void put_types(struct entry *y)
{
    const char *prefix = y->e->prefix;
    if (y->p->table && y->p->map.n_srcs)
        xti_str_addf(y->b, "typedef struct %s_sources { const unsigned char *p[%d]; } %s_sources;\n", prefix,
                     y->p->map.n_srcs, prefix);
    if (y->p->table && y->p->n_fills)
        xti_str_addf(y->b, "typedef struct %s_fills { xt_b16 v[%d]; } %s_fills;\n", prefix, y->p->n_fills,
                     prefix);
    if (in_table(y) && table_of(y) == y->e)
        put_table(y);
    if (y->e->tier == XTI_TIER_STRUCTURE)
        xti_str_addf(y->b, "typedef struct __align__(16) %s_numbers { xt_index v[%zu]; } %s_numbers;\n",
                     prefix, count(y->e), prefix);
}

static void put_params(struct entry *y)
{
    xti_str_add(y->b, "unsigned char *__restrict__ dst");
    if (y->p->table && y->p->map.n_srcs)
        xti_str_addf(y->b, ", const __grid_constant__ %s_sources s", y->e->prefix);
    for (int i = 0; i < y->p->map.n_srcs && !y->p->table; i++)
        xti_str_addf(y->b, ", const unsigned char *__restrict__ s%d", i);
    if (y->e->tier == XTI_TIER_STRUCTURE)
        xti_str_addf(y->b, ", const __grid_constant__ %s_numbers n", y->e->prefix);
    if (y->p->table && y->p->n_fills)
        xti_str_addf(y->b, ", const __grid_constant__ %s_fills f", y->e->prefix);
    for (int i = 0; i < y->p->n_fills && !y->p->table; i++)
        xti_str_addf(y->b, ", const xt_b16 f%d", i);
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

/* Where step i's row of numbers ends. */
static size_t row_end(const struct entry *y, int i)
{
    return i + 1 < y->p->n_steps ? y->row[i + 1] : y->bounds;
}

/* A function for each piece: a chain of ifs. */
static void put_chain(struct entry *y)
{
    const struct xti_cuda_plan *p = y->p;
    bool exact = y->e->tier == XTI_TIER_EXACT;
    for (int i = 0; i < p->n_steps; i++) {
        xti_str_add(y->b, i ? "    else " : "    ");
        if (i + 1 < p->n_steps) {
            xti_str_add(y->b, "if (block < ");
            put_first_block(y, i + 1);
            xti_str_add(y->b, ") ");
        }
        xti_str_add(y->b, "{\n");
        if (!exact)
            xti_str_addf(y->b, "        XT_READ(v, n.v + %zu, %zu)\n", y->row[i], row_end(y, i) - y->row[i]);
        xti_str_addf(y->b, "        %s%d(dst, ", y->e->prefix, p->step[i].body);
        put_operands(y, &p->step[i]);
        xti_str_add(y->b, ", block - ");
        put_first_block(y, i);
        xti_str_addf(y->b, ", %s, tile);\n    }\n", exact ? "0" : "v");
    }
}

/* "xt_atable[20 + step]", or the number that all steps have. */
static void put_cell(struct entry *y, enum column c)
{
    if (y->column[c].same) {
        xti_str_addf(y->b, "%zuu", y->column[c].at);
        return;
    }
    put_numbers(y);
    xti_str_addf(y->b, "[%zuu + step]", y->column[c].at);
}

/* Few functions for many pieces: a binary search finds the step, the columns say the rest. */
static void put_search(struct entry *y)
{
    xti_str_addf(y->b,
                 "    xt_index step = 0;\n    XT_UNROLL\n"
                 "    for (xt_index many = %du; many > 1; many -= many / 2)\n"
                 "        step += block < ",
                 y->p->n_steps);
    put_numbers(y);
    xti_str_addf(y->b, "[%zuu + step + many / 2] ? 0 : many / 2;\n", y->column[FIRST_BLOCK].at);
    static const char *const name[] = {"first", "row", "body"};
    for (int c = FIRST_BLOCK; c <= BODY; c++) {
        xti_str_addf(y->b, "    const xt_index %s = ", name[c]);
        put_cell(y, (enum column)c);
        xti_str_add(y->b, ";\n");
    }
}

/* "s.p[xt_atable[30u + step]], f.v[0u]" of a body with n sources, as put_operands for one step */
static void put_chosen_operands(struct entry *y, int n)
{
    if (n > 1)
        xti_str_add(y->b, "xt_sources(");
    for (int k = 0; k < (n > 1 ? XTI_MAX_SEGMENTS : 1); k++) {
        xti_str_add(y->b, k ? ", " : "");
        xti_str_add(y->b, k < n ? "s.p[" : "0");
        if (k < n) {
            put_cell(y, (enum column)(SOURCE + k));
            xti_str_add(y->b, "]");
        }
    }
    xti_str_add(y->b, n > 1 ? "), " : ", ");
    xti_str_add(y->b, y->p->n_fills ? "f.v[" : "xt_zero()");
    if (y->p->n_fills) {
        put_cell(y, FILL);
        xti_str_add(y->b, "]");
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
        xti_str_addf(y->b, "%s%d(dst, ", y->e->prefix, i);
        put_chosen_operands(y, count_sources(y->p, &y->p->step[k]));
        xti_str_add(y->b, ", block - first, ");
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
    xti_str_addf(y->b, "\nextern \"C\" __global__ void __launch_bounds__(XT_THREADS, %d)\n    %s(",
                 XTI_CUDA_RESIDENT, name);
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
        put_search(y);
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
                 " */\n#define xt_index unsigned %s\n#define xt_signed %s\n#define xt_numbers xt_n%d\n"
                 "#define XT_ASM_TYPE \"u%d\"\n#define XT_ASM_INDEX \"%c\"\n",
                 p->index32 ? "int" : "long long", p->index32 ? "int" : "long long", p->index32 ? 32 : 64,
                 p->index32 ? 32 : 64, p->index32 ? 'r' : 'l');
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
                             (uint64_t)p->n_fills,
                             (uint64_t)p->n_steps};
    for (size_t i = 0; i < sizeof fact / sizeof *fact; i++)
        xti_write_fact(y->e, fact[i]);
    for (int i = 0, bodies = 0; i < p->n_steps; i++) {
        const struct xti_cuda_step *step = &p->step[i];
        if (p->table && step->body < bodies) /* the columns say the rest */
            continue;
        bodies = step->body + 1;
        int n = count_sources(p, step);
        xti_write_fact(y->e, (uint64_t)n);
        for (int k = 0; k < n && !p->table; k++)
            xti_write_fact(y->e, (uint64_t)source_of(p, step, k));
        if (!p->table)
            xti_write_fact(y->e, (uint64_t)(fill_of(p, step) + 1));
    }
}

void xti_write_entry(struct xti_writing *e, const char *name)
{
    struct entry y = {.e = e, .p = e->p, .b = e->text};
    if ((y.b || y.p->table) && !(y.row = xti_alloc_array((size_t)y.p->n_steps, sizeof *y.row))) {
        e->numbers.failed = true;
        if (y.b)
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
        put_types(&y);
        put_entry(&y, name);
        xti_str_add(y.b, "#undef xt_index\n#undef xt_signed\n#undef xt_numbers\n#undef XT_ASM_TYPE\n"
                         "#undef XT_ASM_INDEX\n");
        y.b->failed |= e->numbers.failed;
    }
    xti_facts_end(e);
    xti_free(y.row);
}
