/* test_shard.c: chains over ranks, all of them in this process, against the chain on whole tensors. */
#include <xt/xt_shard.h>

#include <limits.h>
#include <string.h>
#include <time.h>

#include "map/map.h"
#include "shard/shard.h"
#include "support/mailbox.h"
#include "support/random_graph.h"
#include "support/suite.h"

enum { MAX_RANKS = 64 /* that are drawn */, MOST_RANKS = 1000, MAX_AXES = 3, MAX_INPUTS = 16, LINE = 8192 };

/* ---- layouts by their definition, apart from the library's */

struct cut {
    int ranks, stride, block; /* block 0: balanced */
};

struct spread {
    int base, rank, n_copies;
    struct cut cut[XT_MAX_RANK];
    int copy_n[MAX_AXES], copy_stride[MAX_AXES];
    int64_t shape[XT_MAX_RANK];
    int pad; /* elements more from row to row than there are */
};

/* Which rank digit element i of an axis is on; *at: which element there. */
static int owner(const struct cut *c, int64_t n, int64_t i, int64_t *at)
{
    int p = c->ranks, r = 0;
    *at = 0;
    if (c->block) {
        *at = i / ((int64_t)c->block * p) * c->block + i % c->block;
        return (int)(i / c->block % p);
    }
    for (int64_t first = 0; r < p; r++) {
        int64_t len = n / p + (r < n % p);
        if (i < first + len) {
            *at = i - first;
            return r;
        }
        first += len;
    }
    return -1;
}

/* Of each axis and each of its digits the local extent. */
static void extents(const struct spread *s, int64_t len[XT_MAX_RANK][MOST_RANKS])
{
    int64_t at;
    for (int k = 0; k < s->rank; k++) {
        memset(len[k], 0, sizeof len[k]);
        for (int64_t i = 0; i < s->shape[k]; i++)
            len[k][owner(&s->cut[k], s->shape[k], i, &at)]++;
    }
}

/* Calls each(arg, element of the whole, rank, its address there) for all elements and copies. */
static void for_all(const struct spread *s, void (*each)(void *arg, int64_t i, int rank, int64_t at),
                    void *arg)
{
    static int64_t len[XT_MAX_RANK][MOST_RANKS];
    int64_t total = 1, copies = 1;
    extents(s, len);
    for (int k = 0; k < s->rank; k++)
        total *= s->shape[k];
    for (int k = 0; k < s->n_copies; k++)
        copies *= s->copy_n[k];
    for (int64_t i = 0; i < total; i++) {
        int d[XT_MAX_RANK], rank = s->base;
        int64_t at[XT_MAX_RANK], left = i, address = 0, stride = 1;
        for (int k = s->rank - 1; k >= 0; k--) {
            d[k] = owner(&s->cut[k], s->shape[k], left % s->shape[k], &at[k]);
            left /= s->shape[k];
            rank += d[k] * s->cut[k].stride;
        }
        for (int k = s->rank - 1; k >= 0; k--) {
            address += at[k] * stride;
            stride *= len[k][d[k]];
        }
        for (int64_t c = 0; c < copies; c++) {
            int64_t more = c;
            int r = rank;
            for (int k = 0; k < s->n_copies; k++) {
                r += (int)(more % s->copy_n[k]) * s->copy_stride[k];
                more /= s->copy_n[k];
            }
            each(arg, i, r, address);
        }
    }
}

/* ---- drawing a mesh and cuts, as text and as numbers */

struct grid {
    char name[MAX_AXES];
    int n, base, size[MAX_AXES], stride[MAX_AXES];
};

static void draw_grid(uint64_t *seed, int base, const char *names, int most, struct grid *g, char *text)
{
    *g = (struct grid){.base = base, .n = 1 + (int)random_below(seed, MAX_AXES)};
    int left = most, stride = 1;
    for (int i = 0; i < g->n; i++) {
        g->size[i] = 1 + (int)random_below(seed, left < 9 ? left : random_below(seed, 4) ? 8 : left);
        g->name[i] = names[i];
        left /= g->size[i];
    }
    for (int i = g->n - 1; i >= 0; i--) {
        g->stride[i] = stride;
        stride *= g->size[i];
    }
    for (int i = 0; i < g->n; i++) {
        sprintf(text + strlen(text), " %c[%d]", g->name[i], g->size[i]);
        if (!i && (names[0] == 'u' || random_below(seed, 2)))
            sprintf(text + strlen(text), "@%d", base);
    }
}

static int grid_end(const struct grid *g) { return g->base + g->stride[0] * g->size[0]; }

static void draw_spread(uint64_t *seed, const struct grid *g, int rank, const int64_t *shape, bool must,
                        struct spread *s, char *text)
{
    int next = 0;
    *s = (struct spread){.base = g->base, .rank = rank};
    int used = 0;
    strcat(text, "[");
    for (int k = 0; k < rank; k++) {
        int n = next < g->n && (random_below(seed, 2) || (must && k == rank - 1 && !used))
                    ? 1 + (int)random_below(seed, g->n - next)
                    : 0;
        s->shape[k] = shape[k];
        s->cut[k] = (struct cut){1, 0, 1 << 20};
        sprintf(text + strlen(text), "%s%lld", k ? "," : "", (long long)shape[k]);
        if (n && !must && random_below(seed, 3) == 0 && next + n < g->n)
            next++; /* leaves one out */
        s->cut[k].ranks = 1;
        for (int i = 0; i < n; i++, next++) {
            sprintf(text + strlen(text), " %c", g->name[next]);
            s->cut[k].ranks *= g->size[next];
            s->cut[k].stride = g->stride[next];
            used |= 1 << next;
        }
        if (!n)
            continue;
        int64_t p = s->cut[k].ranks, c = (shape[k] + p - 1) / p;
        switch (random_below(seed, 4)) {
        case 0:
            s->cut[k].block = 1 + (int)random_below(seed, shape[k] < 2 ? 2 : shape[k]);
            sprintf(text + strlen(text), "(%d)", s->cut[k].block);
            break;
        case 1:
            s->cut[k].block = 0;
            strcat(text, "(balanced)");
            break;
        default:
            s->cut[k].block = c ? (int)c : 1;
        }
    }
    strcat(text, "]");
    for (int i = 0; i < g->n; i++)
        if (!(used >> i & 1)) {
            s->copy_n[s->n_copies] = g->size[i];
            s->copy_stride[s->n_copies++] = g->stride[i];
        }
}

/* ---- one case */

struct one {
    char line[LINE];
    int ranks, n_inputs, esize;
    struct spread in[MAX_INPUTS], out;
    unsigned char *whole[MAX_INPUTS], *want;
    unsigned char *src[MOST_RANKS][MAX_INPUTS], *dst[MOST_RANKS];
    int64_t src_bytes[MOST_RANKS][MAX_INPUTS], dst_bytes[MOST_RANKS];
    int i; /* input at hand; -1: the result */
    bool wrong;
    int64_t checked;
};

