/* parts.c: a counter over the boxes of a result. */
#include "parts.h"

#include <string.h>

void parts_begin(struct parts *p, int rank, const int64_t *shape, int64_t elements)
{
    int64_t inner = 1;
    *p = (struct parts){.rank = rank};
    memcpy(p->shape, shape, (size_t)rank * sizeof *shape);
    memcpy(p->n, shape, (size_t)rank * sizeof *shape);
    for (int i = 0; i < rank; i++)
        if (!shape[i])
            return;
    int axis = rank;
    while (axis > 0 && shape[axis - 1] <= elements / inner)
        inner *= shape[--axis];
    p->axis = axis ? axis - 1 : 0;
    if (axis)
        p->n[p->axis] = elements / inner;
    for (int i = 0; i < p->axis; i++)
        p->n[i] = 1;
    p->most = parts_elements(p);
}

bool parts_next(struct parts *p)
{
    if (!p->most)
        return false;
    if (!p->begun)
        return p->begun = true;
    int i = p->axis;
    for (; i >= 0 && p->rank; i--) {
        p->lo[i] += p->n[i];
        if (p->lo[i] < p->shape[i])
            break;
        p->lo[i] = 0;
    }
    return i >= 0 && p->rank;
}

int64_t parts_elements(const struct parts *p)
{
    int64_t e = 1;
    for (int i = 0; i < p->rank; i++) {
        int64_t left = p->shape[i] - p->lo[i];
        e *= p->n[i] < left ? p->n[i] : left;
    }
    return e;
}
