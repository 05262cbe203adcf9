/* test_ptx_text.c: hand-written PTX: what is refused when loaded, what a launch has to fit, every fault, and
 * the counts of sectors and wavefronts. Needs no CUDA. */
#include "testing.h"

static uint32_t src[4096], dst[4096];

static void fill(void)
{
    fill_random(src, sizeof src, 42);
    memset(dst, 0, sizeof dst);
}

static struct ptx_world *words(size_t n_dst, size_t n_src)
{
    return ptx_world_new((struct ptx_buffer[]){{dst, n_dst * 4, 1, 0, NULL}, {src, n_src * 4, 0, 0, NULL}},
                         2);
}

static struct ptx_param both[2];

static struct ptx_launch launch(const char *entry, uint32_t x, uint32_t y)
{
    both[0] = pointer_to(0, 0), both[1] = pointer_to(1, 0);
    return (struct ptx_launch){entry, {1, 1, 1}, {x, y, 1}, 0, both, 2, 0};
}

START_TEST(guarded_copy_writes_each_word_once_and_counts_sectors)
{
    uint32_t n = 1000;
    struct ptx_module *m = load_file(KERNELS "copies.ptx");
    struct ptx_world *w = words(n, n);
    struct ptx_param params[] = {pointer_to(0, 0), pointer_to(1, 0), VALUE(n)};
    struct ptx_launch l = {"copy", {8, 1, 1}, {128, 1, 1}, 0, params, 3, 0};
    struct ptx_report r;
    fill();
    run_fine(w, m, &l, 1, &r);
    ck_assert_mem_eq(dst, src, n * 4);
    ck_assert_uint_eq(r.threads, 1024);
    ck_assert_uint_eq(r.warps, 32);
    ck_assert_uint_eq(r.blocks, 8);
    ck_assert_uint_eq(r.load_requests, 32);
    ck_assert_uint_eq(r.load_bytes, 4 * n);
    ck_assert_uint_eq(r.load_sectors, 4 * n / 32);
    ck_assert_uint_eq(r.store_sectors, 4 * n / 32);
    ck_assert_uint_eq(r.instructions, 1024 * 11 + 1000 * 6);
    ck_assert_uint_eq(r.warp_instructions, 32 * 17);
    ptx_world_free(w);
    ptx_free(m);
}
END_TEST

START_TEST(sectors_follow_stride_and_offset)
{
    static const struct {
        uint32_t stride;
        int64_t offset;
        uint64_t sectors;
    } cases[] = {{1, 0, 4},  {1, 4, 5},    {1, 32, 4}, {2, 0, 8},
                 {8, 0, 32}, {100, 0, 32}, {0, 8, 1},  {3, 0, 12}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint32_t stride = cases[i].stride;
        struct ptx_module *m = load_file(KERNELS "copies.ptx");
        struct ptx_world *w = words(32, 4096);
        struct ptx_param params[] = {pointer_to(0, 0), pointer_to(1, cases[i].offset), VALUE(stride)};
        struct ptx_launch l = {"strided", {1, 1, 1}, {32, 1, 1}, 0, params, 3, 0};
        struct ptx_report r;
        fill();
        run_fine(w, m, &l, 1, &r);
        ck_assert_msg(r.load_sectors == cases[i].sectors, "stride %u: %d sectors", stride,
                      (int)r.load_sectors);
        ck_assert_uint_eq(r.load_bytes, 128);
        ptx_world_free(w);
        ptx_free(m);
    }
}
END_TEST

START_TEST(tile_transposes_show_their_bank_conflicts)
{
    struct ptx_module *m = load_file(KERNELS "copies.ptx");
    for (int padded = 0; padded < 2; padded++) {
        struct ptx_world *w = words(1024, 1024);
        struct ptx_launch l = launch(padded ? "transpose_33" : "transpose_32", 32, 32);
        struct ptx_report r;
        uint64_t pointers[2] = {ptx_address(w, 0, 0), ptx_address(w, 1, 0)};
        struct ptx_param together = VALUE(pointers);
        l.shared_bytes = padded ? 0 : 4096;
        if (padded)
            l.params = &together, l.n_params = 1;
        fill();
        run_fine(w, m, &l, 1, &r);
        for (int i = 0; i < 1024; i++)
            ck_assert_uint_eq(dst[i], src[i % 32 * 32 + i / 32]);
        ck_assert_uint_eq(r.shared_store_wavefronts, r.shared_store_ideal);
        ck_assert_uint_eq(r.shared_load_ideal, 32);
        ck_assert_uint_eq(r.shared_load_wavefronts, padded ? 32 : 1024);
        ck_assert_uint_eq(r.barriers, 1);
        ck_assert_uint_eq(r.early_exits, 0);
        ptx_world_free(w);
    }
    ptx_free(m);
}
END_TEST

START_TEST(branch_table_takes_each_thread_its_own_way_and_back)
{
    struct ptx_module *m = load_file(KERNELS "copies.ptx");
    struct ptx_world *w = words(96, 96);
    struct ptx_launch l = launch("choose", 96, 1);
    struct ptx_report r;
    fill();
    run_fine(w, m, &l, 1, &r);
    for (uint32_t i = 0; i < 96; i++) {
        uint32_t want[5] = {src[i], 0 - src[i], src[i] * 2, src[i], 0};
        ck_assert_uint_eq(dst[i], want[i % 5]);
    }
    ck_assert_uint_eq(r.store_requests, 3); /* all lanes came together again */
    ptx_world_free(w);
    ptx_free(m);
}
END_TEST

