/* source.c: CUDA source of problem lines: of the alphabet that it has, without a byte that the line brought,
 * equal when made again; one in 64 is compiled, where NVRTC is. */
#include "fuzz.h"

#include "cuda/cuda.h"
#include "map/map.h"

static void compile(const char *source, const char *name)
{
    static int uses;
    struct xti_code code;
    struct xti_err err = {0};
    const struct xti_nvrtc *nvrtc = uses++ % 64 ? NULL : xti_nvrtc_for(90, 0, NULL);
    if (!nvrtc)
        return;
    xt_status s = xti_nvrtc_compile(nvrtc, source, name, 90, &code, &err);
    if (s)
        fprintf(stderr, "%s\n", err.e.message);
    must(!s);
    xti_code_free(&code);
}

static void emit(const struct xti_cuda_plan *p, enum xti_cuda_tier tier)
{
    struct xti_str a = {0}, b = {0};
    struct xti_err err = {0};
    xt_status s = xti_cuda_emit(p, tier, "xt_fuzz_00000000", &a, &err);
    must(s == XT_OK || s == XT_EUNSUPPORTED);
    if (!s) {
        must(!xti_cuda_emit(p, tier, "xt_fuzz_00000000", &b, &err) && a.n == b.n && !memcmp(a.s, b.s, a.n));
        for (size_t i = 0; i < a.n; i++)
            must((a.s[i] >= ' ' && a.s[i] < 0x7f) || a.s[i] == '\n');
        must(!strstr(a.s, "#include") && !strstr(a.s, "qqqq"));
        compile(a.s, "xt_fuzz_00000000");
    }
    xti_str_free(&a);
    xti_str_free(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct xti_cuda_target t = {.sm = 90, .n_sms = 132};
    struct xt_graph *g;
    struct xti_map m;
    struct xti_cuda_plan p;
    struct xti_err err = {0};
    char *line = malloc(size + 16);
    snprintf(line, size + 16, "%.*s", (int)size, (const char *)data);
    for (char *c = line; (c = strchr(c, 'x')); c++) /* names of inputs must not come through */
        if (!strncmp(c, "xxxx", 4))
            memcpy(c, "qqqq", 4);
    if (!xt_parse(line, 0, NULL, &g)) {
        if (!xti_map_fuse(g, NULL, &m, &err)) {
            if (!xti_cuda_plan_make(&m, &t, &p, &err)) {
                if (p.n_steps) {
                    emit(&p, XTI_TIER_EXACT);
                    emit(&p, XTI_TIER_STRUCTURE);
                }
                xti_cuda_plan_free(&p);
            }
            xti_map_free(&m);
        }
        xt_graph_free(g);
    }
    free(line);
    return 0;
}