static void fill_in(void *arg, int64_t i, int rank, int64_t at)
{
    struct one *o = arg;
    ck_assert_msg((at + 1) * o->esize <= o->src_bytes[rank][o->i], "%s: input %d on rank %d", o->line, o->i,
                  rank);
    memcpy(o->src[rank][o->i] + at * o->esize, o->whole[o->i] + i * o->esize, (size_t)o->esize);
}

static void compare(void *arg, int64_t i, int rank, int64_t at)
{
    struct one *o = arg;
    o->wrong |= (at + 1) * o->esize > o->dst_bytes[rank] ||
                memcmp(o->dst[rank] + at * o->esize, o->want + i * o->esize, (size_t)o->esize);
    o->checked++;
}

static int64_t product(int n, const int64_t *v)
{
    int64_t p = 1;
    for (int i = 0; i < n; i++)
        p *= v[i];
    return p;
}

/* Declarations and expression of a printed chain, with what stands behind each shape. */
static void write_line(struct one *o, uint64_t *seed, const struct xt_graph *g)
{
    char text[LINE], mesh[256] = "mesh";
    struct grid grid[2];
    const char *at = text;
    int grids = 1 + (random_below(seed, 4) == 0), most = 1 + (int)random_below(seed, MAX_RANKS);
    ck_assert_int_eq(xt_print(g, text, sizeof text, NULL), XT_OK);
    draw_grid(seed, 0, "pqr", most, &grid[0], mesh);
    o->ranks = grid_end(&grid[0]);
    if (grids == 2 && o->ranks < MAX_RANKS) {
        int base = (int)random_below(seed, o->ranks + 1);
        draw_grid(seed, base, "uvw", MAX_RANKS - base, &grid[1], mesh);
        o->ranks = grid_end(&grid[1]) > o->ranks ? grid_end(&grid[1]) : o->ranks;
    } else {
        grids = 1;
    }
    sprintf(o->line, "%s; ", mesh);
    for (int i = 0; i < o->n_inputs; i++) {
        struct xt_node_info n = {.size = sizeof n};
        xt_node_get(g, xt_input_node(g, i), &n);
        const char *open = strchr(at, '['), *close = strchr(open, ']');
        strncat(o->line, at, (size_t)(open - at));
        draw_spread(seed, &grid[random_below(seed, grids)], n.rank, n.shape, grids > 1, &o->in[i], o->line);
        at = close + 1;
    }
    strcat(o->line, at);
    struct xt_output_info out = {.size = sizeof out};
    struct xt_node_info n = {.size = sizeof n};
    xt_output_get(g, &out);
    xt_node_get(g, out.node, &n);
    strcat(o->line, " -> ");
    draw_spread(seed, &grid[random_below(seed, grids)], n.rank, n.shape, grids > 1, &o->out, o->line);
}

static void run_all(struct one *o, struct xt_shard **p)
{
    bool going = true;
    for (int r = 0; r < o->ranks; r++)
        ck_assert_msg(!xt_shard_start(p[r], o->dst[r], (const void *const *)o->src[r]), "%s: rank %d: %s",
                      o->line, r, xt_last_error()->message);
    for (int round = 0; going; round++) {
        ck_assert_msg(round < 100000, "%s: no end", o->line);
        going = false;
        for (int r = 0; r < o->ranks; r++) {
            int done;
            ck_assert_msg(!xt_shard_test(p[r], &done), "%s: rank %d: %s", o->line, r,
                          xt_last_error()->message);
            going |= !done;
        }
    }
}

static unsigned char *local(const struct xt_shard *p, int input, int rank, int64_t *bytes)
{
    struct xt_end_info e = {.size = sizeof e};
    ck_assert_int_eq(xt_shard_shape(p, input, rank, &e), XT_OK);
    *bytes = e.to_bytes;
    unsigned char *v = malloc((size_t)*bytes + 64);
    memset(v, 0xa5, (size_t)*bytes + 64);
    return v;
}

/* Runs the chain on whole tensors and the line on its ranks, and compares; frees what both have made. seed:
 * of the bytes, of the order of arrivals, and of who is near whom and shows what. */
static void run_one(struct one *o, struct xt_graph *g, uint64_t seed, int64_t message_bytes)
{
    static struct xt_shard *p[MOST_RANKS];
    uint64_t state = seed * 977 + 2;
    const void *whole[MAX_INPUTS];
    struct xti_err err = {0};
    o->want = calloc((size_t)product(o->out.rank, o->out.shape) + 1, 16);
    for (int i = 0; i < o->n_inputs; i++) {
        o->whole[i] = random_bytes(product(o->in[i].rank, o->in[i].shape) * o->esize, seed + (uint64_t)i);
        whole[i] = o->whole[i];
    }
    ck_assert_int_eq(xti_graph_eval(g, o->want, whole, &err), XT_OK);
    struct mailbox *m = mailbox_new(o->ranks, seed);
    for (int first = 0, near; seed % 3 && first < o->ranks; first += near) {
        unsigned char shows[MAX_RANKS];
        int left = o->ranks - first;
        near = 1 + (int)random_below(&state, left < MAX_RANKS ? left : MAX_RANKS);
        for (int i = 0; i < near; i++)
            shows[i] = (unsigned char)random_below(&state, 2) || seed % 3 == 1;
        if (near > 1)
            mailbox_near(m, first, near, shows);
    }
    for (int r = 0; r < o->ranks; r++) {
        ck_assert_msg(!xti_shard_new(o->line, r, mailbox_end(m, r), message_bytes, &p[r]), "%s\n%s", o->line,
                      xt_last_error()->message);
        ck_assert_int_eq(xt_shard_ranks(p[r]), o->ranks);
        for (int i = 0; i < p[r]->plan.send.n; i++)
            ck_assert_msg(p[r]->plan.send.message[i].elements <= p[r]->plan.most, "%s: a long message",
                          o->line);
        for (int i = 0; i < o->n_inputs; i++)
            o->src[r][i] = local(p[r], i, r, &o->src_bytes[r][i]);
        o->dst[r] = local(p[r], -1, r, &o->dst_bytes[r]);
    }
    for (o->i = 0; o->i < o->n_inputs; o->i++)
        for_all(&o->in[o->i], fill_in, o);
    for (int run = 0; run < 2; run++) /* the counts of boards go on */
        run_all(o, p);
    for_all(&o->out, compare, o);
    ck_assert_msg(!o->wrong, "seed %llu: %s", (unsigned long long)seed, o->line);
    ck_assert_msg(!mailbox_wrong(m), "seed %llu: %s: %s", (unsigned long long)seed, o->line,
                  mailbox_wrong(m));
    ck_assert_msg(!mailbox_free(m), "seed %llu: %s: messages are left", (unsigned long long)seed, o->line);
    for (int r = 0; r < o->ranks; r++) {
        for (int i = 0; i < 64; i++)
            ck_assert_msg(o->dst[r][o->dst_bytes[r] + i] == 0xa5, "seed %llu: %s: behind the end",
                          (unsigned long long)seed, o->line);
        for (int i = 0; i < o->n_inputs; i++)
            free(o->src[r][i]);
        free(o->dst[r]);
        xt_shard_free(p[r]);
    }
    for (int i = 0; i < o->n_inputs; i++)
        free(o->whole[i]);
    free(o->want);
    xt_graph_free(g);
}