START_TEST(struct_parameters_and_tables_may_be_indexed)
{
    static const uint32_t order[8] = {3, 1, 7, 5, 0, 2, 6, 4}, more[2] = {100, 200};
    int64_t offset[3] = {5, 0, 40};
    struct ptx_module *m = load_file(KERNELS "copies.ptx");
    struct ptx_world *w = words(64, 64);
    struct ptx_param params[] = {pointer_to(0, 0), pointer_to(1, 0), VALUE(offset)};
    struct ptx_launch l = {"tables", {1, 1, 1}, {64, 1, 1}, 0, params, 3, 0};
    struct ptx_report r;
    fill();
    run_fine(w, m, &l, 1, &r);
    for (uint32_t i = 0; i < 64; i++)
        ck_assert_uint_eq(dst[i], src[offset[i % 3]] + order[i % 8] + more[i % 2]);
    ptx_world_free(w);
    ptx_free(m);
}
END_TEST

START_TEST(lanes_that_loop_different_times_meet_at_the_barrier)
{
    struct ptx_module *m = load_file(KERNELS "copies.ptx");
    struct ptx_world *w = words(45, 45);
    struct ptx_launch l = launch("count", 45, 1);
    struct ptx_report r;
    fill();
    run_fine(w, m, &l, 1, &r);
    for (int i = 0; i < 45; i++)
        ck_assert_uint_eq(dst[i], src[i] % 100);
    ck_assert_uint_eq(r.store_requests, 2);
    ck_assert_uint_eq(r.barriers, 1);
    ptx_world_free(w);
    ptx_free(m);
}
END_TEST

START_TEST(a_barrier_does_not_wait_for_exited_threads_and_says_so)
{
    static const uint32_t sizes[] = {128, 100, 64, 1};
    for (size_t i = 0; i < 4; i++) {
        uint32_t n = sizes[i];
        struct ptx_module *m = load_file(KERNELS "copies.ptx");
        struct ptx_world *w = words(n, n);
        struct ptx_param params[] = {pointer_to(0, 0), pointer_to(1, 0), VALUE(n)};
        struct ptx_launch l = {"leave_early", {1, 1, 1}, {128, 1, 1}, 0, params, 3, 0};
        struct ptx_report r;
        fill();
        run_fine(w, m, &l, 1, &r);
        for (uint32_t k = 0; k < n; k++)
            ck_assert_uint_eq(dst[k], src[n - 1 - k]);
        ck_assert_uint_eq(r.barriers, 1);
        ck_assert_uint_eq(r.early_exits, n < 128);
        ptx_world_free(w);
        ptx_free(m);
    }
}
END_TEST

START_TEST(halves_of_a_warp_synchronise_apart)
{
    struct ptx_module *m = load_file(KERNELS "copies.ptx");
    struct ptx_world *w = words(32, 32);
    struct ptx_launch l = launch("halves", 32, 1);
    struct ptx_report r;
    fill();
    run_fine(w, m, &l, 1, &r);
    for (int i = 0; i < 32; i++)
        ck_assert_uint_eq(dst[i], src[i >= 16 ? 20 : i ? i - 1 : 0]);
    ptx_world_free(w);
    ptx_free(m);
}
END_TEST

START_TEST(warp_barriers_order_what_one_warp_does)
{
    struct ptx_module *m = load_file(KERNELS "copies.ptx");
    struct ptx_world *w = words(64, 64);
    struct ptx_launch l = launch("broadcast", 64, 1);
    struct ptx_report r;
    fill();
    run_fine(w, m, &l, 1, &r);
    for (uint32_t i = 0; i < 64; i++) {
        uint32_t sum = 0, word = src[i / 32 * 32];
        for (int k = 0; k < 3; k++, word = 3 * sum)
            sum += word;
        ck_assert_uint_eq(dst[i], sum);
    }
    ptx_world_free(w);
    ptx_free(m);
}
END_TEST

START_TEST(shared_vectors_are_counted_by_half_and_quarter_warps)
{
    struct ptx_module *m = load_file(KERNELS "copies.ptx");
    struct ptx_world *w = words(32, 32);
    struct ptx_launch l = launch("shared_vectors", 32, 1);
    struct ptx_report r;
    run_fine(w, m, &l, 1, &r);
    for (uint32_t i = 0; i < 32; i++)
        ck_assert_uint_eq(dst[i], i / 2 + (i % 2 ? 9 : i / 2) + i % 8 * 4);
    ck_assert_uint_eq(r.shared_store_wavefronts, 4);
    ck_assert_uint_eq(r.shared_store_ideal, 4);
    ck_assert_uint_eq(r.shared_load_ideal, 2 + 2);
    ck_assert_uint_eq(r.shared_load_wavefronts, 2 + 8); /* 4 lines of 32 words in each half warp's banks */
    ptx_world_free(w);
    ptx_free(m);
}
END_TEST

