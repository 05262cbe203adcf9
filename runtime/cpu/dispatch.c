/* dispatch.c: what this machine is: instruction set, caches, threads. Layer 4. */
#include "cpu/cpu.h"

#include <string.h>

#include "base/env.h"
#include "base/os.h"
#include "base/processor.h"
#include "cpu/kernels.h"
#include "plan/choice.h"

/* Was the library built with kernels of this set (ISAS in the Makefile)? A plan made for one uses what only
 * its kernels do. */
static bool built_for(enum xti_isa isa)
{
    bool any = false;
    for (int i = 0; i < xtk_n_rows && !any; i++)
        any = xtk_rows[i].isa == isa;
    return any;
}

bool xti_cpu_has(enum xti_isa isa)
{
    const struct xti_processor *p = xti_processor();
    const bool has[XTI_ISA_COUNT] = {true, p->avx2, p->avx512, p->neon};
    return has[isa] && built_for(isa);
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

/* What sysconf knows, else the row, else a size that is common. A row that is forced brings its own. */
static int64_t cache_bytes(int64_t known, int64_t row, bool forced, int64_t common)
{
    int64_t first = forced ? row : known, then = forced ? known : row;
    return first > 0 ? first : then > 0 ? then : common;
}

void xti_cpu_target(int threads, struct xti_target *t)
{
    const struct xti_processor *here = xti_processor();
    int64_t n = threads > 0 ? threads : xti_env_int(XTI_ENV_THREADS, 0);
    n = n > 0 ? n : xti_cpu_count();
    const char *name = xti_env(XTI_ENV_MACHINE);
    const struct xti_machine *named = name ? xti_machine_named(name) : NULL,
                             *m = named ? named : xti_machine_find(here->vendor, here->family, here->model);
    const char *without = xti_env(XTI_ENV_WITHOUT);
    *t = (struct xti_target){
        .backend = XT_CPU,
        .isa = chosen_isa(),
        .machine = m,
        .l1_bytes = cache_bytes(here->l1_bytes, m->l1_bytes, named, 32 << 10),
        .l2_bytes = cache_bytes(here->l2_bytes, m->l2_bytes, named, 1 << 20),
        .l3_bytes = cache_bytes(here->l3_bytes, m->l3_bytes, named, 16 << 20),
        .threads = n < XTI_MAX_THREADS ? (int)n : XTI_MAX_THREADS,
    };
    if (without)
        xti_choice_without(without, &t->choice.without);
}
