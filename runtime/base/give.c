/* give.c: structs that a caller allocates: checks and fills them by their size. Layer 0. */
#include "base/give.h"

#include <string.h>

xt_status xti_give_check(void *out, size_t least, const char *call, const char *type, struct xti_err *err)
{
    size_t size;
    if (!out)
        return xti_fail(err, XT_EINVAL, "%s: out is NULL", call);
    memcpy(&size, out, sizeof size);
    if (size < least || size > XTI_MOST_BYTES)
        return xti_fail(err, XT_EINVAL, "%s: out->size is %zu, want sizeof(struct %s)", call, size, type);
    memset((unsigned char *)out + sizeof size, 0, size - sizeof size);
    return XT_OK;
}

void xti_give(void *out, const void *full, size_t full_bytes)
{
    size_t size;
    memcpy(&size, out, sizeof size);
    size = size < full_bytes ? size : full_bytes;
    memcpy((unsigned char *)out + sizeof size, (const unsigned char *)full + sizeof size, size - sizeof size);
}
