/* decode.c: one PTX instruction from its tokens to a struct insn, appended to the entry.
 * Arithmetic is a table; the rest is one function a family. A word that no row or function knows is refused.
 */
#include "parse.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* shape, destination first: t = as wide as the type, w = twice that, i = 32 bits, p = predicate, n = a number
 * that goes to insn.sub. kinds, widths: which types are allowed (width 1 is the predicate). */
static const struct row {
    const char *key, *shape, *kinds;
    int widths, unsigned_op, signed_op, sub;
} rows[] = {
    /* clang-format off */
    {"add",          "ttt",   "us",   16 | 32 | 64,     OP_ADD,        OP_ADD,        0},
    {"sub",          "ttt",   "us",   16 | 32 | 64,     OP_SUB,        OP_SUB,        0},
    {"add.cc",       "ttt",   "us",   32 | 64,          OP_ADD_CC,     OP_ADD_CC,     0},
    {"addc",         "ttt",   "us",   32 | 64,          OP_ADDC,       OP_ADDC,       0},
    {"addc.cc",      "ttt",   "us",   32 | 64,          OP_ADDC_CC,    OP_ADDC_CC,    0},
    {"sub.cc",       "ttt",   "us",   32 | 64,          OP_SUB_CC,     OP_SUB_CC,     0},
    {"subc",         "ttt",   "us",   32 | 64,          OP_SUBC,       OP_SUBC,       0},
    {"subc.cc",      "ttt",   "us",   32 | 64,          OP_SUBC_CC,    OP_SUBC_CC,    0},
    {"mul.lo",       "ttt",   "us",   16 | 32 | 64,     OP_MUL,        OP_MUL,        0},
    {"mul.hi",       "ttt",   "us",   16 | 32 | 64,     OP_MULHI_U,    OP_MULHI_S,    0},
    {"mul.wide",     "wtt",   "us",   16 | 32,          OP_MUL,        OP_MULWIDE_S,  0},
    {"mad.lo",       "tttt",  "us",   16 | 32 | 64,     OP_MAD,        OP_MAD,        0},
    {"mad.hi",       "tttt",  "us",   16 | 32 | 64,     OP_MADHI_U,    OP_MADHI_S,    0},
    {"mad.wide",     "wttw",  "us",   16 | 32,          OP_MAD,        OP_MADWIDE_S,  0},
    {"div",          "ttt",   "us",   16 | 32 | 64,     OP_DIV_U,      OP_DIV_S,      0},
    {"rem",          "ttt",   "us",   16 | 32 | 64,     OP_REM_U,      OP_REM_S,      0},
    {"min",          "ttt",   "us",   16 | 32 | 64,     OP_MIN_U,      OP_MIN_S,      0},
    {"max",          "ttt",   "us",   16 | 32 | 64,     OP_MAX_U,      OP_MAX_S,      0},
    {"abs",          "tt",    "s",    16 | 32 | 64,     OP_ABS,        OP_ABS,        0},
    {"neg",          "tt",    "s",    16 | 32 | 64,     OP_NEG,        OP_NEG,        0},
    {"and",          "ttt",   "bp",   1 | 16 | 32 | 64, OP_AND,        OP_AND,        0},
    {"or",           "ttt",   "bp",   1 | 16 | 32 | 64, OP_OR,         OP_OR,         0},
    {"xor",          "ttt",   "bp",   1 | 16 | 32 | 64, OP_XOR,        OP_XOR,        0},
    {"not",          "tt",    "bp",   1 | 16 | 32 | 64, OP_NOT,        OP_NOT,        0},
    {"cnot",         "tt",    "b",    16 | 32 | 64,     OP_CNOT,       OP_CNOT,       0},
    {"shl",          "tti",   "b",    16 | 32 | 64,     OP_SHL,        OP_SHL,        0},
    {"shr",          "tti",   "bus",  16 | 32 | 64,     OP_SHR_U,      OP_SHR_S,      0},
    {"shf.l.wrap",   "ttti",  "b",    32,               OP_SHFL_WRAP,  OP_SHFL_WRAP,  0},
    {"shf.r.wrap",   "ttti",  "b",    32,               OP_SHFR_WRAP,  OP_SHFR_WRAP,  0},
    {"shf.l.clamp",  "ttti",  "b",    32,               OP_SHFL_CLAMP, OP_SHFL_CLAMP, 0},
    {"shf.r.clamp",  "ttti",  "b",    32,               OP_SHFR_CLAMP, OP_SHFR_CLAMP, 0},
    {"lop3",         "ttttn", "b",    32,               OP_LOP3,       OP_LOP3,       0},
    {"prmt",         "tttt",  "b",    32,               OP_PRMT,       OP_PRMT,       0},
    {"prmt.f4e",     "tttt",  "b",    32,               OP_PRMT,       OP_PRMT,       1},
    {"prmt.b4e",     "tttt",  "b",    32,               OP_PRMT,       OP_PRMT,       2},
    {"prmt.rc8",     "tttt",  "b",    32,               OP_PRMT,       OP_PRMT,       3},
    {"prmt.ecl",     "tttt",  "b",    32,               OP_PRMT,       OP_PRMT,       4},
    {"prmt.ecr",     "tttt",  "b",    32,               OP_PRMT,       OP_PRMT,       5},
    {"prmt.rc16",    "tttt",  "b",    32,               OP_PRMT,       OP_PRMT,       6},
    {"bfe",          "ttii",  "us",   32 | 64,          OP_BFE_U,      OP_BFE_S,      0},
    {"bfi",          "tttii", "b",    32 | 64,          OP_BFI,        OP_BFI,        0},
    {"brev",         "tt",    "b",    32 | 64,          OP_BREV,       OP_BREV,       0},
    {"clz",          "it",    "b",    32 | 64,          OP_CLZ,        OP_CLZ,        0},
    {"popc",         "it",    "b",    32 | 64,          OP_POPC,       OP_POPC,       0},
    {"bfind",        "it",    "us",   32 | 64,          OP_BFIND_U,    OP_BFIND_S,    0},
    {"selp",         "tttp",  "busf", 16 | 32 | 64,     OP_SELP,       OP_SELP,       0},
    /* clang-format on */
};

