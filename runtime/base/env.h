/* env.h: the one table of XT_* variables. In a setuid program every one reads as unset. Layer 0. */
#ifndef XTI_BASE_ENV_H
#define XTI_BASE_ENV_H

#include <stddef.h>
#include <stdint.h>

/* id, default as a person reads it, what it does. `xt env` prints this table. */
#define XTI_ENV_TABLE(X)                                                                                     \
    X(BACKEND, "cpu", "backend of a compile that names none: ref, cpu or cuda")                              \
    X(ISA, "the widest the processor has",                                                                   \
      "CPU kernels: scalar, avx2, avx512 or neon; what the processor lacks changes nothing")                 \
    X(MACHINE, "this processor's",                                                                           \
      "row of CPU plans, hints and prices: zen5, generic, ..; an unknown one lists them")                    \
    X(WITHOUT, "", "CPU strategies and tricks that plans do without: joint,tile (runtime/plan/plan.h)")      \
    X(THREADS, "the processors this process may use",                                                        \
      "CPU threads a run may use; 1 keeps it on the caller's")                                               \
    X(CACHE_DIR, "$XDG_CACHE_HOME/xt or ~/.cache/xt", "directory of compiled kernels; empty: no disk cache") \
    X(NVRTC, "found on the system", "path of the libnvrtc to load")                                          \
    X(CC, "xt-cc in ../libexec/xtview or beside the library",                                                \
      "the CUDA compile helper; empty: NVRTC runs in this process")                                          \
    X(LIBCUDA, "libcuda.so.1", "path of the CUDA driver library to load")                                    \
    X(JIT, "async", "CUDA compiles: sync, async or generic (xt.h: xt_mode)")                                 \
    X(PACK, "xtview.xtpack beside the library or in ../share/xtview",                                        \
      "pack of CUDA kernels (xt pack); empty: none")                                                         \
    X(DEBUG, "", "what to log to stderr: graph,map,plan,src,ptx,cache,time or all")                          \
    X(DUMP, "", "directory that receives source, PTX and cubin of every CUDA compile")                       \
    X(OVERRIDE, "", "directory: a NAME.cu there replaces the source of the kernel with that name")           \
    X(MEASURE, "0", "1: time the plans a CPU copy could have once, and remember the fastest (README)")       \
    X(CHECK, "0", "1: compare every CPU run with the reference evaluator, bytes against bytes")              \
    X(FAIL_ALLOC, "0", "n: the n-th allocation of the library fails (for tests)")

enum xti_env {
#define X(id, fallback, what) XTI_ENV_##id,
    XTI_ENV_TABLE(X)
#undef X
        XTI_ENV_COUNT
};

const char *xti_env(enum xti_env v);                   /* NULL when unset */
int64_t xti_env_int(enum xti_env v, int64_t if_unset); /* if_unset also when it is not a number */

/* The next of words with commas between them, of *n bytes; *list goes on behind it. NULL: there is none. */
const char *xti_env_word(const char **list, size_t *n);

#endif
