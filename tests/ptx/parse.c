/* parse.c: PTX text to a module: tokens, directives, variables, registers, labels. Instructions: decode.c.
 * In: NUL-terminated text. Out: struct ptx_module, or the line and the token that was not understood. */
#include "parse.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Dynamic shared memory starts here in every entry, above any static shared variable a GPU could hold. */
enum { DYNAMIC_SHARED = 0x40000, MAX_VAR_BYTES = 1 << 28 };

const char *const ptx_special_name[SPECIALS] = {
    "%tid.x", "%tid.y", "%tid.z", "%ntid.x", "%ntid.y", "%ntid.z",
    "%ctaid.x", "%ctaid.y", "%ctaid.z", "%nctaid.x", "%nctaid.y", "%nctaid.z",
    "%laneid", "%lanemask_eq", "%lanemask_lt", "%lanemask_le", "%lanemask_gt", "%lanemask_ge", "%dynamic_smem_size"};

/* ---- tokens ---- */

_Noreturn void ptx_refuse(struct parser *p, const struct token *t, const char *what)
{
    if (t->kind == TOKEN_END)
        snprintf(p->err, p->err_bytes, "line %d: %s: end of text", t->line, what);
    else
        snprintf(p->err, p->err_bytes, "line %d: %s: %.*s", t->line, what, t->len, t->at);
    longjmp(p->failed, 1);
}

void *ptx_grow(struct parser *p, void *array, int n, int *cap, size_t bytes)
{
    if (n < *cap)
        return array;
    int more = *cap ? *cap * 2 : 64;
    void *moved = realloc(array, (size_t)more * bytes);
    if (!moved) {
        snprintf(p->err, p->err_bytes, "out of memory");
        longjmp(p->failed, 1);
    }
    memset((char *)moved + (size_t)*cap * bytes, 0, (size_t)(more - *cap) * bytes);
    *cap = more;
    return moved;
}

static int is_word_char(int c) { return isalnum(c) || c == '_' || c == '$' || c == '%' || c == '.'; }

/* Length of the token at s. A colon belongs to a word only when doubled, as in L1::no_allocate. */
static int token_length(const char *s, enum token_kind *kind)
{
    int n = 0;
    if (isdigit((unsigned char)*s)) {
        *kind = TOKEN_NUMBER;
        while (isalnum((unsigned char)s[n]) || s[n] == '.')
            n++;
    } else if (is_word_char((unsigned char)*s)) {
        *kind = TOKEN_WORD;
        while (is_word_char((unsigned char)s[n]) || (s[n] == ':' && s[n + 1] == ':'))
            n += s[n] == ':' ? 2 : 1;
    } else if (*s == '"') {
        *kind = TOKEN_STRING;
        for (n = 1; s[n] && s[n] != '"' && s[n] != '\n';)
            n++;
        n += s[n] == '"';
    } else {
        *kind = TOKEN_PUNCT;
        n = 1;
    }
    return n;
}

/* .file and .loc describe source lines only, and end with theirs; the whole rest of the line is dropped. */
static int is_line_info(const char *s, int n)
{
    return (n == 4 && !memcmp(s, ".loc", 4)) || (n == 5 && !memcmp(s, ".file", 5));
}

static void split(struct parser *p)
{
    const char *s = p->m->text;
    int line = 1, cap = 0, cap_lines = 0;
    p->m->line = ptx_grow(p, NULL, 0, &cap_lines, sizeof *p->m->line);
    p->m->line[1] = s;
    p->m->n_lines = 1;
    for (;;) {
        struct token t = {TOKEN_END, s, 0, line};
        if (*s == '\n') {
            line++, s++;
            p->m->line = ptx_grow(p, p->m->line, line + 1, &cap_lines, sizeof *p->m->line);
            p->m->line[line] = s;
            p->m->n_lines = line;
            continue;
        }
        if (isspace((unsigned char)*s)) {
            s++;
            continue;
        }
        if (s[0] == '/' && s[1] == '/') {
            while (*s && *s != '\n')
                s++;
            continue;
        }
        if (s[0] == '/' && s[1] == '*') {
            const char *end = strstr(s + 2, "*/");
            if (!end) {
                t.kind = TOKEN_PUNCT, t.len = 2;
                ptx_refuse(p, &t, "comment without an end");
            }
            for (; s < end + 2; s++)
                if (*s == '\n') {
                    line++;
                    p->m->line = ptx_grow(p, p->m->line, line + 1, &cap_lines, sizeof *p->m->line);
                    p->m->line[line] = s + 1;
                    p->m->n_lines = line;
                }
            continue;
        }
        if (*s)
            t.len = token_length(s, &t.kind);
        if (is_line_info(s, t.len)) {
            while (*s && *s != '\n')
                s++;
            continue;
        }
        p->tokens = ptx_grow(p, p->tokens, p->n_tokens, &cap, sizeof *p->tokens);
        p->tokens[p->n_tokens++] = t;
        if (t.kind == TOKEN_END)
            return;
        s += t.len;
    }
}

