/* helper.h: compiles with NVRTC in a process of their own, the program xt-cc, of which a host sees statuses
 * alone. In a host NVRTC replaces handlers of SIGINT and SIGTERM and ends it when one arrives, ignores
 * SIGXFSZ, prints, and hangs in the child of a fork (measured with 13.0). Layer 4. */
#ifndef XTI_CUDA_HELPER_H
#define XTI_CUDA_HELPER_H

#include "cuda/cuda.h"

/* As xti_nvrtc_compile, in a new xt-cc: helper is its path; NULL: $XT_CC, else xt-cc beside the library or in
 * ../libexec/xtview; "": in this process. Any thread, any number at once; fork, signals and small stacks of
 * the host do not matter, nor who waits for children: the helper's exit status is not needed. It ends when
 * it has answered, after 60 s of processor time or 4 GiB, and with the thread that waits for it.
 * XT_ECOMPILE: also when there is no xt-cc, or it ended without an answer; what to do is in the message. */
xt_status xti_cuda_compile(const char *helper, const struct xti_nvrtc *n, const char *source,
                           const char *name, int sm, struct xti_code *out, struct xti_err *err);

/* The helper's side: answers the one request that comes through fd, a socket, and returns its exit status. */
int xti_helper_serve(int fd);

#endif