START_TEST(an_undefined_value_that_nobody_uses_is_no_fault)
{
    struct ptx_module *m = load_file(KERNELS "copies.ptx");
    struct ptx_world *w = words(32, 32);
    struct ptx_launch l = launch("partly_set", 32, 1);
    struct ptx_report r;
    fill();
    src[4] = 1;
    run_fine(w, m, &l, 1, &r);
    for (uint32_t i = 0; i < 32; i++)
        ck_assert_uint_eq(dst[i], i < 9 ? src[i] * 3 + (src[i] == 1) : 78);
    ptx_world_free(w);
    ptx_free(m);
}
END_TEST

/* dp2a.lo reads bytes 0 and 1 of its second operand: the others may be anything. */
START_TEST(an_undefined_half_that_nobody_reads_is_no_fault)
{
    struct ptx_module *m = load_file(KERNELS "copies.ptx");
    struct ptx_world *w = words(32, 32);
    struct ptx_launch l = launch("half_set", 32, 1), packed = launch("half_packed", 32, 1);
    struct ptx_report r;
    fill();
    run_fine(w, m, &l, 1, &r);
    for (uint32_t i = 0; i < 32; i++)
        ck_assert_uint_eq(dst[i], i * i + i);
    ptx_world_free(w);
    w = words(32, 32);
    run_fine(w, m, &packed, 1, &r);
    for (uint32_t i = 0; i < 32; i++)
        ck_assert_uint_eq(dst[i], i);
    ptx_world_free(w);
    ptx_free(m);
}
END_TEST

/* clang-format off */
static const struct mistake {
    const char *entry;
    uint32_t threads;
    enum ptx_fault fault;
    const char *says;
} mistakes[] = {
    {"past_the_end", 64, PTX_OUT_OF_BOUNDS, "store of 4 bytes at buffer 0+256 (of 256 bytes)"},
    {"misaligned", 1, PTX_MISALIGNED, "load at buffer 1+4 (of 256 bytes) needs a multiple of 8"},
    {"no_barrier", 64, PTX_RACE,
    "overwrites what was read by thread (0,0,0), without a barrier between, at shared t+128"},
    {"no_barrier_bytes", 64, PTX_RACE, "reads a value of thread (0,0,0)"},
    {"written_twice", 32, PTX_WRITTEN_TWICE, "second store to a byte: 4 bytes at buffer 0+0"},
    {"one_byte_missing", 64, PTX_NOT_WRITTEN,
    "1 bytes of buffer 0 (of 256 bytes), the first at buffer 0+202"},
    {"uninitialised_shared", 1, PTX_UNINITIALISED, "shared t+8"},
    {"uninitialised_local", 1, PTX_UNINITIALISED, "local depot+6"},
    {"past_local", 1, PTX_OUT_OF_BOUNDS, "local depot+16 (of 16 bytes)"},
    {"past_param", 1, PTX_OUT_OF_BOUNDS, "param j_src+8 (of 8 bytes)"},
    {"uninitialised_register", 32, PTX_UNINITIALISED,
    "source operand 2 of the instruction comes from a register"},
    {"uninitialised_half", 1, PTX_UNINITIALISED,
    "source operand 2 of the instruction comes from a register"},
    {"uninitialised_part", 1, PTX_UNINITIALISED,
    "source operand 2 of the instruction comes from a register"},
    {"uninitialised_shuffle", 32, PTX_UNINITIALISED, "thread (15,0,0)"},
    {"unused_element", 1, PTX_UNINITIALISED, "source operand 2 of the instruction comes from a register"},
    {"uninitialised_address", 32, PTX_UNINITIALISED,
    "source operand 1 of the instruction comes from a register"},
    {"uninitialised_guard", 32, PTX_UNINITIALISED, "the guard comes from a register that was never written"},
    {"two_barriers", 32, PTX_DIVERGED, "waits here while another thread waits at the barrier of line"},
    {"lonely_warp_barrier", 32, PTX_DIVERGED, "bar.warp.sync for threads that never come"},
    {"divergent_uniform", 32, PTX_DIVERGED, ".uni branch"},
    {"writes_source", 1, PTX_FORBIDDEN, "store to a source: 4 bytes at buffer 1+0"},
    {"reads_destination", 1, PTX_FORBIDDEN, "load from a destination: 4 bytes at buffer 0+0"},
    {"endless", 1, PTX_ENDLESS, "more than 1000 instructions"},
    {"traps", 1, PTX_TRAPPED, "trap"},
    {"past_the_table", 3, PTX_TRAPPED, "index 2 into a branch table of 2"},
    {"wrong_space", 1, PTX_OUT_OF_BOUNDS, "not of this space"},
    {"truncated_pointer", 1, PTX_OUT_OF_BOUNDS, "where nothing lies"},
    {"unawaited_copy", 32, PTX_RACE, "reads a cp.async not waited for"},
    {"two_writers", 2, PTX_RACE, "overwrites a value of thread (0,0,0)"},
    {"warp_barrier_across_warps", 64, PTX_RACE, "without a barrier between"},
    {"overaligned_shared", 1, PTX_MISALIGNED, "multiple of 16"},
    {"broadcast_race", 32, PTX_RACE,
    "overwrites what was read by several threads, without a barrier between, at shared t+0"},
    {"divides_by_zero", 32, PTX_TRAPPED, "division by zero"},
};
/* clang-format on */