static int carry_register(struct parser *p)
{
    if (p->entry->carry == NO_SLOT)
        p->entry->carry = ptx_new_register(p);
    return p->entry->carry;
}

/* ---- families ---- */

void ptx_need_types(struct parser *p, const struct opcode *o, int n)
{
    if (o->n_types != n)
        ptx_refuse(p, o->token, "instruction not understood");
}

static int shape_bits(char c, int bits) { return c == 't' ? bits : c == 'w' ? 2 * bits : c == 'p' ? 1 : 32; }

static void decode_row(struct parser *p, const struct opcode *o, struct insn *in, const struct row *row)
{
    ptx_need_types(p, o, 1);
    struct type t = o->type[0];
    if (!strchr(row->kinds, t.kind) || !(row->widths & t.bits))
        ptx_refuse(p, o->token, "type not understood for this instruction");
    in->op = (uint8_t)(t.kind == 's' ? row->signed_op : row->unsigned_op);
    in->is_signed = t.kind == 's';
    in->sub = (uint8_t)row->sub;
    ptx_set_width(in, t.bits, shape_bits(row->shape[0], t.bits));
    ptx_add_destination(in, ptx_parse_destination(p, shape_bits(row->shape[0], t.bits), 0, NULL));
    for (const char *s = row->shape + 1; *s; s++) {
        ptx_expect(p, ',');
        if (*s == 'n')
            in->sub = (uint8_t)ptx_number(p, 8);
        else
            ptx_add_source(p, in, ptx_parse_source(p, shape_bits(*s, t.bits), 0));
    }
    if (in->op >= OP_ADDC && in->op <= OP_SUBC_CC && in->op != OP_SUB_CC)
        ptx_add_source(p, in, carry_register(p));
    if (in->op == OP_ADD_CC || in->op == OP_ADDC_CC || in->op == OP_SUB_CC || in->op == OP_SUBC_CC)
        ptx_add_destination(in, carry_register(p));
}

