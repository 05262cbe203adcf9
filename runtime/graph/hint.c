/* hint.c: the nearest word to one that is unknown, and what xt does not do. Layer 1. */
#include "graph/hint.h"

#include <stdio.h>
#include <string.h>

#include "graph/dtype.h"

enum { MAX_WORD = 24, FAR = 3 };

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

int xti_hint_distance(const char *a, size_t n, const char *b, size_t m)
{
    int row[3][MAX_WORD + 1];
    if (n > MAX_WORD || m > MAX_WORD || n > m + FAR || m > n + FAR)
        return FAR;
    for (size_t k = 0; k <= m; k++)
        row[0][k] = (int)k;
    for (size_t i = 1; i <= n; i++) {
        int *now = row[i % 3], *last = row[(i + 2) % 3], *before = row[(i + 1) % 3];
        now[0] = (int)i;
        for (size_t k = 1; k <= m; k++) {
            int v = last[k - 1] + (a[i - 1] != b[k - 1]);
            v = last[k] + 1 < v ? last[k] + 1 : v;
            v = now[k - 1] + 1 < v ? now[k - 1] + 1 : v;
            if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1] && before[k - 2] + 1 < v)
                v = before[k - 2] + 1;
            now[k] = v;
        }
    }
    return row[n % 3][m] < FAR ? row[n % 3][m] : FAR;
}

/* The nearest word so far. */
struct nearest {
    struct xti_token word;
    const char *s;
    size_t n;
    int distance; /* what is as far or farther is not taken */
};

/* One change in short words, two in longer ones. */
static struct nearest nothing_near(struct xti_token word)
{
    return (struct nearest){.word = word, .distance = word.n < 3 ? 1 : word.n < 6 ? 2 : FAR};
}

static void consider(struct nearest *best, const char *s, size_t n)
{
    int d = xti_hint_distance(best->word.s, best->word.n, s, n);
    if (d && d < best->distance)
        *best = (struct nearest){best->word, s, n, d};
}

static void consider_list(struct nearest *best, const char *list)
{
    while (*list) {
        size_t n = strcspn(list, " ");
        consider(best, list, n);
        list += n + (list[n] == ' ');
    }
}

static int cut(struct xti_token t) { return t.n < 40 ? (int)t.n : 40; }

/* "there is no operation 'permut': did you mean 'permute'?" */
static bool fail_unknown(struct xti_parser *p, xt_status s, struct xti_token word, const char *before,
                         const char *after, const struct nearest *best)
{
    if (best->n)
        return xti_parse_fail(p, s, word.s, "%s'%.*s'%s: did you mean '%.*s'?", before, cut(word), word.s,
                              after, (int)best->n, best->s);
    return xti_parse_fail(p, s, word.s, "%s'%.*s'%s", before, cut(word), word.s, after);
}

bool xti_hint_operation(struct xti_parser *p, struct xti_token word)
{
    struct nearest best = nothing_near(word);
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++)
        if (xti_word_in(absent[i].words, word.s, word.n))
            return xti_parse_fail(p, XT_ESYNTAX, word.s, "there is no operation '%.*s': %s", cut(word),
                                  word.s, absent[i].why);
    for (int i = 0; xti_call_names(i); i++)
        consider_list(&best, xti_call_names(i));
    for (size_t i = 0; i < sizeof synonym / sizeof *synonym; i++)
        if (xti_word_in(synonym[i].words, word.s, word.n))
            best = (struct nearest){word, synonym[i].meant, strlen(synonym[i].meant), 1};
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
    struct nearest best = nothing_near(word);
    char after[256] = " is not declared: inputs come first, as in x: f32[2,3]; x.permute(1,0)", names[128];
    for (int i = 0; i < p->n_symbols; i++)
        consider(&best, p->symbol[i].s, p->symbol[i].n);
    declared_text(p, names, sizeof names);
    if (p->n_symbols)
        snprintf(after, sizeof after, " is not declared%s", best.n ? "" : names);
    return fail_unknown(p, XT_ESYNTAX, word, "", after, &best);
}

bool xti_hint_dtype(struct xti_parser *p, struct xti_token word)
{
    struct nearest best = nothing_near(word);
    if (word.n && *word.s == '>')
        return xti_parse_fail(p, XT_EDTYPE, word.s, "'%.*s': xt does not swap the bytes of elements",
                              cut(word), word.s);
    if (word.n == 2 && !memcmp(word.s, "f8", 2))
        return xti_parse_fail(p, XT_EDTYPE, word.s,
                              "'f8' is NumPy's f64, and short for 8 bits: write f64, "
                              "f8e4m3 or f8e5m2");
    for (int t = 1; xti_dtype((xt_dtype)t); t++) {
        consider_list(&best, xti_dtype((xt_dtype)t)->name);
        consider_list(&best, xti_dtype((xt_dtype)t)->aliases);
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
