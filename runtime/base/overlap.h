/* overlap.h: do two strided boxes of addresses meet, does one box meet itself? In elements. Layer 0. */
#ifndef XTI_BASE_OVERLAP_H
#define XTI_BASE_OVERLAP_H

#include <stdbool.h>
#include <stdint.h>

/* Of a box with an extent > 1: more strides cannot each exceed the span below them in 64 bits. */
enum { XTI_BOX_DIMS = 64 };

enum xti_answer { XTI_NO, XTI_YES, XTI_UNKNOWN }; /* UNKNOWN: the work cap was hit */

/* Do the address sets {off + sum x*st : 0 <= x < n} of two strided boxes meet? Exact within the cap. */
enum xti_answer xti_boxes_meet(int rank_a, const int64_t *n_a, const int64_t *st_a, int64_t off_a, int rank_b,
                               const int64_t *n_b, const int64_t *st_b, int64_t off_b);
/* Do two different points of one box share an address? Nested test first, then exact within the cap. */
enum xti_answer xti_box_self_meets(int rank, const int64_t *n, const int64_t *st);
/* Sufficient and cheap: sorted by |stride|, each stride exceeds the span below it. Extents of 1 do not count.
 */
bool xti_nested(int rank, const int64_t *n, const int64_t *st);

#endif
