/* parse.c: PTX text to a module: directives, entries, labels. Tokens: lex.c; names: names.c; instructions:
 * decode.c. In: NUL-terminated text. Out: struct ptx_module, or the line and the token that was not
 * understood. */
#include "parse.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Dynamic shared memory starts here in every entry, above any static shared variable a GPU could hold. */
enum { DYNAMIC_SHARED = 0x40000 };

/* ---- registers, labels, bodies ---- */

static void parse_registers(struct parser *p)
{
    struct type type = ptx_parse_type(p);
    if (type.bits == 8)
        ptx_refuse(p, ptx_peek(p), "8-bit register");
    do {
        const struct token *t = ptx_expect_name(p);
        p->regs = ptx_grow(p, p->regs, p->n_regs, &p->cap_regs, sizeof *p->regs);
        struct reg_name *r = &p->regs[p->n_regs];
        *r = (struct reg_name){t->at, t->len, p->scope, p->entry->n_regs, -1, type};
        for (int i = 0; i < p->n_regs; i++)
            if (p->regs[i].scope == p->scope && p->regs[i].len == t->len &&
                !memcmp(p->regs[i].at, t->at, (size_t)t->len))
                ptx_refuse(p, t, "declared twice");
        if (ptx_accept(p, '<')) {
            r->count = (int)ptx_count(p, 1 << 20);
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
    b->name = ptx_copy_name(p, name);
    e->n_tables++;
    int cap = 0;
    do {
        b->target = ptx_grow(p, b->target, b->n, &cap, sizeof *b->target);
        add_fixup(p, (struct fixup){*ptx_expect_name(p), p->scope, e->n_tables - 1, b->n++, 0});
    } while (ptx_accept(p, ','));
    ptx_expect(p, ';');
}

static void parse_label(struct parser *p, const struct token *name)
{
    ptx_expect(p, ':');
    if (ptx_accept_word(p, ".branchtargets")) {
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

static int begins(const struct token *t, const char *text)
{
    return (size_t)t->len >= strlen(text) && !memcmp(t->at, text, strlen(text));
}

/* Loops that stay loops: nothing changes. Bytes of the next vector load that somebody uses: a compiler that
 * says so may not use others. */
static void parse_pragma(struct parser *p)
{
    static const char mask[] = "\"used_bytes_mask ";
    const struct token *what = ptx_next(p);
    if (what->kind != TOKEN_STRING || (!begins(what, mask) && !begins(what, "\"nounroll\"")))
        ptx_refuse(p, what, "pragma not understood");
    if (begins(what, mask))
        p->unused_bytes = ~strtoull(what->at + strlen(mask), NULL, 0);
    ptx_expect(p, ';');
}

/* One statement of a body; 0 at the brace that closes it. */
static int parse_statement(struct parser *p, int *depth)
{
    const struct token *t = ptx_peek(p);
    if (ptx_accept(p, '{')) {
        p->scope = ptx_open_scope(p, p->scope);
        (*depth)++;
    } else if (ptx_accept(p, '}')) {
        p->scope = p->parent[p->scope];
        return (*depth)-- > 0;
    } else if (ptx_accept(p, ';')) {
        return 1;
    } else if (ptx_accept_word(p, ".reg")) {
        parse_registers(p);
    } else if (ptx_accept_word(p, ".shared")) {
        ptx_parse_variables(p, SPACE_SHARED, 0);
    } else if (ptx_accept_word(p, ".local")) {
        ptx_parse_variables(p, SPACE_LOCAL, 0);
    } else if (ptx_accept_word(p, ".pragma")) {
        parse_pragma(p);
    } else if (t->kind == TOKEN_WORD && *t->at != '.' && ptx_is_punct(t + 1, ':')) {
        ptx_next(p);
        parse_label(p, t);
    } else if ((t->kind == TOKEN_WORD && *t->at != '.') || ptx_is_punct(t, '@')) {
        ptx_decode(p);
    } else {
        ptx_refuse(p, t, "not understood");
    }
    return 1;
}

/* Places the shared and local variables that were declared while the entry was parsed, and those of the
 * module. Instructions hold slots of constants, so places must be known first: declarations are collected by
 * a first pass. */
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
            v->address = ptx_place(&shared, v->bytes, v->align);
            e->shared_bytes += v->bytes;
        }
        if (v->space == SPACE_LOCAL) {
            v->address = ptx_place(&local, v->bytes, v->align);
            e->local_bytes += v->bytes;
        }
    }
    uint64_t dynamic = DYNAMIC_SHARED;
    uint64_t at = ptx_place(&dynamic, 0, dynamic_align);
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
    size_t align = ptx_accept_word(p, ".align") ? ptx_parse_align(p) : 0, pointer_align = 0;
    struct type type = ptx_parse_type(p);
    if (ptx_accept_word(p, ".ptr")) {
        if (!ptx_accept_word(p, ".global") &&
            (ptx_is_word(ptx_peek(p), ".shared") || ptx_is_word(ptx_peek(p), ".local")))
            ptx_refuse(p, ptx_peek(p), "pointer parameter into this space");
        pointer_align = ptx_accept_word(p, ".align") ? ptx_parse_align(p) : 4;
    }
    const struct token *name = ptx_expect_name(p);
    struct var *v = ptx_new_var(p, name, SPACE_PARAM);
    v->bytes = ptx_parse_dimensions(p) * (size_t)type.bits / 8;
    v->align = align ? align : (size_t)type.bits / 8;
    v->pointer_align = pointer_align;
    v->is_struct = type.bits == 8 && v->bytes > 1;
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
        size[i++] = (uint32_t)ptx_count(p, 1024);
    while (i < 3 && ptx_accept(p, ','));
}

static void parse_header(struct parser *p)
{
    uint32_t size[3];
    for (;;) {
        if (ptx_accept_word(p, ".maxntid")) {
            parse_block_size(p, size);
            p->entry->max_threads = size[0] * size[1] * size[2];
        } else if (ptx_accept_word(p, ".reqntid")) {
            parse_block_size(p, p->entry->required_block);
            p->entry->max_threads =
                p->entry->required_block[0] * p->entry->required_block[1] * p->entry->required_block[2];
        } else if (ptx_accept_word(p, ".minnctapersm") || ptx_accept_word(p, ".maxnreg")) {
            ptx_count(p, 1 << 16);
        } else {
            return;
        }
    }
}

/* Finds every .shared and .local of the body ahead of the instructions, opening the same scopes in the same
 * order. */
static void collect_variables(struct parser *p)
{
    int begin = p->at, scope = p->scope, n_scopes = p->n_scopes;
    for (int depth = 0;;) {
        const struct token *t = ptx_peek(p);
        if (t->kind == TOKEN_END)
            ptx_refuse(p, t, "body without an end");
        if (ptx_is_punct(t, '{') && (ptx_is_punct(t - 1, ';') || ptx_is_punct(t - 1, '{') ||
                                     ptx_is_punct(t - 1, '}') || ptx_is_punct(t - 1, ':'))) {
            p->scope = ptx_open_scope(p, p->scope);
            depth++;
        } else if (ptx_is_punct(t, '{')) {
            while (!ptx_is_punct(ptx_peek(p), '}') && ptx_peek(p)->kind != TOKEN_END)
                p->at++;
        } else if (ptx_is_punct(t, '}')) {
            p->scope = p->parent[p->scope];
            if (depth-- == 0)
                break;
        } else if (ptx_is_word(t, ".shared") || ptx_is_word(t, ".local")) {
            p->at++;
            ptx_parse_variables(p, ptx_is_word(t, ".shared") ? SPACE_SHARED : SPACE_LOCAL, 0);
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
    const struct token *name = ptx_expect_name(p);
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
    e->name = ptx_copy_name(p, name);
    m->n_entries++;
    p->scope = ptx_open_scope(p, 0);
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
        if (ptx_accept_word(p, ".shared") || ptx_accept_word(p, ".local"))
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
    ptx_split(p);
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
            if (ptx_count(p, 64) != 64)
                ptx_refuse(p, t, "only 64-bit addresses");
        } else {
            int is_extern = ptx_is_word(t, ".extern");
            if (is_extern || ptx_is_word(t, ".visible") || ptx_is_word(t, ".weak"))
                t = ptx_next(p);
            if (ptx_is_word(t, ".entry") && !is_extern)
                parse_entry(p);
            else if (ptx_is_word(t, ".shared"))
                ptx_parse_variables(p, SPACE_SHARED, is_extern);
            else if (ptx_is_word(t, ".const") && !is_extern)
                ptx_parse_variables(p, SPACE_CONST, 0);
            else if (ptx_is_word(t, ".global") && !is_extern)
                ptx_parse_variables(p, SPACE_GLOBAL, 0);
            else
                ptx_refuse(p, t, "not understood");
        }
    }
}

/* ---- the module ---- */

/* Kept apart from ptx_load, whose variables a longjmp would clobber. */
static int parse_guarded(struct parser *p)
{
    if (setjmp(p->failed))
        return 1;
    parse_module(p);
    return 0;
}

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
    failed = parse_guarded(p);
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

int ptx_param_is_struct(const struct ptx_module *m, int entry, int param)
{
    return m->vars[m->entries[entry].param[param]].is_struct;
}

void ptx_entry_info(const struct ptx_module *m, int entry, struct ptx_entry_info *out)
{
    const struct entry *e = &m->entries[entry];
    *out = (struct ptx_entry_info){.name = e->name,
                                   .n_params = e->n_params,
                                   .param_bytes = e->param_bytes,
                                   .max_threads = e->max_threads,
                                   .shared_bytes = e->shared_bytes,
                                   .local_bytes = e->local_bytes,
                                   .n_instructions = e->n_code - 1,
                                   .n_registers = e->n_regs};
    memcpy(out->required_block, e->required_block, sizeof out->required_block);
}
