/* check.c: what is asked of every graph that a fuzz target comes by. */
#include "fuzz.h"

enum { MAX_BYTES = 1 << 16 };

static struct xt_ctx *context(xt_backend backend)
{
    struct xt_options o = {.size = sizeof o, .backend = backend, .threads = 1, .cache_dir = ""};
    struct xt_ctx *ctx;
    must(!xt_ctx_new(&o, &ctx));
    return ctx;
}

static void *exactly(int64_t bytes, int fill)
{
    char *p = malloc((size_t)bytes);
    for (int64_t i = 0; p && i < bytes; i++)
        p[i] = (char)(fill < 0 ? i * 37 + 11 : fill);
    return p;
}

static void compare(const struct xt_kernel *k, const struct xt_kernel *ref, int n_inputs, int64_t bytes)
{
    const void *src[64] = {0};
    void *got = exactly(bytes, 0x5a), *want = exactly(bytes, 0x5a);
    for (int i = 0; i < n_inputs; i++) {
        int64_t n = xt_src_min_bytes(k, i);
        src[i] = n > 0 ? exactly(n, -1) : NULL;
    }
    must(!xt_run(k, got, src, NULL));
    must(!xt_run(ref, want, src, NULL));
    must(!memcmp(got, want, (size_t)bytes));
    for (int i = 0; i < n_inputs; i++)
        free((void *)src[i]);
    free(got);
    free(want);
}

static void run(struct xt_ctx *ref, const struct xt_graph *g, const struct xt_kernel *k)
{
    struct xt_kernel_info info = {.size = sizeof info};
    struct xt_kernel *r;
    int n = xt_input_count(g);
    must(!xt_kernel_get(k, &info));
    bool small = info.dst_min_bytes > 0 && info.dst_min_bytes <= MAX_BYTES && n <= 64;
    for (int i = 0; i < n && small; i++)
        small = xt_src_min_bytes(k, i) <= MAX_BYTES;
    if (!small)
        return;
    must(!xt_compile(ref, g, NULL, &r));
    compare(k, r, n, info.dst_min_bytes);
    xt_kernel_free(r);
}

void fuzz_graph(const struct xt_graph *g)
{
    static struct xt_ctx *cpu, *ref;
    static int uses;
    struct xt_kernel *k;
    size_t need;
    cpu = cpu ? cpu : context(XT_CPU);
    ref = ref ? ref : context(XT_REF);
    xt_status s = xt_compile(cpu, g, NULL, &k);
    must(s == xt_last_error()->status && !s == !*xt_last_error()->message);
    must(!s || s == XT_EUNSUPPORTED || s == XT_EOVERFLOW || s == XT_EALIAS || s == XT_EALIGN);
    must(!s == !!k);
    if (!s) {
        static const int forms[] = {0, XT_JSON, XT_SVG, XT_WHY};
        for (int i = 0; i < 4; i++)
            must(!xt_explain(k, forms[i], NULL, 0, &need) && need > 1);
        run(ref, g, k);
        xt_kernel_free(k);
    }
    if (++uses % 1000 == 0) { /* what is kept is bounded; here it also ends */
        xt_ctx_free(cpu);
        xt_ctx_free(ref);
        cpu = ref = NULL;
    }
}
