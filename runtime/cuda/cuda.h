/* cuda.h: from a plan to a launch: emit source, compile with NVRTC, load and launch with the driver. libcuda
 * and libnvrtc are opened at first use, never linked. This layer never sees the graph or the cache: whoever
 * calls it decides what is kept. Layer 4. */
#ifndef XTI_CUDA_CUDA_H
#define XTI_CUDA_CUDA_H

#include "base/str.h"
#include "cuda/plan.h"

/* ---- emit.c, structure.c: plan -> source. Deterministic: the same map, target and templates give the same
 * bytes. */

/* A kernel for every plan (any.h); for every map of one structure, whose numbers (extents, strides, offsets,
 * divisors, blocks of a piece) are a parameter; for one map: then they are literals. Each is better than the
 * one before. */
enum xti_cuda_tier { XTI_TIER_ANY, XTI_TIER_STRUCTURE, XTI_TIER_EXACT, XTI_TIERS };

/* Emits one translation unit with two entries: <name> wants buffers that begin at multiples of 16 bytes,
 * <name>_e only of the element. Parameters of both, in order: dst, the sources read (in
 * the normalised order), of the structure tier the numbers (p->numbers of p, of p->elem: one struct), then
 * the fill values (16 bytes for each fill piece, in piece order). Of a plan with a table all sources are one
 * struct, and all fill values are. name, of the exact tier:
 * "xt_<family>_<first 8 hex digits of the signature>"; of the structure tier: xti_cuda_structure_name;
 * XTI_TIER_ANY has entries, parameters and a name of its own. XT_EUNSUPPORTED: the parameters do not fit; in
 * the structure tier that is so from some dozens of pieces on, and the exact tier serves. */
xt_status xti_cuda_emit(const struct xti_cuda_plan *p, enum xti_cuda_tier tier, const char *name,
                        struct xti_str *source, struct xti_err *err);

/* Appends what a kernel of the structure tier is found by, made with the plan: some 50 bytes a piece; target,
 * templates and compiler are not in it.
 * post: two plans of one target have equal keys <=> equal sources of the structure tier, under
 * xti_cuda_structure_name. XT_EUNSUPPORTED: the tier does not serve this plan. */
xt_status xti_cuda_structure(const struct xti_cuda_plan *p, struct xti_str *key, struct xti_err *err);
/* "xt_<family>_<8 hex digits of the key's hash>". */
enum { XTI_CUDA_NAME_CHARS = 64 };
void xti_cuda_structure_name(const struct xti_cuda_plan *p, char name[XTI_CUDA_NAME_CHARS]);

/* ---- nvrtc.c, compile.c */

struct xti_code {
    char *ptx;        /* NUL-terminated, owned */
    size_t ptx_bytes; /* with the NUL */
    void *cubin;      /* NULL when NVRTC does not know the target: then the driver compiles the PTX */
    size_t cubin_bytes;
};
void xti_code_free(struct xti_code *c);
/* Makes the PTX say the oldest version that has all it uses, in place: NVRTC says its own, which older
 * drivers refuse. (ptx.c) */
void xti_ptx_lower(char *ptx);

/* The newest NVRTC of this machine whose code for sm_<sm> runs under a CUDA driver of version `driver`
 * (xti_driver_version; 0: code for some other machine, no driver is asked). Lives as long as the process.
 * NULL: XT_ECOMPILE with one sentence, what was found and what to do. Nothing is remembered of a failure. */
struct xti_nvrtc;
const struct xti_nvrtc *xti_nvrtc_for(int sm, int driver, struct xti_err *err);

/* Compiles for sm_<sm>. XT_ECOMPILE with the first error of the log. Any thread, any number at once. */
xt_status xti_nvrtc_compile(const struct xti_nvrtc *n, const char *source, const char *name, int sm,
                            struct xti_code *out, struct xti_err *err);
/* What identifies the compiler in a cache key: version and build id; "" of NULL. */
const char *xti_nvrtc_build(const struct xti_nvrtc *n);
/* The options a compile for sm uses, one a line: part of the key. */
void xti_nvrtc_options(const struct xti_nvrtc *n, int sm, struct xti_str *out);

/* ---- driver.c, module.c, launch.c */

/* The device of the current context, else ordinal `device`: its target. */
xt_status xti_cuda_target(int device, struct xti_cuda_target *t, struct xti_err *err);
/* "sm_90" (also "90", "sm_90a") -> target; XT_EINVAL otherwise. */
xt_status xti_cuda_arch(const char *arch, struct xti_cuda_target *t, struct xti_err *err);

/* The CUDA context that a thread's code is loaded into: its current one, or the primary one of `device` when
 * it has none. context 0: the primary one of device `number`, be it current or not; else a context that the
 * caller made, and the number that tells it from a later one at the same address. */
struct xti_home {
    uint64_t context, number;
};
xt_status xti_home_get(int device, struct xti_home *home, struct xti_err *err);

struct xti_module; /* loaded code: both entries, per context */
xt_status xti_module_load(const struct xti_code *c, const char *name, int device, struct xti_module **out,
                          struct xti_err *err);
/* m is idle from here on. It is unloaded when the last user of modules is gone, with 512 others when 1024 are
 * idle, or by a later call where streams are being captured; always after a wait for its context's work. */
void xti_module_free(struct xti_module *m);
/* A user of modules begins, and ends: the end unloads what is idle. */
void xti_modules_keep(void);
void xti_modules_drop(void);

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
