/* names.c: what names stand for: constants, registers, variables and where these lie, scopes.
 * In: tokens of a declaration or an operand. Out: slots of the entry, variables of the module. */
#include "parse.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_VAR_BYTES = 1 << 28 };

/* clang-format off */
const char *const ptx_special_name[SPECIALS] = {
    "%tid.x", "%tid.y", "%tid.z", "%ntid.x", "%ntid.y", "%ntid.z",
    "%ctaid.x", "%ctaid.y", "%ctaid.z", "%nctaid.x", "%nctaid.y", "%nctaid.z",
    "%laneid", "%lanemask_eq", "%lanemask_lt", "%lanemask_le", "%lanemask_gt", "%lanemask_ge",
    "%dynamic_smem_size"};
/* clang-format on */

/* ---- registers and constants ---- */

int ptx_constant(struct parser *p, uint64_t value)
{
    struct entry *e = p->entry;
    for (int i = 0; i < e->n_constants; i++)
        if (e->constants[i][0] == value)
            return ~i;
    e->constants = ptx_grow(p, e->constants, e->n_constants, &e->cap_constants, sizeof *e->constants);
    for (int l = 0; l < LANES; l++)
        e->constants[e->n_constants][l] = value;
    return ~e->n_constants++;
}

int ptx_new_register(struct parser *p)
{
    if (p->entry->n_regs >= 1 << 20)
        ptx_refuse(p, ptx_peek(p), "more than a million registers");
    return p->entry->n_regs++;
}

static int find_special(struct parser *p, const struct token *t)
{
    for (int s = 0; s < SPECIALS; s++)
        if (ptx_is_word(t, ptx_special_name[s])) {
            if (p->entry->special[s] == NO_SLOT)
                p->entry->special[s] = ptx_new_register(p);
            return p->entry->special[s];
        }
    return NO_SLOT;
}

/* 1 when t names register *index of the range r. */
static int in_range(const struct reg_name *r, const struct token *t, int *index)
{
    if (t->len < r->len || memcmp(t->at, r->at, (size_t)r->len))
        return 0;
    *index = 0;
    if (r->count < 0)
        return t->len == r->len;
    if (t->len == r->len || t->len > r->len + 7 || (t->at[r->len] == '0' && t->len > r->len + 1))
        return 0;
    for (int i = r->len; i < t->len; i++) {
        if (!isdigit((unsigned char)t->at[i]))
            return 0;
        *index = *index * 10 + (t->at[i] - '0');
    }
    return *index < r->count;
}

int ptx_find_register(struct parser *p, const struct token *t, int *slot, struct type *type)
{
    if (t->kind != TOKEN_WORD)
        return 0;
    for (int scope = p->scope; scope > 0; scope = p->parent[scope])
        for (int i = p->n_regs; i-- > 0;) {
            int index;
            if (p->regs[i].scope == scope && in_range(&p->regs[i], t, &index)) {
                *slot = p->regs[i].first + index;
                *type = p->regs[i].type;
                return 1;
            }
        }
    *type = (struct type){'u', 32};
    *slot = find_special(p, t);
    return *slot != NO_SLOT;
}

const struct var *ptx_find_var(struct parser *p, const struct token *t)
{
    for (int scope = p->scope;; scope = p->parent[scope]) {
        for (int i = 0; i < p->m->n_vars; i++)
            if (p->m->vars[i].scope == scope && ptx_is_word(t, p->m->vars[i].name))
                return &p->m->vars[i];
        if (scope == 0)
            return NULL;
    }
}

int ptx_open_scope(struct parser *p, int parent)
{
    if (p->n_scopes == MAX_SCOPES)
        ptx_refuse(p, ptx_peek(p), "too many nested blocks");
    p->parent[p->n_scopes] = parent;
    return p->n_scopes++;
}

/* ---- variables ---- */

/* Places `bytes` at `*end` and moves *end past them and the gap. The address is a multiple of the alignment
 * but not of twice that, so that code relying on more than was declared faults. Less than a word is not
 * played with: it would change which words, and so which banks, neighbouring bytes share. */
uint64_t ptx_place(uint64_t *end, size_t bytes, size_t align)
{
    size_t a = align < 4 ? 4 : align;
    uint64_t at = (*end + 2 * a - 1) / (2 * a) * (2 * a) + a;
    *end = at + bytes + GAP_BYTES;
    return at;
}

