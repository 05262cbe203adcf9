/* test_explain.c: what xt_explain says of a plan is what the plan does: the loops that it prints, walked, go
 * from each byte of the source to its place in the destination. */
#include "support/api.h"

#include <inttypes.h>
#include <time.h>

#include "api/api.h"

static char *explained(const struct xt_kernel *k, int flags)
{
    size_t need = 0;
    expect(XT_OK, xt_explain(k, flags, NULL, 0, &need));
    char *text = malloc(need);
    expect(XT_OK, xt_explain(k, flags, text, need, NULL));
    return text;
}

/* ---- loops as printed */

enum { MOST = 80 };

/* "n(s,d)", or "whole/block(s,d)": from block to block. */
struct level {
    int64_t n, block, s, d;
    int cuts; /* of a blocked loop: the level whose points make up a block */
};

struct walk {
    struct level level[MOST];
    int n, bytes;           /* levels, outermost first; bytes that each of their points moves */
    const int32_t *want; /* for each byte of the destination the byte of the source; -1: of a fill */
    unsigned char *written; /* how often each byte of the destination was */
    int64_t wrong;
};

static const char *read_level(const char *at, struct level *l)
{
    char *end;
    *l = (struct level){.n = strtoll(at, &end, 10), .cuts = -1};
    if (*end == '/')
        l->block = strtoll(end + 1, &end, 10);
    ck_assert_msg(*end == '(', "%s", at);
    l->s = strtoll(end + 1, &end, 10);
    ck_assert_msg(*end == ',', "%s", at);
    l->d = strtoll(end + 1, &end, 10);
    ck_assert_msg(*end == ')', "%s", at);
    return end + 1;
}

static const char *read_levels(const char *at, struct walk *w)
{
    while (*at >= '0' && *at <= '9') {
        ck_assert_int_lt(w->n, MOST);
        at = read_level(at, &w->level[w->n++]);
        at += *at == ' ';
    }
    return at;
}

/* The innermost level that goes over the blocks of level i. */
static int cut_by(const struct walk *w, int i)
{
    const struct level *l = &w->level[i];
    for (int k = w->n - 1; k > i; k--)
        if (w->level[k].n == l->block && w->level[k].s * l->block == l->s &&
            w->level[k].d * l->block == l->d && !w->level[k].block)
            return k;
    return -1;
}

/* "..; kernel ROWS x COLS; loops LOOPS": loops go outside of rows, rows outside of columns. */
static void read_step(const char *line, struct walk *w)
{
    struct walk kernel = {.n = 0};
    const char *at = strstr(line, "; kernel ") + strlen("; kernel "), *end = strchr(line, '\n');
    at = read_levels(at, &kernel);
    ck_assert_msg(!strncmp(at, "x ", 2), "%.*s", (int)(end - line), line);
    at = read_levels(at + 2, &kernel);
    w->n = 0;
    if (!strncmp(at, "; loops ", 8))
        at = read_levels(at + 8, w);
    ck_assert_msg(*at == '\n' || *at == ';', "%.*s", (int)(end - line), line);
    for (int i = 0; i < kernel.n; i++)
        w->level[w->n++] = kernel.level[i];
    for (int i = 0; i < w->n; i++)
        if (w->level[i].block) {
            w->level[i].cuts = cut_by(w, i);
            ck_assert_msg(w->level[i].cuts > i, "level %d cuts nothing: %.*s", i, (int)(end - line), line);
        }
    const char *groups = strstr(line, "groups of "), *unit = strstr(line, "-byte units");
    while (unit[-1] >= '0' && unit[-1] <= '9')
        unit--;
    w->bytes = atoi(unit) * (groups && groups < end ? atoi(groups + 10) : 1);
}

static void walk_from(struct walk *w, int i, const int64_t *extent, int64_t s, int64_t d)
{
    if (i == w->n) {
        for (int j = 0; j < w->bytes; j++) {
            w->wrong += w->want[d + j] >= 0 ? w->want[d + j] != s + j : 0;
            w->written[d + j]++;
        }
        return;
    }
    const struct level *l = &w->level[i];
    int64_t inside[MOST];
    memcpy(inside, extent, sizeof inside);
    for (int64_t at = 0, k = 0; at < extent[i]; at += l->block ? l->block : 1, k++) {
        if (l->block)
            inside[l->cuts] = extent[i] - at < l->block ? extent[i] - at : l->block;
        walk_from(w, i + 1, inside, s + k * l->s, d + k * l->d);
    }
}

struct wanted {
    const struct xti_map *m;
    int32_t *from;
};

static bool note(void *arg, const struct xti_piece *p, int64_t d, int64_t s)
{
    const struct wanted *w = arg;
    for (int j = 0; j < w->m->esize; j++)
        w->from[d * w->m->esize + j] = p->src < 0 ? -1 : (int32_t)(s * w->m->esize + j);
    return true;
}

