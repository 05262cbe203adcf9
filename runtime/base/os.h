/* os.h: clock and processor count. Layer 0. */
#ifndef XTI_BASE_OS_H
#define XTI_BASE_OS_H

#include <stdint.h>

int64_t xti_now_ns(void); /* monotonic */
int xti_cpu_count(void);  /* processors this process may run on, at least 1 */

#endif
