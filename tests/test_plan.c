/* test_plan.c: which strategy a chain gets, why the others were refused, and that every step covers its piece
 * once. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/choice.h"
#include "plan/cost.h"
#include "plan/loops.h"
#include "plan/plan.h"
#include "support/map_of.h"

/* A machine like none: the tests of a habit turn it on. */
static const struct xti_prices prices = {
    .run = 8,
    .step = 25,
    .call = 3,
    .row = 0.5,
    .short_row = 0.7,
    .unit = 0.2,
    .fetch = {0.5, 0.5, 1.5},
    .store = {0.8, 0.6, 0.8},
    .stream = 2,
    .split = 4,
    .jump = 0.5,
    .together = 0.3,
    .beside = 0.1,
    .vector = 0.5,
    .picked = 0.7,
    .share = 1,
    .thread = 25000,
    .full = 1.7,
};
static const struct xti_machine plain = {.name = "plain", .prices = &prices};
static const struct xti_target cpu = {.backend = XT_CPU,
                                      .isa = XTI_ISA_AVX512,
                                      .l1_bytes = 32 << 10,
                                      .l2_bytes = 1 << 20,
                                      .l3_bytes = 32 << 20,
                                      .machine = &plain,
                                      .threads = 4};

/* The same without strategies or tricks of these names. */
static struct xti_target cpu_without(const char *names)
{
    struct xti_target t = cpu;
    ck_assert(xti_choice_without(names, &t.choice.without));
    return t;
}

static struct xti_plan plan_of_graph(struct xt_graph *g, const struct xti_target *t)
{
    struct xti_map m;
    struct xti_plan p;
    struct xti_err err = {0};
    fuse(g, &m);
    ck_assert_msg(!xti_plan_make(&m, t, &p, &err), "%s", err.e.message);
    p.map.arena = m.arena; /* goes with the plan */
    return p;
}

static void free_plan(struct xti_plan *p)
{
    xti_arena_free(&p->map.arena);
    xti_plan_free(p);
}

static struct xti_plan plan_of(const char *line, const struct xti_target *t)
{
    struct xt_graph *g = parse_line(line);
    struct xti_plan p = plan_of_graph(g, t);
    xt_graph_free(g);
    return p;
}

/* Plans for destinations that begin on a line, and inside of one; NULL: the same. */
static const struct {
    const char *line, *on, *off;
} begins[] = {
    {"x: f16[16,32768,64]; x.permute(1,0,2)", "rows", "braid"},
    {"x: f16[8,32768,64]; x.permute(1,0,2)", "rows", "buffered"},      /* rows of 1 KB */
    {"x: f16[16,16384,128]; x.permute(1,0,2)", "rows", NULL},          /* runs of 256 B */
    {"x: f32[3,8,16,8,16]; x.permute(1,3,2,4,0)", "interleave", NULL}, /* stays in the cache */
    {"x: f32[3,80,16,80,16]; x.permute(1,3,2,4,0)", "interleave", "buffered"},
    {"x: f32[4096,4096]; x.permute(1,0)", "transpose", NULL},
};

START_TEST(a_destination_inside_a_line_may_have_a_plan_of_its_own)
{
    struct xti_plan p = plan_of(begins[_i].line, &cpu);
    ck_assert_str_eq(xti_plan_strategy(&p), begins[_i].on);
    ck_assert_msg(!p.off_line == !begins[_i].off, "%s", begins[_i].line);
    if (p.off_line)
        ck_assert_str_eq(xti_plan_strategy(p.off_line), begins[_i].off);
    free_plan(&p);
}
END_TEST

