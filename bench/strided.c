/* strided.c: the baseline's copy. */
#include "strided.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 32 };

static void move_dim(struct strided *c, int to, int from)
{
    c->n[to] = c->n[from];
    c->s[to] = c->s[from];
    c->d[to] = c->d[from];
}

static void sort_by_destination(struct strided *c)
{
    for (int i = 1; i < c->rank; i++) {
        int64_t n = c->n[i], s = c->s[i], d = c->d[i];
        int j = i;
        for (; j > 0 && llabs(c->d[j - 1]) < llabs(d); j--)
            move_dim(c, j, j - 1);
        c->n[j] = n, c->s[j] = s, c->d[j] = d;
    }
}

void strided_prepare(struct strided *c)
{
    int kept = 0;
    for (int i = 0; i < c->rank; i++)
        if (c->n[i] != 1)
            move_dim(c, kept++, i);
    c->rank = kept;
    sort_by_destination(c);
    kept = 0;
    for (int i = 0; i < c->rank; i++) {
        bool merge = kept && c->s[kept - 1] == c->n[i] * c->s[i] && c->d[kept - 1] == c->n[i] * c->d[i];
        int64_t n = merge ? c->n[kept - 1] : 1;
        kept -= merge;
        move_dim(c, kept, i);
        c->n[kept++] *= n;
    }
    c->rank = kept;
    if (!c->rank) {
        c->rank = 1;
        c->n[0] = 1, c->s[0] = c->d[0] = 1;
    }
    /* The dim along which the source runs comes second to last: the pair is copied in blocks. */
    int run = c->rank - 1;
    for (int i = 0; i < c->rank; i++)
        if (c->s[i] && (!c->s[run] || llabs(c->s[i]) < llabs(c->s[run])))
            run = i;
    if (run < c->rank - 2) {
        int64_t n = c->n[run], s = c->s[run], d = c->d[run];
        for (int i = run; i < c->rank - 2; i++)
            move_dim(c, i, i + 1);
        c->n[c->rank - 2] = n, c->s[c->rank - 2] = s, c->d[c->rank - 2] = d;
    }
}

#define ROW(type)                                                                                            \
    for (int64_t i = 0; i < n; i++)                                                                          \
    memcpy(dst + i * ds, src + i * ss, sizeof(type))

static void copy_row(int width, int64_t n, char *dst, int64_t ds, const char *src, int64_t ss)
{
    struct wide {
        uint64_t w[2];
    };
    if (ds == width && ss == width) {
        memcpy(dst, src, (size_t)(n * width));
        return;
    }
    switch (width) {
    case 1:
        ROW(uint8_t);
        break;
    case 2:
        ROW(uint16_t);
        break;
    case 4:
        ROW(uint32_t);
        break;
    case 8:
        ROW(uint64_t);
        break;
    default:
        ROW(struct wide);
        break;
    }
}

static int64_t min64(int64_t a, int64_t b) { return a < b ? a : b; }

/* The two inner dims. */
static void copy_block(const struct strided *c, char *dst, const char *src)
{
    int i = c->rank - 1, o = c->rank - 2, w = c->width;
    int64_t ns = c->n[i], nt = o >= 0 ? c->n[o] : 1, si = c->s[i] * w, di = c->d[i] * w;
    int64_t so = o >= 0 ? c->s[o] * w : 0, d_o = o >= 0 ? c->d[o] * w : 0;
    bool blocked = o >= 0 && llabs(si) > llabs(so) && so;
    int64_t bi = blocked ? BLOCK : ns, bo = blocked ? BLOCK : nt;
    for (int64_t y = 0; y < nt; y += bo)
        for (int64_t x = 0; x < ns; x += bi)
            for (int64_t z = y; z < min64(y + bo, nt); z++)
                copy_row(w, min64(bi, ns - x), dst + z * d_o + x * di, di, src + z * so + x * si, si);
}

void strided_copy(const struct strided *c, char *dst, const char *src)
{
    int64_t x[STRIDED_MAX] = {0};
    for (int i = 0; i < c->rank; i++)
        if (c->n[i] == 0)
            return;
    for (;;) {
        copy_block(c, dst, src);
        int i = c->rank - 3;
        for (; i >= 0; i--) {
            dst += c->d[i] * c->width;
            src += c->s[i] * c->width;
            if (++x[i] < c->n[i])
                break;
            dst -= c->d[i] * c->width * c->n[i];
            src -= c->s[i] * c->width * c->n[i];
            x[i] = 0;
        }
        if (i < 0)
            return;
    }
}
