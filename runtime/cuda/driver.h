/* driver.h: the loaded CUDA driver, for module.c and launch.c. Layer 4. */
#ifndef XTI_CUDA_DRIVER_H
#define XTI_CUDA_DRIVER_H

#include <stdbool.h>

#include "base/err.h"
#include "cuda/driver_abi.h"

/* The process's driver, initialised, with at least one device. XT_ENODEVICE with the reason; XT_EFORKED in
 * the child of a process that had initialised it. Any thread. *api is set on success. */
xt_status xti_driver_get(const struct xti_cu_api **api, struct xti_err *err);

/* The child of a fork cannot use its parent's contexts. */
bool xti_driver_forked(void);

/* XT_EDEVICE: "cuLaunchKernel: CUDA_ERROR_INVALID_VALUE". */
xt_status xti_driver_fail(const struct xti_cu_api *api, const char *call, xti_cu_result r,
                          struct xti_err *err);

/* Makes a context current: the caller's current one, else the primary context of `device`, retained and
 * pushed. */
struct xti_driver_scope {
    const struct xti_cu_api *api;
    xti_cu_context ctx;
    xti_cu_device device;
    bool primary; /* ours: retained, and pushed until leave */
};
xt_status xti_driver_enter(int device, struct xti_driver_scope *s, struct xti_err *err);
/* Pops what enter pushed. keep: the primary context stays retained; the caller releases it. */
void xti_driver_leave(struct xti_driver_scope *s, bool keep);

#endif
