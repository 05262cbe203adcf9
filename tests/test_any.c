/* test_any.c: the kernels that run any plan, with indices of 32 and of 64 bits, on golden and random chains:
 * byte for byte what the map says, for buffers that begin at multiples of 16 bytes and for others. On the
 * driver double, in the PTX interpreter; without it, or without NVRTC, nothing is run, and said so. */
#include "cuda/any.h"
#include "support/cuda_program.h"
#include "support/golden.h"

char now_running[2048];

enum { ROOM = 1 << 17, MAX_SOURCES = 64 };

static struct {
    struct xti_module *module;
    bool wide;
    unsigned char *dst, *want, *src[MAX_SOURCES];
    int run, refused;
} any;

/* Every plan may be run with 64-bit indices. */
static bool plan_of(const struct xti_map *m, struct xti_cuda_plan *p)
{
    struct xti_cuda_target t = {.sm = 90};
    struct xti_err err = {0};
    ck_assert_msg(!xti_cuda_plan_make(m, &t, p, &err), "%s", err.e.message);
    if (!p->n_steps)
        return false;
    p->index32 = p->index32 && !any.wide;
    xt_status s = xti_any_make(p, &err);
    ck_assert_msg(!s || s == XT_EUNSUPPORTED, "%s", err.e.message);
    any.refused += s != XT_OK;
    return !s;
}

static void load(bool wide)
{
    struct xti_map m;
    struct xti_cuda_plan p;
    struct xti_str source = {0};
    struct xti_code code = {0};
    struct xti_err err = {0};
    uintptr_t memory;
    any.wide = wide;
    map_of("x: u8[3]; x", &m);
    ck_assert(plan_of(&m, &p));
    const char *name = xti_any_name(&p);
    ck_assert_int_eq(xti_cuda_emit(&p, XTI_TIER_ANY, name, &source, &err), XT_OK);
    ck_assert_msg(!xti_nvrtc_compile(xti_nvrtc_for(90, 0, NULL), source.s, name, 90, &code, &err), "%s",
                  err.e.message);
    ck_assert_msg(!xti_module_load(&code, name, 0, &any.module, &err), "%s", err.e.message);
    for (int i = -1; i < MAX_SOURCES; i++) {
        ck_assert(!cu()->cuMemAlloc_v2(&memory, ROOM));
        *(i < 0 ? &any.dst : &any.src[i]) = (unsigned char *)memory;
        random_fill((unsigned char *)memory, ROOM, (uint64_t)i + 7);
    }
    any.want = malloc(ROOM);
    xti_str_free(&source);
    xti_code_free(&code);
    xti_cuda_plan_free(&p);
    xti_map_free(&m);
}

static bool fits(const struct xti_map *m)
{
    bool ok = m->n_srcs <= MAX_SOURCES && (m->dst_hi + 2) * m->esize <= ROOM;
    for (int i = 0; i < m->n_srcs; i++)
        ok = ok && (m->src_hi[i] + 2) * m->esize <= ROOM;
    return ok;
}

static void copy(const struct xt_graph *g)
{
    struct xti_map m;
    struct xti_cuda_plan p = {0};
    struct xti_err err = {0};
    const void *src[MAX_SOURCES];
    fuse(g, &m);
    snprintf(now_running, sizeof now_running, "%.2000s", graph_text(g));
    for (int shift = 0; shift < 2 && fits(&m) && plan_of(&m, &p); shift++) {
        for (int i = 0; i < m.n_srcs; i++)
            src[i] = any.src[i] + shift * m.esize;
        memset(any.dst, 0xa5, ROOM);
        memset(any.want, 0xa5, ROOM);
        xti_map_eval(&m, any.want + shift * m.esize, src);
        ck_assert_msg(
            !xti_cuda_launch(&p, XTI_TIER_ANY, any.module, any.dst + shift * m.esize, src, NULL, &err),
            "%s: %s", now_running, err.e.message);
        ck_assert_msg(!memcmp(any.dst, any.want, ROOM), "%s", now_running);
        any.run++;
        xti_cuda_plan_free(&p);
    }
    xti_cuda_plan_free(&p);
    xti_map_free(&m);
}

START_TEST(one_kernel_copies_what_every_map_says)
{
    static struct golden_case c;
    static const char *const lines[] = {
        "x: u8[1]; x",
        "x: f16[3,5]; x.expand(7,3,5)",
        "x: f32[1]; x.expand(1000)",
        "x: u8[70,90]; x.permute(1,0).pad((1,2),(3,0), value=7)",
        "x: f32[64,64]; x.tril(1)",
        "x: f32[60,100]; x.permute(1,0).reshape(40,150).permute(1,0)",
        "x: c128[5,7]; y: c128[5,2]; concat(1, y, x, y.flip(0))",
        "x: u8[2,2,2,2,2,2,2,2,2,2,2,2]; x.permute(11,10,9,8,7,6,5,4,3,2,1,0)",
    };
    load(_i);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct xt_graph *g = parse_line(lines[i]);
        copy(g);
        xt_graph_free(g);
    }
    FILE *f = golden_open();
    while (f && golden_next(f, &c)) {
        copy(c.g);
        xt_graph_free(c.g);
    }
    if (f)
        fclose(f);
    int n = getenv("XT_TEST_FULL") ? 5000 : 300;
    for (int i = 0; i < n; i++) {
        struct xt_graph *g = random_graph((uint64_t)i + 1, NULL);
        copy(g);
        xt_graph_free(g);
    }
    printf("note: %d copies by %s, %d plans refused\n", any.run, _i ? "64-bit indices" : "32-bit indices",
           any.refused);
    ck_assert_int_gt(any.run, n);
    ck_assert_int_eq(any.refused, 0);
    xti_module_free(any.module);
}
END_TEST

int main(void)
{
    const char *why = cuda_prove_unable();
    if (!why && !use_double())
        why = "libcuda_double.so is not there";
    if (why)
        return skip_suite("test_any", why);
    Suite *s = suite_create("any");
    TCase *c = tcase_create("any");
    tcase_set_timeout(c, 1200);
    tcase_add_loop_test(c, one_kernel_copies_what_every_map_says, 0, 2);
    suite_add_tcase(s, c);
    return run_suite(s);
}
