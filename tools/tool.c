/* tool.c: what several commands do. */
#include "tool.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
    return *out ? 0 : fail("--backend: '%s' is not ref, cpu or cuda", s);
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

int write_file(const char *path, const void *data, size_t bytes)
{
    size_t n = strlen(path) + 32;
    char *tmp = malloc(n);
    if (!tmp)
        return fail("%s: out of memory", path);
    snprintf(tmp, n, "%s.%ld.tmp", path, (long)getpid());
    FILE *f = fopen(tmp, "wb");
    bool ok = f && fwrite(data, 1, bytes, f) == bytes;
    ok = f && !fclose(f) && ok && !rename(tmp, path);
    if (!ok)
        fail("%s: cannot be written: %s", path, strerror(errno));
    if (!ok && f)
        remove(tmp);
    free(tmp);
    return ok ? 0 : EXIT_BAD_INPUT;
}