/* Returns the bytes that were compared; -1: the chain is not for this test. */
static int64_t try_one(uint64_t seed, int64_t message_bytes)
{
    static struct one o;
    struct random_graph_options opt = {.max_numel = 600,
                                       .max_ops = 5,
                                       .dense_inputs = true,
                                       .dense_output = true,
                                       .no_empty = seed % 16 != 0};
    struct xt_graph *g = random_graph(seed, &opt);
    uint64_t state = seed * 977 + 1;
    memset(&o, 0, sizeof o);
    o.n_inputs = xt_input_count(g);
    struct xt_output_info out = {.size = sizeof out};
    struct xt_node_info n = {.size = sizeof n};
    xt_output_get(g, &out);
    xt_node_get(g, out.node, &n);
    bool scalar = n.rank == 0;
    for (int i = 0; i < o.n_inputs && i < MAX_INPUTS; i++) {
        struct xt_node_info in = {.size = sizeof in};
        xt_node_get(g, xt_input_node(g, i), &in);
        scalar |= in.rank == 0;
    }
    if (o.n_inputs > MAX_INPUTS || scalar) {
        xt_graph_free(g);
        return -1;
    }
    o.esize = (int)xt_dtype_bytes(n.dtype);
    write_line(&o, &state, g);
    run_one(&o, g, seed, message_bytes);
    return o.checked * o.esize;
}

START_TEST(random_chains_over_ranks_are_those_of_whole_tensors)
{
    static const int64_t message_bytes[] = {4 << 20, 1024, 64, 16};
    int64_t bytes = 0, n = 0;
    uint64_t seeds = test_full() ? 111000 : 3320; /* some are chains of scalars */
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        if (!test_part((int)seed))
            continue;
        int64_t got = try_one(seed, message_bytes[seed % 4]);
        n += got >= 0;
        bytes += got > 0 ? got : 0;
    }
    printf("shard: %lld chains over ranks, %lld bytes compared\n", (long long)n, (long long)bytes);
}
END_TEST

/* ---- many ranks, and maps of which no strides tell who sends what to whom */

static void spread_blocks(struct spread *s, int rank, const int64_t *shape, int cut, int ranks)
{
    *s = (struct spread){.rank = rank};
    for (int k = 0; k < rank; k++) {
        int64_t block = k == cut ? (shape[k] + ranks - 1) / ranks : shape[k];
        s->shape[k] = shape[k];
        s->cut[k] = (struct cut){k == cut ? ranks : 1, k == cut, (int)block};
    }
}

/* A matrix of other rows and columns: the last line falls into more than 4096 pieces on a rank. */
START_TEST(awkward_maps_over_many_ranks_are_those_of_whole_tensors)
{
    static const struct {
        int64_t rows, columns;
        int from, to, ranks, full_ranks;
    } all[] = {{203, 211, 1, 1, 100, 1000}, {103, 1009, 0, 0, 100, 1000}, {59, 4201, 1, 1, 59, 100}};
    static struct one o;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const int64_t a[] = {all[i].rows, all[i].columns}, b[] = {a[1], a[0]};
        int ranks = test_full() ? all[i].full_ranks : all[i].ranks;
        char whole[128];
        memset(&o, 0, sizeof o);
        o.ranks = ranks;
        o.n_inputs = 1;
        o.esize = 4;
        spread_blocks(&o.in[0], 2, a, all[i].from, ranks);
        spread_blocks(&o.out, 2, b, all[i].to, ranks);
        sprintf(whole, "x: i32[%d,%d]; x.reshape(%d,%d)", (int)a[0], (int)a[1], (int)b[0], (int)b[1]);
        sprintf(o.line, "mesh r[%d]; x: i32[%d%s,%d%s]; x.reshape(%d,%d) -> [%d%s,%d%s]", ranks, (int)a[0],
                all[i].from ? "" : " r", (int)a[1], all[i].from ? " r" : "", (int)b[0], (int)b[1], (int)b[0],
                all[i].to ? "" : " r", (int)b[1], all[i].to ? " r" : "");
        run_one(&o, parse_line(whole), 3, 1 << 20);
        printf("shard: %lld bytes compared: %s\n", (long long)o.checked * o.esize, o.line);
    }
}
END_TEST

/* What did not take a floor out of a piece is not tried for every page of it: the steps of fusing were not
 * enough for that. */
START_TEST(as_many_pages_as_there_are_ranks_are_told_apart_in_few_steps)
{
    struct xt_shard *p;
    struct xt_shard_info i = {.size = sizeof i};
    ck_assert_msg(
        !xt_shard_new("mesh r[1000]; x: f32[40030,40090 r]; x.reshape(40090,40030) -> [40090,40030 r]", 33,
                      NULL, &p),
        "%s", xt_last_error()->message);
    ck_assert_int_eq(xt_shard_get(p, &i), XT_OK);
    ck_assert_int_gt(i.send_peers, 900);
    xt_shard_free(p);
}
END_TEST

/* Where a box keeps guards that hide most of it, its message is what they let pass: all that ranks send is
 * about the tensor once, which was up to 95 times as much. */
START_TEST(what_guards_hide_is_not_sent)
{
    static const struct {
        const char *line;
        int ranks;
        int64_t bytes;
    } rows[] = {
        {"mesh r[64]; x: f32[4003,4009 r]; x.reshape(4009,4003) -> [4009,4003 r]", 64, 4003 * 4009 * 4},
        {"mesh r[64]; x: u8[1003,1009 r(1)]; x.reshape(1009,1003).T -> [1003 r,1009]", 64, 1003 * 1009},
        {"mesh r[32]; x: c128[10007,77 r]; x.reshape(77,10007) -> [77,10007 r]", 32, 10007 * 77 * 16},
        {"mesh r[200]; x: f64[10007,77 r]; x.reshape(77,10007).T -> [10007 r(3),77]", 200, 10007 * 77 * 8},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        int64_t sent = 0, got = 0;
        for (int r = 0; r < rows[k].ranks; r++) {
            struct xt_shard *p;
            struct xt_shard_info i = {.size = sizeof i};
            ck_assert_msg(!xt_shard_new(rows[k].line, r, NULL, &p), "%s", xt_last_error()->message);
            ck_assert_int_eq(xt_shard_get(p, &i), XT_OK);
            sent += i.send_bytes;
            got += i.receive_bytes;
            xt_shard_free(p);
        }
        printf("shard: %lld bytes sent, of %lld: %s\n", (long long)sent, (long long)rows[k].bytes,
               rows[k].line);
        ck_assert_int_eq(sent, got);
        ck_assert_int_le(sent, rows[k].bytes + rows[k].bytes / 4);
    }
}
END_TEST

/* ---- what is said of lines that are wrong */

