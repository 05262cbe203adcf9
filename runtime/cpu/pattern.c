/* pattern.c: a fill that guards hide a part of, over what has been copied. Where small matrices follow each
 * other the same bytes are filled in all of them, and a few of them serve as a mask. Layer 4. */
#include "base/mask.h"
#include "cpu/cursor.h"

bool xti_run_pattern(const struct xti_copy *c, const struct xti_step *step, int64_t lo, int64_t hi)
{
    enum { ENOUGH = 512 };
    const struct xti_piece *x = &c->plan->map.piece[step->piece];
    bool alike = step->n_loops == 1 && x->src < 0 && step->loop[0].d <= XTI_MASK_BYTES;
    struct xti_mask mask;
    for (int i = 0; i < x->n_guards; i++)
        alike = alike && !x->guard[i].x[0];
    if (!alike || !c->plan->covered || c->plan->n_steps > 2 || !xti_order_nests(step))
        return false;
    int64_t room[XTI_MAX_DIMS + XTI_MAX_GUARDS], each = step->loop[0].d, d = step->d_byte;
    xti_mask_begin(&mask, each < ENOUGH ? ENOUGH / each * each : each);
    for (int i = 0; i < 2; i++) {
        struct xti_cursor cursor;
        struct xtk_job job = {0};
        xti_cursor_begin(&cursor, c, step, room);
        for (int k = 0; k < 16; k++)
            cursor.value[k] = i ? cursor.value[k] : 0;
        xti_cursor_run(&cursor, &job, i ? mask.put : mask.keep, d, d + mask.period);
    }
    xti_mask_trim(&mask);
    xti_mask_put(&mask, c->dst + d, lo - d, hi - d);
    return true;
}
