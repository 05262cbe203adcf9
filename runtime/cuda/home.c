/* home.c: which CUDA context a thread's code goes to. Layer 4. */
#include <stdatomic.h>

#include "cuda/cuda.h"
#include "cuda/driver.h"

/* Numbers of contexts are never used again: the context that has this one is its device's primary one. */
static atomic_ullong primary_number[XTI_MAX_DEVICES];

static bool seen(xti_cu_device device, unsigned long long number)
{
    return number && device < XTI_MAX_DEVICES && atomic_load(&primary_number[device]) == number;
}

xt_status xti_home_get(int device, struct xti_home *home, struct xti_err *err)
{
    const struct xti_cu_api *api;
    xti_cu_context current = NULL;
    xti_cu_device dev = device;
    unsigned long long number = 0;
    bool primary = true;
    xt_status s = xti_driver_get(&api, err);
    if (s)
        return s;
    xti_cu_result r = api->ctx_current(&current);
    if (r)
        return xti_driver_fail(api, "cuCtxGetCurrent", r, err);
    if (current && api->ctx_id && api->ctx_id(current, &number))
        number = 0;
    if (current && (r = api->ctx_device(&dev)))
        return xti_driver_fail(api, "cuCtxGetDevice", r, err);
    if (current && !seen(dev, number)) {
        if ((s = xti_driver_is_primary(api, current, &dev, &primary, err)))
            return s;
        if (primary) {
            api->primary_release(dev);
            if (dev < XTI_MAX_DEVICES)
                atomic_store(&primary_number[dev], number);
        }
    }
    *home = primary ? (struct xti_home){0, (uint64_t)dev} : (struct xti_home){(uintptr_t)current, number};
    return XT_OK;
}