/* clang-format off */
static const struct {
    const char *line, *strategy;
} chosen[] = {
    {"x: f32[64,64]; x.reshape(4096)",                                        "memcpy"},
    {"x: f32[4,6]; x[2:2]",                                                   "empty"},
    {"x: f32[1]; x.expand(1000)",                                             "broadcast"},
    {"x: f16[8,64,12,64]; x.permute(0,2,1,3)",                                "rows"},
    {"x: u8[30,20,3]; x.permute(1,0,2)",                                      "turn"},
    {"x: u8[30,20,5]; x.permute(1,0,2)",                                      "rows"},
    {"x: u8[4000,2000,3]; x.permute(1,0,2)",                                  "turn"},
    {"x: u8[4000,2000,5]; x.permute(1,0,2)",                                  "buffered"},
    {"x: f16[400,300,80]; x.permute(1,0,2)",                                  "braid"},
    {"x: f16[401,300,80]; x.permute(1,0,2)",                                  "braid"}, /* ragged */
    {"x: f32[1600,300,5]; x.permute(1,0,2)",                                  "braid"},
    {"x: f16[8,400000,2]; x.flip(2).permute(1,0,2)",                          "mosaic"}, /* rows of 4 B */
    {"x: f32[65536,256]; x.flip(1)",                                          "reverse"},
    {"x: c128[1600,400]; x.permute(1,0)",                                     "transpose"}, /* units */
    {"x: f16[17,8000,50]; x.permute(1,0,2)",                                  "buffered"}, /* short */
    {"x: f16[800,300,32]; x.permute(1,0,2)",                                  "rows"}, /* lines */
    {"x: f16[400,300,64]; x.permute(1,0,2)",                                  "rows"}, /* whole lines */
    {"x: f32[28,28,28,28,48]; x.permute(1,3,0,4,2)",                          "buffered"},
    {"x: f32[400,400,64]; x[:, :, :63]",                                      "rows"}, /* in order */
    {"x: f16[2,56,56,96]; x.reshape(2,8,7,8,7,96).permute(0,1,3,2,4,5)",      "rows"},
    {"x: f32[64,48]; x.permute(1,0)",                                         "transpose"},
    {"x: f16[8,64,64]; x.permute(0,2,1)",                                     "transpose"},
    {"x: f16[64,128,2]; x.permute(1,0,2)",                                    "transpose"},
    {"x: c128[64,48]; x.permute(1,0)",                                        "transpose"},
    {"x: f32[64,48]; x.permute(1,0)[:, ::-1]",                                "transpose"},
    {"x: u8[4,100]; x[:, ::-1]",                                              "reverse"},
    {"x: u8[4,100,3]; x[:, ::-1]",                                            "mirror"},
    {"x: u8[64,600]; x[:, ::6]",                                              "strided"},
    {"x: u8[3,64,64]; x.permute(1,2,0)",                                      "interleave"},
    {"x: u8[64,64,3]; x.permute(2,0,1)",                                      "deinterleave"},
    {"x: f16[64]; x.repeat(2,0)",                                             "interleave"},
    {"x: f32[64,64,5]; x.permute(2,0,1)",                                     "deinterleave"},
    {"x: u8[7,64,64]; x.permute(1,2,0)",                                      "interleave"},
    {"x: u8[4000,2000,8]; x.permute(2,0,1)",                                  "deinterleave"},
    {"x: u8[24,2160,3840,3]; x[:, ::2, ::2].permute(0,3,1,2)",                "strided"}, /* with gaps */
    {"x: f32[9,2160,3840,4]; x[:, :, ::4].permute(0,3,1,2)",                  "transpose"},
    {"x: f32[9,2160,3840,4]; x[:, :, ::5].permute(0,3,1,2)",                  "transpose"}, /* too far */
    {"x: u8[16,64,3]; x[:, ::2].permute(2,0,1)",                              "strided"}, /* small */
    {"x: u8[144115188075855872,60]; x.permute(1,0)",                          "transpose"}, /* huge */
    {"x: u8[2,4194304]; x.flip(1) -> [2,4194304]:[9223372036850581503,1]",    "reverse"},
    {"x: f32[2048,7]; x.permute(1,0)",                                        "deinterleave"},
    {"x: f32[2048,8]; x.permute(1,0)",                                        "transpose"}, /* in the cache */
    {"x: f32[4000000,8]; x.permute(1,0)",                                     "deinterleave"},
    {"x: c128[2048,3]; x.permute(1,0)",                                       "deinterleave"},
    {"x: u8[5000,64,3]; x.permute(0,2,1)",                                    "deinterleave"},
    {"x: u8[5000,60,3]; x.permute(0,2,1)",                                    "mosaic"}, /* no vector */
    {"x: u8[5000,3,60]; x.permute(0,2,1)",                                    "mosaic"},
    {"x: f64[800,5,6]; x.permute(0,2,1)",                                     "transpose"},
    {"x: f32[64,64,9]; x.permute(2,0,1)",                                     "transpose"},
    {"x: u8[12,64,64]; x.permute(1,2,0)",                                     "transpose"},
    {"x: u8[64,64,12]; x.permute(2,0,1)",                                     "transpose"},
    {"x: f32[64,1]; x.expand(64,100)",                                        "broadcast"},
    {"x: f32[64,200]; x[:, ::2]",                                             "strided"},
    {"x: f32[70,70]; x.diagonal(0,0,1)",                                      "gather"},
    {"x: f32[15,15]; x.diagonal(0,0,1)",                                      "general"},
    {"x: f32[2,3,2,3,2,3,2]; x.permute(6,4,2,0,5,3,1)",                       "gather"},
    {"x: f32[2,4,2,4,2,4,2,4,2,4,2,4,2,4,2]; x.permute(13,11,9,7,5,3,1,14,0,2,4,6,8,10,12)", "mosaic"},
    {"x: f32[2,4,2,4,2,4,2,4,2,4,2,4,2,4,3]; x.permute(13,11,9,7,5,3,1,14,0,2,4,6,8,10,12)", "tile"},
    {"x: f32[8,8,8,8]; x.permute(3,2,1,0)",                                   "tile"},
    {"x: f64[2,2,2,2,2,2,2]; x.permute(6,4,5,3,0,2,1)",                       "tile"},
    {"x: f32[4,6]; x.pad((9,9),(0,20), value=7)",                             "fill"},
    {"x: f32[64,64]; x.tril(0)",                                              "general"},
    {"x: u8[934896,20,5]; x.flip(2)",                                         "permuted"},
};
/* clang-format on */

static const struct {
    const char *vendor;
    unsigned family, model;
    const char *row;
} processors[] = {
    {"AuthenticAMD", 26, 0x02, "zen5"},
    {"AuthenticAMD", 26, 0x44, "zen5"},
    {"AuthenticAMD", 25, 0x11, "zen4"},
    {"AuthenticAMD", 25, 0x61, "zen4"},
    {"AuthenticAMD", 25, 0x01, "zen3"},
    {"AuthenticAMD", 25, 0x50, "zen3"},
    {"GenuineIntel", 6, 0xcf, "emerald"},
    {"GenuineIntel", 6, 0x8f, "emerald"},
    {"ARM", 0, 0, "neon"},
    {"AuthenticAMD", 23, 0x31, "generic"},
    {"AuthenticAMD", 26, 0x50, "generic"}, /* Zen 6 */
    {"GenuineIntel", 6, 0x55, "generic"},
    {"GenuineIntel", 25, 0x11, "generic"},
    {"HygonGenuine", 24, 0, "generic"},
    {"", 0, 0, "generic"},
};

START_TEST(a_processor_has_its_row_and_an_unknown_one_the_careful_one)
{
    const struct xti_machine *m =
        xti_machine_find(processors[_i].vendor, processors[_i].family, processors[_i].model);
    ck_assert_str_eq(m->name, processors[_i].row);
    ck_assert_ptr_eq(m, xti_machine_named(m->name));
    ck_assert(m->prices);
    ck_assert_ptr_null(xti_machine_named("zen"));
    ck_assert_str_eq(xti_machine_careful->name, "generic");
}
END_TEST

/* In the cache, where the processor has good gathers. */
START_TEST(small_squares_are_gathered)
{
    static const struct {
        const char *line, *strategy;
    } row[] = {{"x: f64[800,5,6]; x.permute(0,2,1)", "gather"},
               {"x: f64[80,12,20]; x.permute(0,2,1)", "transpose"},
               {"x: c128[800,5,6]; x.permute(0,2,1)", "transpose"}};
    struct xti_target t = cpu;
    t.machine = xti_machine_named("emerald");
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        struct xti_plan p = plan_of(row[i].line, &t);
        ck_assert_str_eq(xti_plan_strategy(&p), row[i].strategy);
        free_plan(&p);
    }
}
END_TEST

START_TEST(a_chain_gets_its_strategy)
{
    struct xti_plan p = plan_of(chosen[_i].line, &cpu);
    ck_assert_msg(!strcmp(xti_plan_strategy(&p), chosen[_i].strategy), "%s: %s, not %s", chosen[_i].line,
                  xti_plan_strategy(&p), chosen[_i].strategy);
    free_plan(&p);
}
END_TEST

START_TEST(every_strategy_is_chosen_by_some_chain)
{
    for (int i = 0; i < XTI_N_STRATEGIES; i++) {
        bool found = false;
        for (size_t k = 0; k < sizeof chosen / sizeof *chosen; k++)
            found |= !strcmp(chosen[k].strategy, xti_cpu_strategies[i].name);
        ck_assert_msg(found, "%s", xti_cpu_strategies[i].name);
    }
}
END_TEST

