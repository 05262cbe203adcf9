/* cuda_double_event.c: what the double has for those who time: events on the host's clock (launches are done
 * when they return), device-to-device copies, the device's name, which says what the times are worth. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes" /* the driver's header declares them */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "support/cuda_double.h"

struct CUevent_st {
    struct timespec at;
};

CU int cuDeviceGetName(char *name, int size, int device)
{
    ENTER();
    snprintf(name, (size_t)size, "double");
    return device < MAX_DEVICES ? SUCCESS : INVALID_DEVICE;
}

CU int cuEventCreate(struct CUevent_st **out, unsigned flags)
{
    ENTER();
    *out = calloc(1, sizeof **out);
    return *out ? SUCCESS : OUT_OF_MEMORY;
}

CU int cuEventDestroy_v2(struct CUevent_st *e)
{
    ENTER();
    free(e);
    return SUCCESS;
}

CU int cuEventRecord(struct CUevent_st *e, void *stream)
{
    ENTER();
    clock_gettime(CLOCK_MONOTONIC, &e->at);
    return SUCCESS;
}

CU int cuEventSynchronize(struct CUevent_st *e)
{
    ENTER();
    return SUCCESS;
}

CU int cuEventElapsedTime(float *ms, const struct CUevent_st *from, const struct CUevent_st *to)
{
    ENTER();
    *ms = (float)(to->at.tv_sec - from->at.tv_sec) * 1e3f + (float)(to->at.tv_nsec - from->at.tv_nsec) / 1e6f;
    return SUCCESS;
}

CU int cuMemcpyDtoD_v2(uintptr_t to, uintptr_t from, size_t bytes)
{
    ENTER_UNSAFE();
    memmove((void *)to, (const void *)from, bytes);
    return SUCCESS;
}
