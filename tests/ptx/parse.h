/* parse.h: what parse.c (declarations, names) offers to decode.c (instructions). Every function here leaves
 * ptx_load through ptx_refuse when the text is not what it expects. */
#ifndef PTX_PARSE_H
#define PTX_PARSE_H

#include "impl.h"

enum token_kind { TOKEN_END, TOKEN_WORD, TOKEN_NUMBER, TOKEN_STRING, TOKEN_PUNCT };
struct token { enum token_kind kind; const char *at; int len, line; };

/* kind: b, u, s, f, or p for a predicate (1 bit). */
struct type { char kind; int bits; };

/* A declared register, or a range %r<n> of them whose names are the prefix and a number. */
struct reg_name { const char *at; int len, scope, first, count; struct type type; };
struct label { const char *at; int len, scope, pc; };
/* A branch or a table entry whose label may come later. table -1: code[index].target, else tables[table].target[index];
 * wants_table: the name is that of a branch table. */
struct fixup { struct token name; int scope, table, index, wants_table; };

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
    jmp_buf failed;
    char *err;
    size_t err_bytes;
};

_Noreturn void ptx_refuse(struct parser *p, const struct token *t, const char *what);
/* Makes room for one more of `bytes` each; returns the possibly moved array. */
void *ptx_grow(struct parser *p, void *array, int n, int *cap, size_t bytes);

const struct token *ptx_peek(struct parser *p);
const struct token *ptx_next(struct parser *p);
int ptx_accept(struct parser *p, char punct);
void ptx_expect(struct parser *p, char punct);
int ptx_is_word(const struct token *t, const char *word);

/* 1 and *type when `name` (without the dot) is a type. */
int ptx_find_type(const char *name, int len, struct type *type);
/* A number with optional minus, or a float image 0f/0d, cut to `bits`; refused when it does not fit. */
uint64_t ptx_number(struct parser *p, int bits);
/* The slot of a constant, shared by equal ones. */
int ptx_constant(struct parser *p, uint64_t value);
/* 1 and slot, type when the token names a register, special ones included. */
int ptx_find_register(struct parser *p, const struct token *t, int *slot, struct type *type);
const struct var *ptx_find_var(struct parser *p, const struct token *t);
int ptx_new_register(struct parser *p);

#endif