START_TEST(where_no_kernel_turns_pixels_they_go_through_a_buffer)
{
    struct xti_target neon = cpu;
    neon.isa = XTI_ISA_NEON;
    struct xti_plan p = plan_of("x: u8[4000,2000,3]; x.permute(1,0,2)", &neon);
    ck_assert_str_eq(xti_plan_strategy(&p), "buffered");
    free_plan(&p);
}
END_TEST

static const struct {
    const char *line, *strategy;
} columns[] = {
    {"x: f64[352,28,28,4,48]; x.permute(4,3,2,1,0)", "tile"}, /* wide columns that lie apart, */
    {"x: c128[4096,2048]; x.permute(1,0)", "tile"},           /* of 32 KiB, */
    {"x: f16[512,2,58593]; x.permute(2,1,0)", "tile"},
    {"x: f64[59,2320,384]; x.permute(0,2,1)", "transpose"}, /* one behind the other, */
    {"x: f64[352,28]; x.permute(1,0)", "transpose"},        /* in the cache; */
    {"x: f32[608,75,12,96]; x.permute(3,2,1,0)", "transpose"},
    {"x: f32[28,28,28,48,48]; x.permute(2,0,4,1,3)", "tile"}, /* short ones */
    {"x: f16[1856,64,500]; x.permute(2,1,0)", "transpose"},
    {"x: f16[1875,64,500]; x.permute(2,1,0)", "tile"}, /* of each, every second begins on a line */
    {"x: c128[77,13601]; x.permute(1,0)", "buffered"},
    {"x: f16[50,794534]; y: f16[50,397267]; concat(1, y, x).permute(1,0)", "buffered"}, /* apart */
    {"x: f16[9,794534]; y: f16[9,794534]; concat(0, x, y).permute(1,0)", "transpose"}, /* not */
    {"x: c128[4,68197,36]; x[:, 14063:51898, 1::2]", "strided"}, /* a part of each line */
    {"x: c128[600000,1]; x.expand(600000,3)", "interleave"},
};

START_TEST(columns_are_tiles_or_transposed_by_where_they_lie)
{
    struct xti_target t = cpu_without("joint");
    struct xti_plan p = plan_of(columns[_i].line, &t);
    ck_assert_str_eq(xti_plan_strategy(&p), columns[_i].strategy);
    const struct xti_step *step = p.step;
    if (step->store.stream && step->kernel == XTI_CPU_TRANSPOSE)
        ck_assert_int_le((step->tile.rows ? step->tile.rows : step->row.n) * step->unit, 8192);
    free_plan(&p);
}
END_TEST

/* chain, runs that are fetched, at least, blocks in a group */
static const struct {
    const char *line;
    int64_t run, blocks;
} grouped[] = {
    {"x: u8[60,15,15,32,15,32]; x.permute(2,0,4,1,5,3)", 15 * 32 * 32, 15},
    {"x: u8[300,96,75,96]; x.permute(2,0,3,1)", 1440, 15},
    {"x: u8[384,75,96,160]; x.permute(2,1,0,3)", 640, 1},      /* long ones already */
    {"x: u8[112,28,48,28,48]; x.permute(1,3,0,4,2)", 672, 14}, /* blocks of four squares */
};

START_TEST(blocks_of_short_runs_are_fetched_in_groups_of_long_ones)
{
    struct xti_target many = cpu_without("braid");
    struct xti_plan p = plan_of(grouped[_i].line, &many);
    const struct xti_step *step = p.step;
    const struct xti_runs *in = &step->stage.blocks->part->in;
    int64_t blocks = 1;
    for (int i = step->stage.group; i < step->n_loops; i++)
        blocks *= step->loop[i].n;
    ck_assert_int_ge(in->bytes, grouped[_i].run);
    ck_assert_int_le(in->bytes * in->n_runs, cpu.l2_bytes / 7);
    ck_assert_int_eq(blocks, grouped[_i].blocks);
    free_plan(&p);
}
END_TEST

static const struct {
    const char *line, *strategy;
} short_ones[] = {
    {"x: f64[8000000,3]; x.flip(0).permute(1,0)", "gather"},
    {"x: f64[5000000,4]; x[:, :3].permute(1,0)", "strided"},
    {"x: f64[7,1500000,3]; x.permute(2,1,0) -> [3,1500000,7]:[12000000,8,1]+0", "transpose"},
    {"x: f64[7,60000000,3]; x.permute(2,1,0)", "transpose"}, /* too far apart for a list */
    {"x: f64[3000000,8]; x.flip(0).permute(1,0)", "transpose"},
    {"x: f16[400000,20,8]; x[::-2, ::2].permute(1,0,2)", "gather"},
    {"x: f16[30000,33,40,2]; x.permute(0,1,3,2)", "deinterleave"},
    {"x: f32[500000,9,13]; x.permute(0,2,1)", "transpose"},
    {"x: f32[50,1080,7,8,10]; x.permute(1,2,0,4,3)", "buffered"}, /* far apart */
    {"x: f32[1000000,33,3]; x.flip(1)", "mirror"},
    {"x: u8[150150,333,3]; x.permute(1,0,2).flip(0)", "turn"},
};

START_TEST(short_runs_go_by_units_or_straight)
{
    struct xti_plan p = plan_of(short_ones[_i].line, &cpu);
    ck_assert_str_eq(xti_plan_strategy(&p), short_ones[_i].strategy);
    free_plan(&p);
}
END_TEST

/* run, columns of a call, rows of it, loops */
static const struct {
    const char *line;
    int64_t run, strands, rows;
} braided[] = {
    {"x: u8[384,75,96,80]; x.permute(2,1,0,3)", 80, 4, 96},       /* 5 lines */
    {"x: u8[192,28,28,48,32]; x.permute(1,3,2,0,4)", 32, 4, 144}, /* 2; of 3 rows of the next dim */
    {"x: u8[1536,64,2144]; x.permute(1,0,2)", 2144, 2, 2},
    {"x: u8[640,640,50]; x.permute(1,0,2)", 50, 16, 82},          /* 32 are whole lines */
    {"x: u8[1000,1000,96]; x.permute(1,0,2)[:, 1:]", 96, 16, 43}, /* ragged */
};