static void decode_slct(struct parser *p, const struct opcode *o, struct insn *in)
{
    ptx_need_types(p, o, 2);
    if (strcmp(o->key, "slct") || o->type[0].bits < 16 || o->type[1].kind != 's' || o->type[1].bits != 32)
        ptx_refuse(p, o->token, "instruction not understood");
    int bits = o->type[0].bits;
    in->op = OP_SLCT;
    ptx_set_width(in, bits, bits);
    ptx_add_destination(in, ptx_parse_destination(p, bits, 0, NULL));
    for (int i = 0; i < 3; i++) {
        ptx_expect(p, ',');
        ptx_add_source(p, in, ptx_parse_source(p, i < 2 ? bits : 32, 0));
    }
}

static void decode_dot(struct parser *p, const struct opcode *o, struct insn *in)
{
    static const struct {
        const char *key;
        int sub;
    } forms[] = {{"dp4a", 0}, {"dp2a.lo", 4}, {"dp2a.hi", 8}};
    ptx_need_types(p, o, 2);
    int form = 0;
    while (form < 3 && strcmp(o->key, forms[form].key))
        form++;
    for (int i = 0; i < 2; i++)
        if (form == 3 || o->type[i].bits != 32 || !strchr("us", o->type[i].kind))
            ptx_refuse(p, o->token, "instruction not understood");
    in->op = OP_DOT;
    in->sub = (uint8_t)(forms[form].sub | (o->type[0].kind == 's') | (o->type[1].kind == 's') << 1);
    ptx_set_width(in, 32, 32);
    ptx_add_destination(in, ptx_parse_destination(p, 32, 0, NULL));
    for (int i = 0; i < 3; i++) {
        ptx_expect(p, ',');
        ptx_add_source(p, in, ptx_parse_source(p, 32, 0));
    }
}

static void decode_setp(struct parser *p, const struct opcode *o, struct insn *in)
{
    static const struct {
        const char *name;
        enum compare compare;
        const char *kinds;
    } compares[] = {{"eq", CMP_EQ, "bus"}, {"ne", CMP_NE, "bus"}, {"lt", CMP_LT, "us"}, {"le", CMP_LE, "us"},
                    {"gt", CMP_GT, "us"},  {"ge", CMP_GE, "us"},  {"lo", CMP_LT, "u"},  {"ls", CMP_LE, "u"},
                    {"hi", CMP_GT, "u"},   {"hs", CMP_GE, "u"}};
    static const char *const combines[] = {"", ".and", ".or", ".xor"};
    ptx_need_types(p, o, 1);
    struct type t = o->type[0];
    int known = 0;
    for (size_t i = 0; i < sizeof compares / sizeof *compares; i++)
        for (int c = COMBINE_NONE; c <= COMBINE_XOR; c++) {
            char key[32];
            snprintf(key, sizeof key, "setp.%s%s", compares[i].name, combines[c]);
            if (strcmp(key, o->key) || !strchr(compares[i].kinds, t.kind))
                continue;
            in->sub = (uint8_t)compares[i].compare;
            in->combine = (uint8_t)c;
            known = 1;
        }
    if (!known || t.bits < 16)
        ptx_refuse(p, o->token, "comparison not understood");
    in->op = OP_SETP;
    in->is_signed = t.kind == 's';
    ptx_set_width(in, t.bits, 1);
    ptx_add_destination(in, ptx_parse_destination(p, 1, 0, NULL));
    if (ptx_accept(p, '|'))
        ptx_add_destination(in, ptx_parse_destination(p, 1, 0, NULL));
    for (int i = 0; i < 2; i++) {
        ptx_expect(p, ',');
        ptx_add_source(p, in, ptx_parse_source(p, t.bits, 0));
    }
    if (in->combine != COMBINE_NONE) {
        ptx_expect(p, ',');
        in->flip = (uint8_t)ptx_accept(p, '!');
        ptx_add_source(p, in, ptx_parse_source(p, 1, 0));
    }
}

