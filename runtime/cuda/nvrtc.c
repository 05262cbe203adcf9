/* nvrtc.c: finds and loads NVRTC, and says which build it is.
 * In: XT_NVRTC, the libraries of the process, the system's and the toolkit's directories. Layer 4. */
#include "cuda/nvrtc.h"

#include <dlfcn.h>
#include <elf.h>
#include <glob.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/hash.h"
#include "cuda/cuda.h"

static struct {
    pthread_mutex_t lock;
    bool loaded;
    struct xti_nvrtc nvrtc;
} the = {.lock = PTHREAD_MUTEX_INITIALIZER};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static void before_fork(void) { pthread_mutex_lock(&the.lock); }
static void after_fork(void) { pthread_mutex_unlock(&the.lock); }
static void guard_fork(void) { pthread_atfork(before_fork, after_fork, after_fork); }

/* Newest first. 11.2 is the soname of 11.2 to 11.8. */
static const char *const sonames[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "libnvrtc.so"};
enum { N_SONAMES = sizeof sonames / sizeof *sonames };

static void *open_soname(const char *dir, int flags)
{
    char path[4096];
    void *lib = NULL;
    for (int i = 0; i < N_SONAMES && !lib; i++) {
        int n = snprintf(path, sizeof path, "%s%s%s", dir ? dir : "", dir ? "/" : "", sonames[i]);
        if (n > 0 && (size_t)n < sizeof path)
            lib = dlopen(path, flags);
    }
    return lib;
}

static void *open_home(const char *variable)
{
    char dir[4096];
    const char *home = secure_getenv(variable);
    int n = home && *home ? snprintf(dir, sizeof dir, "%s/lib64", home) : -1;
    return n > 0 && (size_t)n < sizeof dir ? open_soname(dir, RTLD_NOW | RTLD_LOCAL) : NULL;
}

static double directory_version(const char *path)
{
    const char *dash = strchr(path, '-');
    int major = 0, minor = 0;
    return dash && sscanf(dash, "-%d.%d", &major, &minor) >= 1 ? major * 1000.0 + minor : 0;
}

static void *open_newest_toolkit(void)
{
    glob_t found = {0};
    void *lib = NULL;
    if (glob("/usr/local/cuda-*/lib64", 0, NULL, &found) == 0) {
        const char *best = found.gl_pathv[0];
        for (size_t i = 1; i < found.gl_pathc; i++)
            if (directory_version(found.gl_pathv[i]) > directory_version(best))
                best = found.gl_pathv[i];
        lib = open_soname(best, RTLD_NOW | RTLD_LOCAL);
    }
    globfree(&found);
    return lib;
}

/* A library that the process already has comes first: two of them would be 200 MB. */
static void *open_library(struct xti_err *err)
{
    void *lib;
    const char *path = xti_env(XTI_ENV_NVRTC);
    if (path && *path) {
        if (!(lib = dlopen(path, RTLD_NOW | RTLD_LOCAL)))
            xti_fail(err, XT_ECOMPILE, "NVRTC not found: XT_NVRTC=%s: %s", path, dlerror());
        return lib;
    }
    if ((lib = open_soname(NULL, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD)) ||
        (lib = open_soname(NULL, RTLD_NOW | RTLD_LOCAL)) || (lib = open_home("CUDA_HOME")) ||
        (lib = open_home("CUDA_PATH")) ||
        (lib = open_soname("/usr/local/cuda/lib64", RTLD_NOW | RTLD_LOCAL)) || (lib = open_newest_toolkit()))
        return lib;
    xti_fail(err, XT_ECOMPILE,
             "NVRTC not found: looked for libnvrtc.so.13, .12, .11.2 on the library path, in $CUDA_HOME, "
             "$CUDA_PATH and "
             "/usr/local/cuda*; install the CUDA toolkit's NVRTC or set XT_NVRTC to its path");
    return NULL;
}

