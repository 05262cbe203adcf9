/* test_host.c: a host that does at random what hosts do while its threads compile and copy: it forks, gets
 * signals, drops privileges, changes directory, runs out of memory, descriptors, processes and disk, and has
 * lost its standard files and its caches. Its threads have 64 KiB of stack. What it may see is statuses: each
 * copy is right, and its handlers, limits, mask, directory, children, descriptors and stderr are as it left
 * them. XT_TEST_FULL=1: 1,000 rounds of everything in place of 50. The seed of a life is in every message. */
#include "support/api.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "base/mem.h"
#include "support/cuda_made.h"
#include "support/random_graph.h"
#include "support/scratch.h"

enum {
    LIVES = 2,
    ALL_LIVES = 40,
    ROUNDS = 25,
    THREADS = 3,
    NOBODY = 65534,
    PAUSE_US = 1500,
    STACK = 64 << 10
};
/* f32[24,10] each, and what it gives. */
static const char *const chain[] = {
    "x: f32[24,10]; x.permute(1,0)",
    "x: f32[24,10]; x.flip(0).reshape(10,24).roll(3,1)",
    "x: f32[24,10]; x.pad((1,2),(3,4),value=7).tril(1)",
    "x: f32[24,10]; a = x.T; concat(0, a, a.flip(1), a[::2]).reshape(-1)",
    "x: f32[24,10]; x.unfold(0,3,1).permute(2,0,1)",
};
enum { CHAINS = sizeof chain / sizeof *chain, MOST = 1024 };

static struct host {
    struct xt_ctx *ctx;
    char dir[SCRATCH_PATH];
    float src[240], want[CHAINS][MOST];
    size_t bytes[CHAINS];
    atomic_bool stop;
    atomic_int wrong; /* the first chain that was copied wrong, + 1 */
    atomic_int done, on_cuda, failed, caught[NSIG];
    uint64_t state;
} h;

static int below(int n) { return (int)random_below(&h.state, n); }

/* What a compile may say here. */
static bool is_honest(xt_status s)
{
    return s == XT_OK || s == XT_ENOMEM || s == XT_ECOMPILE || s == XT_EDEVICE || s == XT_ENODEVICE;
}

/* Compiles chain i, for the CPU copies it, and compares. With `fresh` in a context of its own, on CUDA a
 * chain that no cache has. */
static bool use(int i, unsigned n, bool fresh, bool cuda)
{
    char line[64];
    float *got = calloc(MOST, sizeof *got);
    struct xt_ctx *ctx = h.ctx;
    struct xt_graph *g = NULL;
    struct xt_kernel *k = NULL;
    struct xt_options own = {.size = sizeof own, .backend = XT_CPU, .threads = 1, .cache_dir = h.dir};
    struct xt_compile_options o = {
        .size = sizeof o, .backend = cuda ? XT_CUDA : XT_CPU, .arch = cuda ? "sm_90" : NULL};
    snprintf(line, sizeof line, "x: u8[%u,3]; x.permute(1,0)", 3 + n % 997);
    xt_status s = got ? XT_OK : XT_ENOMEM;
    if (!s && fresh)
        s = xt_ctx_new(&own, &ctx);
    if (!s)
        s = xt_parse(cuda && fresh ? line : chain[i], 0, NULL, &g);
    if (!s)
        s = xt_compile(ctx, g, &o, &k);
    bool honest = is_honest(s) && !s == (k != NULL) && (!got || !s == !*xt_last_error()->message);
    atomic_fetch_add(s ? &h.failed : &h.done, 1);
    atomic_fetch_add(&h.on_cuda, !s && cuda);
    if (!s && !cuda) {
        s = xt_run(k, got, (const void *[]){h.src}, NULL);
        honest = s ? is_honest(s) : !memcmp(got, h.want[i], h.bytes[i]);
    }
    xt_kernel_free(k);
    xt_graph_free(g);
    if (ctx != h.ctx)
        xt_ctx_free(ctx);
    free(got);
    return honest;
}

static void *work(void *arg)
{
    for (unsigned n = (unsigned)(uintptr_t)arg; !atomic_load(&h.stop); n += 7)
        if (!use((int)(n % CHAINS), n, n % 4 == 0, n % 8 < 2))
            atomic_store(&h.wrong, (int)(n % CHAINS) + 1);
    return NULL;
}

/* ---- what happens. Each leaves the host as it was. */

static void wait_a_little(void) { nanosleep(&(struct timespec){0, 1000 * (1 + below(PAUSE_US))}, NULL); }

