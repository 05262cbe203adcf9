/* json.h: reads a JSON text, strictly by RFC 8259, into a tree. Layer 6. */
#ifndef XTI_FILES_JSON_H
#define XTI_FILES_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"

enum xti_json_kind {
    XTI_JSON_NULL,
    XTI_JSON_BOOL,
    XTI_JSON_NUMBER,
    XTI_JSON_STRING,
    XTI_JSON_LIST,
    XTI_JSON_OBJECT
};

struct xti_json {
    enum xti_json_kind kind;
    const char *key;        /* of a member */
    const char *text;       /* string, unescaped; number, as it is written; see xti_json_read */
    bool yes;               /* bool */
    int n;                  /* items, members */
    struct xti_json *first; /* of them */
    struct xti_json *next;
};

/* Of an outermost object the tree has the members in wanted, which ends with NULL, and 10,000 values at most,
 * so that a long text takes little memory; "-KEY" there: it is known, and skipped. The object's text is then
 * the first key that is not in wanted, but for those of objects with "must_understand": false; NULL: there is
 * none. NULL: it is no JSON text, is nested deeper than 64, has a NUL, more of such values or one of their
 * keys twice, or there is no memory. */
const struct xti_json *xti_json_read(const char *text, size_t n, const char *const *wanted,
                                     struct xti_arena *arena, bool *no_memory);

const struct xti_json *xti_json_at(const struct xti_json *object, const char *key); /* NULL: it has none */
bool xti_json_is(const struct xti_json *v, const char *string);                     /* v may be NULL */
bool xti_json_int(const struct xti_json *v, int64_t *out); /* an integer without fraction or exponent */
/* A list of n <= most integers. -1: it is none. */
int xti_json_ints(const struct xti_json *v, int most, int64_t *out);

#endif