static const struct {
    const char *line;
    int64_t rank;
    xt_status status;
    int column;
    const char *message;
} bad[] = {
    {"x: f32[4]; x", 0, XT_ESYNTAX, 7, "the mesh comes first, as in mesh r[4]; x: f32[64 r,8]; .."},
    {"x; mesh r[2]; x", 0, XT_ESYNTAX, 1, "input x has no element type and shape, as in x: f32[2,3]"},
    {"mesh r[4]; x: f64[4 q]; x", 0, XT_ESYNTAX, 21, "the mesh has no axis 'q'"},
    {"mesh r[4] r[3]; x: f64[4]; x", 0, XT_ESYNTAX, 11, "the mesh has two axes 'r'"},
    {"mesh r[4]; mesh q[3]; x: f64[4]; x", 0, XT_ESYNTAX, 12, "there is a mesh already"},
    {"mesh r[0]; x: f64[4]; x", 0, XT_EINVAL, 6, "mesh axis 'r' wants one length of at least 1, as in r[4]"},
    {"mesh r[2,2]; x: u8[4]; x", 0, XT_EINVAL, 6, "mesh axis 'r' wants one length of at least 1, as in r[4]"},
    {"mesh r[2000000]; x: f64[4]; x", 0, XT_EOVERFLOW, 6, "the mesh has more than 1048576 ranks"},
    {"mesh r[4]@-1; x: f64[4]; x", 0, XT_ERANGE, 10, "rank -1 is not in [0,1048576]"},
    {"mesh r[4]; x: f64[8 r,8 r]; x", 0, XT_EINVAL, 25, "mesh axis 'r' (4 ranks) cuts two axes"},
    {"mesh r[4]; x: f64[8 r(0)]; x", 0, XT_EINVAL, 22, "blocks of 0 elements"},
    {"mesh r[4]; x: f64[8 r(2]; x", 0, XT_ESYNTAX, 24, "expected ')', found ']'"},
    {"mesh p[2] q[2] r[2]; x: f64[8 p r]; x", 0, XT_EUNSUPPORTED, 33,
     "mesh axes 'p' and 'r' cut one axis together, but do not follow each other in the mesh"},
    {"mesh p[2] q[2]; x: f64[8 p(2) q]; x", 0, XT_ESYNTAX, 31,
     "the length of blocks stands behind the last name"},
    {"mesh p[2] q[2]@2; x: f64[8 p,8 q]; x -> [8 p,8]", 0, XT_EINVAL, 32,
     "mesh axis 'q' is of another grid of ranks than those before it"},
    {"mesh p[2] q[2]@2; x: f64[8]; x -> [8 q]", 0, XT_EINVAL, 25,
     "the mesh has several grids of ranks, and no name of an axis says on which of them this tensor is"},
    {"mesh r[4]; x: f64[8 r,3]; x.T -> [8 r,3]", 0, XT_ESHAPE, 31,
     "the result is [3,8], the destination [8,3]"},
    {"mesh r[4]; x: f64[8 r,3]; x.permute(0,2)", 0, XT_ERANGE, 29, NULL},
    {"mesh r[4]; x: f64[8 r]; x", 4, XT_ERANGE, 0, "rank 4 is not in [0,4)"},
    {"mesh r[4]; x: f64[8 r]:[-1]; x", 0, XT_ERANGE, 0, "x: element -1 lies before a rank's array"},
    {"mesh r[1]@0 s[2]@1; x: f32[8 s,4]:[-4,1]; x -> [8 r,4]", 0, XT_ERANGE, 0,
     "x: element -12 lies before a rank's array"},
    {"mesh r[1]@0 s[2]@1; x: f32[8 r,4]; x -> [8 s,4]:[4,-1]+2", 1, XT_ERANGE, 0,
     "the result: element -1 lies before a rank's array"},
    {"mesh r[1048576]; x: c128[1152921504606846976 r]; x[:4] -> [4 r]", 0, XT_EOVERFLOW, 0,
     "x: its bytes do not fit in 63 bits"},
    {"mesh r[2]; x: f64[1]; x.expand(2305843009213693952) -> [2305843009213693952 r]", 0, XT_EOVERFLOW, 0,
     "the result: its bytes do not fit in 63 bits"},
    {"mesh r[1048576]; x: u8[9223372036854775807 r]; x -> [9223372036854775807 r]", 0, XT_EUNSUPPORTED, 0,
     "the result: a rank's array reaches beyond 2^40 elements"},
    {"mesh r[2]; x: u8[4398046511104 r]; x[2199023255550:2199023255554] -> [4 r]", 0, XT_EUNSUPPORTED, 0,
     "x: a rank's array reaches beyond 2^40 elements"},
    {"mesh r[2]; x: u8[4 r,2]:[2199023255552,1]; x[1:3] -> [2 r,2]", 0, XT_EUNSUPPORTED, 0,
     "x: a rank's array reaches beyond 2^40 elements"},
    {"mesh r[2]; x: u8[2]; x -> [2 r]:[1]+1099511627776", 1, XT_EUNSUPPORTED, 0,
     "the result: a rank's array reaches beyond 2^40 elements"},
};

START_TEST(wrong_lines_are_told_with_axis_mesh_and_column)
{
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct xt_shard *p = (struct xt_shard *)&p;
        xt_status s = xt_shard_new(bad[i].line, bad[i].rank, NULL, &p);
        const struct xt_error *e = xt_last_error();
        ck_assert_msg(s == bad[i].status, "%s: %s: %s", bad[i].line, xt_status_name(s), e->message);
        ck_assert_ptr_null(p);
        ck_assert_msg(e->column == bad[i].column, "%s: column %d: %s", bad[i].line, e->column, e->message);
        const char *text = bad[i].column ? strstr(e->message, ": ") + 2 : e->message;
        ck_assert_msg(!bad[i].message || !strcmp(text, bad[i].message), "%s: %s", bad[i].line, e->message);
    }
    struct xt_graph *g;
    ck_assert_int_eq(xt_parse("mesh r[4]; x: f64[8 r]; x", 0, NULL, &g), XT_EUNSUPPORTED);
    ck_assert_int_eq(xt_parse("mesh: f64[8]; mesh", 0, NULL, &g), XT_OK); /* an input may have that name */
    xt_graph_free(g);
}
END_TEST

/* post: the ranks' elements, ascending, are those of the axis, each once. */
START_TEST(each_element_of_a_cut_axis_is_of_one_rank)
{
    static const char *const cuts[] = {"", "(1)", "(3)", "(7)", "(balanced)"};
    for (int64_t n = 1; n <= 40; n++)
        for (size_t c = 0; c < sizeof cuts / sizeof *cuts; c++) {
            char line[96];
            int seen[40] = {0};
            snprintf(line, sizeof line, "mesh r[5]; x: u8[%d r%s]; x -> [%d r%s]", (int)n, cuts[c], (int)n,
                     cuts[c]);
            struct xt_shard *p;
            ck_assert_int_eq(xt_shard_new(line, 0, NULL, &p), XT_OK);
            for (int64_t r = 0; r < 5; r++)
                for (int64_t i = 0, at, last = -1; (at = xt_shard_index(p, -1, r, 0, i)) >= 0;
                     i++, last = at) {
                    ck_assert_msg(at > last && at < n && !seen[at]++, "%s: rank %d, %d", line, (int)r,
                                  (int)i);
                    ck_assert_int_eq(at, xt_shard_index(p, 0, r, 0, i));
                }
            for (int64_t at = 0; at < n; at++)
                ck_assert_msg(seen[at] == 1, "%s: %d", line, (int)at);
            xt_shard_free(p);
        }
}
END_TEST

