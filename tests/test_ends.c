/* test_ends.c: the ends of a chain as arrays have them: layouts given after parsing, pointers to element
 * (0,..,0) where strides are negative, DLPack tensors, destinations that overlap themselves; and structs of
 * callers that know less, or more, than the library. */
#include "support/api.h"

#include <stdio.h>
#include <string.h>

#include <xt/dlpack.h>

#include "support/random_graph.h"

char now_running[2048];

_Static_assert(XT_VERSION_NUMBER == XT_VERSION_OF(0, 1, 0), "for #if, too");
#if XT_VERSION_NUMBER < XT_VERSION_OF(0, 1, 0) || XT_VERSION_NUMBER >= XT_VERSION_OF(1, 0, 0)
#error "the preprocessor can compare versions"
#endif

START_TEST(the_version_is_the_same_as_numbers_and_as_text)
{
    char text[32];
    snprintf(text, sizeof text, "%d.%d.%d", XT_VERSION_MAJOR, XT_VERSION_MINOR, XT_VERSION_PATCH);
    ck_assert_str_eq(text, XT_VERSION);
    ck_assert_str_eq(text, xt_version());
}
END_TEST

/* ---- XT_ORIGIN: run(k_origin, p + offset) == run(k_offset, p), whatever the chain */

/* The graph once more, with XT_ORIGIN at every end; *moved: how many pointers are not starts of buffers. */
static struct xt_graph *from_origins(const struct xt_graph *g, int *moved)
{
    struct xt_graph *h = parse_line(graph_text(g));
    struct xt_node_info n = {.size = sizeof n};
    struct xt_output_info o = {.size = sizeof o};
    for (int i = 0; i < xt_input_count(h); i++) {
        expect(XT_OK, xt_node_get(h, xt_input_node(h, i), &n));
        int64_t strides[XT_MAX_RANK] = {0};
        memcpy(strides, n.strides, (size_t)n.rank * sizeof *strides);
        expect(XT_OK, xt_input_layout(h, i, strides, XT_ORIGIN));
        expect(XT_OK, xt_node_get(h, xt_input_node(h, i), &n));
        *moved += n.origin;
    }
    expect(XT_OK, xt_output_get(h, &o));
    expect(XT_OK, xt_node_get(h, o.node, &n));
    int64_t strides[XT_MAX_RANK] = {0};
    memcpy(strides, o.strides, (size_t)n.rank * sizeof *strides);
    expect(XT_OK, xt_output(h, o.node, strides, XT_ORIGIN));
    expect(XT_OK, xt_output_get(h, &o));
    *moved += o.origin;
    return h;
}

/* Bytes of a buffer for an end of k, and where in it element (0,..,0) lies. l: the kernel that takes it. */
static size_t end_bytes(const struct xt_kernel *k, const struct xt_kernel *l, int input, int64_t *at)
{
    struct xt_end_info e = {.size = sizeof e}, f = {.size = sizeof f};
    expect(XT_OK, xt_kernel_shape(k, input, &e));
    expect(XT_OK, xt_kernel_shape(l, input, &f));
    *at = e.offset * (int64_t)xt_dtype_bytes(e.dtype);
    ck_assert(!e.origin && f.from_bytes <= f.to_bytes);
    if (f.to_bytes > f.from_bytes) {
        ck_assert_int_eq(*at + f.from_bytes, e.from_bytes);
        ck_assert_int_eq(*at + f.to_bytes, e.to_bytes);
    }
    return (size_t)(e.to_bytes > *at ? e.to_bytes : *at) + 16;
}

