/* dispatch.c: what this machine is: instruction set, caches, threads. Layer 4. */
#include "cpu/cpu.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "base/env.h"
#include "plan/choice.h"
#include "base/os.h"
#include "cpu/kernels.h"

/* Each of the sets that ISA_FLAGS_* in the Makefile lets the compiler use. */
static bool processor_has(enum xti_isa isa)
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

/* Was the library built with kernels of this set (ISAS in the Makefile)? A plan made for one uses what only
 * its kernels do. */
static bool built_for(enum xti_isa isa)
{
    bool any = false;
    for (int i = 0; i < xtk_n_rows && !any; i++)
        any = xtk_rows[i].isa == isa;
    return any;
}

bool xti_cpu_has(enum xti_isa isa) { return processor_has(isa) && built_for(isa); }

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

/* What sysconf knows, else the row, else a size that is common. A row that is forced brings its own. */
static int64_t cache_bytes(int64_t known, int64_t row, bool forced, int64_t common)
{
    int64_t first = forced ? row : known, then = forced ? known : row;
    return first > 0 ? first : then > 0 ? then : common;
}

/* Vendor, family and model as cpuid counts them; elsewhere the architecture alone. */
static const struct xti_machine *this_machine(void)
{
#if defined(__x86_64__)
    unsigned a = 0, vendor[4] = {0}, b, c, d;
    if (!__get_cpuid(0, &a, &vendor[0], &vendor[2], &vendor[1]) || !__get_cpuid(1, &a, &b, &c, &d))
        return xti_machine_careful;
    unsigned family = (a >> 8 & 15) + (a >> 20 & 255), model = (a >> 4 & 15) | (a >> 12 & 0xf0);
    return xti_machine_find((const char *)vendor, family, model);
#elif defined(__aarch64__)
    return xti_machine_find("ARM", 0, 0);
#else
    return xti_machine_careful;
#endif
}

/* What does not change while a process lives. Asked once: in a virtual machine each cpuid is left to the
 * host, and sysconf takes a dozen of them. */
static pthread_once_t asked = PTHREAD_ONCE_INIT;
static struct {
    const struct xti_machine *machine;
    int64_t l1_bytes, l2_bytes, l3_bytes;
} here;

static void ask(void)
{
    int64_t l3 = l3_bytes();
    here.machine = this_machine();
    here.l1_bytes = sysconf(_SC_LEVEL1_DCACHE_SIZE);
    here.l2_bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
    here.l3_bytes = l3 > 0 ? l3 : sysconf(_SC_LEVEL3_CACHE_SIZE);
}

enum { MAX_THREADS = 1024 };

void xti_cpu_target(int threads, struct xti_target *t)
{
    pthread_once(&asked, ask);
    int64_t n = threads > 0 ? threads : xti_env_int(XTI_ENV_THREADS, 0);
    n = n > 0 ? n : xti_cpu_count();
    const char *name = xti_env(XTI_ENV_MACHINE);
    const struct xti_machine *named = name ? xti_machine_named(name) : NULL,
                             *m = named ? named : here.machine;
    const char *without = xti_env(XTI_ENV_WITHOUT);
    *t = (struct xti_target){
        .backend = XT_CPU,
        .isa = chosen_isa(),
        .machine = m,
        .l1_bytes = cache_bytes(here.l1_bytes, m->l1_bytes, named, 32 << 10),
        .l2_bytes = cache_bytes(here.l2_bytes, m->l2_bytes, named, 1 << 20),
        .l3_bytes = cache_bytes(here.l3_bytes, m->l3_bytes, named, 16 << 20),
        .threads = n < MAX_THREADS ? (int)n : MAX_THREADS,
    };
    if (without)
        xti_choice_without(without, &t->choice.without);
}
