/* hint.c: the nearest word to one that is unknown, and what xt does not do. Layer 1. */
#include "graph/hint.h"

#include <stdio.h>
#include <string.h>

#include "graph/dtype.h"
#include "graph/spelling.h"

/* What other libraries have and a copy is not. */
static const struct {
    const char *words, *why;
} absent[] = {
    {"sum mean prod max min amax amin argmax argmin any all cumsum cumprod std var norm reduce add sub mul "
     "div "
     "neg abs exp log sqrt relu softmax matmul mm bmm dot einsum tensordot inner outer clip clamp round "
     "where "
     "sort argsort unique topk conv2d",
     "xt moves elements, it computes nothing"},
    {"astype float half double int long short char byte bfloat16 type type_as to",
     "xt moves elements, it does not convert them"},
    {"take gather index_select take_along_axis take_along_dim scatter index_put masked_select masked_fill "
     "nonzero "
     "choose compress",
     "indices must be known when the chain is compiled: slices are"},
    {"split chunk tensor_split unbind array_split hsplit vsplit dsplit meshgrid",
     "a chain has one result: slice each part, as in x[:, 0:4]"},
    {"as_strided", "declare the input with its strides, as in x: f32[4,6]:[1,4]+0"},
};

/* What others call an operation, and is no slip of the fingers. */
static const struct {
    const char *words, *meant;
} synonym[] = {
    {"reverse revers", "flip"}, {"t", "T"},           {"rot rotate", "rot90"}, {"resize", "reshape"},
    {"broadcast", "expand"},    {"append", "concat"}, {"shift", "roll"},
};

static int cut(struct xti_token t) { return t.n < 40 ? (int)t.n : 40; }

/* "there is no operation 'permut': did you mean 'permute'?" */
static bool fail_unknown(struct xti_parser *p, xt_status s, struct xti_token word, const char *before,
                         const char *after, const struct xti_spelling *best)
{
    if (best->n)
        return xti_parse_fail(p, s, word.s, "%s'%.*s'%s: did you mean '%.*s'?", before, cut(word), word.s,
                              after, (int)best->n, best->s);
    return xti_parse_fail(p, s, word.s, "%s'%.*s'%s", before, cut(word), word.s, after);
}

bool xti_hint_operation(struct xti_parser *p, struct xti_token word)
{
    struct xti_spelling best = xti_spelling_start(word);
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++)
        if (xti_word_in(absent[i].words, word.s, word.n))
            return xti_parse_fail(p, XT_ESYNTAX, word.s, "there is no operation '%.*s': %s", cut(word),
                                  word.s, absent[i].why);
    for (int i = 0; xti_call_names(i); i++)
        xti_spelling_look_at(&best, xti_call_names(i));
    for (size_t i = 0; i < sizeof synonym / sizeof *synonym; i++)
        if (xti_word_in(synonym[i].words, word.s, word.n))
            best = (struct xti_spelling){word, synonym[i].meant, strlen(synonym[i].meant), 1};
    if (xti_word_in("T mT", word.s, word.n))
        return xti_parse_fail(p, XT_ESYNTAX, word.s, "%.*s takes no brackets, as in x.T", (int)word.n,
                              word.s);
    return fail_unknown(p, XT_ESYNTAX, word, "there is no operation ", "", &best);
}

/* ": the inputs are x, y" where the names are few. */
static void declared_text(const struct xti_parser *p, char *out, size_t size)
{
    enum { MOST = 4 };
    size_t at = 0;
    out[0] = 0;
    for (int i = 0; i < p->n_symbols && p->n_symbols <= MOST; i++)
        if (at < size)
            at += (size_t)snprintf(out + at, size - at, "%s%.*s",
                                   i                  ? ", "
                                   : p->n_symbols > 1 ? ": there are "
                                                      : ": there is ",
                                   (int)p->symbol[i].n, p->symbol[i].s);
}

bool xti_hint_name(struct xti_parser *p, struct xti_token word)
{
    struct xti_spelling best = xti_spelling_start(word);
    char after[256] = " is not declared: inputs come first, as in x: f32[2,3]; x.permute(1,0)", names[128];
    for (int i = 0; i < p->n_symbols; i++)
        xti_spelling_look(&best, p->symbol[i].s, p->symbol[i].n);
    declared_text(p, names, sizeof names);
    if (p->n_symbols)
        snprintf(after, sizeof after, " is not declared%s", best.n ? "" : names);
    return fail_unknown(p, XT_ESYNTAX, word, "", after, &best);
}

bool xti_hint_dtype(struct xti_parser *p, struct xti_token word)
{
    struct xti_spelling best = xti_spelling_start(word);
    if (word.n && *word.s == '>')
        return xti_parse_fail(p, XT_EDTYPE, word.s, "'%.*s': xt does not swap the bytes of elements",
                              cut(word), word.s);
    if (word.n == 2 && !memcmp(word.s, "f8", 2))
        return xti_parse_fail(p, XT_EDTYPE, word.s,
                              "'f8' is NumPy's f64, and short for 8 bits: write f64, "
                              "f8e4m3 or f8e5m2");
    for (int t = 1; xti_dtype((xt_dtype)t); t++) {
        xti_spelling_look_at(&best, xti_dtype((xt_dtype)t)->name);
        xti_spelling_look_at(&best, xti_dtype((xt_dtype)t)->aliases);
    }
    return fail_unknown(p, XT_EDTYPE, word, "",
                        best.n
                            ? " is not an element type"
                            : " is not an element type: bool u8 i8 u16 i16 u32 i32 u64 i64 f16 bf16 f32 f64 "
                              "f8e4m3 f8e5m2 c64 c128",
                        &best);
}

bool xti_hint_no_arithmetic(struct xti_parser *p)
{
    bool sign = p->tok.kind == XTI_NUMBER && (*p->tok.s == '+' || *p->tok.s == '-');
    bool mark = p->tok.kind == XTI_MARK && strchr("+-*/%@&|^<>!~", *p->tok.s);
    bool equal = xti_lex_is(p, "=") && p->tok.s[1] == '=';
    if (!sign && !mark && !equal)
        return true;
    return xti_parse_fail(p, XT_ESYNTAX, p->tok.s, "'%c': xt moves elements, it computes nothing", *p->tok.s);
}