START_TEST(a_broken_kernel_is_reported_with_its_place)
{
    const struct mistake *k = &mistakes[_i];
    struct ptx_module *m = load_file(KERNELS "broken.ptx");
    struct ptx_world *w = words(64, 64);
    struct ptx_launch l = launch(k->entry, k->threads, 1);
    struct ptx_report r;
    l.warp_budget = 1000;
    fill();
    ck_assert_msg(fault_of(w, m, &l, &r) == k->fault, "%s: %s", k->entry, r.error);
    ck_assert_msg(strstr(r.error, k->says) != NULL, "%s lacks: %s", r.error, k->says);
    if (k->fault != PTX_NOT_WRITTEN)
        ck_assert_msg(strstr(r.error, "PTX line ") && strstr(r.error, "block (0,0,0)"), "%s", r.error);
    if (getenv("PTX_SHOW_ERRORS"))
        printf("%s\n", r.error);
    ptx_world_free(w);
    ptx_free(m);
}
END_TEST

/* ---- what is refused ---- */

/* Statements for a body with registers p, q (predicates), h (16), r, s (32), x, y (64), f (f32). */
/* clang-format off */
static const char *const refused[] = {
    "frobnicate.u32 r, s;", "add.u32 r, s", "add.u8 r, s, s;", "add.f32 f, f, f;", "add.sat.s32 r, s, s;",
    "add.u32 r, s, s, s;", "add.u32 r, s;", "add.u64 r, x, y;", "add.u32 x, r, s;", "add.u32 r, s, x;",
    "add.u32 r, s, 4294967296;", "add.u32 r, s, 1.5;", "add.u32 r, s, unknown_name;", "add.u32 r, s, p;",
    "and.b32 p, p, q;", "and.pred r, p, q;", "mul.u32 r, s, s;", "mul24.lo.u32 r, s, s;",
    "mul.wide.u64 x, y, y;",
    "mad.wide.s32 x, r, s, s;", "shl.b32 r, s, x;", "shl.u32 r, s, s;", "lop3.b32 r, s, s, s, 256;",
    "lop3.or.b32 r, s, s, s, 1;", "prmt.b32.xyz r, s, s, s;", "shf.l.b32 r, s, s, s;", "bfe.b32 r, s, s, s;",
    "setp.eq.f32 p, f, f;", "setp.lt.b32 p, r, s;", "setp.xx.u32 p, r, s;", "setp.eq.u32 r, r, s;",
    "setp.eq.and.u32 p, r, s;", "selp.b32 r, s, s, s;", "slct.b32.f32 r, s, s, f;", "cvt.f32.u32 f, r;",
    "cvt.rn.f32.s32 f, r;", "cvt.sat.u8.u32 r, s;", "cvt.u64.u32 r, s;", "cvta.to.global.u32 r, s;",
    "cvta.to.elsewhere.u64 x, y;", "mov.u32 r, %clock;", "mov.u32 r, %warpid;", "mov.u32 r, %smid;",
    "mov.b32 {h, h, h}, r;", "mov.b128 x, y;", "mov.u32 %tid.x, r;", "mov.u32 r, {h, r};",
    "ld.global.u32 r, [r];", "ld.u32 r, [s];", "ld.global.v3.u32 {r, s, r}, [x];",
    "ld.global.v4.u64 {x, y, x, y}, [x];",
    "ld.shared.nc.u32 r, [s];", "ld.acquire.gpu.global.u32 r, [x];", "ld.relaxed.gpu.global.u32 r, [x];",
    "ld.global.L1::whatever.u32 r, [x];", "ld.global.L2::cache_hint.u32 r, [x], y;", "ld.global.u32 x;",
    "ld.global.u64 r, [x];", "ld.global.b128 x, [y];", "ld.mmio.global.u32 r, [x];",
    "ld.global.ca.u32 r, [x], 4;",
    "ld.global.shared.u32 r, [x];", "ld.shared.v8.u32 {r, r, r, r, r, r, r, r}, [s];",
    "st.const.u32 [x], r;", "st.param.u32 [x], r;", "st.global.nc.u32 [x], r;", "st.async.shared.u32 [s], r;",
    "st.global.v2.u32 [x], {r};", "st.global.v2.u32 [x], r;", "ld.global.v2.u32 {r, x}, [x];",
    "ld.shared.u32 r, [table];", "ld.const.u32 r, [elsewhere];",
    "atom.global.add.u32 r, [x], s;", "red.global.add.u32 [x], s;", "membar.gl;", "fence.acq_rel.gpu;",
    "bar.sync r;", "bar.sync 0, 64;", "bar.sync 16;", "bar.arrive 0, 64;", "bar.red.popc.u32 r, 0, p;",
    "barrier.cluster.arrive;", "mbarrier.init.shared.b64 [s], 1;", "cp.async.cg.shared.global [s], [x], 4;",
    "cp.async.ca.shared.global [s], [x], 5;", "cp.async.ca.shared.global [s], [x], 16, p;",
    "cp.async.bulk.shared.global [s], [x], r, [s];", "cp.async.wait_group r;",
    "cp.async.mbarrier.arrive.b64 [s];",
    "shfl.b32 r, s, 1, 31;", "shfl.sync.bfly.b64 x, y, 1, 31, -1;", "vote.sync.any.pred p, q, -1;",
    "vote.sync.ballot.b64 x, p, -1;", "vote.sync.ballot.b32 r, s, -1;", "vote.ballot.b32 r, p;",
    "activemask.b32 r;", "match.any.sync.b32 r, s, -1;", "bra nowhere;", "bra.uni 5;", "brx.idx r, nowhere;",
    "call helper;", "call.uni helper, (r);", "nanosleep.u32 5;", "griddepcontrol.wait;",
    "prefetch.global.L1 [x];",
    "isspacep.global p, x;", "fma.rn.f32 f, f, f, f;", "min.f32 f, f, f;",
    "dp4a.u32 r, s, s, s;", "dp2a.u32.u32 r, s, s, s;", "dp2a.lo.u32.u64 r, s, s, s;",
    "max.s16x2 r, s, s;", "@r mov.u32 r, s;", "@!h mov.u32 r, s;", "@p;", "set.eq.u32.u32 r, s, s;",
    ".reg .b8 small;", ".reg .b128 big;", ".reg .b32 r;", ".param .b32 local_param;", ".pragma \"strange\";",
    "a_label: a_label: ret;", "{ .reg .b32 inner; } mov.u32 inner, 1;", "/* no end", "ret; extra", "}  {",
    "createpolicy.fractional.L2::evict_first.b64 x, 1.0;", "mov.f32 f, 0f3F80;",
    "mov.f64 x, -0d3FF0000000000000;",
    "add.u32 r, s, 000000000000000000000000000000000000000000000001;",
    "add.a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.u32 r, s, s;",
    ".reg .b32 %q<3>; mov.u32 %q01, 1;", ".reg .b32 %q<3>; mov.u32 %q3, 1;", "mov.u32 %q, 1;",
    "mov.u64 x, table+;", "mov.u32 r, table_global;",
};
/* clang-format on */