static void decode_cvt(struct parser *p, const struct opcode *o, struct insn *in)
{
    ptx_need_types(p, o, 2);
    struct type to = o->type[0], from = o->type[1];
    int width;
    if (strcmp(o->key, "cvt") || !strchr("us", to.kind) || !strchr("us", from.kind))
        ptx_refuse(p, o->token, "conversion not understood");
    in->op = OP_CVT;
    in->is_signed = to.kind == 's';
    in->sub = from.kind == 's';
    in->src_sh = (uint8_t)(64 - from.bits);
    ptx_add_destination(in, ptx_parse_destination(p, to.bits, 1, &width));
    ptx_set_width(in, to.bits, width);
    ptx_expect(p, ',');
    ptx_add_source(p, in, ptx_parse_source(p, from.bits, 1));
}

static void decode_cvta(struct parser *p, const struct opcode *o, struct insn *in)
{
    static const struct {
        const char *name;
        enum space space;
    } spaces[] = {{"global", SPACE_GLOBAL}, {"shared", SPACE_SHARED}, {"local", SPACE_LOCAL},
                  {"param", SPACE_PARAM},   {"const", SPACE_CONST},   {"shared::cta", SPACE_SHARED}};
    const char *name = o->key + 4;
    ptx_need_types(p, o, 1);
    in->op = strncmp(name, ".to", 3) ? OP_CVTA : OP_CVTA_TO;
    name += in->op == OP_CVTA_TO ? 4 : 1;
    in->space = SPACE_GENERIC;
    for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++)
        if (!strcmp(name, spaces[i].name))
            in->space = (uint8_t)spaces[i].space;
    if (in->space == SPACE_GENERIC || o->type[0].bits != 64 || o->type[0].kind != 'u')
        ptx_refuse(p, o->token, "instruction not understood");
    ptx_set_width(in, 64, 64);
    ptx_add_destination(in, ptx_parse_destination(p, 64, 0, NULL));
    ptx_expect(p, ',');
    const struct token *t = ptx_peek(p);
    enum space found = (enum space)in->space;
    ptx_add_source(p, in, ptx_is_variable(p) ? ptx_parse_symbol(p, 64, &found) : ptx_parse_source(p, 64, 0));
    if (found != (enum space)in->space)
        ptx_refuse(p, t, "variable of another space");
}

/* Operands up to the closing brace; returns how many. Destinations and sources of vector moves. */
static int parse_parts(struct parser *p, struct insn *in, int destination, int total_bits)
{
    int n = 1;
    for (int at = p->at; p->tokens[at].kind == TOKEN_WORD || *p->tokens[at].at == ','; at++)
        n += *p->tokens[at].at == ',';
    if (n != 2 && n != 4)
        ptx_refuse(p, ptx_peek(p), "vector of this many parts");
    in->sub = (uint8_t)(total_bits / n);
    for (int i = 0; i < n; i++) {
        if (i)
            ptx_expect(p, ',');
        if (destination)
            ptx_add_destination(in, ptx_parse_destination(p, in->sub, 0, NULL));
        else
            ptx_add_source(p, in, ptx_parse_source(p, in->sub, 0));
    }
    ptx_expect(p, '}');
    return n;
}