static void same_bytes(struct xt_ctx *ctx, const struct xt_graph *g, const struct xt_graph *h)
{
    struct xt_kernel *k = NULL, *l = NULL;
    unsigned char *buf[8];
    const void *start[8], *origin[8];
    int n = xt_input_count(g);
    int64_t at = 0;
    ck_assert_int_le(n, 8);
    if (xt_compile(ctx, g, NULL, &k) == XT_EUNSUPPORTED)
        return;
    expect(XT_OK, xt_compile(ctx, h, NULL, &l));
    for (int i = 0; i < n; i++) {
        buf[i] = random_bytes((int64_t)end_bytes(k, l, i, &at), 7 + (uint64_t)i);
        start[i] = buf[i];
        origin[i] = buf[i] + at;
    }
    size_t bytes = end_bytes(k, l, -1, &at);
    unsigned char *want = random_bytes((int64_t)bytes, 99), *got = random_bytes((int64_t)bytes, 99);
    expect(XT_OK, xt_run(k, want, start, NULL));
    expect(XT_OK, xt_run(l, got + at, origin, NULL));
    ck_assert_msg(!memcmp(want, got, bytes), "%s", now_running);
    random_fill(got, bytes, 99);
    expect(XT_OK, xt_run_host(l, got + at, origin));
    ck_assert_msg(!memcmp(want, got, bytes), "%s", now_running);
    for (int i = 0; i < n; i++)
        free(buf[i]);
    free(want);
    free(got);
    xt_kernel_free(k);
    xt_kernel_free(l);
}

START_TEST(a_pointer_to_element_0_gives_what_the_start_of_the_buffer_and_an_offset_give)
{
    struct xt_ctx *ctx = new_ctx(_i ? XT_CPU : XT_REF, 1);
    int moved = 0;
    for (uint64_t seed = 1; seed <= 1000; seed++) {
        struct random_graph_options o = {.max_numel = 900};
        struct xt_graph *g = random_graph(seed, &o), *h = from_origins(g, &moved);
        snprintf(now_running, sizeof now_running, "%s", graph_text(g));
        same_bytes(ctx, g, h);
        xt_graph_free(g);
        xt_graph_free(h);
    }
    ck_assert_int_gt(moved, 100);
    xt_ctx_free(ctx);
}
END_TEST

START_TEST(overlaps_are_found_from_element_0_too)
{
    struct xt_ctx *ctx = new_ctx(XT_CPU, 1);
    struct xt_graph *g = parse_line("x: u8[8]; x");
    struct xt_kernel *k;
    unsigned char buf[64];
    const int64_t back[] = {-1};
    random_fill(buf, sizeof buf, 3);
    expect(XT_OK, xt_input_layout(g, 0, back, XT_ORIGIN));
    expect(XT_OK, xt_compile(ctx, g, NULL, &k));
    expect(XT_EALIAS, xt_run(k, buf, (const void *[]){buf + 7}, NULL));
    expect(XT_EALIAS, xt_run(k, buf + 7, (const void *[]){buf + 7}, NULL));
    expect(XT_OK, xt_run(k, buf + 8, (const void *[]){buf + 7}, NULL));
    for (int i = 0; i < 8; i++)
        ck_assert_int_eq(buf[8 + i], buf[7 - i]);
    expect(XT_EINVAL, xt_run(k, NULL, (const void *[]){buf + 7}, NULL));
    expect(XT_EINVAL, xt_run(k, buf, (const void *[]){NULL}, NULL));
    expect(XT_EINVAL, xt_run(k, buf, NULL, NULL));
    xt_kernel_free(k);
    xt_graph_free(g);
    xt_ctx_free(ctx);
}
END_TEST

START_TEST(more_inputs_than_fit_on_the_stack_are_moved_too)
{
    enum { N = 70 };
    struct xt_ctx *ctx = new_ctx(XT_CPU, 1);
    struct xt_graph *g;
    struct xt_kernel *k;
    xt_node x[N];
    uint16_t in[N][3], out[N][3];
    const void *src[N];
    expect(XT_OK, xt_graph_new(&g));
    for (int i = 0; i < N; i++) {
        x[i] = xt_input(g, NULL, XT_U16, 1, (const int64_t[]){3}, (const int64_t[]){-1}, XT_ORIGIN);
        random_fill(in[i], sizeof in[i], (uint64_t)i);
        src[i] = &in[i][2];
    }
    xt_output(g, xt_stack(g, 0, N, x), NULL, XT_ORIGIN);
    expect(XT_OK, xt_compile(ctx, g, NULL, &k));
    expect(XT_OK, xt_run(k, out, src, NULL));
    for (int i = 0; i < N; i++)
        for (int j = 0; j < 3; j++)
            ck_assert_int_eq(out[i][j], in[i][2 - j]);
    xt_kernel_free(k);
    xt_graph_free(g);
    xt_ctx_free(ctx);
}
END_TEST