START_TEST(what_is_not_known_exactly_is_refused_at_load_time)
{
    static const char head[] =
        ".version 9.0\n.target sm_90\n.address_size 64\n.const .u32 table[2] = {1, 2};\n"
        ".global .u32 table_global[2];\n.visible .entry e()\n{\n.reg .pred p, q;\n"
        ".reg .b16 h;\n.reg .b32 r, s;\n.reg .b64 x, y;\n.reg .f32 f;\n";
    char text[2048], err[256];
    struct ptx_module *m;
    snprintf(text, sizeof text, "%sret;\n}\n", head);
    ck_assert_msg(ptx_load(text, &m, err, sizeof err) == 0, "%s", err);
    ptx_free(m);
    snprintf(text, sizeof text, "%s%s\nret;\n}\n", head, refused[_i]);
    ck_assert_msg(ptx_load(text, &m, err, sizeof err) != 0, "accepted: %s", refused[_i]);
    ck_assert_ptr_null(m);
    ck_assert_msg(!strncmp(err, "line ", 5), "%s", err);
    if (getenv("PTX_SHOW_ERRORS"))
        printf("%-50s %s\n", refused[_i], err);
}
END_TEST

/* clang-format off */
static const char *const refused_modules[] = {
    ".version 1.0", ".version x", ".target gfx90", ".address_size 32", ".func f() { ret; }",
    ".extern .func f();", ".visible .func f() { ret; }", ".global .u32 a[2] = {1, 2, 3};",
    ".global .u32 a = b;",
    ".const .align 3 .u32 a;", ".global .b128 a;", ".shared .u32 a[];", ".extern .global .u32 a;",
    ".local .pred a;",
    ".tex .u32 a;", ".entry e(.param .texref t) { ret; }", ".entry e(.param .u32 a", ".entry e() { ret; ",
    ".entry e() .maxnctapersm 4 { ret; }", ".entry e() .reqnctapercluster 2 { ret; }",
    ".entry e() .noreturn { ret; }",
    ".section .debug_info { }", ".alias a, b;", "garbage", ".entry e() { ret; } .entry e() { ret; }",
    ".entry e(.param .u32 a, .param .u32 a) { ret; }", ".visible", ".global .u32 a; .global .u32 a;",
    ".shared .b8 a[300000]; .entry e() { ret; }", ".entry e(.param .u64 .ptr .shared .align 4 a) { ret; }",
};
/* clang-format on */

START_TEST(directives_that_are_not_known_are_refused)
{
    char err[256];
    struct ptx_module *m;
    ck_assert_msg(ptx_load(refused_modules[_i], &m, err, sizeof err) != 0, "accepted: %s",
                  refused_modules[_i]);
    ck_assert_ptr_null(m);
    if (getenv("PTX_SHOW_ERRORS"))
        printf("%-50s %s\n", refused_modules[_i], err);
}
END_TEST

START_TEST(the_line_of_a_refusal_counts_through_comments)
{
    char err[256];
    struct ptx_module *m;
    ck_assert_int_ne(
        ptx_load("/* one\ntwo\n*/ // three\n.version 9.0 /* four\n*/\n.frob", &m, err, sizeof err), 0);
    ck_assert_str_eq(err, "line 6: not understood: .frob");
    ck_assert_int_ne(ptx_load("garbage", &m, NULL, 0), 0); /* a caller may not want the sentence */
    ck_assert_int_eq(ptx_load(".entry e() { ret; }", &m, NULL, 0), 0);
    ptx_free(m);
}
END_TEST

