/* mask.h: some bytes written again and again, at the same places of a period. Layer 0. */
#ifndef XTI_BASE_MASK_H
#define XTI_BASE_MASK_H

#include <stdint.h>

enum { XTI_MASK_BYTES = 2048 };

/* keep: all ones but where something is written, which lies in [first, end); put: 0 but there. */
struct xti_mask {
    int64_t period, first, end;
    char keep[XTI_MASK_BYTES], put[XTI_MASK_BYTES];
};

/* No places. Whoever adds some calls xti_mask_trim. */
void xti_mask_begin(struct xti_mask *m, int64_t period);
void xti_mask_trim(struct xti_mask *m);
/* Bytes [lo, hi) of what lies at d; a period begins at d. */
void xti_mask_put(const struct xti_mask *m, char *d, int64_t lo, int64_t hi);

#endif