static void check_loops(const char *line, const char *isa)
{
    setenv("XT_ISA", isa, 1);
    struct xt_ctx *ctx = new_ctx(XT_CPU, 1);
    struct xt_kernel *k = compile_line(ctx, line);
    size_t bytes = (size_t)(k->map->dst_hi + 1) * (size_t)k->map->esize;
    struct walk w = {0};
    struct wanted want = {k->map, malloc(bytes * sizeof *want.from)};
    w.want = want.from;
    w.written = calloc(bytes + 1, sizeof *w.written);
    for (size_t i = 0; i < bytes; i++)
        want.from[i] = -2;
    xti_map_visit(k->map, note, &want);
    char *text = explained(k, XT_WHY);
    const char *at = text;
    for (int i = 0; i < k->plan->n_steps; i++) {
        at = strstr(at, "\n  step ") + 1;
        read_step(at, &w);
        int64_t extent[MOST];
        for (int j = 0; j < w.n; j++)
            extent[j] = w.level[j].n;
        walk_from(&w, 0, extent, k->plan->step[i].s_byte, k->plan->step[i].d_byte);
    }
    ck_assert_msg(!w.wrong, "%s, %s: %" PRId64 " bytes from elsewhere\n%s", line, isa, w.wrong, text);
    size_t i = 0;
    while (i < bytes && w.written[i] == (want.from[i] != -2))
        i++;
    ck_assert_msg(i == bytes, "%s, %s: byte %zu written %d times\n%s", line, isa, i, w.written[i], text);
    free(text);
    free(w.written);
    free(want.from);
    xt_kernel_free(k);
    xt_ctx_free(ctx);
    unsetenv("XT_ISA");
}

/* Loops in blocks, lists of rows and columns, blocks in a buffer, groups of elements. */
static const char *const nests[] = {
    "x: f32[64,8000]; x.T",
    "x: f32[600,700]; x.T[::-1]",
    "x: f32[2,3,4,5,6,7,8]; x.permute(5,3,1,6,4,2,0)",
    "x: f32[13,13,13,13,13]; x.permute(4,1,2,3,0)",
    "x: u8[60,15,32,15,5]; x.permute(4,2,0,3,1)",
    "x: f16[4,64,32,64]; x.permute(0,2,1,3)",
    "x: u8[300,200,3]; x.permute(1,0,2)",
    "x: u8[900,700,3]; x[:, ::-1]",
    "x: u8[900,700,3]; x.permute(2,0,1)",
    "x: u8[3,900,700]; x.permute(1,2,0)",
    "x: u16[40,50,5]:[250,5,1]; x.permute(1,0,2)",
    "x: u8[700003]; x.flip(0)",
    "x: f64[400,400]; x[::3, ::2]",
    "x: u8[7,11,13]; x.reshape(143,7)[::-1].T.reshape(77,13).tile(2,2)",
    "x: f32[700,1]; x.expand(700,600)",
    "x: f32[300,300]; x.unfold(1,3,1).permute(2,0,1)",
    "x: f32[100,100]; x.pad((1,1),(2,2)).roll(3,0).T",
    "x: u8[192,5314]; x.T",
    "x: f32[31,41]; x.T -> [41,31]:[40,1]+3",
    "x: u8[16,112,112,3]; x.reshape(16,7,16,7,16,3).permute(0,1,3,2,4,5).reshape(16,49,768)",
    "x: u8[32768,8,8]; x.permute(0,2,1)",
    "x: f32[50001,3,3]; x.permute(0,2,1)",
    "x: f32[2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2]; x.permute(4,12,6,3,13,14,11,5,7,9,10,0,1,8,15,2)",
    "x: u8[8,3,107,127]; x.pad((0,0),(0,0),(1,1),(1,1))",
    "x: f16[32,16,1024]; x.pad((0,0),(0,0),(3,0))",
};

START_TEST(the_loops_that_are_printed_walked_do_the_copy)
{
    check_loops(nests[_i], "");
    check_loops(nests[_i], "scalar");
}
END_TEST

START_TEST(blocks_are_printed_as_far_apart_as_they_lie)
{
    struct xt_ctx *ctx = new_ctx(XT_CPU, 1);
    struct xt_kernel *k = compile_line(ctx, "x: f32[2000,2000]; x.T");
    const struct xti_step *s = &k->plan->step[0];
    char *text = explained(k, 0), want[64];
    ck_assert_int_gt(s->n_loops, 0);
    const struct xti_loop *l = &s->loop[0];
    ck_assert_int_ne(l->cuts, XTI_CUTS_NONE);
    snprintf(want, sizeof want, " %" PRId64 "/%" PRId64 "(%+" PRId64 ",%+" PRId64 ")", l->whole, l->block,
             l->s * l->block, l->d * l->block);
    ck_assert_msg(strstr(text, want), "%s in %s", want, text);
    free(text);
    xt_kernel_free(k);
    xt_ctx_free(ctx);
}
END_TEST

/* ---- time */

START_TEST(explaining_4096_pieces_takes_a_moment)
{
    char line[512] = "x: u8[3,3,3,3,3,3,3,3,3,3,3,3]; x";
    for (int i = 0; i < 12; i++)
        sprintf(line + strlen(line), ".roll(1,%d)", i);
    struct xt_ctx *ctx = new_ctx(XT_CPU, 1);
    struct xt_kernel *k = compile_line(ctx, line);
    ck_assert_int_eq(k->map->n_pieces, 4096);
    int flags[] = {0, XT_WHY, XT_JSON, XT_SVG};
    for (int i = 0; i < 4; i++) {
        clock_t t = clock();
        free(explained(k, flags[i]));
        ck_assert_msg(clock() - t < CLOCKS_PER_SEC, "flags %d", flags[i]);
    }
    xt_kernel_free(k);
    xt_ctx_free(ctx);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("explain");
    TCase *loops = tcase_create("loops"), *time = tcase_create("time");
    tcase_set_timeout(loops, 60);
    tcase_add_loop_test(loops, the_loops_that_are_printed_walked_do_the_copy, 0,
                        (int)(sizeof nests / sizeof *nests));
    tcase_add_test(loops, blocks_are_printed_as_far_apart_as_they_lie);
    suite_add_tcase(s, loops);
    tcase_set_timeout(time, 60);
    tcase_add_test(time, explaining_4096_pieces_takes_a_moment);
    suite_add_tcase(s, time);
    return run_suite(s);
}
