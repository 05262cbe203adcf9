/* mesh.c: parses `mesh p[4] q[2]@8` and the shapes in which names of its axes stand: [8192 p q(16), 64].
 * Layer 1. */
#include "graph/mesh.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "base/str.h"
#include "graph/parse.h"

static int width(struct xti_token t) { return t.n < 40 ? (int)t.n : 40; }

static int find_axis(const struct xti_mesh *m, struct xti_token t)
{
    for (int i = 0; i < m->n_axes; i++)
        if (strlen(m->axis[i].name) == t.n && !memcmp(m->axis[i].name, t.s, t.n))
            return i;
    return -1;
}

/* ---- mesh p[4] q[2]@8 */

/* Axis a is the last so far: those before it in its grid become slower. */
static bool place_axis(struct xti_parser *p, struct xti_mesh *m, const char *at)
{
    struct xti_mesh_axis *a = &m->axis[m->n_axes];
    int64_t size = 1;
    a->stride = 1;
    for (int i = 0; i <= m->n_axes; i++) {
        struct xti_mesh_axis *b = &m->axis[i];
        if (b->grid != a->grid)
            continue;
        if (i < m->n_axes)
            b->stride *= a->n;
        if (!xti_mul64(size, b->n, &size) || size + a->base > XTI_MAX_RANKS)
            return xti_parse_fail(p, XT_EOVERFLOW, at, "the mesh has more than %d ranks", XTI_MAX_RANKS);
    }
    if (m->ranks < a->base + size)
        m->ranks = a->base + size;
    m->n_axes++;
    return true;
}

static bool parse_axis(struct xti_parser *p, struct xti_mesh *m)
{
    struct xti_token t = p->tok;
    int n, last = m->n_axes - 1;
    int64_t list[XT_MAX_RANK];
    if (find_axis(m, t) >= 0)
        return xti_parse_fail(p, XT_ESYNTAX, t.s, "the mesh has two axes '%.*s'", width(t), t.s);
    if (m->n_axes == XTI_MESH_AXES || t.n > XTI_MAX_NAME)
        return xti_parse_fail(p, XT_EUNSUPPORTED, t.s, "a mesh has at most %d axes, of at most %d letters",
                              XTI_MESH_AXES, XTI_MAX_NAME);
    struct xti_mesh_axis *a = &m->axis[m->n_axes];
    *a = (struct xti_mesh_axis){.grid = last < 0 ? 0 : m->axis[last].grid,
                                .base = last < 0 ? 0 : m->axis[last].base};
    memcpy(a->name, t.s, t.n);
    xti_lex_next(p);
    if (!xti_lex_list(p, &n, list))
        return false;
    if (n != 1 || list[0] < 1)
        return xti_parse_fail(p, XT_EINVAL, t.s, "mesh axis '%s' wants one length of at least 1, as in %s[4]",
                              a->name, a->name);
    a->n = list[0];
    const char *at = p->tok.s;
    if (xti_lex_take(p, "@")) {
        a->grid += last >= 0;
        if (!xti_lex_int(p, &a->base))
            return false;
        if (a->base < 0 || a->base > XTI_MAX_RANKS)
            return xti_parse_fail(p, XT_ERANGE, at, "rank %" PRId64 " is not in [0,%d]", a->base,
                                  XTI_MAX_RANKS);
    }
    return place_axis(p, m, t.s);
}

bool xti_mesh_parse(struct xti_parser *p)
{
    struct xti_mesh *m = p->mesh;
    if (!m)
        return xti_parse_fail(p, XT_EUNSUPPORTED, p->tok.s,
                              "a chain over a mesh is planned by xt_shard_new; xt explain shows the plan");
    if (m->n_axes)
        return xti_parse_fail(p, XT_ESYNTAX, p->tok.s, "there is a mesh already");
    if (p->g->n_inputs)
        return xti_parse_fail(p, XT_ESYNTAX, p->tok.s, "the mesh comes before the inputs");
    for (xti_lex_next(p); p->tok.kind == XTI_NAME;)
        if (!parse_axis(p, m))
            return false;
    return true;
}

/* ---- [8192 p q(16), 64] */

static int grid_of(const struct xti_mesh *m, int i) { return m->axis[i].grid; }

/* (16) or (balanced), if it is there. *block: -1 when it is not. */
static bool parse_block(struct xti_parser *p, int64_t *block)
{
    const char *at = p->tok.s;
    *block = -1;
    if (!xti_lex_take(p, "("))
        return true;
    if (xti_lex_take(p, "balanced"))
        *block = 0;
    else if (!xti_lex_int(p, block))
        return false;
    else if (*block < 1)
        return xti_parse_fail(p, XT_EINVAL, at, "blocks of %" PRId64 " elements", *block);
    return xti_lex_want(p, ")");
}

