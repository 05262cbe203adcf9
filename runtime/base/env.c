/* env.c: reads XT_* variables through secure_getenv. Layer 0. */
#include "base/env.h"

#include <stdlib.h>
#include <string.h>

static const char *const name[] = {
#define X(id, fallback, what) "XT_" #id,
    XTI_ENV_TABLE(X)
#undef X
};

const char *xti_env(enum xti_env v) { return secure_getenv(name[v]); }

int64_t xti_env_int(enum xti_env v, int64_t if_unset)
{
    const char *s = xti_env(v);
    if (!s || !*s)
        return if_unset;
    char *end;
    long long n = strtoll(s, &end, 10);
    return *end ? if_unset : n;
}

const char *xti_env_word(const char **list, size_t *n)
{
    const char *s = *list;
    if (!s || !*s)
        return NULL;
    *n = strcspn(s, ",");
    *list = s + *n + (s[*n] == ',');
    return s;
}