static unsigned char *grow_image(struct parser *p, unsigned char *image, size_t old, size_t now)
{
    unsigned char *moved = realloc(image, now ? now : 1);
    if (!moved)
        ptx_refuse(p, ptx_peek(p), "out of memory");
    memset(moved + old, 0, now - old);
    return moved;
}

static void parse_initialiser(struct parser *p, unsigned char *to, size_t bytes, struct type type)
{
    size_t size = (size_t)type.bits / 8, done = 0;
    int braces = ptx_accept(p, '{');
    do {
        const struct token *t = ptx_peek(p);
        if (braces && ptx_is_punct(t, '}'))
            break;
        uint64_t value = ptx_number(p, type.bits);
        if (done + size > bytes)
            ptx_refuse(p, t, "more initial values than elements");
        for (size_t i = 0; i < size; i++)
            to[done + i] = (unsigned char)(value >> 8 * i);
        done += size;
    } while (braces && ptx_accept(p, ','));
    if (braces)
        ptx_expect(p, '}');
}

struct var *ptx_new_var(struct parser *p, const struct token *name, enum space space)
{
    struct ptx_module *m = p->m;
    for (int i = 0; i < m->n_vars; i++)
        if (m->vars[i].scope == p->scope && ptx_is_word(name, m->vars[i].name))
            ptx_refuse(p, name, "declared twice");
    struct var *more = realloc(m->vars, (size_t)(m->n_vars + 1) * sizeof *more);
    if (!more)
        ptx_refuse(p, name, "out of memory");
    m->vars = more;
    struct var *v = &m->vars[m->n_vars];
    *v = (struct var){.space = space, .entry = p->entry ? m->n_entries - 1 : -1, .scope = p->scope};
    v->name = ptx_copy_name(p, name);
    m->n_vars++;
    return v;
}

size_t ptx_parse_align(struct parser *p)
{
    const struct token *t = ptx_peek(p);
    size_t align = ptx_count(p, 1 << 12);
    if (!align || align & (align - 1))
        ptx_refuse(p, t, "alignment is not a power of two");
    return align;
}

struct type ptx_parse_type(struct parser *p)
{
    struct type type;
    const struct token *t = ptx_next(p);
    if (t->kind != TOKEN_WORD || *t->at != '.' || !ptx_find_type(t->at + 1, t->len - 1, &type))
        ptx_refuse(p, t, "type not understood");
    return type;
}

/* Dimensions after a name, as a number of elements; 0 for an open `[]`. */
size_t ptx_parse_dimensions(struct parser *p)
{
    size_t n = 1;
    while (ptx_accept(p, '[')) {
        if (ptx_accept(p, ']'))
            return 0;
        const struct token *t = ptx_peek(p);
        n *= ptx_count(p, MAX_VAR_BYTES);
        if (n == 0 || n > MAX_VAR_BYTES)
            ptx_refuse(p, t, "array of no or too many elements");
        ptx_expect(p, ']');
    }
    return n;
}

/* What is left after the keywords .shared, .local, .const or .global. */
void ptx_parse_variables(struct parser *p, enum space space, int is_extern)
{
    struct ptx_module *m = p->m;
    size_t align = ptx_accept_word(p, ".align") ? ptx_parse_align(p) : 0;
    struct type type = ptx_parse_type(p);
    if (type.kind == 'p')
        ptx_refuse(p, ptx_peek(p), "a predicate outside a register");
    do {
        const struct token *name = ptx_expect_name(p);
        struct var *v = ptx_new_var(p, name, space);
        size_t n = ptx_parse_dimensions(p);
        v->align = align ? align : (size_t)type.bits / 8;
        v->bytes = n * (size_t)type.bits / 8;
        v->is_dynamic = is_extern;
        if (is_extern != (n == 0) || (is_extern && space != SPACE_SHARED))
            ptx_refuse(p, name, "only `.extern .shared x[]` may leave its size open, and has to");
        if (space == SPACE_CONST || space == SPACE_GLOBAL) {
            unsigned char **image = space == SPACE_CONST ? &m->const_image : &m->global_image;
            size_t *end = space == SPACE_CONST ? &m->const_space : &m->global_space, old = *end;
            uint64_t at = ptx_place(end, v->bytes, v->align);
            v->address = space == SPACE_GLOBAL ? SLOT_BASE(0) + at : at;
            *image = grow_image(p, *image, old, *end);
            if (ptx_accept(p, '='))
                parse_initialiser(p, *image + at, v->bytes, type);
        }
    } while (ptx_accept(p, ','));
    ptx_expect(p, ';');
}