START_TEST(short_runs_are_read_along_a_few_strands)
{
    struct xti_plan p = plan_of(braided[_i].line, &cpu);
    const struct xti_step *step = p.step;
    ck_assert_str_eq(xti_plan_strategy(&p), "braid");
    ck_assert_int_eq(step->unit, braided[_i].run);
    ck_assert_int_eq(step->tile.cols, braided[_i].strands);
    ck_assert_int_eq(step->tile.rows, braided[_i].rows);
    free_plan(&p);
}
END_TEST

/* Where gathers of 4 bytes and more come cheaper than windows: chain, what copies it there and elsewhere. */
static const struct {
    const char *line, *gathers, *windows;
} by_gathers[] = {
    {"x: f16[8,2000000,2]; x.flip(2).permute(1,0,2)", "mosaic", "mosaic"}, /* two bytes: no gather */
    {"x: f32[1048576,4,4]; x.permute(0,2,1)", "mosaic", "mosaic"},         /* but for mosaics, a transpose */
    {"x: f64[512,2,15,96,2,2]; x.permute(2,3,5,0,1,4)", "gather", "mosaic"},
    {"x: f64[320,56,49,2,2,2]; x[:, :, :, 1:].permute(0,5,2,3,1,4)", "gather", "permuted"},
    {"x: c128[7,56,2,4,370]; x.permute(1,4,0,3,2)", "tile", "tile"}, /* a window for each unit */
};

START_TEST(wide_units_are_gathered_where_that_comes_cheaper_than_windows)
{
    struct xti_machine gathers = plain;
    struct xti_target t = cpu;
    t.machine = &gathers;
    gathers.habits.gathers = 4;
    struct xti_plan a = plan_of(by_gathers[_i].line, &t), b = plan_of(by_gathers[_i].line, &cpu);
    ck_assert_str_eq(xti_plan_strategy(&a), by_gathers[_i].gathers);
    ck_assert_str_eq(xti_plan_strategy(&b), by_gathers[_i].windows);
    free_plan(&a);
    free_plan(&b);
}
END_TEST

/* chain, whether it goes block by block, each a mosaic */
static const struct {
    const char *line;
    bool mosaics;
} by_windows[] = {
    {"x: f16[106868,12,7]; x.permute(0,2,1)", true},             /* else they are gathered */
    {"x: u8[94647,7,13,13]; x.permute(0,1,3,2)", true},          /* .. */
    {"x: f16[820896,7,12]; x[:, :, ::2].permute(2,0,1)", false}, /* from too many windows */
    {"x: u8[934896,20,5]; x.flip(2)", true},                     /* short rows backwards, */
    {"x: f32[504011,3,12]; x.flip(2)", false},                   /* longer ones */
    {"x: f64[201845,5,3]; x.permute(0,2,1)", true},              /* small squares, */
    {"x: f32[33,30,20,33,13,8]; x.permute(0,1,2,3,5,4)", false}, /* larger ones */
    {"x: u8[39441,16,5,13,3]; x.permute(0,1,3,2,4)", true},      /* short runs, */
    {"x: u8[9441,16,5,13,12]; x.permute(0,1,3,2,4)", false},     /* longer ones */
    {"x: f64[50738,32,1]; x.expand(50738,32,4)", false},         /* one unit again and again */
};

static const struct xti_mosaic *table_of(const struct xti_step *step, int block)
{
    const struct xti_inner *inner = step->stage.blocks->block[block / 2][block % 2].inner;
    return inner ? inner->mosaic : NULL;
}

START_TEST(blocks_whose_lines_lie_in_few_windows_are_mosaics)
{
    struct xti_plan p = plan_of(by_windows[_i].line, &cpu);
    bool mosaics = p.step->stage.serves && p.step->stage.blocks->block[0][0].inner->mosaic;
    ck_assert_msg(mosaics == by_windows[_i].mosaics, "%s", by_windows[_i].line);
    for (int i = 0; i < 4 && p.step->stage.serves; i++) /* vectors want their indices on lines */
        ck_assert((uintptr_t)table_of(p.step, i) % XTI_LINE == 0);
    free_plan(&p);
}
END_TEST

/* clang-format off */
static const struct {
    const char *line;
    int parts, steps; /* 0 parts: each piece by itself */
} joined[] = {
    {"x: f32[9,300000]; x.pad((2,3),(2,3)).permute(1,0)",              1, 3}, /* fills before and behind */
    {"x: f32[9,300000]; x.permute(1,0).pad((0,0),(2,3))",              1, 1},
    {"x: f32[9,300000]; x.permute(1,0).pad((0,0),(2,3), value=7)",     1, 1},
    {"x: f32[9,300000]; x.permute(1,0).pad((0,0),(2,0)).pad((0,0),(0,3), value=7)", 0, 3}, /* two values */
    {"x: f64[13,77,2338]; x.pad((3,0),(0,2),(3,3)).permute(2,1,0)",    1, 4}, /* rows 77 by 77 */
    {"x: c128[8,58454]; y: c128[2,58454]; concat(0, y, x).permute(1,0)", 2, 1},
    {"x: f32[300,8706]; x.permute(1,0).pad((0,0),(2,0))",              0, 2}, /* rows of 1208 bytes */
    {"x: u8[187315,56]; x.pad((1,2),(3,3))",                           1, 3},
    {"x: u8[187315,56]; x.pad((0,0),(3,3))",                           1, 1},
    {"x: f64[237681,86]; x.pad((2,3),(1,0))",                          0, 4}, /* merged is faster */
    {"x: f32[7,4885,80]; x.permute(1,0,2).pad((1,0),(0,0),(2,1))",     1, 2}, /* .. in another order */
    {"x: f32[9,3000]; x.permute(1,0).pad((0,0),(2,3))",                0, 3}, /* stays in the cache */
    {"x: u8[40849,8,306]; x.flip(1)",                                  0, 1}, /* one piece */
    {"x: f32[154,700,32]; y: f32[154,700,16]; concat(2, x, y).permute(1,0,2)", 0, 2}, /* whole lines */
    {"x: f32[154,700,32]; y: f32[154,700,17]; concat(2, x, y).permute(1,0,2)", 2, 1},
    {"x: f32[7000,40,5]; x.pad((0,0),(0,0),(0,5)).reshape(7000,400).reshape(2800000).pad((0,20))", 1, 2},
    {"x: f32[7000,40,5]; x.pad((0,0),(0,0),(0,5)).reshape(7000,400)[:, :395].reshape(2765000).pad((0,20))",
     0, 3}, /* the last of 40 rows is shorter */
};
/* clang-format on */