const struct token *ptx_peek(struct parser *p) { return &p->tokens[p->at]; }

const struct token *ptx_next(struct parser *p)
{
    const struct token *t = &p->tokens[p->at];
    if (t->kind != TOKEN_END)
        p->at++;
    return t;
}

static int is_punct(const struct token *t, char c) { return t->kind == TOKEN_PUNCT && *t->at == c; }

int ptx_accept(struct parser *p, char c)
{
    if (!is_punct(ptx_peek(p), c))
        return 0;
    p->at++;
    return 1;
}

void ptx_expect(struct parser *p, char c)
{
    char what[] = "expected ' '";
    what[10] = c;
    if (!ptx_accept(p, c))
        ptx_refuse(p, ptx_peek(p), what);
}

int ptx_is_word(const struct token *t, const char *word)
{
    return t->kind == TOKEN_WORD && (size_t)t->len == strlen(word) && !memcmp(t->at, word, (size_t)t->len);
}

static int accept_word(struct parser *p, const char *word)
{
    if (!ptx_is_word(ptx_peek(p), word))
        return 0;
    p->at++;
    return 1;
}

static const struct token *expect_name(struct parser *p)
{
    const struct token *t = ptx_next(p);
    if (t->kind != TOKEN_WORD || *t->at == '.')
        ptx_refuse(p, t, "expected a name");
    return t;
}

static char *copy_name(struct parser *p, const struct token *t)
{
    char *name = strndup(t->at, (size_t)t->len);
    if (!name)
        ptx_refuse(p, t, "out of memory");
    return name;
}

int ptx_find_type(const char *name, int len, struct type *type)
{
    static const struct { const char *name; struct type type; } types[] = {
        {"b8", {'b', 8}}, {"b16", {'b', 16}}, {"b32", {'b', 32}}, {"b64", {'b', 64}},
        {"u8", {'u', 8}}, {"u16", {'u', 16}}, {"u32", {'u', 32}}, {"u64", {'u', 64}},
        {"s8", {'s', 8}}, {"s16", {'s', 16}}, {"s32", {'s', 32}}, {"s64", {'s', 64}},
        {"f32", {'f', 32}}, {"f64", {'f', 64}}, {"pred", {'p', 1}}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strlen(types[i].name) == (size_t)len && !memcmp(types[i].name, name, (size_t)len)) {
            *type = types[i].type;
            return 1;
        }
    return 0;
}

uint64_t ptx_number(struct parser *p, int bits)
{
    int negative = ptx_accept(p, '-');
    const struct token *t = ptx_next(p);
    char text[40], *end;
    if (t->kind != TOKEN_NUMBER || t->len >= (int)sizeof text)
        ptx_refuse(p, t, "expected a number");
    memcpy(text, t->at, (size_t)t->len);
    text[t->len] = 0;
    if (text[0] == '0' && strchr("fFdD", text[1]) && text[1]) {
        int digits = tolower((unsigned char)text[1]) == 'f' ? 8 : 16;
        uint64_t image = strtoull(text + 2, &end, 16);
        if (negative || t->len != digits + 2 || *end || bits != digits * 4)
            ptx_refuse(p, t, "floating-point image of another width");
        return image;
    }
    int base = text[0] != '0' ? 10 : tolower((unsigned char)text[1]) == 'b' ? 2 : 0;
    errno = 0;
    uint64_t value = strtoull(base == 2 ? text + 2 : text, &end, base);
    if (*end == 'U')
        end++;
    if (end == text || *end || errno)
        ptx_refuse(p, t, "number not understood");
    uint64_t mask = bits == 64 ? ~(uint64_t)0 : ((uint64_t)1 << bits) - 1;
    if (value > mask || (negative && value > (uint64_t)1 << (bits - 1)))
        ptx_refuse(p, t, "number does not fit its type");
    return (negative ? 0 - value : value) & mask;
}