START_TEST(without_a_negative_stride_element_0_is_the_start)
{
    struct xt_graph *g;
    struct xt_node_info n = {.size = sizeof n};
    expect(XT_OK, xt_graph_new(&g));
    xt_node x = xt_input(g, NULL, XT_F32, 2, (const int64_t[]){4, 6}, NULL, XT_ORIGIN);
    expect(XT_OK, xt_node_get(g, x, &n));
    ck_assert(n.dense && !n.origin && n.offset == 0);
    x = xt_input(g, NULL, XT_F32, 2, (const int64_t[]){4, 1}, (const int64_t[]){1, -5}, XT_ORIGIN);
    expect(XT_OK, xt_node_get(g, x, &n));
    ck_assert(!n.dense && !n.origin && n.offset == 0);
    x = xt_input(g, NULL, XT_F32, 2, (const int64_t[]){4, 0}, (const int64_t[]){-1, -5}, XT_ORIGIN);
    expect(XT_OK, xt_node_get(g, x, &n));
    ck_assert(!n.origin && n.offset == 0);
    x = xt_input(g, NULL, XT_F32, 2, (const int64_t[]){4, 3}, (const int64_t[]){-3, 1}, XT_ORIGIN);
    expect(XT_OK, xt_node_get(g, x, &n));
    ck_assert(n.origin && n.offset == 9);
    expect(XT_OK, xt_output(g, x, NULL, 0));
    ck_assert_str_eq(graph_text(g), "x: f32[4,6]; y: f32[4,1]:[1,-5]+0; z: f32[4,0]:[-1,-5]+0; "
                                    "x3: f32[4,3]:[-3,1]+9; x3");
    x = xt_input(g, NULL, XT_U8, 1, (const int64_t[]){INT64_MAX}, (const int64_t[]){-2}, XT_ORIGIN);
    ck_assert_int_lt(x, 0);
    ck_assert_int_eq(xt_last_error()->status, XT_EOVERFLOW);
    xt_graph_free(g);
}
END_TEST

/* ---- layouts after parsing */

START_TEST(an_input_gets_another_layout_after_parsing)
{
    struct xt_ctx *ctx = new_ctx(XT_CPU, 1);
    const struct xt_shape given = {XT_U8, 2, {2, 3}};
    struct xt_graph *g;
    struct xt_kernel *k;
    const unsigned char in[] = {0, 1, 2, 3, 4, 5, 6};
    unsigned char out[6];
    expect(XT_OK, xt_parse("x; x.flip(0)", 1, &given, &g));
    expect(XT_OK, xt_input_layout(g, 0, (const int64_t[]){1, 2}, 1));
    ck_assert_str_eq(graph_text(g), "x: u8[2,3]:[1,2]+1; x.flip(0)");
    expect(XT_OK, xt_compile(ctx, g, NULL, &k));
    expect(XT_OK, xt_run(k, out, (const void *[]){in}, NULL));
    ck_assert(!memcmp(out, (const unsigned char[]){2, 4, 6, 1, 3, 5}, 6));
    xt_kernel_free(k);
    expect(XT_OK, xt_input_layout(g, 0, NULL, 0));
    ck_assert_str_eq(graph_text(g), "x: u8[2,3]; x.flip(0)");
    expect(XT_OK, xt_input_layout(g, 0, NULL, 2));
    ck_assert_str_eq(graph_text(g), "x: u8[2,3]:[3,1]+2; x.flip(0)");
    xt_graph_free(g);
    xt_ctx_free(ctx);
}
END_TEST

