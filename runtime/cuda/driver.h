/* driver.h: the loaded CUDA driver, for module.c and launch.c. Layer 4. */
#ifndef XTI_CUDA_DRIVER_H
#define XTI_CUDA_DRIVER_H

#include <stdbool.h>

#include "base/err.h"
#include "cuda/driver_abi.h"

enum { XTI_MAX_DEVICES = 64 }; /* of those beyond nothing is remembered */

/* The process's driver, initialised, with at least one device. XT_ENODEVICE with the reason; XT_EFORKED in
 * the child of a process that had initialised it. Any thread. *api is set on success. */
xt_status xti_driver_get(const struct xti_cu_api **api, struct xti_err *err);

/* The child of a fork cannot use its parent's contexts. */
bool xti_driver_forked(void);

/* The CUDA version that the driver is of: 12040 is 12.4. 0: it has not been asked yet. */
int xti_driver_version(void);

/* XT_EDEVICE: "cuLaunchKernel: CUDA_ERROR_INVALID_VALUE (1)". What a kernel that ran before did, and every
 * call since reports, is called that: "cuLaunchKernel: an earlier CUDA_ERROR_ILLEGAL_ADDRESS (700), not this
 * call: ..". */
bool xti_driver_is_sticky(xti_cu_result r);
xt_status xti_driver_fail(const struct xti_cu_api *api, const char *call, xti_cu_result r,
                          struct xti_err *err);

/* Makes a context current: the caller's current one, else the primary context of `device`. Until leave,
 * calls of this thread neither break nor are refused for a stream capture of another thread, or its own. */
struct xti_driver_scope {
    const struct xti_cu_api *api;
    xti_cu_context ctx;
    xti_cu_device device;
    bool primary; /* ctx is its device's primary one, and retained until leave */
    bool pushed;
    xti_cu_capture_mode capture; /* of the thread before */
};
xt_status xti_driver_enter(int device, struct xti_driver_scope *s, struct xti_err *err);
/* Undoes enter. keep: a primary context stays retained; the caller releases it. */
void xti_driver_leave(struct xti_driver_scope *s, bool keep);

/* Is ctx, which is alive and current, the primary context of its device? *device: which. When it is, it has
 * been retained once more. */
xt_status xti_driver_is_primary(const struct xti_cu_api *api, xti_cu_context ctx, xti_cu_device *device,
                                bool *primary, struct xti_err *err);

#endif
