/* dlpack.c: DLPack tensors as the two ends of a graph. In: a DLTensor, read and not kept. Out: calls of
 * xt_input, xt_input_layout and xt_output with its type, shape, strides and XT_ORIGIN. Layer 1. */
#include <xt/dlpack.h>

#include <string.h>

#include "base/str.h"
#include "graph/build.h"

static const struct {
    unsigned char code, bits;
    xt_dtype dtype;
} table[] = {
    {kDLBool, 8, XT_BOOL},
    {kDLUInt, 8, XT_U8},
    {kDLInt, 8, XT_I8},
    {kDLUInt, 16, XT_U16},
    {kDLInt, 16, XT_I16},
    {kDLUInt, 32, XT_U32},
    {kDLInt, 32, XT_I32},
    {kDLUInt, 64, XT_U64},
    {kDLInt, 64, XT_I64},
    {kDLFloat, 16, XT_F16},
    {kDLBfloat, 16, XT_BF16},
    {kDLFloat, 32, XT_F32},
    {kDLFloat, 64, XT_F64},
    {kDLFloat8_e4m3fn, 8, XT_F8E4M3},
    {kDLFloat8_e5m2, 8, XT_F8E5M2},
    {kDLComplex, 64, XT_C64},
    {kDLComplex, 128, XT_C128},
};

/* 0: there is none. */
static xt_dtype find(DLDataType t)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (t.lanes == 1 && t.code == table[i].code && t.bits == table[i].bits)
            return table[i].dtype;
    return (xt_dtype)0;
}

static xt_status fail_dtype(struct xti_err *err, const char *call, DLDataType t)
{
    return xti_fail(err, XT_EDTYPE, "%s: DLPack's type (code %d, %d bits, %d lane%s) is none of xt's", call,
                    t.code, t.bits, t.lanes, t.lanes == 1 ? "" : "s");
}

xt_status xt_dl_dtype(DLDataType t, xt_dtype *out)
{
    struct xti_err err = {0};
    if (!out)
        return xti_publish(xti_fail(&err, XT_EINVAL, "xt_dl_dtype: out is NULL"), &err);
    *out = find(t);
    return xti_publish(*out ? XT_OK : fail_dtype(&err, "xt_dl_dtype", t), &err);
}

void *xt_dl_pointer(const DLTensor *t)
{
    return t && t->data ? (unsigned char *)t->data + t->byte_offset : NULL;
}

xt_status xt_dl_shape(const DLTensor *t, struct xt_shape *out)
{
    struct xti_err err = {0};
    if (!t || !out)
        return xti_publish(xti_fail(&err, XT_EINVAL, "xt_dl_shape: %s is NULL", t ? "out" : "tensor"), &err);
    memset(out, 0, sizeof *out);
    if (t->ndim < 0 || t->ndim > XT_MAX_RANK)
        return xti_publish(
            xti_fail(&err, XT_ERANK, "xt_dl_shape: rank %d is not in [0,%d]", t->ndim, XT_MAX_RANK), &err);
    if (t->ndim && !t->shape)
        return xti_publish(xti_fail(&err, XT_EINVAL, "xt_dl_shape: the tensor's shape is NULL"), &err);
    out->dtype = find(t->dtype);
    if (!out->dtype)
        return xti_publish(fail_dtype(&err, "xt_dl_shape", t->dtype), &err);
    out->rank = t->ndim;
    if (t->ndim)
        memcpy(out->shape, t->shape, (size_t)t->ndim * sizeof *t->shape);
    return xti_publish(XT_OK, NULL);
}

/* The tensor's type and shape; an error of theirs becomes the graph's. */
static bool take(struct xt_graph *g, const DLTensor *t, struct xt_shape *s)
{
    if (!g || g->err.e.status)
        return true; /* what is called next says so */
    xt_status st = xt_dl_shape(t, s);
    if (st)
        xti_publish(xti_graph_fail(g, st, "%s", xt_last_error()->message), &g->err);
    return !st;
}

/* A node's type and shape are the tensor's. */
static bool agrees(struct xti_build *b, const struct xti_node *n, const struct xt_shape *s)
{
    char want[XTI_SHAPE_TEXT], got[XTI_SHAPE_TEXT];
    if (n->dtype != s->dtype) {
        xti_build_fail(b, XT_EDTYPE, -1, "it is %s, the tensor %s", xt_dtype_name(n->dtype),
                       xt_dtype_name(s->dtype));
        return false;
    }
    if (n->rank == s->rank && !(n->rank && memcmp(n->shape, s->shape, (size_t)n->rank * sizeof *n->shape)))
        return true;
    xti_build_fail(b, n->rank == s->rank ? XT_ESHAPE : XT_ERANK, -1, "it is %s, the tensor %s",
                   xti_shape_text(want, sizeof want, n->rank, n->shape),
                   xti_shape_text(got, sizeof got, s->rank, s->shape));
    return false;
}

xt_node xt_input_dl(struct xt_graph *g, const char *name, const DLTensor *t)
{
    struct xt_shape s = {0};
    if (!take(g, t, &s))
        return -1;
    return xt_input(g, name, s.dtype, s.rank, s.shape, t ? t->strides : NULL, XT_ORIGIN);
}

xt_status xt_input_layout_dl(struct xt_graph *g, int input, const DLTensor *t)
{
    struct xt_shape s = {0};
    struct xti_build b;
    if (!take(g, t, &s))
        return g->err.e.status;
    if (!xti_build_start(&b, g, XT_OP_INPUT, "input_layout", -1))
        return g ? g->err.e.status : XT_EINVAL;
    if (input >= 0 && input < g->n_inputs && !agrees(&b, &g->node[g->input[input]], &s))
        return g->err.e.status;
    return xt_input_layout(g, input, t->strides, XT_ORIGIN);
}

xt_status xt_output_dl(struct xt_graph *g, xt_node x, const DLTensor *t)
{
    struct xt_shape s = {0};
    struct xti_build b;
    if (!take(g, t, &s))
        return g->err.e.status;
    if (!xti_build_start(&b, g, XT_OP_RESHAPE, "output", x))
        return g ? g->err.e.status : XT_EINVAL;
    return agrees(&b, b.x, &s) ? xt_output(g, x, t->strides, XT_ORIGIN) : g->err.e.status;
}