/* Cutting or damaging a text must never do worse than being refused; sanitizers watch. */
START_TEST(damaged_text_is_refused_or_run_but_never_crashes)
{
    char *text = read_file(KERNELS "copies.ptx"), *copy = strdup(text), err[256];
    size_t n = strlen(text);
    uint64_t state = 77;
    for (int k = 0; k < 3000; k++) {
        struct ptx_module *m;
        memcpy(copy, text, n + 1);
        for (uint64_t hits = next_random(&state) % 3; hits-- > 0;)
            copy[next_random(&state) % n] = (char)(next_random(&state) % 95 + 32);
        if (k % 3 == 0)
            copy[next_random(&state) % n] = 0;
        if (ptx_load(copy, &m, err, sizeof err))
            continue;
        for (int e = 0; e < ptx_entry_count(m); e++) {
            struct ptx_world *w = words(64, 64);
            struct ptx_launch l = launch(ptx_entry_name(m, e), 40, 1);
            struct ptx_report r;
            l.warp_budget = 500;
            ptx_run(w, m, &l, &r);
            ptx_world_free(w);
        }
        ptx_free(m);
    }
    free(text);
    free(copy);
}
END_TEST

/* ---- launches and worlds ---- */

START_TEST(a_launch_that_does_not_fit_its_entry_is_refused)
{
    static const char text[] =
        ".version 9.0\n.target sm_90\n.address_size 64\n"
        ".visible .entry e(.param .u64 .ptr .global .align 8 a, .param .align 4 .b8 b[12])\n"
        ".maxntid 64, 1, 1\n.minnctapersm 2\n{ ret; }\n"
        ".visible .entry fixed() .reqntid 32, 2, 1 { ret; }\n"
        ".visible .entry number(.param .u32 n) { ret; }\n";
    struct ptx_module *m = load_text(text);
    struct ptx_world *w = words(64, 64);
    uint32_t b[3] = {0}, wrong[4] = {0};
    struct ptx_param good[] = {pointer_to(0, 0), VALUE(b)}, misaligned[] = {pointer_to(0, 4), VALUE(b)};
    struct ptx_param wide[] = {pointer_to(0, 0), VALUE(wrong)}, nowhere[] = {pointer_to(2, 0), VALUE(b)};
    struct ptx_param swapped[] = {VALUE(b), pointer_to(0, 0)}, *value_as_pointer = swapped + 1;
    struct ptx_report r;
    struct {
        struct ptx_launch l;
        enum ptx_fault fault;
    } cases[] = {
        {{"e", {1, 1, 1}, {64, 1, 1}, 0, good, 2, 0}, PTX_FINE},
        {{"none", {1, 1, 1}, {64, 1, 1}, 0, good, 2, 0}, PTX_BAD_LAUNCH},
        {{"e", {1, 1, 1}, {65, 1, 1}, 0, good, 2, 0}, PTX_BAD_LAUNCH},
        {{"e", {0, 1, 1}, {64, 1, 1}, 0, good, 2, 0}, PTX_BAD_LAUNCH},
        {{"e", {1, 65536, 1}, {64, 1, 1}, 0, good, 2, 0}, PTX_BAD_LAUNCH},
        {{"e", {1, 1, 1}, {0, 1, 1}, 0, good, 2, 0}, PTX_BAD_LAUNCH},
        {{"e", {1, 1, 1}, {64, 1, 1}, 0, good, 1, 0}, PTX_BAD_LAUNCH},
        {{"e", {1, 1, 1}, {64, 1, 1}, 300000, good, 2, 0}, PTX_BAD_LAUNCH},
        {{"e", {1, 1, 1}, {64, 1, 1}, 0, misaligned, 2, 0}, PTX_MISALIGNED},
        {{"e", {1, 1, 1}, {64, 1, 1}, 0, wide, 2, 0}, PTX_BAD_LAUNCH},
        {{"e", {1, 1, 1}, {64, 1, 1}, 0, nowhere, 2, 0}, PTX_BAD_LAUNCH},
        {{"e", {1, 1, 1}, {64, 1, 1}, 0, swapped, 2, 0}, PTX_BAD_LAUNCH},
        {{"fixed", {1, 1, 1}, {32, 2, 1}, 0, NULL, 0, 0}, PTX_FINE},
        {{"fixed", {1, 1, 1}, {64, 1, 1}, 0, NULL, 0, 0}, PTX_BAD_LAUNCH},
        {{"number", {1, 1, 1}, {64, 1, 1}, 0, value_as_pointer, 1, 0}, PTX_BAD_LAUNCH},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ptx_run(w, m, &cases[i].l, &r);
        ck_assert_msg(r.fault == cases[i].fault, "case %d: %s", (int)i, r.error);
    }
    struct ptx_entry_info info;
    ptx_entry_info(m, 0, &info);
    ck_assert_int_eq(ptx_entry_count(m), 3);
    ck_assert_str_eq(info.name, "e");
    ck_assert_int_eq(info.n_params, 2);
    ck_assert_uint_eq(info.param_bytes[1], 12);
    ck_assert_uint_eq(info.max_threads, 64);
    ck_assert_int_eq(info.n_instructions, 1);
    ptx_world_free(w);
    ptx_free(m);
}
END_TEST

