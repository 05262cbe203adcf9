/* nvrtc.c: chooses the NVRTC that compiles: of all that are found the newest whose code runs under the driver
 * at hand. What was opened and is of use stays open. Layer 4. */
#include "cuda/nvrtc.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/env.h"
#include "cuda/cuda.h"

enum { MAX_LIBRARIES = 8, MAX_CHOICES = 16 };

struct choice {
    int sm, driver;
    const struct xti_nvrtc *nvrtc;
};

static struct {
    pthread_mutex_t lock;
    int n_libraries, n_choices;
    struct xti_nvrtc library[MAX_LIBRARIES];
    struct choice choice[MAX_CHOICES]; /* made so far; only those that found one */
} the = {.lock = PTHREAD_MUTEX_INITIALIZER};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static void before_fork(void) { pthread_mutex_lock(&the.lock); }
static void after_fork(void) { pthread_mutex_unlock(&the.lock); }
static void guard_fork(void) { pthread_atfork(before_fork, after_fork, after_fork); }

/* One search. */
struct search {
    int sm, driver;
    int version;                          /* of best; 0: none yet */
    const struct xti_nvrtc *best, *unfit; /* the newest that fits; the newest that does not */
    char broken[160];                     /* why one that was found is of no use */
};

static int version_of(const struct xti_nvrtc *n) { return 1000 * n->major + n->minor; }

int xti_nvrtc_arch(const struct xti_nvrtc *n, int sm, bool *cubin)
{
    int best = 0;
    for (int i = 0; i < n->n_archs; i++)
        if (n->arch[i] <= sm && n->arch[i] > best)
            best = n->arch[i];
    *cubin = best == sm && n->api.cubin && n->api.cubin_size;
    return best;
}

enum xti_nvrtc_fit xti_nvrtc_fit(const struct xti_nvrtc *n, int sm, int driver)
{
    bool cubin;
    int major = driver / 1000, minor = driver % 1000 / 10;
    if (!xti_nvrtc_arch(n, sm, &cubin))
        return XTI_NVRTC_OTHER_ARCH;
    if (!driver || n->major < major || (n->major == major && n->minor <= minor))
        return XTI_NVRTC_FITS;
    if (n->major > major)
        return XTI_NVRTC_NEWER_MAJOR;
    return cubin ? XTI_NVRTC_FITS : XTI_NVRTC_NEWER_PTX;
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

static bool ask(struct xti_nvrtc *n)
{
    int count = 0;
    Dl_info file;
    char id[XTI_BUILD_ID_CHARS];
    if (n->api.version(&n->major, &n->minor) || n->api.n_archs(&count) || count < 1 ||
        count > XTI_NVRTC_MAX_ARCHS || n->api.archs(n->arch))
        return false;
    n->n_archs = count;
    xti_build_id(*(void **)&n->api.version, id);
    if (!dladdr(*(void **)&n->api.version, &file) ||
        (size_t)snprintf(n->path, sizeof n->path, "%s", file.dli_fname) >= sizeof n->path)
        return false;
    snprintf(n->build, sizeof n->build, "%d.%d %s", n->major, n->minor, id);
    return true;
}

/* The record of an opened library: the one it has, or a new one. NULL: it is of no use, and closed. */
static const struct xti_nvrtc *record(struct search *s, void *library)
{
    const char *missing;
    for (int i = 0; i < the.n_libraries; i++)
        if (the.library[i].library == library) {
            dlclose(library); /* counted twice */
            return &the.library[i];
        }
    struct xti_nvrtc *n = the.n_libraries < MAX_LIBRARIES ? &the.library[the.n_libraries] : NULL;
    if (n && load_symbols(library, &n->api, &missing) && ask(n)) {
        n->library = library;
        the.n_libraries++;
        return n;
    }
    if (n && missing)
        snprintf(s->broken, sizeof s->broken, "the library has no %s: 11.2 or later is needed", missing);
    else if (n)
        snprintf(s->broken, sizeof s->broken, "the library does not say its version");
    dlclose(library);
    return NULL;
}

static void consider(void *arg, void *library)
{
    struct search *s = arg;
    const struct xti_nvrtc *n = record(s, library);
    if (!n)
        return;
    if (xti_nvrtc_fit(n, s->sm, s->driver)) {
        if (!s->unfit || version_of(n) > version_of(s->unfit))
            s->unfit = n;
    } else if (version_of(n) > s->version) {
        s->best = n;
        s->version = version_of(n);
    }
}

static void refuse(const struct search *s, struct xti_err *err)
{
    const struct xti_nvrtc *n = s->unfit;
    const char *path = xti_env(XTI_ENV_NVRTC);
    int major = s->driver / 1000, minor = s->driver % 1000 / 10;
    if (n && xti_nvrtc_fit(n, s->sm, s->driver) == XTI_NVRTC_OTHER_ARCH)
        xti_fail(err, XT_ECOMPILE, "NVRTC %d.%d does not know sm_%d: it begins at sm_%d", n->major, n->minor,
                 s->sm, n->arch[0]);
    else if (n && xti_nvrtc_fit(n, s->sm, s->driver) == XTI_NVRTC_NEWER_MAJOR)
        xti_fail(err, XT_ECOMPILE,
                 "NVRTC %d.%d makes code for drivers of CUDA %d, the driver here is of CUDA %d.%d: install a "
                 "newer driver or NVRTC %d, or set XT_NVRTC to its path",
                 n->major, n->minor, n->major, major, minor, major);
    else if (n)
        xti_fail(err, XT_ECOMPILE,
                 "NVRTC %d.%d knows sm_%d by PTX alone, which wants a driver of CUDA %d.%d, the driver here "
                 "is of CUDA %d.%d: install a newer driver or NVRTC %d.%d, or set XT_NVRTC to its path",
                 n->major, n->minor, s->sm, n->major, n->minor, major, minor, major, minor);
    else if (*s->broken)
        xti_fail(err, XT_ECOMPILE, "NVRTC: %s", s->broken);
    else if (path && *path)
        xti_fail(err, XT_ECOMPILE, "NVRTC not found: XT_NVRTC=%s cannot be opened", path);
    else
        xti_fail(err, XT_ECOMPILE,
                 "NVRTC not found: looked for libnvrtc.so.13, .12, .11.2 on the library path, in $CUDA_HOME, "
                 "$CUDA_PATH and /usr/local/cuda*; install the CUDA toolkit's NVRTC or set XT_NVRTC to its "
                 "path");
}

static const struct xti_nvrtc *known(int sm, int driver)
{
    for (int i = 0; i < the.n_choices; i++)
        if (the.choice[i].sm == sm && the.choice[i].driver == driver)
            return the.choice[i].nvrtc;
    return NULL;
}

static const struct xti_nvrtc *search(int sm, int driver, struct xti_err *err)
{
    struct search s = {.sm = sm, .driver = driver};
    xti_nvrtc_find(&s.version, consider, &s);
    if (!s.best)
        refuse(&s, err);
    else if (the.n_choices < MAX_CHOICES)
        the.choice[the.n_choices++] = (struct choice){sm, driver, s.best};
    return s.best;
}

const struct xti_nvrtc *xti_nvrtc_for(int sm, int driver, struct xti_err *err)
{
    pthread_once(&once, guard_fork);
    pthread_mutex_lock(&the.lock);
    const struct xti_nvrtc *n = known(sm, driver);
    if (!n)
        n = search(sm, driver, err);
    pthread_mutex_unlock(&the.lock);
    return n;
}

const char *xti_nvrtc_build(const struct xti_nvrtc *n) { return n ? n->build : ""; }