START_TEST(pieces_that_make_up_short_rows_are_one_step)
{
    struct xti_target without = cpu_without("joint");
    struct xti_plan p = plan_of(joined[_i].line, &cpu), apart = plan_of(joined[_i].line, &without);
    ck_assert_msg(p.joint.n == joined[_i].parts && p.n_steps == joined[_i].steps, "%s: %d, %d",
                  joined[_i].line, p.joint.n, p.n_steps);
    ck_assert(!apart.joint.n && apart.n_steps == apart.map.n_pieces);
    int64_t bytes = 0;
    for (int i = 0; i < p.joint.n; i++)
        bytes += xti_piece_numel(&p.map.piece[p.joint.piece[i]]) * p.map.esize;
    for (int k = 1; k < p.n_steps && p.joint.n; k++) {
        ck_assert_int_lt(p.map.piece[p.step[k].piece].src, 0);
        bytes += p.step[k].bytes;
    }
    ck_assert(bytes <= p.bytes_written); /* some of the fill is in the rows */
    ck_assert(!p.joint.n || (p.step->stage.serves && p.step->stage.blocks->n_parts == p.joint.n));
    ck_assert(!p.joint.n || !p.step->stage.blocks->value == !p.joint.fills);
    free_plan(&p);
    free_plan(&apart);
}
END_TEST

/* The first part reads the same bytes again and again, the other one, in as many dims, never. */
START_TEST(a_group_holds_what_every_part_of_it_reads)
{
    enum { DIMS = 23, PITCH = 70, EACH = 16 };
    char near[DIMS * EACH] = "", far[DIMS * EACH] = "", ext[DIMS * EACH] = "", line[5 * DIMS * EACH];
    for (int i = 0; i < DIMS; i++) {
        strcat(ext, "2,");
        strcat(near, "1,");
        snprintf(far + strlen(far), EACH, "%d,", PITCH << (DIMS - 1 - i));
    }
    snprintf(line, sizeof line, "x: u8[%s16]:[%s1]; y: u8[%s4]:[%s1]; concat(%d, x, y)", ext, near, ext, far,
             DIMS);
    struct xti_plan p = plan_of(line, &cpu);
    ck_assert_int_eq(p.joint.n, 2);
    for (int k = 0; k < p.joint.n; k++) {
        const struct xti_runs *in = &p.step->stage.blocks->part[k].in;
        ck_assert(in->n_dims < XTI_BLOCK_DIMS && in->bytes * in->n_runs <= cpu.l2_bytes);
    }
    free_plan(&p);
}
END_TEST

START_TEST(a_copy_of_any_size_has_a_plan)
{
    static const char *const line[] = {
        "x: u8[1]; x.expand(2305843009213693952)",
        "x: u8[4,1]; x.expand(4,1305843009213693952)",
        "x: f64[64,1]; x.expand(64,14411518807585587).permute(1,0).flip(0)",
    };
    struct xti_plan p = plan_of(line[_i], &cpu);
    ck_assert_int_eq(p.n_steps, 1);
    free_plan(&p);
}
END_TEST

START_TEST(a_line_of_windows_that_overlap_serves_few_rows)
{
    struct xti_plan p = plan_of("x: u8[1024,16,8,8,8]:[32768,1,1,4096,2]; x", &cpu);
    ck_assert_str_eq(xti_plan_strategy(&p), "mosaic");
    ck_assert_int_eq(p.step->tile.rows, 128);
    ck_assert_int_eq(p.step->visit.together, 16);
    free_plan(&p);
}
END_TEST

START_TEST(a_plan_priced_far_above_its_lines_gives_way)
{
    struct xti_target t = cpu;
    t.machine = xti_machine_named("zen4");
    t.threads = 1;
    t.isa = XTI_ISA_AVX512;
    t.l1_bytes = t.machine->l1_bytes, t.l2_bytes = t.machine->l2_bytes, t.l3_bytes = t.machine->l3_bytes;
    struct xti_plan p = plan_of("x: u8[694,10,179,9,6]; x.flip(0).permute(1,2,0,4,3)", &t);
    t.choice.first = 1;
    struct xti_plan dear = plan_of("x: u8[694,10,179,9,6]; x.flip(0).permute(1,2,0,4,3)", &t);
    ck_assert_str_eq(xti_plan_strategy(&dear), "gather");
    ck_assert_str_eq(xti_plan_strategy(&p), "mosaic");
    free_plan(&p);
    free_plan(&dear);
}
END_TEST

START_TEST(each_refused_strategy_says_why)
{
    struct xti_plan p = plan_of("x: f32[64,48]; x.permute(1,0)", &cpu);
    struct xti_str b = {0};
    xti_plan_refusals(&p, &b);
    ck_assert_ptr_nonnull(strstr(b.s, "piece 0: memcpy: 2 dims beside the run of 4 B\n"));
    ck_assert_ptr_nonnull(strstr(b.s, "piece 0: fill: reads a source\n"));
    ck_assert_ptr_null(strstr(b.s, "transpose:"));
    xti_str_free(&b);
    free_plan(&p);
}
END_TEST

START_TEST(units_are_as_wide_as_the_inner_run)
{
    struct xti_plan p = plan_of("x: f16[64,128,4]; x.permute(1,0,2)", &cpu);
    ck_assert_int_eq(p.step[0].unit, 8);
    free_plan(&p);
}
END_TEST

START_TEST(only_ordinary_stores_past_the_first_cache_are_fetched_ahead)
{
    static const struct {
        const char *line;
        bool ahead;
    } copies[] = {{"x: f32[60,68]; x.permute(1,0)", false},    /* both fit in the first cache */
                  {"x: f32[64,68]; x.permute(1,0)", true},     /* just not */
                  {"x: f32[1000,1000]; x.permute(1,0)", true}, /* the second */
                  {"x: f32[3200,3200]; x.permute(1,0)", false} /* streamed */};
    struct xti_target fetches = cpu;
    struct xti_machine m = plain;
    fetches.machine = &m;
    m.habits.prefetch_writes = true;
    for (size_t i = 0; i < sizeof copies / sizeof *copies; i++)
        for (int asked = 0; asked < 2; asked++) {
            struct xti_plan p = plan_of(copies[i].line, asked ? &fetches : &cpu);
            ck_assert_msg(p.step[0].store.prefetch_writes == (asked && copies[i].ahead), "%s",
                          copies[i].line);
            free_plan(&p);
        }
}
END_TEST

