/* test_map.c: the fuser. */
#include "map/map.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/os.h"
#include "tests/support/golden.h"
#include "tests/support/map_of.h"

enum { CANARY = 64 }; /* elements around a table */

/* ---- what a map does, as a table: element id by output index */

struct table {
    int64_t n, lo; /* addresses lo .. lo + n - 1 */
    int64_t *id;   /* [address - lo] (source << 40) | element; a fill's value, made negative; NOTHING */
    unsigned char *writes;
    const struct xti_map *m;
    bool outside;
};
static const int64_t NOTHING = INT64_MIN;

static bool note_point(void *arg, const struct xti_piece *p, int64_t d, int64_t s)
{
    struct table *t = arg;
    int64_t value = 0;
    if (d < t->lo || d >= t->lo + t->n ||
        (p->src >= 0 && (s < t->m->src_lo[p->src] || s > t->m->src_hi[p->src]))) {
        t->outside = true;
        return true;
    }
    memcpy(&value, p->value, sizeof value);
    t->id[d - t->lo] = p->src < 0 ? value | INT64_MIN : (int64_t)p->src << 40 | s; /* fills are negative */
    t->writes[d - t->lo] += t->writes[d - t->lo] < 255;
    return true;
}

static struct table table_of(const struct xti_map *m)
{
    struct table t = {.m = m, .lo = m->dst_lo, .n = m->dst_hi - m->dst_lo + 1};
    t.id = malloc((size_t)(t.n + 1) * sizeof *t.id);
    t.writes = calloc((size_t)t.n + 1, 1);
    for (int64_t i = 0; i < t.n; i++)
        t.id[i] = NOTHING;
    xti_map_visit(m, note_point, &t);
    return t;
}

static void table_free(struct table *t)
{
    free(t->id);
    free(t->writes);
}

/* Steps an index in row-major order. False after the last. */
static bool next_index(int rank, const int64_t *shape, int64_t *x)
{
    for (int i = rank - 1; i >= 0; i--) {
        if (++x[i] < shape[i])
            return true;
        x[i] = 0;
    }
    return false;
}

/* The ids in row-major order of the output; counts how often the output's addresses are written. */
static int64_t ids_in_order(const struct xt_graph *g, const struct table *t, int64_t *out, bool *once)
{
    const struct xti_node *n = &g->node[g->out];
    int64_t x[XT_MAX_RANK] = {0}, count = 0, total = 0;
    *once = true;
    for (int i = 0; i < n->rank; i++)
        if (n->shape[i] == 0)
            return 0;
    do {
        int64_t at = g->out_offset;
        for (int i = 0; i < n->rank; i++)
            at += x[i] * g->out_strides[i];
        *once = *once && t->writes[at - t->lo] == 1;
        out[count++] = t->id[at - t->lo];
    } while (next_index(n->rank, n->shape, x));
    for (int64_t i = 0; i < t->n; i++)
        total += t->writes[i];
    *once = *once && total == count && !t->outside;
    return count;
}

/* ---- golden chains */

static int total_divs(const struct xti_map *m)
{
    int n = 0;
    for (int i = 0; i < m->n_pieces; i++)
        n += m->piece[i].n_divs;
    return n;
}

static enum xti_class golden_class(const struct golden_case *c)
{
    bool fills = true;
    for (int i = 0; i < c->n_listed; i++)
        fills = fills && c->piece[i].src < 0;
    return c->n_pieces == 0 ? XTI_EMPTY
           : c->memcpy      ? XTI_MEMCPY
           : c->affine      ? XTI_AFFINE
           : fills          ? XTI_FILL
                            : XTI_GENERAL;
}