/* before, n times each, after; %d in each is its number. */
static void repeat(char *to, size_t size, const char *before, int n, const char *each, const char *after)
{
    size_t at = (size_t)snprintf(to, size, "%s", before);
    for (int i = 0; i < n; i++)
        at += (size_t)snprintf(to + at, size - at, each, i);
    snprintf(to + at, size - at, "%s", after);
}

START_TEST(what_a_mesh_has_no_room_for_is_refused)
{
    static char line[1 << 14];
    static const struct {
        const char *before, *each, *after;
        int room;
        const char *said;
    } row[] = {
        {"mesh ", "a%d[1] ", "; x: f32[4]; x", 16, "a mesh has at most 16 axes, of at most 127 letters"},
        {"mesh m", "a", "[1]; x: f32[4]; x", 126, "a mesh has at most 16 axes, of at most 127 letters"},
        {"mesh r[1]; ", "x%d: f32[4]; ", "x0", 256, "more than 256 inputs over a mesh"},
        {"mesh r[2]; x: f32[", "1,", "4 r]; x", 29, "too many axes of one tensor are cut"},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        for (int more = 0; more < 2; more++) {
            struct xt_shard *p;
            repeat(line, sizeof line, row[i].before, row[i].room + more, row[i].each, row[i].after);
            xt_status s = xt_shard_new(line, 0, NULL, &p);
            ck_assert_msg(s == (more ? XT_EUNSUPPORTED : XT_OK), "%s: %s", line, xt_last_error()->message);
            ck_assert_msg(!more || strstr(xt_last_error()->message, row[i].said), "%s",
                          xt_last_error()->message);
            xt_shard_free(p);
        }
}
END_TEST

START_TEST(what_a_plan_is_asked_is_checked)
{
    const char *line = "mesh r[4]; x: f64[8 r,4]; x.T -> [4 r,8]";
    struct xt_end_info e = {.size = sizeof e};
    struct xt_shard_info i = {.size = sizeof i};
    struct xt_shard *p;
    char text[256];
    size_t need;
    ck_assert_int_eq(xt_shard_new(NULL, 0, NULL, &p), XT_EINVAL);
    ck_assert_ptr_null(p);
    ck_assert_int_eq(xt_shard_new(line, 0, NULL, NULL), XT_EINVAL);
    ck_assert_int_eq(xt_shard_new(line, 0, NULL, &p), XT_OK);
    static const int64_t wrong[][2] = {{-2, 0}, {1, 0}, {INT_MAX, 0}, {0, -2}, {0, 4}, {-1, INT64_MAX}};
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
        ck_assert_int_eq(xt_shard_shape(p, (int)wrong[k][0], wrong[k][1], &e), XT_EINVAL);
        ck_assert_int_eq(xt_shard_index(p, (int)wrong[k][0], wrong[k][1], 0, 0), -1);
    }
    static const int64_t none[][3] = {{-1, 0, 0}, {0, -1, 0}, {0, 2, 0}, {0, 0, -1}, {0, 0, 2}, {0, 1, 4}};
    for (size_t k = 0; k < sizeof none / sizeof *none; k++)
        ck_assert_int_eq(xt_shard_index(p, 0, none[k][0], (int)none[k][1], none[k][2]), -1);
    ck_assert_int_eq(xt_shard_index(p, 0, 3, 0, 1), 7);
    ck_assert_int_eq(xt_shard_shape(p, 0, 0, NULL), XT_EINVAL);
    ck_assert_int_eq(xt_shard_get(p, NULL), XT_EINVAL);
    ck_assert_int_eq(xt_shard_whole(p, text, sizeof text, &need), XT_OK);
    ck_assert_str_eq(text, "x: f64[8,4]; x.permute(1,0)");
    ck_assert_int_eq(xt_shard_explain(p, 0, NULL, 1, &need), XT_EINVAL);
    ck_assert_int_eq(xt_shard_shape(NULL, 0, 0, &e), XT_EINVAL);
    ck_assert_int_eq(xt_shard_get(NULL, &i), XT_EINVAL);
    ck_assert_int_eq(xt_shard_whole(NULL, text, sizeof text, &need), XT_EINVAL);
    ck_assert_int_eq(xt_shard_explain(NULL, 0, text, sizeof text, &need), XT_EINVAL);
    ck_assert_int_eq(xt_shard_index(NULL, 0, 0, 0, 0), -1);
    ck_assert_int_eq(xt_shard_ranks(NULL), 0);
    ck_assert_int_eq(xt_shard_inputs(NULL), 0);
    e.size = offsetof(struct xt_end_info, to_bytes);
    ck_assert_int_eq(xt_shard_shape(p, 0, 0, &e), XT_EINVAL);
    xt_shard_free(p);
    xt_shard_free(NULL);
}
END_TEST

/* ---- runs that do not come to their end */

static xt_status no_recv(void *self, int64_t peer, void *buf, size_t bytes, int slot) { return XT_EIO; }
static xt_status no_send(void *self, int64_t peer, const void *buf, size_t bytes, int slot) { return XT_EIO; }
static xt_status no_wait(void *self, int block, int *slot) { return XT_EIO; }

static xt_status post(void *self, int64_t peer, void *buf, size_t bytes, int slot) { return XT_OK; }
static xt_status take(void *self, int64_t peer, const void *buf, size_t bytes, int slot) { return XT_OK; }
static xt_status tell_slot(void *self, int block, int *slot)
{
    *slot = *(int *)self;
    return XT_OK;
}

/* A transport that tells of slots in which nothing is under way, or which there are not. */
START_TEST(a_transport_that_lies_about_slots_ends_the_run)
{
    static const int slots[] = {1, 3, 4, 1000};
    double x[64], y[64];
    for (size_t i = 0; i < sizeof slots / sizeof *slots; i++) {
        int slot = slots[i];
        const struct xt_transport t = {
            .size = sizeof t, .self = &slot, .post_recv = post, .post_send = take, .wait_any = tell_slot};
        struct xt_shard *p;
        ck_assert_int_eq(xt_shard_new("mesh r[2]; x: f64[8 r,4]; x.T -> [4 r,8]", 0, &t, &p), XT_OK);
        ck_assert_int_eq(xt_shard_run(p, y, (const void *[]){x}), XT_EINVAL);
        ck_assert_ptr_nonnull(strstr(xt_last_error()->message, "slot"));
        ck_assert_int_eq(xt_shard_wait(p), XT_EINVAL); /* only to be freed now */
        xt_shard_free(p);
    }
}
END_TEST