static void count_signal(int sig) { atomic_fetch_add(&h.caught[sig], 1); }

static const int signals[] = {SIGTERM, SIGINT, SIGXFSZ, SIGHUP, SIGUSR1, SIGPIPE, SIGALRM};
enum { SIGNALS = sizeof signals / sizeof *signals };

static bool get_signals(void)
{
    bool ours = true;
    for (int i = 0; i < SIGNALS; i++) {
        struct sigaction now;
        int before = atomic_load(&h.caught[signals[i]]);
        kill(getpid(), signals[i]);
        for (int n = 0; n < 10000 && atomic_load(&h.caught[signals[i]]) == before; n++)
            nanosleep(&(struct timespec){0, 100000}, NULL);
        ours &= atomic_load(&h.caught[signals[i]]) > before && !sigaction(signals[i], NULL, &now) &&
                now.sa_handler == count_signal;
    }
    return ours;
}

static int child_status; /* of the last child, as wait tells it */

static bool wait_for(pid_t child)
{
    pid_t got;
    child_status = -1;
    do
        got = waitpid(child, &child_status, 0);
    while (got < 0 && errno == EINTR);
    return got == child && child_status == 0;
}

/* Of a child. A busy machine may stop for minutes. */
static void limit_life(void)
{
    signal(SIGALRM, SIG_DFL);
    alarm(240);
}

static bool fork_and_compile(void)
{
    pid_t child = fork();
    if (!child) {
        limit_life();
        _exit(!use(below(CHAINS), (unsigned)below(997), below(2), below(4) == 0));
    }
    return child < 0 || wait_for(child);
}

static bool drop_privileges_for_good(void)
{
    pid_t child = fork();
    if (!child) {
        limit_life();
        if (!geteuid() && (setresgid(NOBODY, NOBODY, NOBODY) || setresuid(NOBODY, NOBODY, NOBODY)))
            _exit(2);
        _exit(!use(below(CHAINS), 0, true, false) || !use(0, (unsigned)below(997), true, below(4) == 0));
    }
    return child < 0 || wait_for(child);
}

static bool drop_privileges_for_a_while(void)
{
    if (geteuid())
        return true;
    bool ok = !setresuid(0, NOBODY, 0);
    wait_a_little();
    return !setresuid(0, 0, 0) && ok;
}

static bool lose_directory(void)
{
    char gone[SCRATCH_PATH] = "/tmp/xt-gone-XXXXXX";
    int home = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool ok = home >= 0 && mkdtemp(gone) && !chdir(gone) && !rmdir(gone);
    wait_a_little();
    ok = home >= 0 && !fchdir(home) && ok;
    if (home >= 0)
        close(home);
    return ok;
}

/* Lowers a limit to what is used now, for a while. */
static bool run_out(int what, rlim_t most)
{
    struct rlimit was, low, now;
    if (getrlimit(what, &was))
        return false;
    low = (struct rlimit){most < was.rlim_cur ? most : was.rlim_cur, was.rlim_max};
    bool ok = !setrlimit(what, &low);
    wait_a_little();
    ok = ok && !getrlimit(what, &now) && now.rlim_cur == low.rlim_cur; /* nobody else moved it */
    return !setrlimit(what, &was) && ok;
}

static bool run_out_of_memory(void)
{
    unsigned long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    bool ok = f && fscanf(f, "%lu", &pages) == 1;
    if (f)
        fclose(f);
    return ok && run_out(RLIMIT_AS, (rlim_t)pages * 4096 + (rlim_t)below(1 << 18));
}

static bool run_out_of_files(void) { return run_out(RLIMIT_NOFILE, (rlim_t)(3 + below(12))); }
static bool run_out_of_disk(void) { return run_out(RLIMIT_FSIZE, (rlim_t)below(2000)); }
static bool run_out_of_processes(void) { return run_out(RLIMIT_NPROC, 1); }

static bool fail_allocations(void)
{
    xti_fail_alloc(1 + below(60), below(2));
    wait_a_little();
    xti_fail_alloc(0, 0);
    return true;
}

static bool lose_cache(void)
{
    char path[SCRATCH_PATH + 8];
    snprintf(path, sizeof path, "%s/k1", h.dir);
    switch (below(3)) {
    case 0:
        remove_scratch(path);
        break;
    case 1:
        return chmod(path, 0777) == 0 || errno == ENOENT;
    default:
        return chmod(path, 0700) == 0 || errno == ENOENT;
    }
    return true;
}

