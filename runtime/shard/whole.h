/* whole.h: one copy of what stays on a rank and what it reads in its place, where they share lines of the
 * result. Layer 5. */
#ifndef XTI_SHARD_WHOLE_H
#define XTI_SHARD_WHOLE_H

#include "shard/near.h"

/* Makes the copy where it serves: p->whole.serves. Asks once. */
xt_status xti_whole_make(struct xt_shard *p, struct xti_err *err);
void xti_whole_free(struct xt_shard *p);

/* Do all show their sources whom it reads? */
enum xti_shows xti_whole_shows(struct xt_shard *p);
/* pre: they do. */
void xti_whole_run(struct xt_shard *p);

#endif