static size_t count_number(struct parser *p, size_t max)
{
    const struct token *t = ptx_peek(p);
    uint64_t value = ptx_number(p, 63);
    if (value > max)
        ptx_refuse(p, t, "number too large here");
    return value;
}

/* ---- names ---- */

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

static int open_scope(struct parser *p, int parent)
{
    if (p->n_scopes == MAX_SCOPES)
        ptx_refuse(p, ptx_peek(p), "too many nested blocks");
    p->parent[p->n_scopes] = parent;
    return p->n_scopes++;
}

/* ---- variables ---- */

/* Places `bytes` at `*end` and moves *end past them and the gap. The address is a multiple of the alignment but not
 * of twice that, so that code relying on more than was declared faults. Less than a word is not played with:
 * it would change which words, and so which banks, neighbouring bytes share. */
static uint64_t place(uint64_t *end, size_t bytes, size_t align)
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
        if (braces && is_punct(t, '}'))
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

static struct var *new_var(struct parser *p, const struct token *name, enum space space)
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
    v->name = copy_name(p, name);
    m->n_vars++;
    return v;
}

static size_t parse_align(struct parser *p)
{
    const struct token *t = ptx_peek(p);
    size_t align = count_number(p, 1 << 12);
    if (!align || align & (align - 1))
        ptx_refuse(p, t, "alignment is not a power of two");
    return align;
}

static struct type parse_decl_type(struct parser *p)
{
    struct type type;
    const struct token *t = ptx_next(p);
    if (t->kind != TOKEN_WORD || *t->at != '.' || !ptx_find_type(t->at + 1, t->len - 1, &type))
        ptx_refuse(p, t, "type not understood");
    return type;
}

/* Dimensions after a name, as a number of elements; 0 for an open `[]`. */
static size_t parse_dimensions(struct parser *p)
{
    size_t n = 1;
    while (ptx_accept(p, '[')) {
        if (ptx_accept(p, ']'))
            return 0;
        const struct token *t = ptx_peek(p);
        n *= count_number(p, MAX_VAR_BYTES);
        if (n == 0 || n > MAX_VAR_BYTES)
            ptx_refuse(p, t, "array of no or too many elements");
        ptx_expect(p, ']');
    }
    return n;
}

/* What is left after the keywords .shared, .local, .const or .global. */
static void parse_variables(struct parser *p, enum space space, int is_extern)
{
    struct ptx_module *m = p->m;
    size_t align = accept_word(p, ".align") ? parse_align(p) : 0;
    struct type type = parse_decl_type(p);
    if (type.kind == 'p')
        ptx_refuse(p, ptx_peek(p), "a predicate outside a register");
    do {
        const struct token *name = expect_name(p);
        struct var *v = new_var(p, name, space);
        size_t n = parse_dimensions(p);
        v->align = align ? align : (size_t)type.bits / 8;
        v->bytes = n * (size_t)type.bits / 8;
        v->is_dynamic = is_extern;
        if (is_extern != (n == 0) || (is_extern && space != SPACE_SHARED))
            ptx_refuse(p, name, "only `.extern .shared x[]` may leave its size open, and has to");
        if (space == SPACE_CONST || space == SPACE_GLOBAL) {
            unsigned char **image = space == SPACE_CONST ? &m->const_image : &m->global_image;
            size_t *end = space == SPACE_CONST ? &m->const_space : &m->global_space, old = *end;
            uint64_t at = place(end, v->bytes, v->align);
            v->address = space == SPACE_GLOBAL ? SLOT_BASE(0) + at : at;
            *image = grow_image(p, *image, old, *end);
            if (ptx_accept(p, '='))
                parse_initialiser(p, *image + at, v->bytes, type);
        }
    } while (ptx_accept(p, ','));
    ptx_expect(p, ';');
}

/* ---- registers, labels, bodies ---- */

