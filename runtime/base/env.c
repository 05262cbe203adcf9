/* env.c: reads XT_* variables through secure_getenv. Layer 0. */
#include "base/env.h"

#include <stdlib.h>

#include "base/give.h"

static const struct {
    const char *name, *fallback, *what;
} table[] = {
#define X(id, fallback, what) {"XT_" #id, fallback, what},
    XTI_ENV_TABLE(X)
#undef X
};

const char *xti_env(enum xti_env v) { return secure_getenv(table[v].name); }

int64_t xti_env_int(enum xti_env v, int64_t if_unset)
{
    const char *s = xti_env(v);
    if (!s || !*s)
        return if_unset;
    char *end;
    long long n = strtoll(s, &end, 10);
    return *end ? if_unset : n;
}

int xt_env_count(void) { return XTI_ENV_COUNT; }

xt_status xt_env_get(int i, struct xt_env_info *out)
{
    struct xti_err err = {0};
    if (xti_give_check(out, XTI_UP_TO(struct xt_env_info, what), "xt_env_get", "xt_env_info", &err))
        return xti_publish(XT_EINVAL, &err);
    if (i < 0 || i >= XTI_ENV_COUNT)
        return xti_publish(xti_fail(&err, XT_ERANGE, "xt_env_get: %d is not in [0,%d)", i, XTI_ENV_COUNT),
                           &err);
    struct xt_env_info e = {0, table[i].name, xti_env((enum xti_env)i), table[i].fallback, table[i].what};
    xti_give(out, &e, sizeof e);
    return xti_publish(XT_OK, NULL);
}
