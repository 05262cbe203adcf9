/* skeletons.h: the CUDA skeletons of templates/cuda, embedded at build time by gen/gen.py as
 * build/gen/skeletons.c. Layer 4. */
#ifndef XTI_CUDA_SKELETONS_H
#define XTI_CUDA_SKELETONS_H

struct xti_skeleton {
    const char *name;   /* file name in templates/cuda, without ".cu" */
    const char *text;   /* the file, NUL-terminated */
    const char *sha256; /* of text: 64 hex digits */
};
extern const struct xti_skeleton xti_skeletons[]; /* by name */
extern const int xti_n_skeletons;

#endif
