/* dispatch.c: what this machine is: instruction set, caches, threads. Layer 4. */
#include "cpu/cpu.h"

#include <string.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "base/env.h"
#include "base/os.h"

/* Each of the sets that ISA_FLAGS_* in the Makefile lets the compiler use. */
bool xti_cpu_has(enum xti_isa isa)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    bool avx2 =
        __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
    bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512vbmi");
    return isa == XTI_ISA_SCALAR || (isa == XTI_ISA_AVX2 && avx2) || (isa == XTI_ISA_AVX512 && avx512);
#elif defined(__aarch64__)
    return isa == XTI_ISA_SCALAR || isa == XTI_ISA_NEON; /* which the architecture includes */
#else
    return isa == XTI_ISA_SCALAR;
#endif
}

/* XT_ISA can only narrow: asking for what the processor lacks, or for an unknown name, changes nothing. */
static enum xti_isa chosen_isa(void)
{
    enum xti_isa widest = XTI_ISA_SCALAR;
    const char *name = xti_env(XTI_ENV_ISA);
    for (int i = 0; i < XTI_ISA_COUNT; i++) {
        if (!xti_cpu_has((enum xti_isa)i))
            continue;
        widest = (enum xti_isa)i;
        if (name && !strcmp(name, xti_isa_name[i]))
            break;
    }
    return widest;
}

/* The third level that one core sees. sysconf adds up the whole socket's on AMD (glibc 2.36: 256 MiB where a
 * core complex has 32). Leaf 4 (Intel) and 0x8000001d (AMD) list the caches in the same format. */
static int64_t l3_bytes(void)
{
#if defined(__x86_64__)
    unsigned a, b, c, d, leaves[] = {0x8000001d, 4};
    for (int l = 0; l < 2; l++)
        for (unsigned i = 0; i < 8 && __get_cpuid_count(leaves[l], i, &a, &b, &c, &d) && (a & 31); i++)
            if ((a >> 5 & 7) == 3)
                return ((int64_t)(b >> 22) + 1) * ((b >> 12 & 0x3ff) + 1) * ((b & 0xfff) + 1) *
                       ((int64_t)c + 1);
#endif
    return 0;
}

/* What sysconf knows, else a size that is common. */
static int64_t cache_bytes(int name, int64_t otherwise)
{
    long n = sysconf(name);
    return n > 0 ? n : otherwise;
}

/* Whose habits a target has. A streaming copy with NTA instead of T0 prefetches: 13 GB/s instead of 21 on
 * Emerald Rapids (2026-11), the best of all hints on Zen 4 and Zen 5. The others: see cost.c. */
enum processor { OTHER, AMD, OTHER_X86 };

static enum processor processor(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    return __builtin_cpu_is("amd") ? AMD : OTHER_X86;
#else
    return OTHER;
#endif
}

enum { MAX_THREADS = 1024 };

void xti_cpu_target(int threads, struct xti_target *t)
{
    int64_t n = threads > 0 ? threads : xti_env_int(XTI_ENV_THREADS, 0);
    n = n > 0 ? n : xti_cpu_count();
    int64_t l3 = l3_bytes();
    enum processor is = processor();
    *t = (struct xti_target){
        .backend = XT_CPU,
        .isa = chosen_isa(),
        .l1_bytes = cache_bytes(_SC_LEVEL1_DCACHE_SIZE, 32 << 10),
        .l2_bytes = cache_bytes(_SC_LEVEL2_CACHE_SIZE, 1 << 20),
        .l3_bytes = l3 > 0 ? l3 : cache_bytes(_SC_LEVEL3_CACHE_SIZE, 16 << 20),
        .prefetch_nta = is == AMD,
        .stream_pairs = is != OTHER,
        .stream_banks = is == AMD ? 512 : 0,
        .prefetch_writes = is == OTHER_X86,
        .prefetch_deep = is == AMD,
        .early_stores = is == AMD,
        .singles_soon = is == OTHER_X86,
        .few_strands = is == AMD,
        .windows = is == AMD,
        .uneven_steps = is == AMD,
        .keeps_in_order = is == AMD,
        .short_parts = is == AMD,
        .abreast = is == AMD,
        .joint_rows = is == AMD,
        .threads = n < MAX_THREADS ? (int)n : MAX_THREADS,
    };
}
