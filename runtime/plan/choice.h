/* choice.h: the other plans that a map could have, for who has the time to try them. Layer 3. */
#ifndef XTI_PLAN_CHOICE_H
#define XTI_PLAN_CHOICE_H

#include "plan/plan.h"

enum { XTI_MAX_CHOICES = 32, XTI_CHOICE_ROOM }; /* one more, to try the next */

struct xti_candidate {
    struct xti_plan plan; /* its target has the choice */
    double seconds;       /* estimated */
};

/* CPU plans of m that differ from each other: the model's own first, then the best by estimate. Returns how
 * many, at most XTI_MAX_CHOICES; 0: out of memory. The caller frees each plan. */
int xti_choice_plans(const struct xti_map *m, const struct xti_target *t,
                     struct xti_candidate out[XTI_CHOICE_ROOM]);

/* The set of xti_choice.without by the names of strategies and tricks: "joint,tile". False: one is unknown.
 */
bool xti_choice_without(const char *names, uint64_t *out);

/* The name of a bit of it; NULL: it has none. */
const char *xti_choice_without_name(int bit);

#endif