START_TEST(layouts_that_make_no_sense_are_refused)
{
    struct xt_graph *g = parse_line("x: u8[2,3]; x");
    const struct xt_error *e = xt_last_error();
    expect(XT_ERANGE, xt_input_layout(g, 0, (const int64_t[]){-1, 1}, 0));
    ck_assert_str_eq(e->message,
                     "input_layout: op 1: element -1 of [2,3]:[-1,1]+0 lies before the buffer's start");
    ck_assert_int_eq(xt_graph_status(g), XT_ERANGE);
    xt_graph_free(g);
    g = parse_line("x: u8[2,3]; x");
    expect(XT_EINVAL, xt_input_layout(g, 1, NULL, 0));
    ck_assert_str_eq(e->message, "input_layout: op 1: no input 1: the graph has 1");
    xt_graph_free(g);
    g = parse_line("x: u8[2,3]; x");
    expect(XT_EINVAL, xt_input_layout(g, -1, NULL, 0));
    expect(XT_EINVAL, xt_input_layout(NULL, 0, NULL, 0));
    xt_graph_free(g);
}
END_TEST

START_TEST(a_destination_that_meets_itself_is_refused_at_once)
{
    static const struct {
        const char *line;
        xt_status want;
    } rows[] = {
        {"x: u8[2,3]; x -> [2,3]:[1,1]+0", XT_EALIAS},   {"x: u8[2,3]; x -> [2,3]:[2,-1]+4", XT_EALIAS},
        {"x: u8[4,3]; x -> [4,3]:[-2,4]+6", XT_EALIAS},  {"x: u8[2,3]; x -> [2,3]:[3,1]+0", XT_OK},
        {"x: u8[2,3]; x -> [2,3]:[1,2]+0", XT_OK},       {"x: u8[3,3,3]; x -> [3,3,3]:[2,3,5]+0", XT_EALIAS},
        {"x: u8[2,2,2]; x -> [2,2,2]:[4,6,9]+0", XT_OK}, {"x: u8[0,3]; x -> [0,3]:[0,0]+0", XT_OK},
        {"x: u8[1,3]; x -> [1,3]:[0,1]+0", XT_OK},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct xt_graph *g;
        ck_assert_msg(xt_parse(rows[i].line, 0, NULL, &g) == rows[i].want, "%s", rows[i].line);
        xt_graph_free(g);
    }
}
END_TEST

/* ---- DLPack */

START_TEST(tensors_are_inputs_and_results)
{
    struct xt_ctx *ctx = new_ctx(XT_CPU, 1);
    struct xt_graph *g;
    struct xt_kernel *k;
    float in[2 + 12], out[12];
    for (int i = 0; i < 14; i++)
        in[i] = (float)i;
    DLTensor x = {.data = in,
                  .device = {kDLCPU, 0},
                  .ndim = 2,
                  .dtype = {kDLFloat, 32, 1},
                  .shape = (int64_t[]){3, 4},
                  .strides = (int64_t[]){4, -1},
                  .byte_offset = (2 + 3) * sizeof *in};
    DLTensor y = {.data = out + 11,
                  .device = {kDLCPU, 0},
                  .ndim = 2,
                  .dtype = {kDLFloat, 32, 1},
                  .shape = (int64_t[]){4, 3},
                  .strides = (int64_t[]){-3, -1}};
    expect(XT_OK, xt_graph_new(&g));
    xt_node t = xt_permute(g, xt_input_dl(g, "x", &x), 2, (const int[]){1, 0});
    expect(XT_OK, xt_output_dl(g, t, &y));
    expect(XT_OK, xt_compile(ctx, g, NULL, &k));
    expect(XT_OK, xt_run(k, xt_dl_pointer(&y), (const void *[]){xt_dl_pointer(&x)}, NULL));
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 3; j++)
            ck_assert_float_eq(out[11 - 3 * i - j], in[2 + 4 * j + 3 - i]);
    xt_kernel_free(k);
    xt_graph_free(g);

    struct xt_shape given;
    expect(XT_OK, xt_dl_shape(&x, &given));
    expect(XT_OK, xt_parse("x; x.T", 1, &given, &g));
    expect(XT_OK, xt_input_layout_dl(g, 0, &x));
    ck_assert_str_eq(graph_text(g), "x: f32[3,4]:[4,-1]+3; x.permute(1,0)");
    x.strides = NULL; /* before DLPack 1.2 */
    expect(XT_OK, xt_input_layout_dl(g, 0, &x));
    ck_assert_str_eq(graph_text(g), "x: f32[3,4]; x.permute(1,0)");
    xt_graph_free(g);
    xt_ctx_free(ctx);
}
END_TEST