START_TEST(transposes_whose_rows_share_sets_move_whole_lines)
{
    static const struct {
        const char *line;
        bool squares;
    } copies[] = {{"x: f32[256,512]; x.permute(1,0)", true},
                  {"x: f32[1024,512]; x.permute(1,0)", true}, /* one set of all rows */
                  {"x: f32[512,512]; x.permute(1,0)", true},  /* two of them */
                  {"x: u8[2048,512]; x.permute(1,0)", true},
                  {"x: f64[512,512]; x.permute(1,0)", true},   /* squares of few rows */
                  {"x: f32[1024,1024]; x.permute(1,0)", true}, /* columns share a set, too */
                  {"x: f16[1024,512]; x.permute(1,0)", true},
                  {"x: f16[1024,1024]; x.permute(1,0)", true},
                  {"x: f16[2048,1024]; x.permute(1,0)", true}, /* twice as many rows share one */
                  {"x: u8[1024,512]; x.permute(1,0)", true},
                  {"x: u8[2048,2048]; x.permute(1,0)", true},
                  {"x: c128[256,256]; x.permute(1,0)", true},
                  {"x: f32[250,512]; x.permute(1,0)", true},    /* the source's rows alone share sets */
                  {"x: f32[250,510]; x.permute(1,0)", true},    /* nothing does */
                  {"x: f32[1250,510]; x.permute(1,0)", false},  /* .. beyond the second cache */
                  {"x: f32[18,510]; x.permute(1,0)", false},    /* squares twice as high */
                  {"x: f32[64,128]; x.permute(1,0)", true},     /* about the first cache */
                  {"x: f32[65,100]; x.permute(1,0)", false},    /* .. which they fit badly */
                  {"x: f32[4096,4096]; x.permute(1,0)", false}, /* streamed */
                  {"x: f32[1024,2048]; x.permute(1,0)", false}, /* in the third cache */
                  {"x: f32[1040,2048]; x.permute(1,0)", false}};
    struct xti_target early = cpu;
    struct xti_machine m = plain;
    early.machine = &m;
    m.habits.early_stores = true;
    for (size_t i = 0; i < sizeof copies / sizeof *copies; i++) {
        struct xti_plan p = plan_of(copies[i].line, &early);
        ck_assert_msg(p.step[0].store.squares == copies[i].squares, "%s", copies[i].line);
        free_plan(&p);
    }
}
END_TEST

START_TEST(transposes_of_parts_of_lines_are_not_streamed)
{
    struct xti_plan half = plan_of("x: f32[8,1048576]; x.T -> [1048576,8]:[16,1]", &cpu);
    struct xti_plan whole = plan_of("x: f32[16,1048576]; x.T -> [1048576,16]:[32,1]", &cpu);
    ck_assert(!half.step[0].store.stream);
    ck_assert(whole.step[0].store.stream);
    free_plan(&half);
    free_plan(&whole);
}
END_TEST

START_TEST(only_copies_past_the_cache_stream)
{
    struct xti_plan p = plan_of("x: f32[1000,1000]; x.permute(1,0)", &cpu);
    ck_assert(!p.step[0].store.stream);
    free_plan(&p);
    p = plan_of("x: f32[3200,3200]; x.permute(1,0)", &cpu);
    ck_assert(p.step[0].store.stream);
    ck_assert_int_gt(p.step[0].tile.rows, 0);
    free_plan(&p);
    p = plan_of("x: f32[3201,3201]; x.permute(1,0)", &cpu); /* rows do not begin on lines */
    ck_assert(p.step[0].store.stream);
    ck_assert_str_eq(xti_plan_strategy(&p), "tile");
    free_plan(&p);
}
END_TEST

START_TEST(threads_do_not_cut_the_rows_of_weaves)
{
    static const char *const line[] = {"x: f32[312498,8]; x.permute(1,0)",
                                       "x: f32[8,312498]; x.permute(1,0)"};
    struct xti_target t = cpu;
    t.threads = 2;
    for (int i = 0; i < 2; i++) {
        struct xti_plan p = plan_of(line[i], &t);
        ck_assert_str_eq(xti_plan_strategy(&p), i ? "interleave" : "deinterleave");
        ck_assert_int_ge(p.step[0].split, 0);
        for (int k = 0; k < p.step[0].n_loops; k++)
            ck_assert_int_ne(p.step[0].loop[k].cuts, XTI_CUTS_ROW);
        free_plan(&p);
    }
}
END_TEST

/* clang-format off */
static const struct {
    const char *line;
    bool assembled;
} lines_shared[] = {
    {"x: f32[16,32,64,64]; x.pad((0,0),(0,0),(1,1),(1,1))",                    true},
    {"x: f32[4,32,64,64]; x.pad((0,0),(0,0),(1,1),(1,1))",                     false}, /* fits the cache */
    {"x: f32[4,1024,1024]; x.tril(0)",                                         true},
    {"x: f32[40000,64]; x[:, :63]",                                            true},
    {"x: f32[40000,128]; x[:, :64]",                                           false}, /* whole lines */
    {"x: f32[40000,64]; x[:, :63] -> [40000,63]:[64,1]+0",                     false}, /* lines with gaps */
    {"x: f32[80000,33]; y: f32[80000,31]; concat(1, x, y)",                    true},
    {"x: f32[400,16390]; x[:, :16383]",                                        false}, /* rows are long */
    {"x: f32[63,40000]; x.permute(1,0)",                                       false},
    {"x: f32[400,400,17]; x.permute(1,0,2)",                                   false}, /* a braid */
    {"x: f32[401,400,17]; x.permute(1,0,2)",                                   false}, /* ragged */
    {"x: f32[400,400,17]; y: f32[400,400,17]; concat(2, x, y).permute(1,0,2)", true},
    {"x: u8[40000,80,3]; x.permute(1,0,2)",                                    false}, /* runs of 3 B */
};
/* clang-format on */

/* What is streamed straight to the destination. */
static const struct {
    const char *line;
    bool assembled;
} parts[] = {
    {"x: f16[4000,80,63]; x.flip(1)", true},                 /* short runs */
    {"x: f16[2000,80,163]; x.flip(1)", false},               /* long ones */
    {"x: f16[2000,80,163]; x.pad((0,0),(0,0),(1,0))", true}, /* .. that take turns with fills */
    {"x: f64[2048,9,1138]; x[:, :, 1::4]", false},           /* units one by one */
    {"x: f16[80000,67]; x.flip(1)", false},
    {"x: f16[80000,67]; x.flip(1).pad((0,0),(1,0))", true},   /* .. but few of a row, .. */
    {"x: f16[40000,167]; x.flip(1).pad((0,0),(1,0))", false}, /* .. and many */
    {"x: u8[4,30,250,1024,3]; x.flip(3)[:, :, :, 1:]", true}, /* groups */
};

