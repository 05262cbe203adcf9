/* processor.c: asked once: in a virtual machine each cpuid is left to the host, and sysconf takes a dozen of
 * them. Layer 0. */
#include "base/processor.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

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

/* Each of the sets that ISA_FLAGS_* in the Makefile lets the compiler use. */
static void ask_sets(struct xti_processor *p)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    p->avx2 =
        __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
    p->avx512 = p->avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
                __builtin_cpu_supports("avx512vbmi");
#elif defined(__aarch64__)
    p->neon = true; /* the architecture includes it */
#endif
}

static void ask_name(struct xti_processor *p)
{
#if defined(__x86_64__)
    unsigned a = 0, vendor[3] = {0}, b, c, d;
    if (!__get_cpuid(0, &a, &vendor[0], &vendor[2], &vendor[1]) || !__get_cpuid(1, &a, &b, &c, &d))
        return;
    memcpy(p->vendor, vendor, sizeof vendor);
    p->family = (a >> 8 & 15) + (a >> 20 & 255);
    p->model = (a >> 4 & 15) | (a >> 12 & 0xf0);
#elif defined(__aarch64__)
    memcpy(p->vendor, "ARM", sizeof "ARM");
#endif
}

static pthread_once_t asked = PTHREAD_ONCE_INIT;
static struct xti_processor here;

static void ask(void)
{
    int64_t l3 = l3_bytes();
    ask_name(&here);
    ask_sets(&here);
    here.l1_bytes = sysconf(_SC_LEVEL1_DCACHE_SIZE);
    here.l2_bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
    here.l3_bytes = l3 > 0 ? l3 : sysconf(_SC_LEVEL3_CACHE_SIZE);
}

const struct xti_processor *xti_processor(void)
{
    pthread_once(&asked, ask);
    return &here;
}
