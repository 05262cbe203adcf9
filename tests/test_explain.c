/* test_explain.c: what xt_explain says of a plan is what the plan does: the loops that it prints, walked, go
 * from each byte of the source to its place in the destination; its forms are valid, and cut where asked. */
#include "support/api.h"

#include <inttypes.h>
#include <time.h>

#include "api/explain.h"
#include "cpu/cpu.h"
#include "support/comma.h"
#include "support/random_graph.h"
#include "support/scratch.h"

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
    const int32_t *want;    /* for each byte of the destination the byte of the source; -1: of a fill */
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

/* " L L shared L": what is told of them is passed over. */
static const char *read_levels(const char *at, struct walk *w)
{
    for (;;) {
        at += strspn(at, " ");
        if (!strncmp(at, "aligned", 7) || !strncmp(at, "shared", 6))
            at += strcspn(at, " \n");
        else if (*at >= '0' && *at <= '9')
            at = read_level(at, &w->level[w->n++]);
        else
            return at;
        ck_assert_int_lt(w->n, MOST);
    }
}

/* The innermost level that goes over the blocks of level i. */
static int cut_by(const struct walk *w, int i)
{
    const struct level *l = &w->level[i];
    for (int k = w->n - 1; k > i; k--) {
        int64_t each = w->level[k].block ? w->level[k].block : 1;
        if (w->level[k].n == l->block && w->level[k].s / each * l->block == l->s &&
            w->level[k].d / each * l->block == l->d)
            return k;
    }
    return -1;
}

/* The line behind "loop", if there is one, and that behind "leaf KERNEL.U*GROUP" or "stage.U", whose rows go
 * outside of columns. */
