/* module.h: a loaded module, for launch.c. Layer 4. */
#ifndef XTI_CUDA_MODULE_H
#define XTI_CUDA_MODULE_H

#include "cuda/any.h"
#include "cuda/driver.h"

struct xti_module {
    const struct xti_cu_api *api;
    xti_cu_context ctx;        /* where it was loaded */
    unsigned long long ctx_id; /* 0: the driver has no such numbers */
    xti_cu_device device;
    bool primary; /* ctx is the device's primary one, retained by us */
    xti_cu_module module;
    xti_cu_function entry[XTI_ANY_ENTRIES]; /* <name>, <name>_e; of an xti_any_name one a suffix */
    struct xti_module *next_idle;           /* once nobody uses it */
};

/* The context that was loaded into, and no later one at the same address. */
bool xti_module_is_home(const struct xti_module *m, xti_cu_context ctx);

#endif
