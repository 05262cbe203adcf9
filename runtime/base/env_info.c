/* env_info.c: the table of XT_* variables for whoever prints it. Layer 0. */
#include "base/env.h"
#include "base/give.h"

static const struct {
    const char *name, *fallback, *what;
} table[] = {
#define X(id, fallback, what) {"XT_" #id, fallback, what},
    XTI_ENV_TABLE(X)
#undef X
};

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