static void parse_registers(struct parser *p)
{
    struct type type = parse_decl_type(p);
    if (type.bits == 8)
        ptx_refuse(p, ptx_peek(p), "8-bit register");
    do {
        const struct token *t = expect_name(p);
        p->regs = ptx_grow(p, p->regs, p->n_regs, &p->cap_regs, sizeof *p->regs);
        struct reg_name *r = &p->regs[p->n_regs];
        *r = (struct reg_name){t->at, t->len, p->scope, p->entry->n_regs, -1, type};
        for (int i = 0; i < p->n_regs; i++)
            if (p->regs[i].scope == p->scope && p->regs[i].len == t->len && !memcmp(p->regs[i].at, t->at, (size_t)t->len))
                ptx_refuse(p, t, "declared twice");
        if (ptx_accept(p, '<')) {
            r->count = (int)count_number(p, 1 << 20);
            ptx_expect(p, '>');
        }
        for (int i = 0; i < (r->count < 0 ? 1 : r->count); i++)
            ptx_new_register(p);
        p->n_regs++;
    } while (ptx_accept(p, ','));
    ptx_expect(p, ';');
}

static void add_fixup(struct parser *p, struct fixup f)
{
    p->fixups = ptx_grow(p, p->fixups, p->n_fixups, &p->cap_fixups, sizeof *p->fixups);
    p->fixups[p->n_fixups++] = f;
}

static void parse_branch_targets(struct parser *p, const struct token *name)
{
    struct entry *e = p->entry;
    struct branch_table *more = realloc(e->tables, (size_t)(e->n_tables + 1) * sizeof *more);
    if (!more)
        ptx_refuse(p, name, "out of memory");
    e->tables = more;
    struct branch_table *b = &e->tables[e->n_tables];
    *b = (struct branch_table){.scope = p->scope};
    b->name = copy_name(p, name);
    e->n_tables++;
    int cap = 0;
    do {
        b->target = ptx_grow(p, b->target, b->n, &cap, sizeof *b->target);
        add_fixup(p, (struct fixup){*expect_name(p), p->scope, e->n_tables - 1, b->n++, 0});
    } while (ptx_accept(p, ','));
    ptx_expect(p, ';');
}

static void parse_label(struct parser *p, const struct token *name)
{
    ptx_expect(p, ':');
    if (accept_word(p, ".branchtargets")) {
        parse_branch_targets(p, name);
        return;
    }
    for (int i = 0; i < p->n_labels; i++)
        if (p->labels[i].scope == p->scope && p->labels[i].len == name->len &&
            !memcmp(p->labels[i].at, name->at, (size_t)name->len))
            ptx_refuse(p, name, "label twice");
    p->labels = ptx_grow(p, p->labels, p->n_labels, &p->cap_labels, sizeof *p->labels);
    p->labels[p->n_labels++] = (struct label){name->at, name->len, p->scope, p->entry->n_code};
}

static int find_target(struct parser *p, const struct fixup *f)
{
    for (int scope = f->scope; scope > 0; scope = p->parent[scope]) {
        if (f->wants_table) {
            for (int i = 0; i < p->entry->n_tables; i++)
                if (p->entry->tables[i].scope == scope && ptx_is_word(&f->name, p->entry->tables[i].name))
                    return i;
            continue;
        }
        for (int i = 0; i < p->n_labels; i++)
            if (p->labels[i].scope == scope && p->labels[i].len == f->name.len &&
                !memcmp(p->labels[i].at, f->name.at, (size_t)f->name.len))
                return p->labels[i].pc;
    }
    ptx_refuse(p, &f->name, f->wants_table ? "no such branch table" : "no such label");
}

static void resolve(struct parser *p)
{
    for (int i = 0; i < p->n_fixups; i++) {
        const struct fixup *f = &p->fixups[i];
        int target = find_target(p, f);
        if (f->table >= 0)
            p->entry->tables[f->table].target[f->index] = target;
        else
            p->entry->code[f->index].target = target;
    }
    p->n_fixups = p->n_labels = p->n_regs = 0;
}

