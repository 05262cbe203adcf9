/* pattern.c: reads einops patterns and finds the lengths of their axes. What is accepted, and what it means,
 * is what einops' rearrange or repeat accept. Layer 1. */
#include "graph/pattern.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "base/str.h"

static const char ellipsis[] = "...";

struct reader {
    struct xti_build *b;
    const char *text;
    const struct xti_lengths *given;
};

/* "'a b -> b a' of [2,3] with a=2: what". */
static bool refuse(struct reader *r, xt_status s, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

static bool refuse(struct reader *r, xt_status s, const char *fmt, ...)
{
    char shape[XTI_SHAPE_TEXT], what[160], with[100] = "";
    size_t at = 0;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    for (int i = 0; i < r->given->n && at < sizeof with; i++)
        at += (size_t)snprintf(with + at, sizeof with - at, "%s%.24s=%" PRId64, i ? ", " : " with ",
                               r->given->name[i], r->given->length[i]);
    xti_shape_text(shape, sizeof shape, r->b->x->rank, r->b->x->shape);
    xti_build_fail(r->b, s, -1, "'%.120s' of %.100s%s: %s", r->text, shape, with, what);
    return false;
}

/* ---- reading */

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static bool is_word(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.' ||
           (unsigned char)c >= 0x80;
}

static bool is_ellipsis(const struct xti_pattern_axis *a) { return a->n == 3 && !memcmp(a->s, ellipsis, 3); }

static bool same_axis(const struct xti_pattern_axis *a, const struct xti_pattern_axis *b)
{
    return a->n == b->n && a->nth == b->nth && !memcmp(a->s, b->s, (size_t)a->n) && !is_digit(*a->s);
}

static int find_axis(const struct xti_pattern_side *side, const struct xti_pattern_axis *a)
{
    for (int i = 0; i < side->n_axes; i++)
        if (same_axis(&side->axis[i], a))
            return i;
    return -1;
}

/* A number's value; "1x" and "_x" are no names. */
static bool check_word(struct reader *r, struct xti_pattern_axis *a)
{
    int digits = 0, dots = 0;
    while (digits < a->n && is_digit(a->s[digits]))
        digits++;
    for (int i = 0; i < a->n; i++)
        dots += a->s[i] == '.';
    if (dots && !is_ellipsis(a))
        return refuse(r, XT_ESYNTAX, "dots stand only as '...', between blanks");
    if (!digits)
        return (*a->s != '_' && a->s[a->n - 1] != '_') ||
               refuse(r, XT_ESYNTAX, "axis '%.*s' must not begin or end with '_'", a->n, a->s);
    if (digits < a->n)
        return refuse(r, XT_ESYNTAX, "'%.*s' is not an axis: a name or a number is", a->n, a->s);
    a->length = 0;
    for (int i = 0; i < a->n; i++)
        if (!xti_mul64(a->length, 10, &a->length) || !xti_add64(a->length, a->s[i] - '0', &a->length))
            return refuse(r, XT_EOVERFLOW, "%.*s does not fit in 63 bits", a->n, a->s);
    return a->length > 0 || refuse(r, XT_EINVAL, "an axis has a length of 1 or more, not 0");
}

static bool add_axis(struct reader *r, struct xti_pattern_side *side, bool open, struct xti_pattern_axis a)
{
    if (!check_word(r, &a))
        return false;
    if (a.length == 1)
        return true;
    if (find_axis(side, &a) >= 0)
        return refuse(r, XT_EINVAL, "axis '%.*s' stands twice on one side", a.n, a.s);
    if (side->n_axes == XT_MAX_RANK)
        return refuse(r, XT_ERANK, "more than %d axes", XT_MAX_RANK);
    if (is_ellipsis(&a)) {
        side->dots = side->n_axes;
        side->dots_inside = open;
    }
    side->axis[side->n_axes++] = a;
    return true;
}

static bool begin_group(struct reader *r, struct xti_pattern_side *side)
{
    if (side->n_groups == XT_MAX_RANK)
        return refuse(r, XT_ERANK, "more than %d axes", XT_MAX_RANK);
    side->at[side->n_groups++] = side->n_axes;
    return true;
}

/* [s, end) into groups. */
static bool read_side(struct reader *r, const char *s, const char *end, struct xti_pattern_side *side)
{
    bool open = false;
    side->n_groups = side->n_axes = 0;
    side->dots = -1;
    while (s < end) {
        const char *word = s;
        while (s < end && is_word(*s))
            s++;
        if (s > word) {
            struct xti_pattern_axis a = {word, (int)(s - word), 0, -1};
            if (!(open || begin_group(r, side)) || !add_axis(r, side, open, a))
                return false;
            continue;
        }
        if (*s == '(' && open)
            return refuse(r, XT_ESYNTAX, "brackets inside brackets");
        if (*s == '(' && !begin_group(r, side))
            return false;
        if ((*s == ')' && !open) || !strchr("() ", *s))
            return refuse(r, XT_ESYNTAX, *s == ')' ? "')' without '('" : "unknown character '%c'", *s);
        open = *s == '(' || (open && *s == ' ');
        s++;
    }
    side->at[side->n_groups] = side->n_axes;
    return !open || refuse(r, XT_ESYNTAX, "'(' is not closed");
}

/* ---- the ellipsis */

static int group_of(const struct xti_pattern_side *side, int axis)
{
    int g = side->n_groups - 1;
    while (side->at[g] > axis)
        g--;
    return g;
}

/* The ellipsis becomes k axes: in brackets within its group, else each a group. */
static bool expand_ellipsis(struct reader *r, struct xti_pattern_side *side, int k)
{
    int dots = side->dots, g = group_of(side, dots), more_groups = side->dots_inside ? 0 : k - 1;
    if (side->n_axes + k - 1 > XT_MAX_RANK || side->n_groups + more_groups > XT_MAX_RANK)
        return refuse(r, XT_ERANK, "more than %d axes", XT_MAX_RANK);
    memmove(side->axis + dots + k, side->axis + dots + 1,
            (size_t)(side->n_axes - dots - 1) * sizeof *side->axis);
    for (int i = 0; i < k; i++)
        side->axis[dots + i] = (struct xti_pattern_axis){ellipsis, 3, i, -1};
    side->n_axes += k - 1;
    if (!side->dots_inside) {
        memmove(side->at + g + 1 + more_groups, side->at + g + 1,
                (size_t)(side->n_groups - g) * sizeof *side->at);
        for (int i = 1; i < k; i++)
            side->at[g + i] = dots + i;
        side->n_groups += more_groups;
        g += more_groups;
    }
    for (int i = g + 1; i <= side->n_groups; i++)
        side->at[i] += k - 1;
    return true;
}

static bool expand_both(struct reader *r, struct xti_pattern *p)
{
    bool left = p->left.dots >= 0, right = p->right.dots >= 0;
    int rank = r->b->x->rank, k = rank - (p->left.n_groups - left);
    if (left != right)
        return refuse(r, XT_EINVAL, "'...' stands on the %s alone", left ? "left" : "right");
    if (left && p->left.dots_inside)
        return refuse(r, XT_EINVAL, "'...' on the left cannot stand in brackets");
    if (k < 0 || (!left && k))
        return refuse(r, XT_ERANK, "the left side has %s%d ax%s, the tensor %d", left ? "at least " : "",
                      rank - k, rank - k == 1 ? "is" : "es", rank);
    return !left || (expand_ellipsis(r, &p->left, k) && expand_ellipsis(r, &p->right, k));
}

/* ---- lengths */

static bool match_sides(struct reader *r, struct xti_pattern *p)
{
    for (int i = 0; i < p->left.n_axes; i++) {
        const struct xti_pattern_axis *a = &p->left.axis[i];
        if (find_axis(&p->right, a) < 0)
            return refuse(r, XT_EINVAL, "axis '%.*s' stands on the left alone: rearrange drops nothing",
                          a->n < 40 ? a->n : 40, a->s);
    }
    for (int i = 0; i < p->right.n_axes; i++)
        p->from[i] = find_axis(&p->left, &p->right.axis[i]);
    return true;
}

static bool take_given(struct reader *r, struct xti_pattern *p)
{
    for (int i = 0; i < r->given->n; i++) {
        const char *name = r->given->name[i];
        int64_t length = r->given->length[i];
        struct xti_pattern_axis key = {name, (int)strlen(name), 0, -1};
        int left = find_axis(&p->left, &key), right = find_axis(&p->right, &key);
        if (!key.n || is_ellipsis(&key) || right < 0)
            return refuse(r, XT_EINVAL, "axis '%.40s' is not in the pattern", name);
        if (length < 0)
            return refuse(r, XT_EINVAL, "axis '%.40s' cannot have %" PRId64 " elements", name, length);
        if (p->right.axis[right].length >= 0)
            return refuse(r, XT_EINVAL, "axis '%.40s' has its length twice", name);
        p->right.axis[right].length = length;
        if (left >= 0)
            p->left.axis[left].length = length;
    }
    for (int i = 0; i < p->right.n_axes; i++) {
        const struct xti_pattern_axis *a = &p->right.axis[i];
        if (p->from[i] < 0 && a->length < 0)
            return refuse(r, XT_EINVAL, "give the length of the new axis: %.*s=..", a->n < 40 ? a->n : 40,
                          a->s);
    }
    return true;
}

/* The one length of a left group that is not given follows from its extent. */
static bool infer_group(struct reader *r, struct xti_pattern_side *left, int group)
{
    int64_t n = r->b->x->shape[group], known = 1;
    struct xti_pattern_axis *hole = NULL;
    for (int i = left->at[group]; i < left->at[group + 1]; i++) {
        struct xti_pattern_axis *a = &left->axis[i];
        if (a->length < 0 && hole)
            return refuse(r, XT_EINVAL, "axis %d: give the length of '%.*s' or of '%.*s'", group,
                          hole->n < 40 ? hole->n : 40, hole->s, a->n < 40 ? a->n : 40, a->s);
        if (a->length < 0)
            hole = a;
        else if (!xti_mul64(known, a->length, &known))
            return refuse(r, XT_EOVERFLOW, "axis %d: lengths that do not fit in 63 bits", group);
    }
    if (!hole)
        return known == n || refuse(r, XT_ESHAPE, "axis %d has %" PRId64 " elements, the pattern %" PRId64,
                                    group, n, known);
    if (!known)
        return refuse(r, XT_ESHAPE, "axis %d: '%.*s' could be anything beside a length of 0", group,
                      hole->n < 40 ? hole->n : 40, hole->s);
    if (n % known)
        return refuse(r, XT_ESHAPE, "axis %d of %" PRId64 " elements is not a multiple of %" PRId64, group, n,
                      known);
    hole->length = n / known;
    return true;
}

bool xti_pattern_solve(struct xti_build *b, const char *text, const struct xti_lengths *given,
                       struct xti_pattern *out)
{
    struct reader r = {b, text, given};
    const char *arrow = strstr(text, "->");
    if (!arrow || strstr(arrow + 2, "->"))
        return refuse(&r, XT_ESYNTAX, "wants one '->'");
    if (!read_side(&r, text, arrow, &out->left) ||
        !read_side(&r, arrow + 2, arrow + 2 + strlen(arrow + 2), &out->right) || !expand_both(&r, out) ||
        !match_sides(&r, out) || !take_given(&r, out))
        return false;
    for (int i = 0; i < out->left.n_groups; i++)
        if (!infer_group(&r, &out->left, i))
            return false;
    for (int i = 0; i < out->right.n_axes; i++)
        if (out->from[i] >= 0)
            out->right.axis[i].length = out->left.axis[out->from[i]].length;
    return true;
}