static void compare_affine(const struct golden_case *c, const struct xti_map *m)
{
    const struct golden_piece *want = &c->piece[0];
    const struct xti_piece *p = &m->piece[0];
    ck_assert_msg(p->src == want->src && p->soff == want->soff && p->doff == want->doff, "%s: offsets",
                  c->text);
    ck_assert_msg(p->n_dims == want->n_dims && p->n_dims == c->rank, "%s: rank %d", c->text, p->n_dims);
    for (int i = 0; i < p->n_dims; i++)
        ck_assert_msg(p->dim[i].n == want->dim[i][0] && p->dim[i].s == want->dim[i][1] &&
                          p->dim[i].d == want->dim[i][2],
                      "%s: dim %d", c->text, i);
}

static void check_golden(const struct golden_case *c)
{
    struct xti_map m;
    bool once;
    fuse(c->g, &m);
    ck_assert_msg(xti_map_class(&m) == golden_class(c), "%s %s: class %s, want %s", c->name, c->text,
                  xti_class_name(xti_map_class(&m)), xti_class_name(golden_class(c)));
    ck_assert_msg(m.n_pieces <= c->n_pieces, "%s %s: %d pieces, want %d", c->name, c->text, m.n_pieces,
                  c->n_pieces);
    ck_assert_msg(total_divs(&m) <= c->n_divs, "%s %s: %d divs", c->name, c->text, total_divs(&m));
    if (c->affine)
        compare_affine(c, &m);
    struct table t = table_of(&m);
    int64_t *ids = malloc((size_t)(m.numel + 1) * sizeof *ids), n = ids_in_order(c->g, &t, ids, &once);
    if (m.numel)
        ck_assert_msg(once, "%s %s: an element is not written exactly once, or outside", c->name, c->text);
    ck_assert_msg(golden_fnv(n, ids) == c->fnv, "%s %s: wrong table", c->name, c->text);
    if (c->n_table >= 0)
        ck_assert_msg(c->n_table == n && !memcmp(ids, c->table, (size_t)n * sizeof *ids), "%s %s: table",
                      c->name, c->text);
    free(ids);
    table_free(&t);
    xti_map_free(&m);
}

START_TEST(every_golden_chain_has_its_class_rank_and_table)
{
    static struct golden_case c;
    FILE *f = golden_open();
    int n = 0;
    ck_assert_msg(f != NULL, "tests/golden/golden.txt");
    for (; golden_next(f, &c); n++) {
        check_golden(&c);
        xt_graph_free(c.g);
    }
    fclose(f);
    ck_assert_int_eq(n, 128);
}
END_TEST

/* ---- random chains */

static int64_t random_count(int64_t fallback)
{
    const char *s = getenv("XT_TEST_RANDOM");
    return s && *s ? strtoll(s, NULL, 10) : fallback;
}

/* Buffers for the graph's inputs in which every element is different, as far as its width allows. */
static int make_inputs(const struct xt_graph *g, unsigned char **buf)
{
    for (int i = 0; i < g->n_inputs; i++) {
        const struct xti_node *n = &g->node[g->input[i]];
        int64_t lo, hi;
        size_t es = xt_dtype_bytes(n->dtype);
        ck_assert(xti_span(n->rank, n->shape, n->strides, n->offset, &lo, &hi));
        size_t bytes = hi < 0 ? es : ((size_t)hi + 1) * es;
        buf[i] = malloc(bytes);
        uint64_t state = 77 + (uint64_t)i;
        for (size_t k = 0; k < bytes; k++)
            buf[i][k] = (unsigned char)random_next(&state);
    }
    return g->n_inputs;
}

/* The unique minimal mixed-radix form of a table in destination order, or -1 when it has none: the longest
 * run of equal differences gives the innermost dim, and so on outwards. src, dst: n addresses; both are
 * destroyed. */
static int minimal_rank(int64_t n, int64_t *src, int64_t *dst)
{
    int rank = 0;
    while (n > 1) {
        int64_t run = 1;
        while (run < n && src[run] - src[run - 1] == src[1] - src[0] &&
               dst[run] - dst[run - 1] == dst[1] - dst[0])
            run++;
        if (n % run)
            return -1;
        for (int64_t i = 1; i < n; i++)
            if (i % run && (src[i] - src[i - 1] != src[1] - src[0] || dst[i] - dst[i - 1] != dst[1] - dst[0]))
                return -1;
        n /= run;
        for (int64_t i = 0; i < n; i++) {
            src[i] = src[i * run];
            dst[i] = dst[i * run];
        }
        rank++;
    }
    return rank;
}