/* One statement of a body; 0 at the brace that closes it. */
static int parse_statement(struct parser *p, int *depth)
{
    const struct token *t = ptx_peek(p);
    if (ptx_accept(p, '{')) {
        p->scope = open_scope(p, p->scope);
        (*depth)++;
    } else if (ptx_accept(p, '}')) {
        p->scope = p->parent[p->scope];
        return (*depth)-- > 0;
    } else if (ptx_accept(p, ';')) {
        return 1;
    } else if (accept_word(p, ".reg")) {
        parse_registers(p);
    } else if (accept_word(p, ".shared")) {
        parse_variables(p, SPACE_SHARED, 0);
    } else if (accept_word(p, ".local")) {
        parse_variables(p, SPACE_LOCAL, 0);
    } else if (accept_word(p, ".pragma")) {
        const struct token *what = ptx_next(p);
        if (what->kind != TOKEN_STRING || what->len != 10 || memcmp(what->at, "\"nounroll\"", 10))
            ptx_refuse(p, what, "pragma not understood");
        ptx_expect(p, ';');
    } else if (t->kind == TOKEN_WORD && *t->at != '.' && is_punct(t + 1, ':')) {
        ptx_next(p);
        parse_label(p, t);
    } else if ((t->kind == TOKEN_WORD && *t->at != '.') || is_punct(t, '@')) {
        ptx_decode(p);
    } else {
        ptx_refuse(p, t, "not understood");
    }
    return 1;
}

/* Places the shared and local variables that were declared while the entry was parsed, and those of the module.
 * Instructions hold slots of constants, so places must be known first: declarations are collected by a first pass. */
static void place_variables(struct parser *p)
{
    struct entry *e = p->entry;
    uint64_t shared = GAP_BYTES, local = 0;
    size_t dynamic_align = 1;
    for (int i = 0; i < p->m->n_vars; i++) {
        struct var *v = &p->m->vars[i];
        if (v->entry >= 0 && v->entry != p->m->n_entries - 1)
            continue;
        if (v->space == SPACE_SHARED && v->is_dynamic && v->align > dynamic_align)
            dynamic_align = v->align;
        if (v->space == SPACE_SHARED && !v->is_dynamic) {
            v->address = place(&shared, v->bytes, v->align);
            e->shared_bytes += v->bytes;
        }
        if (v->space == SPACE_LOCAL) {
            v->address = place(&local, v->bytes, v->align);
            e->local_bytes += v->bytes;
        }
    }
    uint64_t dynamic = DYNAMIC_SHARED;
    uint64_t at = place(&dynamic, 0, dynamic_align);
    for (int i = 0; i < p->m->n_vars; i++)
        if (p->m->vars[i].is_dynamic)
            p->m->vars[i].address = at;
    if (shared > DYNAMIC_SHARED)
        ptx_refuse(p, ptx_peek(p), "more static shared memory than a GPU has");
    e->shared_space = shared;
    e->local_space = local;
}

/* ---- entries ---- */

static void parse_param(struct parser *p)
{
    struct entry *e = p->entry;
    const struct token *t = ptx_next(p);
    if (!ptx_is_word(t, ".param"))
        ptx_refuse(p, t, "expected .param");
    size_t align = accept_word(p, ".align") ? parse_align(p) : 0, pointer_align = 0;
    struct type type = parse_decl_type(p);
    if (accept_word(p, ".ptr")) {
        if (!accept_word(p, ".global") && (ptx_is_word(ptx_peek(p), ".shared") || ptx_is_word(ptx_peek(p), ".local")))
            ptx_refuse(p, ptx_peek(p), "pointer parameter into this space");
        pointer_align = accept_word(p, ".align") ? parse_align(p) : 4;
    }
    const struct token *name = expect_name(p);
    struct var *v = new_var(p, name, SPACE_PARAM);
    v->bytes = parse_dimensions(p) * (size_t)type.bits / 8;
    v->align = align ? align : (size_t)type.bits / 8;
    v->pointer_align = pointer_align;
    if (!v->bytes || type.kind == 'p' || v->bytes > 32764)
        ptx_refuse(p, name, "size of a parameter");
    v->address = (e->param_space + v->align - 1) / v->align * v->align;
    e->param_space = v->address + v->bytes + GAP_BYTES;
    e->param = realloc(e->param, (size_t)(e->n_params + 1) * sizeof *e->param);
    e->param_bytes = realloc(e->param_bytes, (size_t)(e->n_params + 1) * sizeof *e->param_bytes);
    if (!e->param || !e->param_bytes)
        ptx_refuse(p, name, "out of memory");
    e->param[e->n_params] = (int)(v - p->m->vars);
    e->param_bytes[e->n_params++] = v->bytes;
}