START_TEST(units_and_long_rows_are_not_put_together_in_a_buffer)
{
    struct xti_target t = cpu_without("joint");
    struct xti_plan p = plan_of(parts[_i].line, &t);
    ck_assert_msg(p.assembled == parts[_i].assembled, "%s", parts[_i].line);
    free_plan(&p);
}
END_TEST

START_TEST(rows_that_share_lines_are_put_together_in_a_buffer)
{
    struct xti_target t = cpu_without("joint");
    struct xti_plan p = plan_of(lines_shared[_i].line, &t);
    ck_assert_msg(p.assembled == lines_shared[_i].assembled, "%s", lines_shared[_i].line);
    for (int k = 0; k < p.n_steps && p.assembled; k++) {
        ck_assert(!p.step[k].store.stream && xti_order_nests(&p.step[k]));
        for (int l = 0; l < p.step[k].n_loops; l++)
            ck_assert(p.step[k].loop[l].cuts == XTI_CUTS_NONE && p.step[k].loop[l].d > 0);
    }
    free_plan(&p);
}
END_TEST

/* What is made without a stage, and what in a buffer. */
START_TEST(narrow_tiles_go_the_way_that_their_rows_and_columns_want)
{
    static const struct {
        const char *line;
        bool unstaged;
    } want[] = {
        {"x: u8[128,15,15,15,15,32]; x.permute(5,4,3,2,1,0)", true},
        {"x: f16[30,15,32,15,5,112]; x.permute(1,4,0,5,3,2)", true},
        {"x: u8[192,28,28,4,352]; x.permute(4,3,2,1,0)", false},
        {"x: u8[60,15,32,15,5,112]; x.permute(1,4,0,5,3,2)", true},
        {"x: u8[300,12,608,96]; x.permute(1,0,3,2)", true},
        {"x: u8[60,15,112,15,5,32]; x.permute(1,4,0,5,3,2)", true},  /* long rows */
        {"x: u8[30,15,112,15,10,32]; x.permute(1,4,0,5,3,2)", true}, /* .. of more */
        {"x: u8[60,15,96,16,5,32]; x.permute(1,4,0,5,3,2)", false},   /* .. on lines */
        {"x: u8[60,15,103,15,10,16]; x.permute(4,1,0,3,2,5)", false},
        {"x: f32[31,23,103,30,22]; x.permute(1,0,4,3,2)", true},
        {"x: f64[31,23,103,30,11]; x.permute(1,0,4,3,2)", true},
        {"x: c128[31,23,53,30,11]; x.permute(1,0,4,3,2)", false},
        {"x: f64[31,23,103,32,16]; x.permute(1,0,4,3,2)", false}, /* columns that share sets */
        /* gaps */
        {"x: u8[60,25,40,33,96]; x[:,:,:,:30].permute(1,4,0,3,2)", true},
    };
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        struct xti_plan p = plan_of(want[i].line, &cpu);
        ck_assert_str_eq(xti_plan_strategy(&p), "tile");
        ck_assert_msg(p.step[0].store.unstaged == want[i].unstaged, "%s", want[i].line);
        free_plan(&p);
    }
}
END_TEST

/* ---- coverage: the loops of a step, executed slowly, visit exactly the units of its piece */

struct visit {
    int64_t d, s;
};

static int by_address(const void *a, const void *b)
{
    const struct visit *x = a, *y = b;
    return (x->d > y->d) - (x->d < y->d);
}

/* The whole extent of dim k, a list's: its outermost dim may be taken in blocks. */
static int64_t listed(const struct xti_step *step, int k)
{
    int cuts = k == step->n_loops && step->list.row_dims  ? XTI_CUTS_ROW
               : k == step->n_loops + step->list.row_dims ? XTI_CUTS_COL
                                                          : XTI_CUTS_NONE;
    for (int i = 0; i < step->n_loops; i++)
        if (cuts != XTI_CUTS_NONE && step->loop[i].cuts == cuts)
            return step->loop[i].whole;
    return step->loop[k].n;
}

/* A loop nest of a step with its blocked loops left out, as these only regroup the points of others. */
static int64_t list_step(const struct xti_step *step, struct visit **out)
{
    struct xti_loop loop[XTI_MAX_LOOPS + 3];
    int n_loops = 0;
    for (int k = 0; k < step->n_loops; k++)
        if (step->loop[k].cuts == XTI_CUTS_NONE)
            loop[n_loops++] = step->loop[k];
    for (int k = step->n_loops; k < step->n_loops + step->list.row_dims + step->list.col_dims; k++) {
        loop[n_loops] = step->loop[k];
        loop[n_loops++].n = listed(step, k);
    }
    if (!step->list.row_dims)
        loop[n_loops++] = step->row;
    if (!step->list.col_dims)
        loop[n_loops++] = step->col;
    if (step->kernel == XTI_CPU_MIRROR || step->kernel == XTI_CPU_TURN)
        loop[n_loops++] = (struct xti_loop){.n = step->param, .s = step->unit, .d = step->unit};
    int64_t n = 1;
    *out = calloc(1, sizeof **out);
    **out = (struct visit){step->d_byte, step->s_byte};
    for (int k = 0; k < n_loops; k++) {
        *out = realloc(*out, (size_t)(n * loop[k].n) * sizeof **out);
        for (int64_t i = n; i < n * loop[k].n; i++)
            (*out)[i] = (struct visit){(*out)[i - n].d + loop[k].d, (*out)[i - n].s + loop[k].s};
        n *= loop[k].n;
    }
    qsort(*out, (size_t)n, sizeof **out, by_address);
    return n;
}

struct check {
    const struct xti_plan *plan;
    struct visit *units[64];
    int64_t n[64], bytes;
    const char *line;
};

/* Every byte of the element is written by the step's unit that holds it, from the right place. */
static bool covered(void *arg, const struct xti_piece *x, int64_t d, int64_t s)
{
    struct check *c = arg;
    int k = (int)(x - c->plan->map.piece), e = c->plan->map.esize;
    const struct xti_step *step = &c->plan->step[k];
    c->bytes += e;
    for (int b = 0; b < e && !step->general; b++) {
        int64_t lo = 0, hi = c->n[k] - 1, at = d * e + b;
        while (lo < hi) {
            int64_t mid = (lo + hi + 1) / 2;
            if (c->units[k][mid].d <= at)
                lo = mid;
            else
                hi = mid - 1;
        }
        const struct visit *v = &c->units[k][lo];
        ck_assert_msg(v->d <= at && at < v->d + step->unit, "%s: byte %lld is not written by %s", c->line,
                      (long long)at, step->strategy->name);
        ck_assert_msg(x->src < 0 || v->s + at - v->d == s * e + b, "%s: %s", c->line, step->strategy->name);
    }
    return true;
}