START_TEST(a_run_fails_before_it_sends_or_for_good)
{
    static const struct xt_transport t = {.size = sizeof t,
                                          .post_recv = no_recv,
                                          .post_send = no_send,
                                          .wait_any = no_wait},
                                     unset = {0};
    const char *line = "mesh r[2]; x: f64[8 r,4]; x.T -> [4 r,8]";
    double x[64], y[64];
    const void *src[] = {x};
    struct xt_shard *p;
    int done;
    ck_assert_int_eq(xt_shard_new(line, 0, &unset, &p), XT_EINVAL);
    ck_assert_int_eq(xt_shard_new(line, 0, NULL, NULL), XT_EINVAL);
    ck_assert_int_eq(xt_shard_new(NULL, 0, NULL, &p), XT_EINVAL);
    ck_assert_int_eq(xt_shard_new(line, 0, NULL, &p), XT_OK);
    ck_assert_int_eq(xt_shard_run(p, y, src), XT_EINVAL); /* no transport */
    ck_assert_int_eq(xt_shard_test(p, &done), XT_OK);
    ck_assert_int_eq(done, 1);
    xt_shard_free(p);
    ck_assert_int_eq(xt_shard_new(line, 0, &t, &p), XT_OK);
    ck_assert_int_eq(xt_shard_run(p, NULL, src), XT_EINVAL);
    ck_assert_int_eq(xt_shard_run(p, y, NULL), XT_EINVAL);
    ck_assert_int_eq(xt_shard_run(p, x + 15, src), XT_EALIAS);
    ck_assert_int_eq(xt_shard_run(p, y, src), XT_EIO);
    ck_assert_int_eq(xt_shard_run(p, y, src), XT_EINVAL); /* only to be freed now */
    ck_assert_int_eq(xt_shard_wait(p), XT_EINVAL);
    xt_shard_free(p);
    xt_shard_free(NULL);
}
END_TEST

