/* describe.h: a CUDA plan in words and as JSON, for explain. Layer 4. */
#ifndef XTI_CUDA_DESCRIBE_H
#define XTI_CUDA_DESCRIBE_H

#include "cuda/plan.h"

/* "tile, 16-byte loads and stores, a box of 64 x 32 units of 4 bytes, 8336 B shared, blocks 0..25877 of 128"
 */
void xti_cuda_step_text(const struct xti_cuda_plan *p, const struct xti_cuda_step *s, struct xti_str *b);
/* For people: what a family does and how, as struct xti_strategy has it. */
struct xti_cuda_words {
    const char *what, *how;
};
struct xti_cuda_words xti_cuda_family_words(enum xti_cuda_family f);
/* "64 x 32": the extents of a tile's box, the destination's outermost dim first. */
void xti_cuda_box_text(const struct xti_cuda_plan *p, const struct xti_cuda_step *s, struct xti_str *b);
/* One object: family, piece, load_bytes, store_bytes, first_block, blocks, shared_bytes, box. */
void xti_cuda_step_json(const struct xti_cuda_plan *p, const struct xti_cuda_step *s, struct xti_str *b);

/* What the plan predicts (predict.h): one line, or one object; nothing, or null, where it cannot. */
void xti_cuda_prediction_text(const struct xti_cuda_plan *p, struct xti_str *b);
void xti_cuda_prediction_json(const struct xti_cuda_plan *p, struct xti_str *b);

#endif