START_TEST(tensors_that_do_not_fit_are_refused_with_a_sentence)
{
    static const struct {
        DLDataType t;
        xt_dtype want;
    } types[] = {
        {{kDLBool, 8, 1}, XT_BOOL},
        {{kDLBfloat, 16, 1}, XT_BF16},
        {{kDLFloat8_e4m3fn, 8, 1}, XT_F8E4M3},
        {{kDLFloat8_e5m2, 8, 1}, XT_F8E5M2},
        {{kDLComplex, 128, 1}, XT_C128},
        {{kDLFloat, 32, 4}, (xt_dtype)0},
        {{kDLFloat, 128, 1}, (xt_dtype)0},
        {{kDLFloat4_e2m1fn, 4, 1}, (xt_dtype)0},
        {{kDLFloat8_e8m0fnu, 8, 1}, (xt_dtype)0},
        {{kDLBool, 1, 1}, (xt_dtype)0},
    };
    const struct xt_error *e = xt_last_error();
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        xt_dtype t;
        ck_assert_int_eq(xt_dl_dtype(types[i].t, &t), types[i].want ? XT_OK : XT_EDTYPE);
        ck_assert_int_eq(t, types[i].want);
    }
    struct xt_graph *g = parse_line("x: f32[2,3]; x");
    DLTensor t = {.ndim = 2, .dtype = {kDLFloat, 64, 1}, .shape = (int64_t[]){2, 3}};
    expect(XT_EDTYPE, xt_output_dl(g, 0, &t));
    ck_assert_str_eq(e->message, "output: op 1: it is f32, the tensor f64");
    xt_graph_free(g);
    g = parse_line("x: f32[2,3]; x");
    t = (DLTensor){.ndim = 2, .dtype = {kDLFloat, 32, 1}, .shape = (int64_t[]){3, 2}};
    expect(XT_ESHAPE, xt_input_layout_dl(g, 0, &t));
    ck_assert_str_eq(e->message, "input_layout: op 1: it is [2,3], the tensor [3,2]");
    xt_graph_free(g);
    g = parse_line("x: f32[2,3]; x");
    t.ndim = 1;
    expect(XT_ERANK, xt_output_dl(g, 0, &t));
    ck_assert_int_eq(xt_graph_status(g), XT_ERANK);
    xt_graph_free(g);
    g = parse_line("x: f32[2,3]; x");
    t.ndim = 33;
    ck_assert_int_eq(xt_input_dl(g, NULL, &t), -1);
    ck_assert_str_eq(e->message, "xt_dl_shape: rank 33 is not in [0,32]");
    ck_assert_int_eq(xt_graph_status(g), XT_ERANK);
    xt_graph_free(g);
    ck_assert_int_eq(xt_input_dl(NULL, NULL, &t), -1);
    expect(XT_EINVAL, xt_output_dl(NULL, 0, &t));
    expect(XT_EINVAL, xt_dl_shape(NULL, NULL));
    ck_assert_ptr_null(xt_dl_pointer(NULL));
}
END_TEST

/* A call on the graph x: f32[2,3]; x, with one thing wrong. */
static xt_status call_wrong(int what, struct xt_graph *g)
{
    struct xt_shape s;
    xt_dtype out;
    DLTensor t = {.ndim = 2, .dtype = {kDLFloat, 32, 1}, .shape = (int64_t[]){2, 3}};
    DLTensor none = t, wide = t, odd = t;
    none.shape = NULL;
    wide.ndim = -1;
    odd.dtype.lanes = 3;
    switch (what) {
    case 0:
        return xt_dl_dtype(t.dtype, NULL);
    case 1:
        return xt_dl_shape(&t, NULL);
    case 2:
        return xt_dl_shape(NULL, &s);
    case 3:
        return xt_dl_shape(&none, &s);
    case 4:
        return xt_dl_shape(&wide, &s);
    case 5:
        return xt_dl_shape(&odd, &s);
    case 6:
        return xt_dl_dtype((DLDataType){kDLOpaqueHandle, 64, 1}, &out);
    case 7:
        return xt_input_layout_dl(NULL, 0, &t);
    case 8:
        return xt_input_layout_dl(g, 0, NULL);
    case 9:
        return xt_input_layout_dl(g, 1, &t);
    case 10:
        return xt_input_layout_dl(g, -1, &t);
    case 11:
        return xt_output_dl(g, 0, &none);
    default:
        return xt_output_dl(g, 5, &t);
    }
}