/* What a rank holds nothing of overlaps nothing, wherever its pointer points. */
START_TEST(arrays_without_elements_overlap_nothing)
{
    float x[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    struct xt_shard *p;
    ck_assert_int_eq(xt_shard_new("mesh r[2]; x: f32[1 r]; x.pad((0,3)) -> [4 r]", 1, NULL, &p), XT_OK);
    ck_assert_int_eq(xt_shard_run(p, x, (const void *[]){x + 1}), XT_OK);
    ck_assert(x[0] == 0 && x[1] == 0 && x[2] == 3);
    xt_shard_free(p);
    ck_assert_int_eq(xt_shard_new("mesh r[2]; x: f32[8 r]; x[:0] -> [0 r]", 1, NULL, &p), XT_OK);
    ck_assert_int_eq(xt_shard_run(p, x + 1, (const void *[]){x}), XT_OK);
    xt_shard_free(p);
}
END_TEST

START_TEST(near_ranks_that_make_no_sense_are_refused)
{
    static const int64_t good[] = {0, 1}, others[] = {1, 2}, twice[] = {0, 0}, down[] = {1, 0};
    void *board[] = {calloc(1, xt_shard_board_bytes(2)), calloc(1, xt_shard_board_bytes(2))};
    void *const half[] = {board[0], NULL};
    const struct {
        int n;
        const int64_t *near;
        void *const *board;
    } rows[] = {{2, good, board}, {-1, good, board},  {2, NULL, board},  {2, good, NULL},
                {2, good, half},  {2, others, board}, {2, twice, board}, {2, down, board}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct xt_transport t = {.size = sizeof t,
                                       .post_recv = post,
                                       .post_send = take,
                                       .wait_any = no_wait,
                                       .n_near = rows[i].n,
                                       .near = rows[i].near,
                                       .board = rows[i].board};
        struct xt_shard *p;
        xt_status s = xt_shard_new("mesh r[3]; x: f64[9 r,4]; x.T -> [4 r,9]", 0, &t, &p);
        ck_assert_msg(s == (i ? XT_EINVAL : XT_OK), "row %zu: %s", i, xt_last_error()->message);
        xt_shard_free(p);
    }
    free(board[0]);
    free(board[1]);
}
END_TEST

START_TEST(every_allocation_may_fail)
{
    const char *line = "mesh p[2] q[3]; x: f32[7 p q(2),5]; x[1:].T.reshape(6,5) -> [6 q(balanced),5]";
    float x[64], y[64];
    for (int n = 1, ok = 0; !ok; n++) {
        struct xt_shard *p;
        int64_t live = xti_live_allocations();
        xti_fail_alloc(n, 0);
        xt_status s = xt_shard_new(line, 1, NULL, &p);
        xti_fail_alloc(0, 0);
        ck_assert_msg(s == XT_OK || s == XT_ENOMEM, "%d: %s", n, xt_last_error()->message);
        ok = s == XT_OK;
        xt_shard_free(p);
        ck_assert_int_eq(xti_live_allocations(), live);
        ck_assert_int_lt(n, 2000);
    }
    for (int n = 1, ok = 0; !ok; n++) {
        struct xt_shard *p;
        ck_assert_int_eq(
            xt_shard_new("mesh r[1]; x: f32[7 r,5]; x.T.pad((1,0),(0,0)) -> [6,7 r]", 0, NULL, &p), XT_OK);
        xti_fail_alloc(n, 0);
        xt_status s = xt_shard_run(p, y, (const void *[]){x});
        xti_fail_alloc(0, 0);
        ck_assert_msg(s == XT_OK || s == XT_ENOMEM, "%d: %s", n, xt_last_error()->message);
        ok = s == XT_OK;
        xt_shard_free(p);
        ck_assert_int_lt(n, 2000);
    }
}
END_TEST

/* ---- an exchange in two steps */

static void run_in_process(const char *line, int ranks, unsigned char **src, unsigned char **dst)
{
    struct mailbox *m = mailbox_new(ranks, 1);
    struct xt_shard *p[MAX_RANKS];
    for (int r = 0; r < ranks; r++) {
        int64_t bytes;
        ck_assert_int_eq(xt_shard_new(line, r, mailbox_end(m, r), &p[r]), XT_OK);
        dst[r] = local(p[r], -1, r, &bytes);
    }
    for (int r = 0; r < ranks; r++)
        ck_assert_int_eq(xt_shard_start(p[r], dst[r], (const void *[]){src[r]}), XT_OK);
    for (int going = ranks, done; going;) {
        going = 0;
        for (int r = 0; r < ranks; r++) {
            ck_assert_int_eq(xt_shard_test(p[r], &done), XT_OK);
            going += !done;
        }
    }
    for (int r = 0; r < ranks; r++)
        xt_shard_free(p[r]);
    ck_assert_int_eq(mailbox_free(m), 0);
}

/* Within the nodes first, so that what goes between two of them is one message of each rank's: the lines of
 * bench/notes/ranks-on-paper.md, on 3 nodes of 4. */
START_TEST(two_plans_through_a_middle_layout_are_the_one)
{
    enum { RANKS = 12, N = 48, ROWS = N / RANKS };
    unsigned char *src[RANKS], *middle[RANKS], *one[RANKS], *two[RANKS];
    for (int r = 0; r < RANKS; r++)
        src[r] = random_bytes((int64_t)ROWS * N * 4, (uint64_t)r);
    run_in_process("mesh r[12]; x: f32[48 r,48]; x.T -> [48 r,48]", RANKS, src, one);
    run_in_process("mesh n[3] c[4]; x: f32[48 n c,48]; x.reshape(48,3,4,4) -> [48 n,3,4 c,4]", RANKS, src,
                   middle);
    run_in_process("mesh n[3] c[4]; y: f32[48 n,3,4 c,4]; y.reshape(48,48).T -> [48 n c,48]", RANKS, middle,
                   two);
    for (int r = 0; r < RANKS; r++) {
        ck_assert_int_eq(memcmp(one[r], two[r], (size_t)ROWS * N * 4), 0);
        free(src[r]);
        free(middle[r]);
        free(one[r]);
        free(two[r]);
    }
}
END_TEST

/* ---- ranks whose parts make up a line */

enum { LINE_A = 16, LINE_B = 32, LINE_C = 8, LINE_D = 16, LINE_E = 64, LINE_RANKS = 2 };

/* Of rank r's result, as the line says. */
static int64_t wrong_in(const uint32_t *y, int r)
{
    int64_t wrong = 0;
    for (int e = 0; e < LINE_E / LINE_RANKS; e++)
        for (int b = 0; b < LINE_B; b++)
            for (int d = 0; d < LINE_D; d++)
                for (int c = 0; c < LINE_C; c++)
                    for (int a = 0; a < LINE_A; a++) {
                        int from = (((a * LINE_B + b) * LINE_C + c) * LINE_D + d) * LINE_E;
                        wrong += *y++ != (uint32_t)(from + r * LINE_E / LINE_RANKS + e);
                    }
    return wrong;
}

static void run_lines(struct xt_shard **p, uint32_t **src, unsigned char **dst)
{
    for (int r = 0; r < LINE_RANKS; r++)
        ck_assert_int_eq(xt_shard_start(p[r], dst[r], (const void *[]){src[r]}), XT_OK);
    for (int done[LINE_RANKS] = {0}; !done[0] || !done[1];)
        for (int r = 0; r < LINE_RANKS; r++)
            ck_assert_int_eq(xt_shard_test(p[r], &done[r]), XT_OK);
}

/* Once all show their arrays, and once one of them hides its own. */
START_TEST(ranks_whose_parts_make_up_a_line_are_read_by_one_copy)
{
    static const char line[] =
        "mesh r[2]; x: f32[16 r,32,8,16,64]; x.permute(4,1,3,2,0) -> [64 r,32,16,8,16]";
    for (int hides = 0; hides < 2; hides++) {
        struct mailbox *m = mailbox_new(LINE_RANKS, 1);
        struct xt_shard *p[LINE_RANKS];
        uint32_t *src[LINE_RANKS];
        unsigned char *dst[LINE_RANKS];
        mailbox_near(m, 0, LINE_RANKS, (unsigned char[]){1, !hides});
        for (int r = 0; r < LINE_RANKS; r++) {
            int64_t bytes;
            ck_assert_int_eq(xt_shard_new(line, r, mailbox_end(m, r), &p[r]), XT_OK);
            dst[r] = local(p[r], -1, r, &bytes);
            src[r] = malloc((size_t)bytes);
            for (int64_t i = 0; i < bytes / 4; i++)
                src[r][i] = (uint32_t)(i + r * bytes / 4);
            ck_assert_int_eq(p[r]->whole.serves, p[r]->plan.streams);
        }
        for (int run = 0; run < 2; run++) {
            run_lines(p, src, dst);
            for (int r = 0; r < LINE_RANKS; r++) {
                ck_assert_int_eq(wrong_in((const uint32_t *)dst[r], r), 0);
                memset(dst[r], 0, (size_t)LINE_A * LINE_B * LINE_C * LINE_D * LINE_E * 4 / LINE_RANKS);
            }
        }
        for (int r = 0; r < LINE_RANKS; r++) {
            xt_shard_free(p[r]);
            free(src[r]);
            free(dst[r]);
        }
        ck_assert_int_eq(mailbox_free(m), 0);
    }
}
END_TEST

/* ---- more than 2^31 bytes from one rank to another */

static unsigned char huge_byte(int64_t i) { return (unsigned char)((uint64_t)i * 0x9e3779b97f4a7c15u >> 56); }

START_TEST(two_thousand_million_bytes_go_from_rank_to_rank)
{
    enum { ROWS = 46349, COLUMNS = 47491 };
    const int64_t n = (int64_t)ROWS * COLUMNS;
    struct mailbox *m = mailbox_new(2, 1);
    struct xt_shard *p[2];
    struct xt_shard_info info = {.size = sizeof info};
    unsigned char *x = test_full() ? malloc((size_t)n) : NULL, *y = x ? malloc((size_t)n) : NULL;
    int64_t wrong = 0;
    for (int r = 0; r < 2; r++)
        ck_assert_int_eq(xt_shard_new("mesh r[1]@0 s[1]@1; x: u8[46349 r,47491]; x.T -> [47491 s,46349]", r,
                                      mailbox_end(m, r), &p[r]),
                         XT_OK);
    ck_assert_int_eq(xt_shard_get(p[0], &info), XT_OK);
    ck_assert_int_eq(info.send_bytes, n);
    ck_assert_int_le(info.staging_bytes, 4 << 20);
    for (int64_t i = 0; y && i < n; i++)
        x[i] = huge_byte(i);
    for (int r = 0; y && r < 2; r++)
        ck_assert_int_eq(xt_shard_start(p[r], r ? y : NULL, (const void *[]){r ? NULL : x}), XT_OK);
    for (int done[2] = {!y, !y}; !done[0] || !done[1];)
        for (int r = 0; r < 2; r++)
            ck_assert_int_eq(xt_shard_test(p[r], &done[r]), XT_OK);
    for (int64_t i = 0; y && i < COLUMNS; i++)
        for (int64_t j = 0; j < ROWS; j++)
            wrong += y[i * ROWS + j] != huge_byte(j * COLUMNS + i);
    ck_assert_int_eq(wrong, 0);
    for (int r = 0; r < 2; r++)
        xt_shard_free(p[r]);
    ck_assert_int_eq(mailbox_free(m), 0);
    free(x);
    free(y);
}
END_TEST

/* ---- figures */

static struct xt_shard_info info_of(const char *line, int64_t rank, double *seconds)
{
    struct xt_shard_info i = {.size = sizeof i};
    *seconds = 1e9;
    for (int k = 0; k < 20; k++) {
        struct timespec a, b;
        struct xt_shard *p;
        clock_gettime(CLOCK_MONOTONIC, &a);
        ck_assert_msg(!xt_shard_new(line, rank, NULL, &p), "%s", xt_last_error()->message);
        clock_gettime(CLOCK_MONOTONIC, &b);
        double t = (double)(b.tv_sec - a.tv_sec) + 1e-9 * (double)(b.tv_nsec - a.tv_nsec);
        *seconds = t < *seconds ? t : *seconds;
        ck_assert_int_eq(xt_shard_get(p, &i), XT_OK);
        xt_shard_free(p);
    }
    return i;
}

START_TEST(messages_and_kernels_are_as_few_as_the_strides_say)
{
    static const struct {
        const char *line;
        int64_t rank, peers, in_place, send_bytes, own_bytes, kernels;
    } rows[] = {
        {"mesh r[4]; x: f64[4096 r,8192]; x.T -> [8192 r,4096]", 1, 3, 0, 50331648, 16777216, 3},
        {"mesh r[4096]; x: f32[131072 r,131072]; x.T -> [131072 r,131072]", 77, 4095, 0, 16773120, 4096, 3},
        {"mesh p[32] q[32]; x: c64[4096 p,4096 q,4096]; x -> [4096 p,4096,4096 q]", 33, 31, 0, 520093696,
         16777216, 3},
        {"mesh p[32] q[32]; x: f64[131072 p,131072 q]; x.T -> [131072 p,131072 q]", 5, 1, 128, 134217728, 0,
         1},
        {"mesh p[32] q[32]; x: f64[131072 p(128),131072 q(128)]; x -> [131072 p q,131072]", 33, 31, 124,
         130023424, 4194304, 3},
        {"mesh r[8]@0 s[2]@8; x: f16[80,1024,16,8 r,128]; x.permute(0,1,3,2,4) -> [80,1024,8 s,16,128]", 3, 1,
         320, 335544320, 0, 1},
        {"mesh r[8]; x: f32[1000 r]; x -> [1000 r]", 3, 0, 0, 0, 500, 1},
        {"mesh n[64] c[64]; x: f32[131072 n c,131072]; x.reshape(131072,64,64,32) -> [131072 n,64,64 c,32]",
         77, 63, 0, 16515072, 262144, 3},
        {"mesh n[64] c[64]; y: f32[131072 n,64,64 c,32]; y.reshape(131072,131072).T -> [131072 n c,131072]",
         77, 63, 0, 16515072, 262144, 3},
        /* what guards hide all of is no message */
        {"mesh r[1000]; x: f32[100003 r(5),77]; x.reshape(77,100003).T -> [100003 r,77]", 0, 100, 100, 31320,
         404, 99},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double seconds;
        struct xt_shard_info n = info_of(rows[i].line, rows[i].rank, &seconds);
        printf("shard: %.3f ms, %lld bytes: rank %lld of %s\n", seconds * 1e3, (long long)n.plan_bytes,
               (long long)rows[i].rank, rows[i].line);
        ck_assert_int_eq(n.send_peers, rows[i].peers);
        ck_assert_int_eq(n.send_in_place, rows[i].in_place);
        ck_assert_int_eq(n.send_bytes, rows[i].send_bytes);
        ck_assert_int_eq(n.own_bytes, rows[i].own_bytes);
        ck_assert_int_le(n.kernels, 2 * rows[i].kernels); /* a second one of each for what a cut leaves */
        ck_assert_int_le(n.plan_bytes, 1 << 20);
        ck_assert_int_le(n.staging_bytes, 4 << 20);
    }
}
END_TEST

START_TEST(an_explanation_has_the_same_numbers_as_text_and_as_json)
{
    struct xt_shard *p;
    char text[4096];
    size_t need;
    ck_assert_int_eq(xt_shard_new("mesh r[2]; x: i32[6 r,4]; x.T -> [4 r,6]", 1, NULL, &p), XT_OK);
    ck_assert_int_eq(xt_shard_explain(p, 0, text, sizeof text, &need), XT_OK);
    ck_assert_str_eq(text, "rank 1 of 2\n"
                           "  x         i32[6,4], here [3,4]\n"
                           "  result    i32[4,6], here [2,6]\n"
                           "  sends     1 peer, 1 message, 24 bytes; without a buffer 0\n"
                           "  receives  1 peer, 1 message, 24 bytes; without a buffer 0\n"
                           "  keeps     24 bytes by 1 fused copy\n"
                           "  kernels   3\n"
                           "  memory    1.7 KB plan, 48 bytes staging buffers\n");
    ck_assert_int_eq(xt_shard_explain(p, XT_JSON, text, sizeof text, &need), XT_OK);
    ck_assert_ptr_nonnull(strstr(text, "\"sends\": [{\"peer\": 0, \"bytes\": 24, \"parts\": 1"));
    ck_assert_ptr_nonnull(strstr(text, "\"shape\": [3,4], \"strides\": [4,1]"));
    ck_assert_int_eq(xt_shard_explain(p, XT_WHY, text, sizeof text, &need), XT_EINVAL);
    ck_assert_int_eq(xt_shard_explain(p, XT_JSON | XT_SVG, text, sizeof text, &need), XT_EINVAL);
    xt_shard_free(p);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("shard");
    TCase *t = tcase_create("shard"), *many = tcase_create("many"), *huge = tcase_create("huge");
    tcase_set_timeout(t, 0);
    tcase_set_timeout(many, 0);
    tcase_set_timeout(huge, 0);
    tcase_add_test(huge, two_thousand_million_bytes_go_from_rank_to_rank);
    tcase_add_test(t, random_chains_over_ranks_are_those_of_whole_tensors);
    tcase_add_test(many, what_guards_hide_is_not_sent);
    tcase_add_test(many, awkward_maps_over_many_ranks_are_those_of_whole_tensors);
    tcase_add_test(t, as_many_pages_as_there_are_ranks_are_told_apart_in_few_steps);
    tcase_add_test(t, wrong_lines_are_told_with_axis_mesh_and_column);
    tcase_add_test(t, each_element_of_a_cut_axis_is_of_one_rank);
    tcase_add_test(t, what_a_mesh_has_no_room_for_is_refused);
    tcase_add_test(t, what_a_plan_is_asked_is_checked);
    tcase_add_test(t, a_transport_that_lies_about_slots_ends_the_run);
    tcase_add_test(t, a_run_fails_before_it_sends_or_for_good);
    tcase_add_test(t, arrays_without_elements_overlap_nothing);
    tcase_add_test(t, near_ranks_that_make_no_sense_are_refused);
    tcase_add_test(t, every_allocation_may_fail);
    tcase_add_test(t, two_plans_through_a_middle_layout_are_the_one);
    tcase_add_test(t, ranks_whose_parts_make_up_a_line_are_read_by_one_copy);
    tcase_add_test(t, messages_and_kernels_are_as_few_as_the_strides_say);
    tcase_add_test(t, an_explanation_has_the_same_numbers_as_text_and_as_json);
    suite_add_tcase(s, t);
    suite_add_tcase(s, many);
    suite_add_tcase(s, huge);
    return run_suite(s);
}
