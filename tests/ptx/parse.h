/* parse.h: what parse.c (declarations, names) offers to decode.c (instructions). Every function here leaves
 * ptx_load through ptx_refuse when the text is not what it expects. */
#ifndef PTX_PARSE_H
#define PTX_PARSE_H

#include "impl.h"

enum token_kind { TOKEN_END, TOKEN_WORD, TOKEN_NUMBER, TOKEN_STRING, TOKEN_PUNCT };
struct token {
    enum token_kind kind;
    const char *at;
    int len, line;
};

/* kind: b, u, s, f, or p for a predicate (1 bit). */
struct type {
    char kind;
    int bits;
};

/* A declared register, or a range %r<n> of them whose names are the prefix and a number. */
struct reg_name {
    const char *at;
    int len, scope, first, count;
    struct type type;
};
struct label {
    const char *at;
    int len, scope, pc;
};
/* A branch or a table entry whose label may come later. table -1: code[index].target, else
 * tables[table].target[index]; wants_table: the name is that of a branch table. */
struct fixup {
    struct token name;
    int scope, table, index, wants_table;
};

struct parser {
    struct ptx_module *m;
    struct token *tokens;
    int n_tokens, at;
    struct entry *entry;
    int scope, n_scopes, parent[MAX_SCOPES];
    struct reg_name *regs;
    int n_regs, cap_regs;
    struct label *labels;
    int n_labels, cap_labels;
    struct fixup *fixups;
    int n_fixups, cap_fixups;
    uint64_t unused_bytes; /* of the next load */
    jmp_buf failed;
    char *err;
    size_t err_bytes;
};

/* lex.c */
_Noreturn void ptx_refuse(struct parser *p, const struct token *t, const char *what);
/* Makes room for one more of `bytes` each; returns the possibly moved array. */
void *ptx_grow(struct parser *p, void *array, int n, int *cap, size_t bytes);
void ptx_split(struct parser *p);
const struct token *ptx_peek(struct parser *p);
const struct token *ptx_next(struct parser *p);
int ptx_is_punct(const struct token *t, char c);
int ptx_is_word(const struct token *t, const char *word);
int ptx_accept(struct parser *p, char punct);
int ptx_accept_word(struct parser *p, const char *word);
void ptx_expect(struct parser *p, char punct);
const struct token *ptx_expect_name(struct parser *p);
char *ptx_copy_name(struct parser *p, const struct token *t);
/* 1 and *type when `name` (without the dot) is a type. */
int ptx_find_type(const char *name, int len, struct type *type);
/* A number with optional minus, or a float image 0f/0d, cut to `bits`; refused when it does not fit. */
uint64_t ptx_number(struct parser *p, int bits);
size_t ptx_count(struct parser *p, size_t max);

/* names.c */
/* The slot of a constant, shared by equal ones. */
int ptx_constant(struct parser *p, uint64_t value);
int ptx_new_register(struct parser *p);
/* 1 and slot, type when the token names a register, special ones included. */
int ptx_find_register(struct parser *p, const struct token *t, int *slot, struct type *type);
int ptx_open_scope(struct parser *p, int parent);
const struct var *ptx_find_var(struct parser *p, const struct token *t);
struct var *ptx_new_var(struct parser *p, const struct token *name, enum space space);
/* Places `bytes` at `*end` and moves *end past them and the gap. */
uint64_t ptx_place(uint64_t *end, size_t bytes, size_t align);
size_t ptx_parse_align(struct parser *p);
struct type ptx_parse_type(struct parser *p);
/* Dimensions after a name, as a number of elements; 0 for an open `[]`. */
size_t ptx_parse_dimensions(struct parser *p);
/* What is left of a declaration after the keywords .shared, .local, .const or .global. */
void ptx_parse_variables(struct parser *p, enum space space, int is_extern);

/* operand.c: operands of instructions. `bits` 1 is a predicate. */
void ptx_parse_guard(struct parser *p, struct insn *in);
/* A register of `bits`, or of at least `bits` if wider_too, or NO_SLOT for `_`; its width to *width unless
 * NULL. */
int ptx_parse_destination(struct parser *p, int bits, int wider_too, int *width);
/* A register or a number. */
int ptx_parse_source(struct parser *p, int bits, int wider_too);
/* The address of a variable as a number in its own space, which goes to *space. */
int ptx_parse_symbol(struct parser *p, int bits, enum space *space);
/* 1 when the next token names a variable and no register. */
int ptx_is_variable(struct parser *p);
/* [register], [register+n], [variable], [variable+n], [n] for an access in `space`. */
int ptx_parse_address(struct parser *p, enum space space, int64_t *offset, uint64_t *mask);
void ptx_add_source(struct parser *p, struct insn *in, int slot);
void ptx_add_destination(struct insn *in, int slot);
void ptx_set_width(struct insn *in, int bits, int result_bits);
uint64_t ptx_width_mask(int bits);

/* An opcode word cut at its dots: types apart, the rest joined again as the key that tables are searched by.
 */
enum { MAX_SEGMENTS = 16, MAX_KEY = 96 };
struct opcode {
    const struct token *token;
    const char *segment[MAX_SEGMENTS];
    int length[MAX_SEGMENTS], n;
    struct type type[3];
    int n_types;
    char key[MAX_KEY];
};
void ptx_need_types(struct parser *p, const struct opcode *o, int n);

/* decode_memory.c */
void ptx_decode_load_store(struct parser *p, const struct opcode *o, struct insn *in);
void ptx_decode_cp(struct parser *p, const struct opcode *o, struct insn *in);

#endif