/* For the rest of this life: what opens first has their numbers from now on. */
static bool close_standard_files(void)
{
    for (int fd = 0; fd < 3; fd++)
        close(fd);
    return true;
}

static const struct event {
    const char *name;
    bool (*happen)(void);
    int from_round;
} event[] = {
    {"signals", get_signals, 0},
    {"fork", fork_and_compile, 0},
    {"drop privileges for good", drop_privileges_for_good, 0},
    {"drop privileges for a while", drop_privileges_for_a_while, 0},
    {"lose the directory", lose_directory, 0},
    {"no memory", run_out_of_memory, 0},
    {"no descriptors", run_out_of_files, 0},
    {"no disk", run_out_of_disk, 0},
    {"no processes", run_out_of_processes, 0},
    {"allocations fail", fail_allocations, 0},
    {"lose the cache", lose_cache, 0},
    {"close 0 to 2", close_standard_files, ROUNDS - 1},
};
enum { EVENTS = sizeof event / sizeof *event };

/* ---- one life */

static int count_files(void)
{
    int n = 0;
    DIR *d = opendir("/proc/self/fd");
    while (d && readdir(d))
        n++;
    if (d)
        closedir(d);
    return n;
}

static void begin(uint64_t seed)
{
    struct xt_options o = {.size = sizeof o, .backend = XT_CPU, .threads = 2, .cache_dir = h.dir};
    h.state = seed;
    make_scratch(h.dir, "host");
    struct xt_ctx *ref = new_ctx(XT_REF, 1);
    fill_pattern(h.src, sizeof h.src, 7);
    for (int i = 0; i < CHAINS; i++) {
        struct xt_kernel *k = compile_line(ref, chain[i]);
        struct xt_kernel_info info = {.size = sizeof info};
        expect(XT_OK, xt_kernel_get(k, &info));
        h.bytes[i] = (size_t)info.dst_min_bytes;
        ck_assert_uint_le(h.bytes[i], sizeof h.want[i]);
        expect(XT_OK, xt_run(k, h.want[i], (const void *[]){h.src}, NULL));
        xt_kernel_free(k);
    }
    xt_ctx_free(ref);
    expect(XT_OK, xt_ctx_new(&o, &h.ctx));
    for (int i = 0; i < SIGNALS; i++)
        sigaction(signals[i], &(struct sigaction){.sa_handler = count_signal}, NULL); /* no SA_RESTART */
}

/* Everything once, in another order each round. */
static void one_round(int round, uint64_t seed)
{
    int order[EVENTS];
    for (int i = 0; i < EVENTS; i++)
        order[i] = i;
    for (int i = 0; i < EVENTS; i++) {
        int k = i + below(EVENTS - i), e = order[k];
        order[k] = order[i];
        if (round < event[e].from_round)
            continue;
        bool ok = event[e].happen();
        int wrong = atomic_load(&h.wrong);
        ck_assert_msg(ok, "seed %d, round %d: %s: not as it was; the last child's status is 0x%x", (int)seed,
                      round, event[e].name, (unsigned)child_status);
        ck_assert_msg(!wrong, "seed %d, round %d, after %s: chain %d", (int)seed, round, event[e].name,
                      wrong - 1);
    }
}