static void parse_block_size(struct parser *p, uint32_t size[3])
{
    size[0] = size[1] = size[2] = 1;
    int i = 0;
    do
        size[i++] = (uint32_t)count_number(p, 1024);
    while (i < 3 && ptx_accept(p, ','));
}

static void parse_header(struct parser *p)
{
    uint32_t size[3];
    for (;;) {
        if (accept_word(p, ".maxntid")) {
            parse_block_size(p, size);
            p->entry->max_threads = size[0] * size[1] * size[2];
        } else if (accept_word(p, ".reqntid")) {
            parse_block_size(p, p->entry->required_block);
            p->entry->max_threads =
                p->entry->required_block[0] * p->entry->required_block[1] * p->entry->required_block[2];
        } else if (accept_word(p, ".minnctapersm") || accept_word(p, ".maxnreg")) {
            count_number(p, 1 << 16);
        } else {
            return;
        }
    }
}

/* Finds every .shared and .local of the body ahead of the instructions, opening the same scopes in the same order. */
static void collect_variables(struct parser *p)
{
    int begin = p->at, scope = p->scope, n_scopes = p->n_scopes;
    for (int depth = 0;;) {
        const struct token *t = ptx_peek(p);
        if (t->kind == TOKEN_END)
            ptx_refuse(p, t, "body without an end");
        if (is_punct(t, '{') && (is_punct(t - 1, ';') || is_punct(t - 1, '{') || is_punct(t - 1, '}') ||
                                 is_punct(t - 1, ':'))) {
            p->scope = open_scope(p, p->scope);
            depth++;
        } else if (is_punct(t, '{')) {
            while (!is_punct(ptx_peek(p), '}') && ptx_peek(p)->kind != TOKEN_END)
                p->at++;
        } else if (is_punct(t, '}')) {
            p->scope = p->parent[p->scope];
            if (depth-- == 0)
                break;
        } else if (ptx_is_word(t, ".shared") || ptx_is_word(t, ".local")) {
            p->at++;
            parse_variables(p, ptx_is_word(t, ".shared") ? SPACE_SHARED : SPACE_LOCAL, 0);
            continue;
        }
        p->at++;
    }
    p->at = begin, p->scope = scope, p->n_scopes = n_scopes;
}

static void skip_variables(struct parser *p)
{
    while (!ptx_accept(p, ';'))
        p->at++;
}

static void parse_entry(struct parser *p)
{
    struct ptx_module *m = p->m;
    const struct token *name = expect_name(p);
    for (int i = 0; i < m->n_entries; i++)
        if (ptx_is_word(name, m->entries[i].name))
            ptx_refuse(p, name, "entry twice");
    struct entry *more = realloc(m->entries, (size_t)(m->n_entries + 1) * sizeof *more);
    if (!more)
        ptx_refuse(p, name, "out of memory");
    m->entries = more;
    struct entry *e = p->entry = &m->entries[m->n_entries];
    *e = (struct entry){.carry = NO_SLOT, .shared_granule = 16};
    for (int s = 0; s < SPECIALS; s++)
        e->special[s] = NO_SLOT;
    e->name = copy_name(p, name);
    m->n_entries++;
    p->scope = open_scope(p, 0);
    if (ptx_accept(p, '(') && !ptx_accept(p, ')')) {
        do
            parse_param(p);
        while (ptx_accept(p, ','));
        ptx_expect(p, ')');
    }
    parse_header(p);
    ptx_expect(p, '{');
    collect_variables(p);
    place_variables(p);
    int depth = 0;
    for (;;) {
        if (accept_word(p, ".shared") || accept_word(p, ".local"))
            skip_variables(p); /* collected before */
        else if (!parse_statement(p, &depth))
            break;
    }
    resolve(p);
    /* Running off the end is leaving the kernel. */
    e->code = ptx_grow(p, e->code, e->n_code, &e->cap_code, sizeof *e->code);
    e->code[e->n_code++] = (struct insn){.op = OP_EXIT, .guard = NO_SLOT, .line = ptx_peek(p)->line};
    p->entry = NULL;
    p->scope = 0;
}