/* dst words [at, at + n) = src words, as one launch of `copy`. */
static int copy_part(struct ptx_world *w, const struct ptx_module *m, uint32_t at, uint32_t n,
                     struct ptx_report *r)
{
    struct ptx_param params[] = {pointer_to(0, 4 * at), pointer_to(1, 4 * at), VALUE(n)};
    struct ptx_launch l = {"copy", {(n + 31) / 32, 1, 1}, {32, 1, 1}, 0, params, 3, 0};
    return ptx_run(w, m, &l, r);
}

START_TEST(coverage_is_counted_over_several_launches)
{
    struct ptx_module *m = load_file(KERNELS "copies.ptx");
    struct ptx_world *w = words(100, 100);
    struct ptx_report r;
    fill();
    ck_assert_int_eq(copy_part(w, m, 0, 40, &r), 0);
    ck_assert_int_ne(ptx_finish(w, &r), 0);
    ck_assert_int_eq(r.fault, PTX_NOT_WRITTEN);
    ck_assert_msg(strstr(r.error, "240 bytes of buffer 0 (of 400 bytes), the first at buffer 0+160"), "%s",
                  r.error);
    ck_assert_int_eq(copy_part(w, m, 40, 60, &r), 0);
    ck_assert_int_eq(ptx_finish(w, &r), 0);
    ck_assert_uint_eq(r.store_bytes, 400);
    ck_assert_uint_eq(r.blocks, 4);
    ck_assert_int_ne(copy_part(w, m, 99, 1, &r), 0);
    ck_assert_int_eq(r.fault, PTX_WRITTEN_TWICE);
    ptx_world_free(w);
    ptx_free(m);
}
END_TEST

START_TEST(bytes_that_must_stay_untouched_are_guarded)
{
    unsigned char must[400];
    struct ptx_module *m = load_file(KERNELS "copies.ptx");
    struct ptx_report r;
    fill();
    for (int i = 0; i < 400; i++)
        must[i] = i >= 40 && i < 200;
    struct ptx_buffer b[] = {{dst, 400, 1, 0, must}, {src, 400, 0, 0, NULL}};
    struct ptx_world *w = ptx_world_new(b, 2);
    memset(must, 0, sizeof must); /* the world has its own copy */
    ck_assert_int_eq(copy_part(w, m, 10, 40, &r), 0);
    ck_assert_int_eq(ptx_finish(w, &r), 0);
    ck_assert_int_ne(copy_part(w, m, 50, 1, &r), 0);
    ck_assert_int_eq(r.fault, PTX_FORBIDDEN);
    ck_assert_msg(strstr(r.error, "must stay untouched: 4 bytes at buffer 0+200"), "%s", r.error);
    ptx_world_free(w);
    ptx_free(m);
}
END_TEST

START_TEST(scratch_may_be_rewritten_and_read_once_written)
{
    uint32_t middle[64];
    struct ptx_module *m = load_file(KERNELS "copies.ptx");
    struct ptx_buffer b[] = {{dst, 256, 1, 0, NULL}, {src, 256, 0, 0, NULL}, {middle, 256, 1, 1, NULL}};
    struct ptx_world *w = ptx_world_new(b, 3);
    uint32_t n = 64;
    struct ptx_param in[] = {pointer_to(2, 0), pointer_to(1, 0), VALUE(n)};
    struct ptx_param out[] = {pointer_to(0, 0), pointer_to(2, 0), VALUE(n)};
    struct ptx_launch first = {"copy", {2, 1, 1}, {32, 1, 1}, 0, in, 3, 0};
    struct ptx_launch second = {"copy", {2, 1, 1}, {32, 1, 1}, 0, out, 3, 0};
    struct ptx_report r;
    fill();
    ck_assert_int_ne(ptx_run(w, m, &second, &r), 0);
    ck_assert_int_eq(r.fault, PTX_UNINITIALISED);
    run_fine(w, m, &first, 0, &r);
    run_fine(w, m, &first, 0, &r);
    run_fine(w, m, &second, 1, &r);
    ck_assert_mem_eq(dst, src, 256);
    ptx_world_free(w);
    ptx_free(m);
}
END_TEST

START_TEST(the_same_run_gives_the_same_report)
{
    struct ptx_report r[2];
    for (int k = 0; k < 2; k++) {
        struct ptx_module *m = load_file(KERNELS "copies.ptx");
        struct ptx_world *w = words(96, 96);
        struct ptx_launch l = launch("choose", 96, 1);
        fill();
        run_fine(w, m, &l, 1, &r[k]);
        ptx_world_free(w);
        ptx_free(m);
    }
    ck_assert_mem_eq(&r[0], &r[1], sizeof r[0]);
}
END_TEST

struct seen {
    int n[PTX_SEEN_WAIT + 1], wrong;
    uint64_t blocks; /* bit a block */
};

/* The copy stores what it loaded from the same place. */
static void see(void *arg, const struct ptx_access *a)
{
    struct seen *s = arg;
    s->n[a->seen]++;
    s->blocks |= (uint64_t)1 << a->block % 64;
    for (int lane = 0; lane < 32 && a->seen == PTX_SEEN_STORE; lane++) {
        int64_t off;
        if (!(a->lanes >> lane & 1))
            continue;
        ck_assert_int_eq(ptx_locate(a->address[lane], &off), 0);
        for (uint32_t i = 0; i < a->bytes; i++)
            s->wrong += a->data[lane][i] != ptx_imagined(1, (uint64_t)off + i);
    }
}

