/* spelling.c: the edit distance with swaps of neighbours (optimal string alignment). Layer 1. */
#include "graph/spelling.h"

#include <string.h>
#include <strings.h>

enum { MAX_WORD = 24, FAR = 3 };

int xti_edit_distance(const char *a, size_t n, const char *b, size_t m)
{
    int row[3][MAX_WORD + 1];
    if (n > MAX_WORD || m > MAX_WORD || n > m + FAR || m > n + FAR)
        return FAR;
    for (size_t k = 0; k <= m; k++)
        row[0][k] = (int)k;
    for (size_t i = 1; i <= n; i++) {
        int *now = row[i % 3], *last = row[(i + 2) % 3], *before = row[(i + 1) % 3];
        now[0] = (int)i;
        for (size_t k = 1; k <= m; k++) {
            int v = last[k - 1] + (a[i - 1] != b[k - 1]);
            v = last[k] + 1 < v ? last[k] + 1 : v;
            v = now[k - 1] + 1 < v ? now[k - 1] + 1 : v;
            if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1] && before[k - 2] + 1 < v)
                v = before[k - 2] + 1;
            now[k] = v;
        }
    }
    return row[n % 3][m] < FAR ? row[n % 3][m] : FAR;
}

struct xti_spelling xti_spelling_start(struct xti_token word)
{
    return (struct xti_spelling){.word = word, .distance = word.n < 3 ? 1 : word.n < 6 ? 2 : FAR};
}

void xti_spelling_look(struct xti_spelling *best, const char *s, size_t n)
{
    bool same = n == best->word.n && !strncasecmp(best->word.s, s, n); /* F32 is f32, and no slip for u32 */
    int d = same ? 0 : xti_edit_distance(best->word.s, best->word.n, s, n);
    if (d < best->distance && !(same && !memcmp(best->word.s, s, n)))
        *best = (struct xti_spelling){best->word, s, n, d};
}

void xti_spelling_look_at(struct xti_spelling *best, const char *list)
{
    while (*list) {
        size_t n = strcspn(list, " ");
        xti_spelling_look(best, list, n);
        list += n + (list[n] == ' ');
    }
}