static bool load_symbols(void *lib, struct xti_nvrtc_api *api, const char **missing)
{
    *missing = NULL;
#define X(field, symbol, required, params)                                                                   \
    *(void **)&api->field = dlsym(lib, #symbol);                                                             \
    if (required && !api->field)                                                                             \
        *missing = #symbol;
    XTI_NVRTC_FUNCTIONS(X)
#undef X
    return !*missing;
}

struct build_id {
    uintptr_t inside; /* an address of the library */
    char hex[2 * 32 + 1];
};

static void read_notes(const char *p, size_t left, struct build_id *id)
{
    while (left >= sizeof(ElfW(Nhdr))) {
        const ElfW(Nhdr) *note = (const void *)p;
        size_t name = (note->n_namesz + 3u) & ~3u, desc = (note->n_descsz + 3u) & ~3u,
               all = sizeof *note + name + desc;
        if (all > left)
            return;
        if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 && !memcmp(p + sizeof *note, "GNU", 4))
            xti_hex((const unsigned char *)p + sizeof *note + name, note->n_descsz < 32 ? note->n_descsz : 32,
                    id->hex);
        p += all;
        left -= all;
    }
}

static int read_object(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct build_id *id = arg;
    bool ours = false;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *h = &info->dlpi_phdr[i];
        ours = ours || (h->p_type == PT_LOAD && id->inside - (info->dlpi_addr + h->p_vaddr) < h->p_memsz);
    }
    for (int i = 0; ours && i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *h = &info->dlpi_phdr[i];
        if (h->p_type == PT_NOTE)
            read_notes((const char *)info->dlpi_addr + h->p_vaddr, h->p_memsz, id);
    }
    return ours;
}

/* nvrtcVersion does not tell 13.0.48 from 13.0.88: the ELF build id does. */
static void identify(struct xti_nvrtc *n)
{
    struct build_id id = {.inside = (uintptr_t)n->api.version, .hex = "no build id"};
    dl_iterate_phdr(read_object, &id);
    snprintf(n->build, sizeof n->build, "%d.%d %s", n->major, n->minor, id.hex);
}

static bool ask(struct xti_nvrtc *n)
{
    int count = 0;
    if (n->api.version(&n->major, &n->minor) || n->api.n_archs(&count) || count < 1 ||
        count > XTI_NVRTC_MAX_ARCHS || n->api.archs(n->arch))
        return false;
    n->n_archs = count;
    identify(n);
    return true;
}

static xt_status load(struct xti_err *err)
{
    const char *missing;
    void *lib = open_library(err);
    if (!lib)
        return XT_ECOMPILE;
    if (!load_symbols(lib, &the.nvrtc.api, &missing)) {
        dlclose(lib);
        return xti_fail(err, XT_ECOMPILE, "NVRTC: the library has no %s: 11.2 or later is needed", missing);
    }
    if (!ask(&the.nvrtc))
        return xti_fail(err, XT_ECOMPILE, "NVRTC: the library does not say its version");
    the.loaded = true;
    return XT_OK;
}

const struct xti_nvrtc *xti_nvrtc_get(struct xti_err *err)
{
    pthread_once(&once, guard_fork);
    pthread_mutex_lock(&the.lock);
    bool ok = the.loaded || load(err) == XT_OK;
    pthread_mutex_unlock(&the.lock);
    return ok ? &the.nvrtc : NULL;
}

const char *xti_nvrtc_build(void)
{
    const struct xti_nvrtc *n = xti_nvrtc_get(NULL);
    return n ? n->build : "";
}

int xti_nvrtc_arch(const struct xti_nvrtc *n, int sm, bool *cubin)
{
    int best = 0;
    for (int i = 0; i < n->n_archs; i++)
        if (n->arch[i] <= sm && n->arch[i] > best)
            best = n->arch[i];
    *cubin = best == sm && n->api.cubin && n->api.cubin_size;
    return best;
}