START_TEST(each_wrong_tensor_is_told)
{
    static const struct {
        xt_status status;
        const char *said;
    } rows[] = {
        {XT_EINVAL, "xt_dl_dtype: out is NULL"},
        {XT_EINVAL, "xt_dl_shape: out is NULL"},
        {XT_EINVAL, "xt_dl_shape: tensor is NULL"},
        {XT_EINVAL, "xt_dl_shape: the tensor's shape is NULL"},
        {XT_ERANK, "xt_dl_shape: rank -1 is not in [0,32]"},
        {XT_EDTYPE, "xt_dl_shape: DLPack's type (code 2, 32 bits, 3 lanes) is none of xt's"},
        {XT_EDTYPE, "xt_dl_dtype: DLPack's type (code 3, 64 bits, 1 lane) is none of xt's"},
        {XT_EINVAL, "input_layout: graph is NULL"},
        {XT_EINVAL, "xt_dl_shape: tensor is NULL"},
        {XT_EINVAL, "input_layout: op 1: no input 1: the graph has 1"},
        {XT_EINVAL, "input_layout: op 1: no input -1: the graph has 1"},
        {XT_EINVAL, "xt_dl_shape: the tensor's shape is NULL"},
        {XT_EINVAL, "output: op 1: node 5 is not one of this graph's 1"},
    };
    enum { OF_GRAPHS = 8 };
    for (int i = 0; i < (int)(sizeof rows / sizeof *rows); i++) {
        struct xt_graph *g = parse_line("x: f32[2,3]; x");
        xt_status s = call_wrong(i, g);
        ck_assert_msg(s == rows[i].status && !strcmp(xt_last_error()->message, rows[i].said), "%d: %d %s", i,
                      s, xt_last_error()->message);
        ck_assert_int_eq(xt_graph_status(g), i < OF_GRAPHS ? XT_OK : s);
        if (i >= OF_GRAPHS) { /* the first error stays */
            expect(s, call_wrong(12, g));
            ck_assert_str_eq(xt_last_error()->message, rows[i].said);
        }
        xt_graph_free(g);
    }
}
END_TEST

/* ---- ends of a kernel, and structs that grow */

START_TEST(a_kernel_tells_what_its_ends_are)
{
    struct xt_ctx *ctx = new_ctx(XT_CPU, 1);
    struct xt_graph *g =
        parse_line("a: u16[4,3]; b: u16[2,3]:[1,2]+5; concat(0, a[1:3], b) -> [4,3]:[8,2]+1");
    struct xt_kernel *k;
    struct xt_end_info e = {.size = sizeof e};
    expect(XT_OK, xt_compile(ctx, g, NULL, &k));
    expect(XT_OK, xt_kernel_shape(k, 0, &e));
    ck_assert(!strcmp(e.name, "a") && e.dtype == XT_U16 && e.rank == 2 && e.shape[0] == 4 &&
              e.strides[0] == 3 && e.offset == 0 && !e.origin && e.from_bytes == 6 && e.to_bytes == 18);
    expect(XT_OK, xt_kernel_shape(k, 1, &e));
    ck_assert(!strcmp(e.name, "b") && e.shape[0] == 2 && e.strides[1] == 2 && e.offset == 5 &&
              e.from_bytes == 10 && e.to_bytes == 22);
    expect(XT_OK, xt_kernel_shape(k, -1, &e));
    ck_assert(!e.name && e.rank == 2 && e.shape[0] == 4 && e.strides[0] == 8 && e.offset == 1 &&
              e.from_bytes == 2 && e.to_bytes == 2 * (1 + 3 * 8 + 2 * 2 + 1));
    expect(XT_EINVAL, xt_kernel_shape(k, 2, &e));
    expect(XT_EINVAL, xt_kernel_shape(k, -2, &e));
    expect(XT_EINVAL, xt_kernel_shape(NULL, 0, &e));
    expect(XT_EINVAL, xt_kernel_shape(k, 0, NULL));
    xt_kernel_free(k);
    xt_graph_free(g);
    xt_ctx_free(ctx);
}
END_TEST