/* The names behind extent n of an axis. used: mesh axes that cut an axis before. */
static bool parse_cut(struct xti_parser *p, int64_t n, int *grid, uint32_t *used, struct xti_cut *c)
{
    const struct xti_mesh *m = p->mesh;
    int64_t block = -1;
    int last = -1;
    *c = (struct xti_cut){.ranks = 1};
    while (p->tok.kind == XTI_NAME) {
        struct xti_token t = p->tok;
        int i = find_axis(m, t);
        if (i < 0)
            return xti_parse_fail(p, XT_ESYNTAX, t.s, "the mesh has no axis '%.*s'", width(t), t.s);
        if (*used & UINT32_C(1) << i)
            return xti_parse_fail(p, XT_EINVAL, t.s, "mesh axis '%.*s' (%" PRId64 " ranks) cuts two axes",
                                  width(t), t.s, m->axis[i].n);
        if (*grid >= 0 && grid_of(m, i) != *grid)
            return xti_parse_fail(p, XT_EINVAL, t.s,
                                  "mesh axis '%.*s' is of another grid of ranks than those before it",
                                  width(t), t.s);
        if (block >= 0)
            return xti_parse_fail(p, XT_ESYNTAX, t.s, "the length of blocks stands behind the last name");
        if (last >= 0 && i != last + 1)
            return xti_parse_fail(p, XT_EUNSUPPORTED, t.s,
                                  "mesh axes '%s' and '%.*s' cut one axis together, but do not follow each "
                                  "other in the mesh",
                                  m->axis[last].name, width(t), t.s);
        *used |= UINT32_C(1) << i;
        *grid = grid_of(m, i);
        last = i;
        c->ranks *= m->axis[i].n;
        c->stride = m->axis[i].stride;
        xti_lex_next(p);
        if (!parse_block(p, &block))
            return false;
    }
    c->block = block >= 0 ? block : xti_ceil_div(n, c->ranks) ? xti_ceil_div(n, c->ranks) : 1;
    return true;
}

static bool copies(struct xti_parser *p, const char *at, int grid, uint32_t used, struct xti_spread *s)
{
    const struct xti_mesh *m = p->mesh;
    if (!m->n_axes)
        return xti_parse_fail(p, XT_ESYNTAX, at, "the mesh comes first, as in mesh r[4]; x: f32[64 r,8]; ..");
    if (grid < 0 && m->axis[m->n_axes - 1].grid)
        return xti_parse_fail(p, XT_EINVAL, at,
                              "the mesh has several grids of ranks, and no name of an axis says on which of "
                              "them this tensor is");
    grid = grid < 0 ? 0 : grid;
    for (int i = 0; i < m->n_axes; i++) {
        if (m->axis[i].grid != grid)
            continue;
        s->base = m->axis[i].base;
        if (used & UINT32_C(1) << i || m->axis[i].n == 1)
            continue;
        s->copy[s->n_copies].n = m->axis[i].n;
        s->copy[s->n_copies++].stride = m->axis[i].stride;
    }
    return true;
}

bool xti_mesh_shape(struct xti_parser *p, int *rank, int64_t shape[XT_MAX_RANK], struct xti_spread *s)
{
    int grid = -1;
    uint32_t used = 0;
    const char *at = p->tok.s;
    *rank = 0;
    *s = (struct xti_spread){0};
    if (!xti_lex_want(p, "["))
        return false;
    while (!xti_lex_is(p, "]")) {
        if (*rank == XT_MAX_RANK)
            return xti_parse_fail(p, XT_ERANK, p->tok.s, "more than %d axes", XT_MAX_RANK);
        if (!xti_lex_int(p, &shape[*rank]) || !parse_cut(p, shape[*rank], &grid, &used, &s->cut[*rank]))
            return false;
        ++*rank;
        if (!xti_lex_take(p, ",") && !xti_lex_is(p, "]"))
            return xti_lex_expected(p, "',', ']' or a mesh axis");
    }
    xti_lex_next(p);
    s->rank = *rank;
    return copies(p, at, grid, used, s);
}

/* The result without a destination: a copy on every rank. */
bool xti_mesh_everywhere(struct xti_parser *p, const char *at, int rank, struct xti_spread *s)
{
    *s = (struct xti_spread){.rank = rank};
    for (int i = 0; i < rank; i++)
        s->cut[i] = (struct xti_cut){.ranks = 1, .block = 1};
    return copies(p, at, -1, 0, s);
}

bool xti_mesh_input(struct xti_parser *p, const struct xti_spread *s)
{
    struct xti_mesh *m = p->mesh;
    if (m->n_inputs == XTI_MAX_SPREADS)
        return xti_parse_fail(p, XT_EUNSUPPORTED, p->tok.s, "more than %d inputs over a mesh",
                              XTI_MAX_SPREADS);
    struct xti_spread *v = xti_realloc(m->input, (size_t)(m->n_inputs + 1) * sizeof *v);
    if (!v)
        return xti_parse_fail(p, XT_ENOMEM, p->tok.s, "out of memory");
    m->input = v;
    m->input[m->n_inputs++] = *s;
    return true;
}

void xti_mesh_free(struct xti_mesh *m)
{
    xti_free(m->input);
    *m = (struct xti_mesh){0};
}