struct tally {
    int64_t chains, affine, could_be_affine, with_divs, with_guards, pieces, most_pieces;
};

/* The rank that the map's table needs, -1: it is not affine over one source. */
static int oracle_rank(const struct table *t)
{
    int64_t n = 0, *src = malloc((size_t)t->n * sizeof *src), *dst = malloc((size_t)t->n * sizeof *dst),
            mark = -1;
    int rank = -1;
    for (int64_t i = 0; i < t->n; i++) {
        if (!t->writes[i])
            continue;
        if (t->id[i] < 0 || (mark >= 0 && t->id[i] >> 40 != mark)) {
            n = -1;
            break;
        }
        mark = t->id[i] >> 40;
        dst[n] = i;
        src[n++] = t->id[i];
    }
    if (n > 0)
        rank = minimal_rank(n, src, dst);
    free(src);
    free(dst);
    return rank;
}

static void count_map(const struct xti_map *m, struct tally *y)
{
    int divs = 0, guards = 0;
    for (int i = 0; i < m->n_pieces; i++) {
        divs += m->piece[i].n_divs;
        guards += m->piece[i].n_guards;
    }
    y->chains++;
    y->with_divs += divs > 0;
    y->with_guards += guards > 0;
    y->pieces += m->n_pieces;
    y->most_pieces = m->n_pieces > y->most_pieces ? m->n_pieces : y->most_pieces;
}

static void check_addresses(const struct xt_graph *g, const struct xti_map *m, const char *text,
                            struct tally *y)
{
    const struct xti_node *n = &g->node[g->out];
    struct table t = table_of(m);
    int64_t *ids = malloc((size_t)(m->numel + 1) * sizeof *ids);
    bool once;
    ids_in_order(g, &t, ids, &once);
    ck_assert_msg(once, "%s: an element is not written exactly once, or an address is outside its bounds",
                  text);
    bool affine = m->n_pieces == 1 && m->piece[0].src >= 0 && xti_piece_affine(m->piece);
    int rank = oracle_rank(&t);
    y->affine += affine;
    y->could_be_affine += rank >= 0;
    if (affine && xti_nested(n->rank, n->shape, g->out_strides))
        ck_assert_msg(m->piece[0].n_dims == rank, "%s: rank %d, %d suffices", text, m->piece[0].n_dims, rank);
    free(ids);
    table_free(&t);
}

/* The fused map and the chain evaluated operation by operation leave the same bytes, canaries included. */
static void check_bytes(const struct xt_graph *g, const struct xti_map *m, const char *text)
{
    unsigned char *src[64] = {0};
    struct xti_err err = {0};
    int n_src = make_inputs(g, src);
    size_t bytes = (size_t)((m->numel ? m->dst_hi : 0) + 1 + CANARY) * (size_t)m->esize;
    unsigned char *want = malloc(bytes), *got = malloc(bytes);
    memset(want, 0xa5, bytes);
    memset(got, 0xa5, bytes);
    ck_assert_msg(xti_graph_eval(g, want, (const void *const *)src, &err) == XT_OK, "%s: %s", text,
                  err.e.message);
    for (int i = 0; i < n_src; i++)
        if (m->src_hi[i] < m->src_lo[i]) {
            free(src[i]);
            src[i] = NULL; /* not read: may be NULL */
        }
    xti_map_eval(m, got, (const void *const *)src);
    ck_assert_msg(!memcmp(want, got, bytes), "%s: other bytes than the chain step by step", text);
    for (int i = 0; i < n_src; i++)
        free(src[i]);
    free(want);
    free(got);
}