START_TEST(a_sample_of_a_launch_of_imaginary_gigabytes_is_watched)
{
    static const uint64_t only[] = {0, 8388607, 5000003};
    uint32_t n = 1u << 30;
    struct ptx_module *m = load_file(KERNELS "copies.ptx");
    struct ptx_world *w = ptx_world_new(
        (struct ptx_buffer[]){{NULL, (size_t)n * 4, 1, 0, NULL}, {NULL, (size_t)n * 4, 0, 0, NULL}}, 2);
    struct ptx_param params[] = {pointer_to(0, 0), pointer_to(1, 0), VALUE(n)};
    struct ptx_launch l = {"copy", {n / 128, 1, 1}, {128, 1, 1}, 0, params, 3, 0};
    struct seen s = {{0}, 0, 0};
    struct ptx_sample sample = {only, 3, see, &s};
    struct ptx_report r;
    ck_assert_msg(!ptx_run_sample(w, m, &l, &sample, &r), "%s", r.error);
    ck_assert_uint_eq(r.blocks, 3);
    ck_assert_int_eq(s.n[PTX_SEEN_LOAD], 12);
    ck_assert_int_eq(s.n[PTX_SEEN_STORE], 12);
    ck_assert_int_eq(s.wrong, 0);
    ck_assert_uint_eq(s.blocks, 1 | (uint64_t)1 << 63 | (uint64_t)1 << 5000003 % 64);
    sample.only = (const uint64_t[]){n / 128, 0, 0}; /* past the grid */
    ck_assert_int_eq(ptx_run_sample(w, m, &l, &sample, &r), 1);
    ck_assert_int_eq(r.fault, PTX_BAD_LAUNCH);
    sample.only = only;
    ck_assert_int_eq(ptx_run_sample(w, m, &l, &sample, &r), 1);
    ck_assert_int_eq(r.fault, PTX_WRITTEN_TWICE);
    ptx_world_free(w);
    ptx_free(m);
}
END_TEST

START_TEST(imagined_bytes_do_not_repeat_and_differ_between_buffers)
{
    int same = 0;
    for (int i = 0; i < 1 << 16; i++) {
        same += ptx_imagined(1, (uint64_t)i) == ptx_imagined(2, (uint64_t)i);
        same += ptx_imagined(1, (uint64_t)i) == ptx_imagined(1, (uint64_t)i + 4096);
        same += ptx_imagined(1, (uint64_t)i) == ptx_imagined(1, (uint64_t)i + 1);
    }
    ck_assert_int_lt(same, 3 * (1 << 16) / 256 * 11 / 10); /* one of 256, by chance */
}
END_TEST

int main(void)
{
    Suite *s = suite_create("ptx_text");
    TCase *runs = tcase_create("kernels"), *loads = tcase_create("refused"), *worlds = tcase_create("worlds");
    tcase_set_timeout(runs, 120);
    tcase_set_timeout(loads, 300);
    suite_add_tcase(s, runs);
    suite_add_tcase(s, loads);
    suite_add_tcase(s, worlds);
    tcase_add_test(runs, guarded_copy_writes_each_word_once_and_counts_sectors);
    tcase_add_test(runs, sectors_follow_stride_and_offset);
    tcase_add_test(runs, tile_transposes_show_their_bank_conflicts);
    tcase_add_test(runs, branch_table_takes_each_thread_its_own_way_and_back);
    tcase_add_test(runs, struct_parameters_and_tables_may_be_indexed);
    tcase_add_test(runs, lanes_that_loop_different_times_meet_at_the_barrier);
    tcase_add_test(runs, a_barrier_does_not_wait_for_exited_threads_and_says_so);
    tcase_add_test(runs, halves_of_a_warp_synchronise_apart);
    tcase_add_test(runs, warp_barriers_order_what_one_warp_does);
    tcase_add_test(runs, shared_vectors_are_counted_by_half_and_quarter_warps);
    tcase_add_test(runs, an_undefined_value_that_nobody_uses_is_no_fault);
    tcase_add_test(runs, an_undefined_half_that_nobody_reads_is_no_fault);
    tcase_add_loop_test(runs, a_broken_kernel_is_reported_with_its_place, 0,
                        sizeof mistakes / sizeof *mistakes);
    tcase_add_loop_test(loads, what_is_not_known_exactly_is_refused_at_load_time, 0,
                        sizeof refused / sizeof *refused);
    tcase_add_loop_test(loads, directives_that_are_not_known_are_refused, 0,
                        sizeof refused_modules / sizeof *refused_modules);
    tcase_add_test(loads, the_line_of_a_refusal_counts_through_comments);
    tcase_add_test(loads, damaged_text_is_refused_or_run_but_never_crashes);
    tcase_add_test(worlds, a_launch_that_does_not_fit_its_entry_is_refused);
    tcase_add_test(worlds, coverage_is_counted_over_several_launches);
    tcase_add_test(worlds, bytes_that_must_stay_untouched_are_guarded);
    tcase_add_test(worlds, scratch_may_be_rewritten_and_read_once_written);
    tcase_add_test(worlds, the_same_run_gives_the_same_report);
    tcase_add_test(worlds, a_sample_of_a_launch_of_imaginary_gigabytes_is_watched);
    tcase_add_test(worlds, imagined_bytes_do_not_repeat_and_differ_between_buffers);
    return run_suite(s);
}
