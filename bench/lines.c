/* lines.c: how many 64-byte lines of its sources a kernel reads. Needs to know nothing of maps: line numbers
 * go in where the data are, and those that come out are the lines that were read. */
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "limit.h"

enum { DIGITS = 4 }; /* bytes of a line's number: 2^32 lines are 256 GiB */

/* Every element holds as many bytes of its line's number as it has room for, from byte `digit` on, xored with
 * x. */
static void write_numbers(char *p, size_t bytes, size_t first_line, int width, int digit, unsigned char x)
{
    size_t w = (size_t)width;
    for (size_t line = 0; line * LINE < bytes; line++) {
        uint64_t number = (first_line + line) >> (8 * digit);
        unsigned char whole[LINE];
        for (size_t i = 0; i < w; i++)
            whole[i] = (unsigned char)(i < 8 ? number >> (8 * i) : 0) ^ x;
        for (size_t i = w; i < LINE; i *= 2)
            memcpy(whole + i, whole, i);
        memcpy(p + line * LINE, whole, (line + 1) * LINE < bytes ? LINE : bytes - line * LINE);
    }
}

struct probe {
    const struct xt_kernel *k;
    int n, width;
    void *const *src;
    const size_t *bytes;
    size_t first_line[LIMIT_SOURCES];
};

static bool read_back(const struct probe *p, int digit, unsigned char x, char *dst)
{
    for (int i = 0; i < p->n; i++)
        write_numbers(p->src[i], p->bytes[i], p->first_line[i], p->width, digit, x);
    return !xt_run(p->k, dst, (const void *const *)p->src, NULL);
}

/* out[0 .. passes): the number's bytes; out[passes]: the first, complemented. Where the two do not differ in
 * every bit there is a fill or nothing. */
static void mark(char *const *out, int passes, size_t dst_bytes, int width, unsigned char *seen)
{
    size_t w = (size_t)width, low = w < DIGITS ? w : DIGITS;
    for (size_t i = 0; i + w <= dst_bytes; i += w) {
        uint32_t number = 0;
        if ((unsigned char)(out[0][i] ^ out[passes][i]) != 0xff)
            continue;
        for (size_t b = 0; b < DIGITS; b++)
            number |= (uint32_t)(unsigned char)out[b / low][i + b % low] << (8 * b);
        seen[number] = 1;
    }
}

bool count_lines(const struct xt_kernel *k, int n, void *const *src, const size_t *bytes, size_t dst_bytes,
                 int width, size_t *lines)
{
    struct probe p = {.k = k, .n = n, .width = width, .src = src, .bytes = bytes};
    int passes = width < DIGITS ? DIGITS / width : 1;
    size_t all = 0;
    for (int i = 0; i < n; i++) {
        p.first_line[i] = all;
        all += (bytes[i] + LINE - 1) / LINE;
    }
    char *out[DIGITS + 1] = {NULL};
    unsigned char *seen = calloc(all + 1, 1);
    bool ok = seen != NULL;
    for (int i = 0; i <= passes && ok; i++) {
        out[i] = bench_buffer(dst_bytes);
        if (out[i])
            memset(out[i], 0, dst_bytes);
        ok = out[i] && read_back(&p, i % passes * width, i == passes ? 0xff : 0, out[i]);
    }
    if (ok)
        mark(out, passes, dst_bytes, width, seen);
    for (int i = 0; i < n && ok; i++) {
        lines[i] = 0;
        for (size_t j = p.first_line[i]; j * LINE < p.first_line[i] * LINE + bytes[i]; j++)
            lines[i] += seen[j];
    }
    for (int i = 0; i <= passes; i++)
        free(out[i]);
    free(seen);
    return ok;
}
