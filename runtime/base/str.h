/* str.h: a sticky string builder. Append freely, test `failed` once at the end. Layer 0. */
#ifndef XTI_BASE_STR_H
#define XTI_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <xt/xt.h>

/* Zero-initialise. s is NUL-terminated once anything was appended, NULL before; n counts without the NUL. */
struct xti_str {
    char *s;
    size_t n, cap;
    bool failed; /* an allocation failed: the text is incomplete and later appends do nothing */
    bool lent;   /* s is the caller's */
};

/* Starts in the caller's array, and allocates when that is full. */
#define XTI_STR_ON(array) ((struct xti_str){.s = (array), .cap = sizeof(array), .lent = true})

void xti_str_add(struct xti_str *b, const char *text);
void xti_str_addn(struct xti_str *b, const void *bytes, size_t n);
void xti_str_addf(struct xti_str *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void xti_str_list(struct xti_str *b, int n, const int64_t *v); /* "[2,3,4]" */
void xti_str_json(struct xti_str *b, const char *text);        /* quoted and escaped */
/* b, which is empty, becomes these bytes, with no room for more. */
void xti_str_set(struct xti_str *b, const void *bytes, size_t n);
void xti_str_free(struct xti_str *b);

/* Eight bytes, lowest first: for keys. */
void xti_str_u64le_slow(struct xti_str *b, uint64_t v);
static inline void xti_str_u64le(struct xti_str *b, uint64_t v)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    if (!b->failed && b->cap - b->n > sizeof v) {
        memcpy(b->s + b->n, &v, sizeof v);
        b->n += sizeof v;
        b->s[b->n] = 0;
        return;
    }
#endif
    xti_str_u64le_slow(b, v);
}
void xti_str_row64le(struct xti_str *b, int n, const int64_t *v); /* n of them */

/* "[2,3,4]" into a fixed buffer, cut with "..]" when it does not fit; returns buf: for error messages. */
char *xti_shape_text(char *buf, size_t size, int n, const int64_t *v);

/* "131 KB", "1.5 GB", into buf, which is returned. */
const char *xti_size_text(int64_t bytes, char *buf, size_t size);

/* Hands text of n bytes to a caller's buffer in xt_print's way: cut at size, NUL-terminated, *need = n + 1.
 */
xt_status xti_copy_out(const char *text, size_t n, char *buf, size_t size, size_t *need);

#endif
