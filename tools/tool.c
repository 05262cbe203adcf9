/* tool.c: what several commands do. */
#include "tool.h"

#include <stdlib.h>
#include <string.h>

int parse_backend(const char *s, xt_backend *out)
{
    static const char *const name[] = {"ref", "cpu", "cuda"};
    static const xt_backend value[] = {XT_REF, XT_CPU, XT_CUDA};
    *out = XT_AUTO;
    if (!s)
        return 0;
    for (int i = 0; i < 3; i++)
        if (!strcmp(s, name[i]))
            *out = value[i];
    return *out ? 0 : fail("--backend: '%s' is not cpu, cuda or ref", s);
}

char *whole_text(xt_status (*fill)(const void *, char *, size_t, size_t *), const void *arg)
{
    size_t need = 0;
    if (fill(arg, NULL, 0, &need))
        return NULL;
    char *s = malloc(need);
    if (s && fill(arg, s, need, &need)) {
        free(s);
        return NULL;
    }
    return s;
}
