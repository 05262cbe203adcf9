/* cuda.h: from a plan to a launch: emit source, compile with NVRTC, load and launch with the driver. libcuda
 * and libnvrtc are opened at first use, never linked. This layer never sees the graph or the cache: whoever
 * calls it decides what is kept. Layer 4. */
#ifndef XTI_CUDA_CUDA_H
#define XTI_CUDA_CUDA_H

#include "base/str.h"
#include "cuda/plan.h"

/* ---- emit.c, structure.c: plan -> source. Deterministic: the same map, target and templates give the same
 * bytes. */

/* A kernel for one map, whose numbers (extents, strides, offsets, divisors, blocks of a piece) are literals;
 * or for every map of one structure: then they are a parameter. */
enum xti_cuda_tier { XTI_TIER_STRUCTURE, XTI_TIER_EXACT };

/* Emits one translation unit with two entries: <name> wants buffers that begin at multiples of 16 bytes,
 * <name>_e only of the element. Parameters of both, in order: dst, the sources read (in
 * the normalised order), of the structure tier the numbers (p->numbers of p, of p->elem: one struct), then
 * the fill values (16 bytes for each fill piece, in piece order). name, of the exact tier:
 * "xt_<family>_<first 8 hex digits of the signature>"; of the structure tier: xti_cuda_structure_name.
 * XT_EUNSUPPORTED: the parameters do not fit; in the structure tier that is so from some dozens of pieces on,
 * and the exact tier serves. */
xt_status xti_cuda_emit(const struct xti_cuda_plan *p, enum xti_cuda_tier tier, const char *name,
                        struct xti_str *source, struct xti_err *err);

/* Appends what a kernel of the structure tier is found by, made with the plan: some 50 bytes a piece; the
 * target is in it, templates and compiler are not.
 * post: two plans have equal keys <=> equal sources of the structure tier, under xti_cuda_structure_name.
 * XT_EUNSUPPORTED: the tier does not serve this plan. */
xt_status xti_cuda_structure(const struct xti_cuda_plan *p, struct xti_str *key, struct xti_err *err);
/* "xt_<family>_<8 hex digits of the key's hash>". */
enum { XTI_CUDA_NAME_CHARS = 64 };
void xti_cuda_structure_name(const struct xti_cuda_plan *p, char name[XTI_CUDA_NAME_CHARS]);

/* ---- nvrtc.c */

struct xti_code {
    char *ptx;        /* NUL-terminated, owned */
    size_t ptx_bytes; /* with the NUL */
    void *cubin;      /* NULL when NVRTC does not know the target: then the driver compiles the PTX */
    size_t cubin_bytes;
};
void xti_code_free(struct xti_code *c);

/* Compiles for sm_<sm>. XT_ECOMPILE with the first error of the log; XT_ECOMPILE with "NVRTC not found: .."
 * and what to do when the library is missing. Serialised by a lock of its own. */
xt_status xti_nvrtc_compile(const char *source, const char *name, int sm, struct xti_code *out,
                            struct xti_err *err);
/* What identifies the compiler in a cache key: version and build id; "" when there is none. Static storage.
 */
const char *xti_nvrtc_build(void);
/* The options a compile for sm uses, one a line: part of the key. */
void xti_nvrtc_options(int sm, struct xti_str *out);

/* ---- driver.c, module.c, launch.c */

/* XT_ENODEVICE with the reason when there is no driver or no device. */
xt_status xti_cuda_probe(struct xti_err *err);
/* The device of the current context, else ordinal `device`: its target. */
xt_status xti_cuda_target(int device, struct xti_cuda_target *t, struct xti_err *err);
/* "sm_90" (also "90", "sm_90a") -> target; XT_EINVAL otherwise. */
xt_status xti_cuda_arch(const char *arch, struct xti_cuda_target *t, struct xti_err *err);

struct xti_module; /* loaded code: both entries, per context */
xt_status xti_module_load(const struct xti_code *c, const char *name, int device, struct xti_module **out,
                          struct xti_err *err);
void xti_module_free(struct xti_module *m);

/* Launches code of that tier on `stream`. dst, src: buffer starts on the device, src[i] for input i of the
 * graph (p->origin maps them). No allocation. XT_EFORKED in a forked child. */
xt_status xti_cuda_launch(const struct xti_cuda_plan *p, enum xti_cuda_tier tier, const struct xti_module *m,
                          void *dst, const void *const *src, void *stream, struct xti_err *err);

/* The same on host buffers: device copies of them are made, the kernel run, the destination brought back.
 * Bytes of dst that the map does not write keep their value. dst_bytes, src_bytes[i]: what the map reaches,
 * from the buffers' starts; 0: not read. Waits. */
xt_status xti_cuda_run_host(const struct xti_cuda_plan *p, enum xti_cuda_tier tier,
                            const struct xti_module *m, void *dst, size_t dst_bytes, const void *const *src,
                            const size_t *src_bytes, int n_srcs, struct xti_err *err);

/* The launch.json of `xt emit`. */
void xti_cuda_launch_json(const struct xti_cuda_plan *p, enum xti_cuda_tier tier, const char *name,
                          struct xti_str *b);

#endif