/* The same with other options. */
static void check_fused(const struct xt_graph *g, struct xti_fuse_options opt, const char *text)
{
    struct xti_map m;
    struct xti_err err = {0};
    ck_assert_msg(!xti_map_fuse(g, &opt, &m, &err), "%s: %s", text, err.e.message);
    ck_assert_msg(!xti_map_check(&m, &err), "%s: %s", text, err.e.message);
    check_bytes(g, &m, text);
    xti_map_free(&m);
}

static void check_random(uint64_t seed, const struct random_graph_options *opt, struct tally *y)
{
    struct xt_graph *g = random_graph(seed, opt);
    struct xti_map m;
    char text[4200];
    ck_assert(g != NULL);
    snprintf(text, sizeof text, "seed %llu: %s", (unsigned long long)seed, graph_text(g));
    fuse(g, &m);
    count_map(&m, y);
    check_bytes(g, &m, text);
    if (m.numel)
        check_addresses(g, &m, text, y);
    if (total_divs(&m))
        check_fused(g, (struct xti_fuse_options){0}, text);
    if (m.cut_windows)
        check_fused(g, (struct xti_fuse_options){.guard_windows = true}, text);
    xti_map_free(&m);
    xt_graph_free(g);
}

static void random_chains(const char *name, const struct random_graph_options *opt, uint64_t first, int64_t n)
{
    struct tally y = {0};
    for (int64_t i = 0; i < n; i++)
        check_random(first + (uint64_t)i, opt, &y);
    printf("  %s: %lld chains, %lld affine of %lld that could be, %lld with divs, %lld with guards, %.2f "
           "pieces, at "
           "most %lld\n",
           name, (long long)y.chains, (long long)y.affine, (long long)y.could_be_affine,
           (long long)y.with_divs, (long long)y.with_guards,
           (double)y.pieces / (double)(y.chains ? y.chains : 1), (long long)y.most_pieces);
}

#define BIT(op) (1u << XT_OP_##op)

START_TEST(random_chains_of_all_operations_copy_what_the_steps_copy)
{
    random_chains("all operations", &(struct random_graph_options){.max_numel = 600}, 1,
                  random_count(20000) / 2);
}
END_TEST

START_TEST(random_chains_of_dense_views_are_affine_when_they_can_be)
{
    struct random_graph_options o = {
        .max_numel = 400, .dense_inputs = true, .dense_output = true, .no_empty = true};
    o.dtype = XT_I64;
    o.no_ops = BIT(PAD) | BIT(TRIL) | BIT(TRIU) | BIT(CONCAT) | BIT(STACK) | BIT(ROLL);
    random_chains("dense views", &o, 1000001, random_count(20000) / 2);
}
END_TEST

START_TEST(long_random_chains_copy_what_the_steps_copy)
{
    struct random_graph_options o = {.max_numel = 2000, .max_ops = 20};
    random_chains("long chains", &o, 2000001, random_count(20000) / 20);
}
END_TEST

/* Boxes for a boundary and for a floor, few and many; in memory that the calls before have left. */
static const struct xti_fuse_options boxes[] = {
    {.guard_boxes = 1}, {.guard_boxes = 2}, {.guard_boxes = 64, .div_boxes = 16}, {.div_boxes = 300}};
enum { N_BOXES = sizeof boxes / sizeof *boxes };

START_TEST(chains_of_few_boxes_and_of_many_copy_what_the_steps_copy)
{
    struct random_graph_options o = {.max_numel = 5000, .max_ops = 12};
    struct xti_work *spare = NULL;
    struct tally y[N_BOXES] = {0};
    for (int64_t i = 0; i < random_count(20000) / 20; i++) {
        struct xt_graph *g = random_graph(3000001 + (uint64_t)i, &o);
        for (int k = 0; k < N_BOXES; k++) {
            struct xti_fuse_options opt = boxes[k];
            struct xti_map m;
            struct xti_err err = {0};
            opt.spare = &spare;
            ck_assert_msg(!xti_map_fuse(g, &opt, &m, &err), "%s: %s", graph_text(g), err.e.message);
            ck_assert_msg(!xti_map_check(&m, &err), "%s: %s", graph_text(g), err.e.message);
            count_map(&m, &y[k]);
            check_bytes(g, &m, graph_text(g));
            xti_map_free(&m);
        }
        xt_graph_free(g);
    }
    xti_map_spare_free(spare);
    ck_assert_int_gt(y[0].with_guards, y[1].with_guards);
    ck_assert_int_gt(y[1].with_guards, y[2].with_guards);
    ck_assert_int_gt(y[1].with_divs, y[2].with_divs);
    ck_assert_int_gt(y[2].with_divs, y[3].with_divs);
}
END_TEST