START_TEST(every_step_covers_its_piece_once)
{
    struct xti_target t = cpu_without("joint,cover");
    for (int i = 0; i < 25; i++) {
        int seed = _i * 25 + i;
        if (seed % 2)
            t.l1_bytes = 64, t.l2_bytes = 128, t.l3_bytes = 256;
        struct random_graph_options opt = {.max_numel = 4096};
        struct xt_graph *g = random_graph((uint64_t)seed + 100000, &opt);
        struct xti_plan p = plan_of_graph(g, &t);
        struct check c = {.plan = &p, .line = graph_text(g)};
        int64_t written = 0, general = 0;
        ck_assert_int_eq(p.n_steps, p.map.n_pieces);
        if (p.n_steps <= 64) {
            for (int k = 0; k < p.n_steps; k++) {
                ck_assert_int_eq(p.step[k].piece, k);
                if (p.step[k].general) {
                    general++;
                    continue;
                }
                c.n[k] = list_step(&p.step[k], &c.units[k]);
                ck_assert_int_eq(c.n[k] * p.step[k].unit, p.step[k].bytes);
                written += p.step[k].bytes;
            }
            xti_map_visit(&p.map, covered, &c);
            ck_assert_int_eq(c.bytes, p.bytes_written);
            ck_assert(general || written == p.bytes_written);
            for (int k = 0; k < p.n_steps; k++)
                free(c.units[k]);
        }
        free_plan(&p);
        xt_graph_free(g);
    }
}
END_TEST

START_TEST(blocked_loops_cut_what_comes_after_them)
{
    for (int i = 0; i < 200; i++) {
        struct xti_target t = cpu;
        t.l1_bytes = 64, t.l2_bytes = 128, t.l3_bytes = 256;
        struct random_graph_options opt = {.max_numel = 20000};
        struct xt_graph *g = random_graph((uint64_t)i + 5000, &opt);
        struct xti_plan p = plan_of_graph(g, &t);
        for (int k = 0; k < p.n_steps; k++)
            for (int l = 0; l < p.step[k].n_loops; l++) {
                const struct xti_loop *x = &p.step[k].loop[l];
                if (x->cuts == XTI_CUTS_NONE)
                    continue;
                const struct xti_loop *cut = x->cuts == XTI_CUTS_ROW   ? &p.step[k].row
                                             : x->cuts == XTI_CUTS_COL ? &p.step[k].col
                                                                       : &p.step[k].loop[x->cuts];
                ck_assert_msg(x->cuts < 0 || x->cuts > l, "%s", graph_text(g));
                if (x->each) /* of a list, which has a block's entries */
                    ck_assert(cut->n == x->block * x->each && !cut->s && !cut->d);
                else
                    ck_assert(cut->n == x->whole && cut->s == x->s && cut->d == x->d);
                ck_assert(x->n * x->block >= x->whole && (x->n - 1) * x->block < x->whole);
            }
        free_plan(&p);
        xt_graph_free(g);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("plan");
    TCase *t = tcase_create("plan");
    tcase_set_timeout(t, 300);
    tcase_add_loop_test(t, a_destination_inside_a_line_may_have_a_plan_of_its_own, 0,
                        sizeof begins / sizeof *begins);
    tcase_add_test(t, small_squares_are_gathered);
    tcase_add_loop_test(t, a_chain_gets_its_strategy, 0, sizeof chosen / sizeof *chosen);
    tcase_add_test(t, every_strategy_is_chosen_by_some_chain);
    tcase_add_test(t, where_no_kernel_turns_pixels_they_go_through_a_buffer);
    tcase_add_loop_test(t, columns_are_tiles_or_transposed_by_where_they_lie, 0,
                        sizeof columns / sizeof *columns);
    tcase_add_loop_test(t, short_runs_go_by_units_or_straight, 0, sizeof short_ones / sizeof *short_ones);
    tcase_add_loop_test(t, blocks_of_short_runs_are_fetched_in_groups_of_long_ones, 0,
                        sizeof grouped / sizeof *grouped);
    tcase_add_loop_test(t, short_runs_are_read_along_a_few_strands, 0, sizeof braided / sizeof *braided);
    tcase_add_loop_test(t, wide_units_are_gathered_where_that_comes_cheaper_than_windows, 0,
                        sizeof by_gathers / sizeof *by_gathers);
    tcase_add_loop_test(t, blocks_whose_lines_lie_in_few_windows_are_mosaics, 0,
                        sizeof by_windows / sizeof *by_windows);
    tcase_add_loop_test(t, pieces_that_make_up_short_rows_are_one_step, 0, sizeof joined / sizeof *joined);
    tcase_add_test(t, a_group_holds_what_every_part_of_it_reads);
    tcase_add_loop_test(t, a_copy_of_any_size_has_a_plan, 0, 3);
    tcase_add_test(t, a_line_of_windows_that_overlap_serves_few_rows);
    tcase_add_test(t, a_plan_priced_far_above_its_lines_gives_way);
    tcase_add_test(t, each_refused_strategy_says_why);
    tcase_add_test(t, units_are_as_wide_as_the_inner_run);
    tcase_add_test(t, transposes_whose_rows_share_sets_move_whole_lines);
    tcase_add_test(t, transposes_of_parts_of_lines_are_not_streamed);
    tcase_add_test(t, only_copies_past_the_cache_stream);
    tcase_add_test(t, only_ordinary_stores_past_the_first_cache_are_fetched_ahead);
    tcase_add_test(t, threads_do_not_cut_the_rows_of_weaves);
    tcase_add_loop_test(t, rows_that_share_lines_are_put_together_in_a_buffer, 0,
                        sizeof lines_shared / sizeof *lines_shared);
    tcase_add_loop_test(t, units_and_long_rows_are_not_put_together_in_a_buffer, 0,
                        sizeof parts / sizeof *parts);
    tcase_add_test(t, narrow_tiles_go_the_way_that_their_rows_and_columns_want);
    tcase_add_loop_test(t, every_step_covers_its_piece_once, 0, 20);
    tcase_add_test(t, blocked_loops_cut_what_comes_after_them);
    tcase_add_loop_test(t, a_processor_has_its_row_and_an_unknown_one_the_careful_one, 0,
                        sizeof processors / sizeof *processors);
    suite_add_tcase(s, t);
    return run_suite(s);
}
