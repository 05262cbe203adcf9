/* distinct.c: see distinct.h. By Shell's sort, with Ciura's gaps. */
#include "base/distinct.h"

#include <stddef.h>

int xti_distinct(int32_t *x, int n)
{
    static const int gap[] = {701, 301, 132, 57, 23, 10, 4, 1};
    int kept = 0;
    for (size_t g = 0; g < sizeof gap / sizeof *gap; g++)
        for (int i = gap[g]; i < n; i++) {
            int32_t v = x[i];
            int k = i;
            for (; k >= gap[g] && x[k - gap[g]] > v; k -= gap[g])
                x[k] = x[k - gap[g]];
            x[k] = v;
        }
    for (int i = 0; i < n; i++)
        if (!kept || x[kept - 1] != x[i])
            x[kept++] = x[i];
    return kept;
}