static void read_step(const char *line, struct walk *w)
{
    const char *at = strchr(line, '\n') + 1, *end;
    w->n = 0;
    at += strspn(at, " ");
    if (!strncmp(at, "loop", 4)) {
        at = read_levels(at + 4, w) + 1;
        at += strspn(at, " ");
    }
    ck_assert_msg(!strncmp(at, "leaf ", 5) || !strncmp(at, "stage.", 6), "%s", at);
    char *behind;
    w->bytes = (int)strtol(strchr(at, '.') + 1, &behind, 10);
    if (*behind == '*')
        w->bytes *= (int)strtol(behind + 1, &behind, 10);
    at = read_levels(behind, w);
    ck_assert_msg(!strncmp(at, "x ", 2), "%s", at);
    end = read_levels(at + 2, w);
    ck_assert_msg(*end == '\n' || *end == ',', "%s", at);
    for (int i = 0; i < w->n; i++)
        if (w->level[i].block) {
            w->level[i].cuts = cut_by(w, i);
            ck_assert_msg(w->level[i].cuts > i, "level %d cuts nothing: %.*s", i, (int)(end - line), line);
        }
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

/* ---- what is told of a staging buffer: the nests that fill it put each unit where the flush has it */

struct placed {
    int64_t s, d;
};

static int by_d(const void *a, const void *b)
{
    const struct placed *x = a, *y = b;
    return (x->d > y->d) - (x->d < y->d);
}

/* The units of a block of the box, levels `first` .. n - 1, in the order of the destination. */
static int64_t units_of(const struct walk *w, int first, const int64_t *extent, struct placed **out)
{
    int64_t n = 1;
    *out = calloc(1, sizeof **out);
    for (int k = first; k < w->n; k++) {
        *out = realloc(*out, (size_t)(n * extent[k]) * sizeof **out);
        for (int64_t i = n; i < n * extent[k]; i++)
            (*out)[i] = (struct placed){(*out)[i - n].s + w->level[k].s, (*out)[i - n].d + w->level[k].d};
        n *= extent[k];
    }
    qsort(*out, (size_t)n, sizeof **out, by_d);
    return n;
}

/* at: behind "flush"; w: the step's levels, whose box begins with `first`; inner: of the one part. */
static void check_block(const char *at, const struct walk *w, int first, const int64_t *extent,
                        const struct xti_step *inner)
{
    enum { BASE = 1 << 28 }; /* sources may go backwards */
    struct placed *unit;
    struct walk fill = {0};
    int64_t n = units_of(w, first, extent, &unit), runs, bytes, inside[MOST];
    ck_assert_int_eq(sscanf(at, "flush %" SCNd64 " runs of %" SCNd64, &runs, &bytes), 2);
    ck_assert_int_eq(runs * bytes, n * w->bytes);
    int32_t *want = malloc((size_t)(n * w->bytes) * sizeof *want);
    for (int64_t i = 0; i < n; i++)
        for (int j = 0; j < w->bytes; j++)
            want[i * w->bytes + j] = (int32_t)(BASE + unit[i].s + j);
    fill.want = want;
    fill.written = calloc((size_t)(n * w->bytes), 1);
    read_step(at, &fill);
    for (int i = 0; i < fill.n; i++)
        inside[i] = fill.level[i].n;
    walk_from(&fill, 0, inside, BASE + inner->s_byte, inner->d_byte);
    ck_assert_int_eq(fill.wrong, 0);
    for (int64_t i = 0; i < n * w->bytes; i++)
        ck_assert_int_eq(fill.written[i], 1);
    free(fill.written);
    free(want);
    free(unit);
}

/* text: of a step whose levels w are, the box's behind the loops'. */
static void check_stage(const char *text, const struct walk *w, const struct xti_step *step)
{
    static const char *const which[] = {"\n                flush ", "last columns: flush ",
                                        "last rows: flush ", "last rows and columns: flush "};
    int first = step->n_loops, cols = first + (step->list.row_dims ? step->list.row_dims : 1);
    for (int i = 0; i < 4; i++) {
        const struct xti_inner *inner = step->stage.blocks->block[i / 2][i % 2].inner;
        const char *at = strstr(text, which[i]);
        int64_t extent[MOST];
        if (!inner)
            continue;
        for (int k = first; k < w->n; k++)
            extent[k] = w->level[k].n;
        for (int k = 0; k < first; k++) {
            const struct level *l = &w->level[k];
            if (l->block && (l->cuts == first ? i / 2 : l->cuts == cols && i % 2))
                extent[l->cuts] = step->loop[k].whole % l->block; /* also where a block is of blocks */
        }
        ck_assert_msg(at != NULL, "%s: %s", which[i], text);
        check_block(strstr(at, "flush "), w, first, extent, &inner->step);
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

/* Returns whether a step goes through a staging buffer. */
static bool check_loops(const char *line, const char *isa)
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
    char *text = explanation_of(k, XT_WHY);
    const char *at = text;
    bool staged = strstr(text, " stage.");
    for (int i = 0; i < k->plan->n_steps; i++) {
        at = strstr(at, "\n  step ") + 1;
        read_step(at, &w);
        int64_t extent[MOST];
        for (int j = 0; j < w.n; j++)
            extent[j] = w.level[j].n;
        walk_from(&w, 0, extent, k->plan->step[i].s_byte, k->plan->step[i].d_byte);
        if (k->plan->step[i].stage.serves && !k->plan->joint.n)
            check_stage(at, &w, &k->plan->step[i]);
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
    return staged;
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

static const struct {
    const char *line;
    bool by_avx2; /* AVX2 puts it through a buffer, AVX-512 does not; or the other way round */
} buffers[] = {
    {"x: u8[2000,1000,5]; x.permute(1,0,2)", false},
    {"x: u8[100000,20,5]; x.flip(2)", false},
    {"x: f32[16,16,16,16,16,3]; x.permute(4,3,2,1,0,5)", false},
    {"x: u8[2000,1500,5]; x.permute(1,0,2)", false},
    {"x: u8[700,620,33]; x.permute(1,0,2)", true},
    {"x: u8[1000,450,33]; x.permute(1,0,2)", true},
};

START_TEST(what_is_printed_of_a_staging_buffer_is_how_it_is_filled)
{
    setenv("XT_MACHINE", "zen4", 1); /* others choose other ways */
    bool avx2 = xti_cpu_has(XTI_ISA_AVX2) && !xti_cpu_has(XTI_ISA_AVX512);
    ck_assert(check_loops(buffers[_i].line, "") == (avx2 == buffers[_i].by_avx2));
    unsetenv("XT_MACHINE");
}
END_TEST

START_TEST(blocks_are_printed_as_far_apart_as_they_lie)
{
    struct xt_ctx *ctx = new_ctx(XT_CPU, 1);
    struct xt_kernel *k = compile_line(ctx, "x: f32[2000,2000]; x.T");
    const struct xti_step *s = &k->plan->step[0];
    char *text = explanation_of(k, 0), want[64];
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

/* ---- the picture and the words */

static const char *const small[] = {
    "x: u8[4,6]; x.permute(1,0)[:, ::-1].reshape(8,3)",
    "x: u8[2,3]; y: u8[1,3]; concat(0, x, y).pad((1,1),(0,2), value=250)",
    "x: u8[2,3]:[1,4]+1; x.flip(0).tile(2,2)",
    "x: u8[3,4]; x.T -> [4,3]:[8,2]+1",
    "x: u8[5]; x.unfold(0,3,1)",
    "x: u8[4,4]; x.tril(1, value=250)",
    "x: u8[]; x.expand(2,2)",
    "x: u8[0,4]; y: u8[3,4]; concat(0, x, y).T.roll(1,0)",
    "x: u8[1,4]; y: u8[0,922337807]; x.expand(3,4)",
    "x: u8[2,3,4]; x.permute(2,0,1)",
};

/* What the first screen says, in its order: as text, and where svg is set, in the picture, too. */
static const struct {
    const char *line;
    struct {
        const char *text;
        bool svg;
    } said[6];
} screens[] = {
    {"x: f32[4,6]; x.permute(1,0)[:, ::-1].reshape(8,3)",
     {{"3 operations in one copy: 96 bytes read, 96 bytes written, 192 bytes in all; NumPy copies once, too; "
       "PyTorch 2 "
       "times, 384 bytes\n",
       0},
      {"a transpose", 1},
      {"axes 0-1, every 4th", 0},
      {"axis 0, backwards              axes 0-1, 4 in a row", 0}}},
    {"x: u8[8,8]; x.permute(1,0)", {{"one copy: 64 bytes read, 64 bytes written\n", 0}}},
    {"x: u8[16]; x.reshape(4,4).reshape(2,8)",
     {{"2 operations in one copy: 16 bytes read, 16 bytes written; NumPy and PyTorch copy once, too\n", 0}}},
    {"x: f32[4,6]; x.pad((1,1),(0,0)).permute(1,0)",
     {{"; NumPy and PyTorch copy 2 times, 528 bytes\n", 0}, {"map       affine, 2 pieces", 0}}},
    {"x: f32[4,6]; concat(0, x.T, x.T)", {{"; NumPy copies 2 times, 768 bytes; PyTorch once, too\n", 0}}},
    {"x: f32[4,6]; x.roll((1,2),(0,1)) -> [4,6]:[8,1]",
     {{"; NumPy and PyTorch copy 2 times, 384 bytes\n", 0}}},
    {"x: f32[2,3]; y: f32[4,3]; concat(0, x, y).pad((0,0),(1,1), value=7)",
     {{"2 operations in one copy", 1},
      {"; . is 7\n", 0},
      {"20.0 % of the result, from [0,1]", 1},
      {"40.0 % of the result, from [2,1]", 1},
      {"40.0 % of the result with 7", 1}}},
    {"x: f32[2,3]; x.pad((3,3),(3,3), value=7)", {{"a copy of runs", 1}, {" % of the bytes by a fill", 1}}},
    {"x: f32[256,256]; x[:, ::3]", {{"memory   |#..#..#..#..#..#| of a line", 0}}},
    {"x: u8[9,64]; x[:, ::-1]",
     {{"memory   |################| of a line of 64 bytes, # is 4 bytes: runs of 1 byte", 0}}},
    {"x: u8[9,64]; x[:, ::5]",
     {{"memory   |++++.++++.++++.+| of a line of 64 bytes, # is 4 bytes, + fewer", 0}}},
    {"x: f32[6]; x.roll(2,0)", {{"the largest of 2 pieces, 66.7 % of the result, from [2]", 1}}},
    {"x: f32[2,3]; y: f32[2,3]; stack(0, x, y) -> [2,2,3]:[3,12,1]+4",
     {{"50.0 % of the result, from [0,0,0]", 1}, {"50.0 % of the result, from [1,0,0]", 1}}},
    {"x: u8[64]; x.expand(64,64)", {{"one copy: 4096 bytes read from 64 bytes, 4096 bytes written\n", 0}}},
    {"x: u8[1,12]; x[:, 2:].unfold(1,3,1)", {{"one copy: 24 bytes read from 10 bytes, 24 bytes", 0}}},
    {"x: f32[4,4]; x.tril(0)",
     {{"one copy: 40 bytes read, 64 bytes written\n", 0}, {"divisions or conditions say where", 1}}},
};

START_TEST(the_first_screen_says_what_there_is_of_every_input)
{
    struct xt_ctx *ctx = new_ctx(XT_CPU, 1);
    struct xt_kernel *k = compile_line(ctx, screens[_i].line);
    char *text = explanation_of(k, 0), *svg = explanation_of(k, XT_SVG);
    const char *at = text, *in_svg = svg;
    for (int i = 0; i < 6 && screens[_i].said[i].text; i++) {
        const char *want = screens[_i].said[i].text;
        at = strstr(at, want);
        ck_assert_msg(at, "%s in %s", want, text);
        at += strlen(want);
        in_svg = screens[_i].said[i].svg ? strstr(in_svg, want) : in_svg;
        ck_assert_msg(in_svg, "%s in %s", want, svg);
    }
    free(text);
    free(svg);
    xt_kernel_free(k);
    xt_ctx_free(ctx);
}
END_TEST

/* Sources hold the numbers that the picture gives their elements. */
START_TEST(the_elements_of_the_picture_are_those_that_are_copied)
{
    struct xt_ctx *ctx = new_ctx(XT_CPU, 1);
    struct xt_kernel *k = compile_line(ctx, small[_i]);
    unsigned char from[3][256] = {{0}}, to[256] = {0};
    const void *src[3] = {from[0], from[1], from[2]};
    struct xti_layout l;
    for (int input = 0; input < k->map->n_srcs; input++) {
        xti_packed_input(k->packed, input, &l);
        int64_t n = 1;
        for (int i = 0; i < l.rank; i++)
            n *= l.shape[i];
        for (int i = 0; i < n; i++) {
            int64_t at = l.offset;
            for (int a = l.rank - 1, rest = i; a >= 0; rest /= (int)l.shape[a--])
                at += rest % l.shape[a] * l.strides[a];
            from[input][at] = (unsigned char)(input * XTI_SMALL + i);
        }
    }
    expect(XT_OK, xt_run(k, to, src, NULL));
    struct xti_cell cell[XTI_SMALL];
    ck_assert(xti_small_cells(k, cell));
    xti_packed_output(k->packed, &l);
    for (int i = 0, n = (int)k->map->numel; i < n; i++) {
        int64_t at = l.offset;
        for (int a = l.rank - 1, rest = i; a >= 0; rest /= (int)l.shape[a--])
            at += rest % l.shape[a] * l.strides[a];
        int told = cell[i].input < 0 ? 250 : cell[i].input * XTI_SMALL + cell[i].number;
        ck_assert_msg(to[at] == told, "%s: element %d is %d, told %d", small[_i], i, to[at], told);
    }
    xt_kernel_free(k);
    xt_ctx_free(ctx);
}
END_TEST

START_TEST(places_lead_back_to_the_strides_and_tiles_have_their_bytes)
{
    struct xt_ctx *ctx = new_ctx(XT_CPU, 1);
    struct xt_kernel *k = compile_line(ctx, nests[_i]);
    struct xti_layout in, out;
    struct xti_tile t;
    xti_packed_output(k->packed, &out);
    for (int i = 0; i < k->map->n_pieces; i++) {
        const struct xti_piece *p = &k->map->piece[i];
        for (int j = 0; j < p->n_dims; j++) {
            struct xti_place place = xti_place_of(&out, p->dim[j].n, p->dim[j].d);
            ck_assert(place.last < place.first || place.step * out.strides[place.last] == p->dim[j].d);
            if (p->src < 0)
                continue;
            xti_packed_input(k->packed, p->src, &in);
            place = xti_place_of(&in, p->dim[j].n, p->dim[j].s);
            ck_assert(place.last < place.first || place.step * in.strides[place.last] == p->dim[j].s);
        }
    }
    const struct xti_step *s = xti_main_step(k);
    if (xti_tile_of(k, s, &t)) {
        ck_assert_int_eq(t.writes * t.write_bytes, t.bytes);
        ck_assert_int_le(t.reads * t.read_bytes, t.bytes);
        ck_assert_int_le(t.bytes, s->bytes);
    }
    xt_kernel_free(k);
    xt_ctx_free(ctx);
}
END_TEST

static void count_parts(void *pool, int n, void (*task)(void *arg, int i), void *arg)
{
    *(int *)pool = n;
    for (int i = 0; i < n; i++)
        task(arg, i);
}

START_TEST(as_many_threads_are_told_as_run)
{
    static const char *const lines[] = {"x: f32[1000,1000]; x.T", "x: f32[30,30]; x.T",
                                        "x: u8[8,3,107,427]; x.pad((0,0),(0,0),(1,1),(1,1))",
                                        "x: u8[3000,900]; x.tril(0)", "x: u8[4000001]; x.flip(0)"};
    int parts = 1;
    struct xt_options o = {sizeof o, .backend = XT_CPU, .threads = 3, .parallel_for = count_parts,
                           .pool = &parts};
    o.cache_dir = "";
    struct xt_ctx *ctx;
    expect(XT_OK, xt_ctx_new(&o, &ctx));
    struct xt_kernel *k = compile_line(ctx, lines[_i]);
    void *src = calloc(1, (size_t)xt_src_min_bytes(k, 0)), *dst = calloc(1, (size_t)k->map->dst_hi * 4 + 4);
    expect(XT_OK, xt_run(k, dst, (const void *[]){src}, NULL));
    char *text = explanation_of(k, 0), want[32];
    snprintf(want, sizeof want, "; %d thread%s\n", parts, parts == 1 ? "" : "s");
    ck_assert_msg(strstr(text, want), "%d parts: %s", parts, text);
    free(text);
    free(src);
    free(dst);
    xt_kernel_free(k);
    xt_ctx_free(ctx);
}
END_TEST

/* ---- the forms, and what is asked of them */

/* One JSON value, RFC 8259, without recursion. NULL: the first byte that is wrong is at *at. */
static bool json_string(const char **at)
{
    if (*(*at)++ != '"')
        return false;
    for (; **at != '"'; ++*at) {
        if ((unsigned char)**at < 0x20)
            return false;
        if (**at == '\\' && !strchr("\"\\/bfnrtu", *++*at))
            return false;
    }
    ++*at;
    return true;
}

static bool json_number(const char **at)
{
    const char *from = *at;
    *at += **at == '-';
    *at += strspn(*at, "0123456789.eE+-");
    return *at > from && (*at)[-1] >= '0' && (*at)[-1] <= '9';
}

static bool json_valid(const char *at)
{
    char open[64];
    int depth = 0;
    bool value = true; /* one is wanted next */
    for (;;) {
        at += strspn(at, " \t\r\n");
        if (value && (*at == '[' || *at == '{')) {
            if (depth == 64)
                return false;
            open[depth++] = *at++;
            at += strspn(at, " \t\r\n");
            if (*at == open[depth - 1] + 2) /* ']' and '}' are two past theirs */
                value = false;
            else if (open[depth - 1] == '{' && (!json_string(&at) || (at += strspn(at, " "), *at++ != ':')))
                return false;
        } else if (value) {
            if (*at == '"'                                           ? !json_string(&at)
                : !strncmp(at, "true", 4) || !strncmp(at, "null", 4) ? !(at += 4)
                : !strncmp(at, "false", 5)                           ? !(at += 5)
                                                                     : !json_number(&at))
                return false;
            value = false;
        } else if (!depth) {
            return !*at;
        } else if (*at == open[depth - 1] + 2) {
            at++, depth--;
        } else if (*at++ == ',') {
            at += strspn(at, " \t\r\n");
            if (open[depth - 1] == '{' && (!json_string(&at) || (at += strspn(at, " "), *at++ != ':')))
                return false;
            value = true;
        } else {
            return false;
        }
    }
}

START_TEST(the_json_checker_knows_good_from_bad)
{
    static const char *const good[] = {"[]", "{}", "{\"a\": [1, -2, {\"b\": \"x\\\"y\"}], \"c\": true}", "7",
                                       "[[],[{}]]"};
    static const char *const bad[] = {"",  "[",        "[1,]", "{\"a\"}", "{\"a\": }", "[1 2]", "[]]",
                                      "]", "[\"\n\"]", "{,}",  "[1}",     "-",         "\"a"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        ck_assert_msg(json_valid(good[i]), "%s", good[i]);
    for (size_t i = 0; i + 1 < sizeof bad / sizeof *bad; i++)
        ck_assert_msg(!json_valid(bad[i]), "%s", bad[i]);
}
END_TEST

/* The text in full; and cut at every kind of size, never past it. */
static char *explained_and_cut(const struct xt_kernel *k, int flags)
{
    size_t need = 0, again = 0;
    expect(XT_OK, xt_explain(k, flags, NULL, 0, &need));
    ck_assert_int_gt(need, 1);
    char *whole = malloc(need), *cut = malloc(need + 2);
    expect(XT_OK, xt_explain(k, flags, whole, need, &again));
    ck_assert_int_eq(need, again);
    ck_assert_int_eq(strlen(whole) + 1, need);
    const size_t sizes[] = {0, 1, 2, need / 2, need - 1, need, need + 1};
    for (int i = 0; i < 7; i++) {
        memset(cut, 1, need + 2);
        expect(XT_OK, xt_explain(k, flags, cut, sizes[i], i % 2 ? NULL : &again));
        ck_assert_int_eq(cut[sizes[i]], 1);
        size_t n = sizes[i] < need ? sizes[i] : need;
        ck_assert(!n || (!memcmp(cut, whole, n - 1) && !cut[n - 1]));
    }
    free(cut);
    return whole;
}

START_TEST(explanations_are_text_for_people_and_valid_json)
{
    for (int backend = XT_REF; backend <= XT_CPU; backend++) {
        struct xt_ctx *ctx = new_ctx((xt_backend)backend, 1);
        for (uint64_t seed = 1; seed <= 120; seed++) {
            struct xt_graph *g = random_graph(seed, NULL);
            struct xt_kernel *k;
            ck_assert(!xt_compile(ctx, g, NULL, &k));
            char *json = explained_and_cut(k, XT_JSON), *text = explained_and_cut(k, 0),
                 *svg = explained_and_cut(k, XT_SVG);
            ck_assert(!strncmp(svg, "<svg ", 5) && !strcmp(svg + strlen(svg) - 7, "</svg>\n"));
            free(svg);
            ck_assert_msg(json_valid(json), "%s: %s", graph_text(g), json);
            struct xt_kernel_info info = {.size = sizeof info};
            expect(XT_OK, xt_kernel_get(k, &info));
            ck_assert(strstr(json, info.signature) && strstr(text, info.signature));
            ck_assert(strstr(text, graph_text(g)));
            ck_assert_msg(text[strlen(text) - 1] == '\n' && !strstr(text, "\n\n\n"), "%s", text);
            free(json);
            free(text);
            xt_kernel_free(k);
            xt_graph_free(g);
        }
        xt_ctx_free(ctx);
    }
}
END_TEST

START_TEST(the_locale_of_a_host_is_in_no_explanation)
{
    static const int forms[] = {0, XT_WHY, XT_JSON, XT_SVG};
    char dir[SCRATCH_PATH];
    struct xt_ctx *ctx = new_ctx(XT_CPU, 1);
    struct xt_kernel *k = compile_line(ctx, "x: f32[1000,700]; x.T.pad((1,0),(0,0), value=0.5)");
    make_scratch(dir, "explain");
    for (int i = 0; i < 4; i++) {
        char *plain = explanation_of(k, forms[i]);
        use_comma(dir);
        char *here = explanation_of(k, forms[i]);
        setlocale(LC_ALL, "C");
        ck_assert_str_eq(here, plain);
        free(plain);
        free(here);
    }
    remove_scratch(dir);
    xt_kernel_free(k);
    xt_ctx_free(ctx);
}
END_TEST

START_TEST(explaining_refuses_null_and_unknown_flags)
{
    struct xt_ctx *ctx = new_ctx(XT_CPU, 1);
    struct xt_kernel *k = compile_line(ctx, "x: f32[3]; x");
    size_t need = 9;
    char buf[8] = "before";
    expect(XT_EINVAL, xt_explain(NULL, 0, buf, sizeof buf, &need));
    ck_assert_int_eq(need, 0);
    expect(XT_EINVAL, xt_explain(k, 8, buf, sizeof buf, &need));
    expect(XT_EINVAL, xt_explain(k, XT_JSON | XT_SVG, buf, sizeof buf, &need));
    expect(XT_EINVAL, xt_explain(k, -1, buf, sizeof buf, NULL));
    ck_assert_str_eq(buf, "before");
    expect(XT_OK, xt_explain(k, 0, NULL, 0, NULL));
    expect(XT_OK, xt_explain(k, 0, NULL, 100, &need));
    ck_assert_int_gt(need, 20);
    xt_kernel_free(k);
    xt_ctx_free(ctx);
}
END_TEST

/* Every refusal stands in the text, each reason of a piece once. */
START_TEST(the_text_groups_refusals_by_reason_and_loses_none)
{
    struct xt_ctx *ctx = new_ctx(XT_CPU, 1);
    struct xt_kernel *k = compile_line(ctx, "x: f32[64,64]; x.tril(3)");
    char *text = explanation_of(k, XT_WHY), *json = explanation_of(k, XT_JSON);
    int lines = 0, refusals = 0, named = 0;
    const char *at = strstr(text, "  refused");
    for (const char *c = json; (c = strstr(c, "\"reason\"")); c++)
        refusals++;
    for (const char *end = strstr(text, "  choice"); at < end; at = strchr(at, '\n') + 1, lines++) {
        const char *names = strchr(strstr(at, "piece"), ':') + 1, *stop = strchr(names, ':');
        for (named++; names < stop; names++)
            named += *names == ',';
    }
    ck_assert_int_eq(named, refusals);
    ck_assert_int_lt(lines, refusals / 2);
    free(text);
    free(json);
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
        free(explanation_of(k, flags[i]));
        ck_assert_msg(clock() - t < CLOCKS_PER_SEC, "flags %d", flags[i]);
    }
    xt_kernel_free(k);
    xt_ctx_free(ctx);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("explain");
    TCase *loops = tcase_create("loops"), *forms = tcase_create("forms"), *time = tcase_create("time");
    tcase_set_timeout(loops, 60);
    tcase_add_loop_test(loops, the_loops_that_are_printed_walked_do_the_copy, 0,
                        (int)(sizeof nests / sizeof *nests));
    tcase_add_loop_test(loops, what_is_printed_of_a_staging_buffer_is_how_it_is_filled, 0,
                        sizeof buffers / sizeof *buffers);
    tcase_add_test(loops, blocks_are_printed_as_far_apart_as_they_lie);
    tcase_add_loop_test(loops, places_lead_back_to_the_strides_and_tiles_have_their_bytes, 0,
                        (int)(sizeof nests / sizeof *nests));
    tcase_add_loop_test(loops, the_first_screen_says_what_there_is_of_every_input, 0,
                        (int)(sizeof screens / sizeof *screens));
    tcase_add_loop_test(loops, the_elements_of_the_picture_are_those_that_are_copied, 0,
                        (int)(sizeof small / sizeof *small));
    tcase_add_loop_test(loops, as_many_threads_are_told_as_run, 0, 5);
    suite_add_tcase(s, loops);
    tcase_set_timeout(forms, 60);
    tcase_add_test(forms, the_json_checker_knows_good_from_bad);
    tcase_add_test(forms, explanations_are_text_for_people_and_valid_json);
    tcase_add_test(forms, the_locale_of_a_host_is_in_no_explanation);
    tcase_add_test(forms, explaining_refuses_null_and_unknown_flags);
    tcase_add_test(forms, the_text_groups_refusals_by_reason_and_loses_none);
    suite_add_tcase(s, forms);
    tcase_set_timeout(time, 60);
    tcase_add_test(time, explaining_4096_pieces_takes_a_moment);
    suite_add_tcase(s, time);
    return run_suite(s);
}
