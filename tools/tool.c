/* tool.c: what several commands do. */
#include "tool.h"

#include <stdlib.h>
#include <string.h>
#include <xt/xt_files.h>
#include <xt/xt_shard.h>

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

static xt_status explain(const struct explained *e, char *buf, size_t size, size_t *need)
{
    return e->kernel  ? xt_explain(e->kernel, e->flags, buf, size, need)
           : e->shard ? xt_shard_explain(e->shard, e->flags, buf, size, need)
                      : xt_files_explain(e->files, e->flags, buf, size, need);
}

char *explanation(const struct explained *e)
{
    size_t need = 0;
    char *s = explain(e, NULL, 0, &need) ? NULL : malloc(need);
    if (s && !explain(e, s, need, &need))
        return s;
    free(s);
    fail_last("explain");
    return NULL;
}