static void parse_target(struct parser *p)
{
    do {
        const struct token *t = ptx_next(p);
        if (t->kind != TOKEN_WORD || t->len < 5 || memcmp(t->at, "sm_", 3))
            ptx_refuse(p, t, "target not understood");
        p->m->target = atoi(t->at + 3);
    } while (ptx_accept(p, ','));
}

static void parse_module(struct parser *p)
{
    split(p);
    p->n_scopes = 1;
    while (ptx_peek(p)->kind != TOKEN_END) {
        const struct token *t = ptx_next(p);
        if (ptx_is_word(t, ".version")) {
            const struct token *v = ptx_next(p);
            if (v->kind != TOKEN_NUMBER || *v->at < '6' || *v->at > '9' || v->at[1] != '.')
                ptx_refuse(p, v, "PTX version not understood");
        } else if (ptx_is_word(t, ".target")) {
            parse_target(p);
        } else if (ptx_is_word(t, ".address_size")) {
            if (count_number(p, 64) != 64)
                ptx_refuse(p, t, "only 64-bit addresses");
        } else {
            int is_extern = ptx_is_word(t, ".extern");
            if (is_extern || ptx_is_word(t, ".visible") || ptx_is_word(t, ".weak"))
                t = ptx_next(p);
            if (ptx_is_word(t, ".entry") && !is_extern)
                parse_entry(p);
            else if (ptx_is_word(t, ".shared"))
                parse_variables(p, SPACE_SHARED, is_extern);
            else if (ptx_is_word(t, ".const") && !is_extern)
                parse_variables(p, SPACE_CONST, 0);
            else if (ptx_is_word(t, ".global") && !is_extern)
                parse_variables(p, SPACE_GLOBAL, 0);
            else
                ptx_refuse(p, t, "not understood");
        }
    }
}

/* ---- the module ---- */

int ptx_load(const char *text, struct ptx_module **out, char *err, size_t err_bytes)
{
    struct parser *p = calloc(1, sizeof *p);
    int failed = 1;
    *out = NULL;
    if (err_bytes)
        *err = 0;
    if (!p || !(p->m = calloc(1, sizeof *p->m)) || !(p->m->text = strdup(text))) {
        snprintf(err, err_bytes, "out of memory");
        goto done;
    }
    p->err = err, p->err_bytes = err_bytes;
    if (setjmp(p->failed) == 0) {
        parse_module(p);
        failed = 0;
    }
done:
    if (p) {
        if (!failed)
            *out = p->m;
        else
            ptx_free(p->m);
        free(p->tokens);
        free(p->regs);
        free(p->labels);
        free(p->fixups);
    }
    free(p);
    return failed;
}

void ptx_free(struct ptx_module *m)
{
    if (!m)
        return;
    for (int i = 0; i < m->n_entries; i++) {
        struct entry *e = &m->entries[i];
        for (int t = 0; t < e->n_tables; t++) {
            free(e->tables[t].name);
            free(e->tables[t].target);
        }
        free(e->tables);
        free(e->name);
        free(e->code);
        free(e->constants);
        free(e->param);
        free(e->param_bytes);
    }
    for (int i = 0; i < m->n_vars; i++)
        free(m->vars[i].name);
    free(m->vars);
    free(m->entries);
    free(m->const_image);
    free(m->global_image);
    free(m->line);
    free(m->text);
    free(m);
}

int ptx_entry_count(const struct ptx_module *m) { return m->n_entries; }
const char *ptx_entry_name(const struct ptx_module *m, int entry) { return m->entries[entry].name; }

void ptx_entry_info(const struct ptx_module *m, int entry, struct ptx_entry_info *out)
{
    const struct entry *e = &m->entries[entry];
    *out = (struct ptx_entry_info){.name = e->name, .n_params = e->n_params, .param_bytes = e->param_bytes,
                                   .max_threads = e->max_threads, .shared_bytes = e->shared_bytes,
                                   .local_bytes = e->local_bytes, .n_instructions = e->n_code - 1,
                                   .n_registers = e->n_regs};
    memcpy(out->required_block, e->required_block, sizeof out->required_block);
}