/* Calls get with a struct of the given size, which lies at the end of room. */
#define SIZES(type, call)                                                                                    \
    do {                                                                                                     \
        struct {                                                                                             \
            struct type s;                                                                                   \
            unsigned char more[64];                                                                          \
        } room;                                                                                              \
        struct type *const out = &room.s;                                                                    \
        const size_t bad[] = {0, 8, sizeof *out / 2, 5000, SIZE_MAX};                                        \
        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {                                              \
            memset(&room, 0xa5, sizeof room);                                                                \
            out->size = bad[i];                                                                              \
            expect(XT_EINVAL, call);                                                                         \
            ck_assert_int_eq(((unsigned char *)out)[sizeof out->size], 0xa5);                                \
        }                                                                                                    \
        ck_assert_ptr_nonnull(strstr(xt_last_error()->message, "want sizeof(struct " #type ")"));            \
        memset(&room, 0xa5, sizeof room);                                                                    \
        out->size = sizeof *out;                                                                             \
        expect(XT_OK, call);                                                                                 \
        ck_assert_uint_eq(out->size, sizeof *out);                                                           \
        ck_assert_int_eq(room.more[0], 0xa5);                                                                \
        out->size = sizeof room;                                                                             \
        expect(XT_OK, call);                                                                                 \
        ck_assert_uint_eq(out->size, sizeof room);                                                           \
        for (size_t i = 0; i < sizeof room.more; i++)                                                        \
            ck_assert_int_eq(room.more[i], 0);                                                               \
    } while (0)

START_TEST(structs_of_callers_that_know_more_or_less_are_filled_as_far_as_both_go)
{
    struct xt_ctx *ctx = new_ctx(XT_CPU, 1);
    struct xt_graph *g = parse_line("x: f32[3]; x");
    struct xt_kernel *k;
    expect(XT_OK, xt_compile(ctx, g, NULL, &k));
    SIZES(xt_node_info, xt_node_get(g, 0, out));
    SIZES(xt_output_info, xt_output_get(g, out));
    SIZES(xt_kernel_info, xt_kernel_get(k, out));
    SIZES(xt_end_info, xt_kernel_shape(k, 0, out));
    SIZES(xt_cache_stats, xt_cache_get(ctx, out));
    SIZES(xt_env_info, xt_env_get(0, out));
    xt_kernel_free(k);
    xt_graph_free(g);
    xt_ctx_free(ctx);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("ends");
    TCase *c = tcase_create("ends");
    tcase_set_timeout(c, 120);
    tcase_add_test(c, the_version_is_the_same_as_numbers_and_as_text);
    tcase_add_loop_test(c, a_pointer_to_element_0_gives_what_the_start_of_the_buffer_and_an_offset_give, 0,
                        2);
    tcase_add_test(c, overlaps_are_found_from_element_0_too);
    tcase_add_test(c, more_inputs_than_fit_on_the_stack_are_moved_too);
    tcase_add_test(c, without_a_negative_stride_element_0_is_the_start);
    tcase_add_test(c, an_input_gets_another_layout_after_parsing);
    tcase_add_test(c, layouts_that_make_no_sense_are_refused);
    tcase_add_test(c, a_destination_that_meets_itself_is_refused_at_once);
    tcase_add_test(c, tensors_are_inputs_and_results);
    tcase_add_test(c, tensors_that_do_not_fit_are_refused_with_a_sentence);
    tcase_add_test(c, each_wrong_tensor_is_told);
    tcase_add_test(c, a_kernel_tells_what_its_ends_are);
    tcase_add_test(c, structs_of_callers_that_know_more_or_less_are_filled_as_far_as_both_go);
    suite_add_tcase(s, c);
    return run_suite(s);
}
