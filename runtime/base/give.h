/* give.h: structs that a caller allocates and the library fills. Both begin with `size`, the sizeof of the
 * struct as its owner knows it, so that a program and a library of different versions understand each other:
 * what the caller has no room for is left out, what the library does not know is 0. Layer 0. */
#ifndef XTI_BASE_GIVE_H
#define XTI_BASE_GIVE_H

#include <stddef.h>

#include "base/err.h"

/* Bytes of a struct up to and with a member: where a version of it ended. */
#define XTI_UP_TO(type, member) (offsetof(type, member) + sizeof((type *)0)->member)

/* No struct is as large: a larger size was never set. */
enum { XTI_MOST_BYTES = 4096 };

/* Clears all of *out but its size. Fails with XT_EINVAL when out is NULL, leaving it alone also when its size
 * is less than `least`, what the first version with this struct had, or absurd. type: "xt_env_info". */
xt_status xti_give_check(void *out, size_t least, const char *call, const char *type, struct xti_err *err);

/* post: of the bytes behind `size`, those that both structs have are full's. After xti_give_check. */
void xti_give(void *out, const void *full, size_t full_bytes);

#endif