/* ---- cover.c */

/* Where a point of a piece's box is read and written, in the order of its dims. */
struct point {
    int64_t s, d;
};

static struct point point_of(const struct xti_piece *x, int64_t i)
{
    struct point at = {x->soff, x->doff};
    for (int k = x->n_dims - 1; k >= 0; i /= x->dim[k--].n) {
        at.s += i % x->dim[k].n * x->dim[k].s;
        at.d += i % x->dim[k].n * x->dim[k].d;
    }
    return at;
}

/* post: without its guard a piece is the same box, of as few dims as there are, the others as before. */
START_TEST(a_piece_without_its_guard_is_its_whole_box)
{
    static const struct {
        const char *line;
        int dims; /* without the guard */
    } c[] = {
        {"x: u8[40,50]; x.tril(0)", 1},
        {"x: u8[3,40,50]; x.permute(0,2,1).tril(0)", 3},
        {"x: u8[50,40]; x.permute(1,0).tril(1)", 2},
        {"x: u8[40,60]; x[:,:50].tril(0)", 2},           /* adjacent in the result alone */
        {"x: u8[40,50]; x.tril(0).pad((0,0),(0,3))", 2}, /* in the source alone */
        {"x: u8[40,50]; x.triu(2).unsqueeze(0).expand(3,40,50)", 2},
        {"x: u8[40,30,50]; x.tril(0)[:,::-1]", 3},
    };
    struct xti_arena arena = {0};
    struct xti_map m;
    struct xti_piece *p;
    int read, fill;
    map_of(c[_i].line, &m);
    ck_assert_msg(xti_map_guarded(&m, &read, &fill), "%s", c[_i].line);
    const struct xti_piece *x = &m.piece[read];
    ck_assert(xti_map_cover(&m, read, &arena, &p));
    ck_assert_int_eq(p->n_guards, 0);
    ck_assert_int_eq(p->n_dims, c[_i].dims);
    ck_assert_int_eq(xti_piece_numel(p), xti_piece_numel(x));
    for (int64_t i = 0; i < xti_piece_numel(x); i++) {
        struct point was = point_of(x, i), is = point_of(p, i);
        ck_assert(was.s == is.s && was.d == is.d);
    }
    for (int i = 0; i < m.n_pieces; i++)
        ck_assert(i == read || !memcmp(&p[i < read ? i + 1 : i], &m.piece[i], sizeof *p));
    xti_arena_free(&arena);
    xti_map_free(&m);
}
END_TEST

static Suite *map_suite(void)
{
    Suite *s = suite_create("map");
    TCase *t = tcase_create("map");
    tcase_set_timeout(t, 0);
    tcase_add_test(t, every_golden_chain_has_its_class_rank_and_table);
    tcase_add_test(t, random_chains_of_all_operations_copy_what_the_steps_copy);
    tcase_add_test(t, random_chains_of_dense_views_are_affine_when_they_can_be);
    tcase_add_test(t, long_random_chains_copy_what_the_steps_copy);
    tcase_add_test(t, chains_of_few_boxes_and_of_many_copy_what_the_steps_copy);
    tcase_add_loop_test(t, a_piece_without_its_guard_is_its_whole_box, 0, 7);
    suite_add_tcase(s, t);
    return s;
}

int main(void) { return run_suite(map_suite()); }