static void decode_mov(struct parser *p, const struct opcode *o, struct insn *in)
{
    enum space space;
    ptx_need_types(p, o, 1);
    int bits = o->type[0].bits;
    if (strcmp(o->key, "mov") || bits == 8)
        ptx_refuse(p, o->token, "instruction not understood");
    in->op = OP_MOV;
    ptx_set_width(in, bits, bits);
    if (ptx_accept(p, '{')) {
        in->op = OP_UNPACK;
        parse_parts(p, in, 1, bits);
        in->mask = ptx_width_mask(in->sub);
        ptx_expect(p, ',');
        ptx_add_source(p, in, ptx_parse_source(p, bits, 0));
        return;
    }
    ptx_add_destination(in, ptx_parse_destination(p, bits, 0, NULL));
    ptx_expect(p, ',');
    if (ptx_accept(p, '{')) {
        in->op = OP_PACK;
        parse_parts(p, in, 0, bits);
    } else if (ptx_is_variable(p)) {
        ptx_add_source(p, in, ptx_parse_symbol(p, bits, &space));
    } else {
        ptx_add_source(p, in, ptx_parse_source(p, bits, 0));
    }
}

static void add_label(struct parser *p, int wants_table)
{
    p->fixups = ptx_grow(p, p->fixups, p->n_fixups, &p->cap_fixups, sizeof *p->fixups);
    const struct token *t = ptx_next(p);
    if (t->kind != TOKEN_WORD)
        ptx_refuse(p, t, "expected a label");
    p->fixups[p->n_fixups++] = (struct fixup){*t, p->scope, -1, p->entry->n_code, wants_table};
}

static void decode_branch(struct parser *p, const struct opcode *o, struct insn *in)
{
    ptx_need_types(p, o, 0);
    int uniform = strlen(o->key) > 4 && !strcmp(o->key + strlen(o->key) - 4, ".uni");
    int length = (int)strlen(o->key) - 4 * uniform;
    in->uniform = (uint8_t)uniform;
    if (length == 3 && !memcmp(o->key, "bra", 3)) {
        in->op = OP_BRA;
        add_label(p, 0);
    } else if (length == 7 && !memcmp(o->key, "brx.idx", 7)) {
        in->op = OP_BRX;
        ptx_add_source(p, in, ptx_parse_source(p, 32, 0));
        ptx_expect(p, ',');
        add_label(p, 1);
    } else if ((length == 3 && !memcmp(o->key, "ret", 3)) || (!uniform && !strcmp(o->key, "exit"))) {
        in->op = OP_EXIT;
    } else if (!strcmp(o->key, "trap")) {
        in->op = OP_TRAP;
    } else {
        ptx_refuse(p, o->token, "instruction not understood");
    }
}

static void decode_barrier(struct parser *p, const struct opcode *o, struct insn *in)
{
    static const char *const block_wide[] = {
        "bar.sync",         "bar.cta.sync",         "barrier.sync",
        "barrier.cta.sync", "barrier.sync.aligned", "barrier.cta.sync.aligned"};
    ptx_need_types(p, o, 0);
    if (!strcmp(o->key, "bar.warp.sync")) {
        in->op = OP_WARP_BARRIER;
        ptx_add_source(p, in, ptx_parse_source(p, 32, 0));
        return;
    }
    for (size_t i = 0; i < sizeof block_wide / sizeof *block_wide; i++)
        if (!strcmp(o->key, block_wide[i]))
            in->op = OP_BARRIER;
    if (in->op != OP_BARRIER)
        ptx_refuse(p, o->token, "instruction not understood");
    const struct token *t = ptx_peek(p);
    in->target = (int)ptx_number(p, 8);
    if (in->target > 15)
        ptx_refuse(p, t, "barrier number");
    if (ptx_accept(p, ','))
        ptx_refuse(p, ptx_peek(p), "barrier of part of a block");
}

static void decode_shuffle(struct parser *p, const struct opcode *o, struct insn *in)
{
    static const char *const kinds[] = {"shfl.sync.up", "shfl.sync.down", "shfl.sync.bfly", "shfl.sync.idx"};
    int known = 0;
    ptx_need_types(p, o, 1);
    for (int i = 0; i < 4; i++)
        if (!strcmp(o->key, kinds[i]))
            in->sub = (uint8_t)i, known = 1;
    if (!known || o->type[0].kind != 'b' || o->type[0].bits != 32)
        ptx_refuse(p, o->token, "instruction not understood");
    in->op = OP_SHUFFLE;
    ptx_set_width(in, 32, 32);
    ptx_add_destination(in, ptx_parse_destination(p, 32, 0, NULL));
    if (ptx_accept(p, '|'))
        ptx_add_destination(in, ptx_parse_destination(p, 1, 0, NULL));
    for (int i = 0; i < 4; i++) {
        ptx_expect(p, ',');
        ptx_add_source(p, in, ptx_parse_source(p, 32, 0));
    }
}

