/* any.h: the kernels that run any plan at once: its numbers, ranks and pieces are parameters. One source for
 * all plans and devices, and one for plans that want indices of 64 bits, with an entry for each width of a
 * unit. Layer 4. */
#ifndef XTI_CUDA_ANY_H
#define XTI_CUDA_ANY_H

#include "cuda/plan.h"

enum {
    XTI_ANY_ENTRIES = 5,
    XTI_ANY_PARAM_BYTES = 4080 /* with two pointers what every driver takes */
};

/* One launch; a plan wants one a source, more when its pieces are many. Its numbers, a kernel's parameter but
 * for the zeros behind them, are few as a rule: a launch puts them into a parameter's room. */
struct xti_any_launch {
    int src; /* number of the map's source; 0 where only values are written */
    int64_t blocks, grid;
    size_t at, bytes; /* its part of `numbers` */
};
struct xti_any {
    int entry; /* log2 of the unit's bytes */
    int n;
    const unsigned char *numbers; /* behind the launches */
    struct xti_any_launch launch[];
};

/* The parameter of a launch. */
void xti_any_param(const struct xti_any *any, const struct xti_any_launch *l,
                   unsigned char param[XTI_ANY_PARAM_BYTES]);

/* The source that runs p and p->elem, its name, and what follows that in the names of its entries. */
void xti_any_source(const struct xti_cuda_plan *p, struct xti_str *b);
const char *xti_any_name(const struct xti_cuda_plan *p);
bool xti_any_is_name(const char *name);
extern const char *const xti_any_suffix[XTI_ANY_ENTRIES];

/* Makes p->any and p->elem->any, unless they are there. Any thread. XT_EUNSUPPORTED: the numbers of one piece
 * do not fit. */
xt_status xti_any_make(struct xti_cuda_plan *p, struct xti_err *err);

#endif