START_TEST(a_host_that_does_everything_sees_only_statuses)
{
    uint64_t seed = (uint64_t)_i + 1;
    pthread_t thread[THREADS];
    pthread_attr_t attr;
    sigset_t mask = {0}, before = {0};
    if (SANITIZED) {
        printf("skipped: forks beside threads: a sanitizer's allocator does not survive them\n");
        return;
    }
    mode_t mode = umask(027);
    FILE *said = tmpfile(), *real = fdopen(dup(1), "w");
    int64_t live = xti_live_allocations();
    bool cuda = !cuda_prove_unable();
    begin(seed);
    ck_assert(said && real && dup2(fileno(said), 2) == 2);
    int files = count_files();
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    ck_assert(!pthread_attr_init(&attr) && !pthread_attr_setstacksize(&attr, STACK));
    for (int i = 0; i < THREADS; i++)
        ck_assert(!pthread_create(&thread[i], &attr, work, (void *)(uintptr_t)(i + 1)));
    for (int round = 0; round < ROUNDS; round++)
        one_round(round, seed);
    atomic_store(&h.stop, true);
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    ck_assert_int_eq(atomic_load(&h.wrong), 0);
    for (int i = 0; i < CHAINS; i++) /* and it works as before */
        ck_assert_msg(use(i, 0, false, false), "chain %d: %s", i, xt_last_error()->message);
    xt_ctx_free(h.ctx);
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    ck_assert(!memcmp(&mask, &before, sizeof mask) && umask(mode) == 027);
    ck_assert_int_eq(count_files(), files - 3); /* 0 to 2 are gone */
    ck_assert(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
    ck_assert_int_eq(xti_live_allocations(), live);
    fseek(said, 0, SEEK_END);
    ck_assert_msg(ftell(said) == 0, "seed %d: %ld bytes on stderr", (int)seed, ftell(said));
    ck_assert_int_gt(atomic_load(&h.done), ROUNDS);
    ck_assert_int_ge(atomic_load(&h.on_cuda), cuda ? ROUNDS / 2 : 0);
    fprintf(real,
            "note: life %d: %d rounds of %d events: %d compiles, %d of them for CUDA, %d other statuses\n",
            _i, ROUNDS, EVENTS, atomic_load(&h.done), atomic_load(&h.on_cuda), atomic_load(&h.failed));
    fclose(real);
    remove_scratch(h.dir);
}
END_TEST

/* ---- a plug-in: the library comes and goes */

static int count_threads(void)
{
    int n = 0;
    DIR *d = opendir("/proc/self/task");
    while (d && readdir(d))
        n++;
    if (d)
        closedir(d);
    return n;
}

static void *symbol(void *lib, const char *name)
{
    void *f = dlsym(lib, name);
    ck_assert_msg(f != NULL, "%s", name);
    return f;
}

static void use_library(const char *path)
{
    static float src[1 << 19], dst[1 << 19]; /* so large that threads share it */
    xt_status (*ctx_new)(const struct xt_options *, struct xt_ctx **),
        (*run)(const struct xt_kernel *, void *, const void *const *, void *);
    xt_status (*parse)(const char *, int, const struct xt_shape *, struct xt_graph **);
    xt_status (*compile)(struct xt_ctx *, const struct xt_graph *, const struct xt_compile_options *,
                         struct xt_kernel **);
    void (*ctx_free)(struct xt_ctx *), (*graph_free)(struct xt_graph *), (*kernel_free)(struct xt_kernel *);
    struct xt_options o = {.size = sizeof o, .backend = XT_CPU, .threads = 2, .cache_dir = ""};
    struct xt_ctx *ctx;
    struct xt_graph *g;
    struct xt_kernel *k;
    void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    ck_assert_msg(lib != NULL, "%s", dlerror());
    *(void **)&ctx_new = symbol(lib, "xt_ctx_new");
    *(void **)&parse = symbol(lib, "xt_parse");
    *(void **)&compile = symbol(lib, "xt_compile");
    *(void **)&run = symbol(lib, "xt_run");
    *(void **)&ctx_free = symbol(lib, "xt_ctx_free");
    *(void **)&graph_free = symbol(lib, "xt_graph_free");
    *(void **)&kernel_free = symbol(lib, "xt_kernel_free");
    ck_assert(!ctx_new(&o, &ctx) && !parse("x: f32[512,1024]; x.permute(1,0)", 0, NULL, &g) &&
              !compile(ctx, g, NULL, &k));
    src[1] = (float)rand();
    ck_assert(!run(k, dst, (const void *[]){src}, NULL) && dst[512] == src[1]);
    kernel_free(k);
    graph_free(g);
    ctx_free(ctx);
    dlclose(lib);
}

START_TEST(a_library_that_comes_and_goes_leaves_nothing)
{
    char path[4200];
    if (SANITIZED || !find_beside("../libxtview.so.0", path)) {
        printf("skipped: no libxtview.so.0 without sanitizers\n");
        return;
    }
    use_library(path);
    int files = count_files(), threads = count_threads();
    for (int i = 0; i < 100; i++)
        use_library(path);
    ck_assert_int_eq(count_files(), files);
    ck_assert_int_eq(count_threads(), threads);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("host");
    TCase *c = tcase_create("host");
    tcase_set_timeout(c, 600);
    tcase_add_loop_test(c, a_host_that_does_everything_sees_only_statuses, 0,
                        test_full() ? ALL_LIVES : LIVES);
    suite_add_tcase(s, c);
    TCase *plugin = tcase_create("plugin"); /* alone under valgrind: make check-san */
    tcase_set_timeout(plugin, 600);
    tcase_add_test(plugin, a_library_that_comes_and_goes_leaves_nothing);
    suite_add_tcase(s, plugin);
    return run_suite(s);
}