static void decode_vote(struct parser *p, const struct opcode *o, struct insn *in)
{
    ptx_need_types(p, o, 1);
    if (strcmp(o->key, "vote.sync.ballot") || o->type[0].kind != 'b' || o->type[0].bits != 32)
        ptx_refuse(p, o->token, "instruction not understood");
    in->op = OP_BALLOT;
    ptx_set_width(in, 32, 32);
    ptx_add_destination(in, ptx_parse_destination(p, 32, 0, NULL));
    ptx_expect(p, ',');
    in->flip = (uint8_t)ptx_accept(p, '!');
    ptx_add_source(p, in, ptx_parse_source(p, 1, 0));
    ptx_expect(p, ',');
    ptx_add_source(p, in, ptx_parse_source(p, 32, 0));
}

static const struct family {
    const char *name;
    void (*decode)(struct parser *p, const struct opcode *o, struct insn *in);
} families[] = {
    {"setp", decode_setp},         {"slct", decode_slct},   {"cvt", decode_cvt},
    {"cvta", decode_cvta},         {"mov", decode_mov},     {"ld", ptx_decode_load_store},
    {"st", ptx_decode_load_store}, {"cp", ptx_decode_cp},   {"bra", decode_branch},
    {"brx", decode_branch},        {"ret", decode_branch},  {"exit", decode_branch},
    {"trap", decode_branch},       {"bar", decode_barrier}, {"barrier", decode_barrier},
    {"shfl", decode_shuffle},      {"vote", decode_vote},   {"dp4a", decode_dot},
    {"dp2a", decode_dot},
};

static void split_opcode(struct parser *p, struct opcode *o)
{
    const char *s = o->token->at, *end = s + o->token->len;
    size_t key = 0;
    while (s < end) {
        const char *dot = memchr(s, '.', (size_t)(end - s));
        int len = (int)((dot ? dot : end) - s);
        if (o->n == MAX_SEGMENTS || !len || (size_t)len + key + 2 > sizeof o->key)
            ptx_refuse(p, o->token, "instruction not understood");
        o->segment[o->n] = s;
        o->length[o->n++] = len;
        if (o->n_types < 3 && ptx_find_type(s, len, &o->type[o->n_types])) {
            o->n_types++;
        } else {
            key += (size_t)snprintf(o->key + key, sizeof o->key - key, "%s%.*s", key ? "." : "", len, s);
        }
        s += len + (dot != NULL);
    }
}

static void decode_opcode(struct parser *p, const struct opcode *o, struct insn *in)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!strcmp(rows[i].key, o->key)) {
            decode_row(p, o, in, &rows[i]);
            return;
        }
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        if (strlen(families[i].name) == (size_t)o->length[0] &&
            !memcmp(families[i].name, o->segment[0], (size_t)o->length[0])) {
            families[i].decode(p, o, in);
            return;
        }
    ptx_refuse(p, o->token, "instruction not understood");
}

void ptx_decode(struct parser *p)
{
    struct insn in = {.guard = NO_SLOT};
    struct opcode o = {0};
    ptx_parse_guard(p, &in);
    o.token = ptx_next(p);
    in.line = o.token->line;
    if (o.token->kind != TOKEN_WORD)
        ptx_refuse(p, o.token, "expected an instruction");
    split_opcode(p, &o);
    decode_opcode(p, &o, &in);
    ptx_expect(p, ';');
    struct entry *e = p->entry;
    e->code = ptx_grow(p, e->code, e->n_code, &e->cap_code, sizeof *e->code);
    e->code[e->n_code++] = in;
}
