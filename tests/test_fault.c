/* test_fault.c: a process that uses the disk cache, or compiles, is killed at every system call, and every
 * system call of it fails, in turn with each of nine errors. It sees statuses and right bytes; who comes
 * after it finds the entry whole or not at all, and a cache that works. Then a kernel's entry with every bit
 * and every length wrong, and 24 processes that want the same 20 kernels. XT_TEST_FULL=1: all of it, else a
 * sample; `make check-fault`. */
#include "support/api.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>

#include "base/os.h"
#include "cache/cache.h"
#include "cache/entry.h"
#include "support/cuda_made.h"
#include "support/inject.h"
#include "support/scratch.h"

static const int errors[] = {EIO, ENOSPC, EACCES, ENOMEM, EINTR, EROFS, EMFILE, EDQUOT, ESTALE};
enum { ERRORS = sizeof errors / sizeof *errors, STUCK = 60 };

static char dir[SCRATCH_PATH];
static void begin(void)
{
    make_scratch(dir, "fault");
    setenv("XT_PACK", "", 1);
}
static void end(void) { remove_scratch(dir); }

/* Temporary files that lie there. */
static int count_temps(void)
{
    char k1[SCRATCH_PATH + 8];
    int n = 0;
    snprintf(k1, sizeof k1, "%s/k1", dir);
    DIR *d = opendir(k1);
    for (const struct dirent *e; d && (e = readdir(d));)
        n += !strncmp(e->d_name, XTI_TEMP_PREFIX, strlen(XTI_TEMP_PREFIX));
    if (d)
        closedir(d);
    return n;
}

/* ---- what is done. Each result: 0: as it should be, else what is wrong. */

static const char key[] = "the key", payload[] = "what was put under it, forty-two bytes or so";

/* -1: bytes that nobody put there, 0: nothing, 1: what was put. */
static int look(struct xti_disk *d)
{
    struct xti_blob b;
    int found = xti_disk_get(d, key, sizeof key, &b);
    if (found && (b.bytes != sizeof payload || memcmp(b.data, payload, sizeof payload)))
        found = -1;
    xti_free(b.data);
    return found;
}

static int use_cache(void *arg)
{
    struct xti_disk *d;
    struct xti_err err = {0};
    alarm(STUCK);
    if (xti_disk_open(dir, &d, &err))
        return err.e.status != XT_ENOMEM;
    int found = look(d);
    if (!found) {
        int token = xti_disk_lock(d, key, sizeof key);
        found = look(d);
        if (!found)
            xti_disk_put(d, key, sizeof key, "a key", payload, sizeof payload);
        xti_disk_unlock(d, token);
        found = found < 0 ? found : look(d);
    }
    xti_disk_close(d);
    return found < 0 ? 2 : 0;
}

static int list_cache(void *arg)
{
    struct xt_cache_stats s = {0};
    struct xti_disk *d;
    struct xti_err err = {0};
    int64_t removed;
    alarm(STUCK);
    if (xti_disk_open(dir, &d, &err))
        return err.e.status != XT_ENOMEM;
    xti_disk_stats(d, &s);
    xt_status c = xti_disk_clear(d, &removed, &err);
    xti_disk_close(d);
    return (c && c != XT_EIO && c != XT_ENOMEM) || s.entries > 1;
}

static struct {
    const void *cubin;
    size_t bytes;
} want;

static bool same_cubin(const struct xt_kernel *k)
{
    const void *data;
    size_t bytes;
    return !xt_kernel_artifact(k, XT_CUBIN, &data, &bytes) && bytes == want.bytes &&
           !memcmp(data, want.cubin, bytes);
}

/* A context, a chain of it, its cubin. *k NULL on failure. */
static xt_status make_kernel(const char *line, struct xt_ctx **ctx, struct xt_kernel **k)
{
    struct xt_options o = {.size = sizeof o, .backend = XT_CUDA, .cache_dir = dir};
    struct xt_compile_options c = {.size = sizeof c, .arch = "sm_90"};
    struct xt_graph *g = NULL;
    *k = NULL;
    xt_status s = xt_ctx_new(&o, ctx);
    if (!s)
        s = xt_parse(line, 0, NULL, &g);
    if (!s)
        s = xt_compile(*ctx, g, &c, k);
    xt_graph_free(g);
    return s;
}

static const char chain[] = "x: f32[24,10]; x.permute(1,0)";

static int compile_kernel(void *arg)
{
    struct xt_ctx *ctx;
    struct xt_kernel *k;
    alarm(STUCK);
    xt_status s = make_kernel(chain, &ctx, &k);
    bool fine = s ? !k && *xt_last_error()->message : same_cubin(k);
    if (s && s != XT_ECOMPILE && s != XT_ENOMEM && s != XT_ENODEVICE)
        fine = false;
    xt_kernel_free(k);
    xt_ctx_free(ctx);
    return !fine;
}

/* ---- faults */

static const struct action {
    const char *name;
    int (*act)(void *);
    bool warm;  /* the entry is there before */
    bool cuda;  /* needs NVRTC */
    int sample; /* of the calls, without XT_TEST_FULL: every so many-th */
    int errors; /* a call is given, at full; else one */
} action[] = {
    {"cache, cold", use_cache, false, false, 1, ERRORS},
    {"cache, warm", use_cache, true, false, 1, ERRORS},
    {"list and clear", list_cache, true, false, 1, ERRORS},
    {"compile, warm", compile_kernel, true, true, 11, ERRORS},
    {"compile, cold", compile_kernel, false, true, 29, 1},
};
enum { ACTIONS = sizeof action / sizeof *action };

static void prepare(const struct action *a)
{
    remove_scratch(dir);
    ck_assert_int_eq(mkdir(dir, 0700), 0);
    if (a->warm)
        ck_assert_int_eq(a->cuda ? compile_kernel(NULL) : use_cache(NULL), 0);
    alarm(0);
}

/* Who comes afterwards. */
static void check_after(const struct action *a, struct injection what, int *temps)
{
    int left = count_temps();
    *temps += left;
    ck_assert_msg(left <= 1, "%s: call %d: %d temporary files", a->name, what.at, left);
    ck_assert_msg(!(a->cuda ? compile_kernel(NULL) : use_cache(NULL)), "%s: call %d, error %d: afterwards",
                  a->name, what.at, what.error);
    if (!a->cuda) {
        struct xti_disk *d;
        ck_assert(!xti_disk_open(dir, &d, NULL));
        ck_assert_msg(look(d) == 1, "%s: call %d, error %d: it does not heal", a->name, what.at, what.error);
        xti_disk_close(d);
    }
    alarm(0);
}

static void inject_all(const struct action *a, bool kill_it)
{
    int kinds = kill_it ? 1 : test_full() ? a->errors : 1, step = test_full() ? 1 : a->sample;
    int done = 0, reached = 0, temps = 0;
    prepare(a);
    int calls = inject(a->act, NULL, (struct injection){0}).calls;
    ck_assert_int_gt(calls, 3);
    for (int at = 1; at <= calls; at += step)
        for (int e = 0; e < kinds; e++) {
            struct injection what = {at, kill_it ? 0 : errors[(at + e) % ERRORS]};
            if (!a->warm || a->act == list_cache) /* else it is there, or check_after put it there again */
                prepare(a);
            struct injected r = inject(a->act, NULL, what);
            bool ended = kill_it ? WIFSIGNALED(r.status) && WTERMSIG(r.status) == SIGKILL
                                 : WIFEXITED(r.status) && !WEXITSTATUS(r.status);
            ck_assert_msg(ended || !r.reached, "%s: call %d of %d (%ld), error %d: status 0x%x", a->name, at,
                          calls, r.call, what.error, (unsigned)r.status);
            check_after(a, what, &temps);
            done++;
            reached += r.reached;
        }
    printf("note: %s: %d of %d calls %s, %d reached, 0 wrong, %d temporary files left\n", a->name, done,
           calls, kill_it ? "killed" : "failed", reached, temps);
    ck_assert_int_gt(reached, 0);
}

START_TEST(a_fault_at_any_system_call_is_a_status_and_heals)
{
    const struct action *a = &action[_i / 2];
    const char *why = inject_unable();
    struct xt_ctx *ctx;
    struct xt_kernel *k;
    if (why || (a->cuda && cuda_skipped())) {
        printf("skipped: %s\n", why ? why : "no NVRTC");
        return;
    }
    if (a->cuda) {
        ck_assert_msg(!make_kernel(chain, &ctx, &k), "%s", xt_last_error()->message);
        ck_assert(!xt_kernel_artifact(k, XT_CUBIN, &want.cubin, &want.bytes)); /* k lives as long as we do */
    }
    inject_all(a, _i % 2);
}
END_TEST

/* ---- damage */

static void count_entry(void *arg, const char *file, int64_t bytes, const char *what) { ++*(int *)arg; }

static int valid_entries(struct xti_disk *d)
{
    int n = 0;
    ck_assert(!xti_disk_list(d, count_entry, &n, NULL));
    return n;
}

/* The one entry of the directory. */
static size_t read_entry(char path[400], unsigned char *bytes, size_t room)
{
    char k1[SCRATCH_PATH + 8];
    snprintf(k1, sizeof k1, "%s/k1", dir);
    DIR *d = opendir(k1);
    ck_assert_ptr_nonnull(d);
    for (const struct dirent *e; (e = readdir(d));)
        if (xti_entry_is_name(e->d_name))
            snprintf(path, 400, "%s/%s", k1, e->d_name);
    closedir(d);
    FILE *f = fopen(path, "rb");
    ck_assert_ptr_nonnull(f);
    size_t n = fread(bytes, 1, room, f);
    fclose(f);
    ck_assert_uint_lt(n, room);
    return n;
}

START_TEST(a_kernels_entry_with_any_bit_or_length_wrong_is_none)
{
    static unsigned char bytes[1 << 20];
    char path[400];
    struct xt_ctx *ctx;
    struct xt_kernel *k;
    struct xti_disk *d;
    int tried = 0, step = test_full() ? 1 : 61;
    if (cuda_skipped())
        return;
    ck_assert_msg(!make_kernel(chain, &ctx, &k), "%s", xt_last_error()->message);
    size_t n = read_entry(path, bytes, sizeof bytes);
    ck_assert(!xti_disk_open(dir, &d, NULL));
    ck_assert_int_eq(valid_entries(d), 1);
    int fd = open(path, O_RDWR);
    for (size_t bit = 0; bit < 8 * n; bit += (size_t)step, tried++) {
        unsigned char bad = bytes[bit / 8] ^ (unsigned char)(1u << bit % 8);
        ck_assert_int_eq(pwrite(fd, &bad, 1, (off_t)(bit / 8)), 1);
        ck_assert_msg(valid_entries(d) == 0, "bit %zu", bit);
        ck_assert_int_eq(pwrite(fd, &bytes[bit / 8], 1, (off_t)(bit / 8)), 1);
    }
    for (size_t cut = n - 1; cut < n; cut -= (size_t)step, tried++) {
        ck_assert_int_eq(ftruncate(fd, (off_t)cut), 0);
        ck_assert_msg(valid_entries(d) == 0, "%zu bytes", cut);
    }
    close(fd);
    xti_disk_close(d);
    xt_kernel_free(k);
    xt_ctx_free(ctx);
    ck_assert_msg(!make_kernel(chain, &ctx, &k), "%s", xt_last_error()->message); /* and it heals */
    ck_assert_uint_eq(read_entry(path, bytes, sizeof bytes), n);
    xt_kernel_free(k);
    xt_ctx_free(ctx);
    printf("note: an entry of %zu bytes: %d bits and lengths wrong, 0 taken\n", n, tried);
}
END_TEST

/* ---- many processes */

enum { PROCESSES = 24, KEYS = 20 };

/* How many compiles a context has made so far. */
static int64_t compiles_of(struct xt_ctx *ctx)
{
    struct xt_cache_stats stats = {.size = sizeof stats};
    return xt_cache_get(ctx, &stats) || stats.refused || stats.store_failed ? -1 : (int64_t)stats.compiled;
}

/* How many it compiled in less than the 10 s for which another's lock is waited for; 100: something is wrong.
 * A machine that is busy, or stops the holder of the lock, makes every process take longer. */
static int want_all_keys(int me)
{
    const int64_t wait_ns = 10000000000;
    struct xt_options o = {.size = sizeof o, .backend = XT_CUDA, .cache_dir = dir};
    struct xt_compile_options c = {.size = sizeof c, .arch = "sm_90"};
    struct xt_ctx *ctx;
    int64_t quick = 0, before = 0, now = 0;
    if (xt_ctx_new(&o, &ctx))
        return 100;
    for (int i = 0; i < KEYS && now >= 0; i++, before = now) {
        int64_t began = xti_now_ns();
        char line[64];
        struct xt_graph *g;
        struct xt_kernel *k;
        snprintf(line, sizeof line, "x: u8[%d,7]; x.permute(1,0)", 30 + (i + me % 3) % KEYS);
        if (xt_parse(line, 0, NULL, &g) || xt_compile(ctx, g, &c, &k))
            return 100;
        xt_graph_free(g);
        xt_kernel_free(k);
        now = compiles_of(ctx);
        quick += xti_now_ns() - began < wait_ns ? now - before : 0;
    }
    xt_ctx_free(ctx);
    return now < 0 ? 100 : (int)quick;
}

START_TEST(many_processes_that_want_the_same_kernels_compile_each_once)
{
    pid_t child[PROCESSES];
    struct xti_disk *d;
    int compiled = 0;
    if (cuda_skipped())
        return;
    for (int p = 0; p < PROCESSES; p++)
        if (!(child[p] = fork()))
            _exit(want_all_keys(p));
    for (int p = 0; p < PROCESSES; p++) {
        int status = -1;
        ck_assert_int_eq(waitpid(child[p], &status, 0), child[p]);
        ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) < 100, "process %d: 0x%x", p,
                      (unsigned)status);
        compiled += WEXITSTATUS(status);
    }
    ck_assert(!xti_disk_open(dir, &d, NULL));
    printf("note: %d processes, %d kernels: %d entries, %d compiles of less than 10 s\n", PROCESSES, KEYS,
           valid_entries(d), compiled);
    ck_assert_int_eq(valid_entries(d), KEYS);
    ck_assert_int_le(compiled, KEYS);
    xti_disk_close(d);
    ck_assert_int_eq(count_temps(), 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("fault");
    TCase *c = tcase_create("fault");
    tcase_set_timeout(c, 3000);
    tcase_add_checked_fixture(c, begin, end);
    tcase_add_loop_test(c, a_fault_at_any_system_call_is_a_status_and_heals, 0, 2 * ACTIONS);
    tcase_add_test(c, a_kernels_entry_with_any_bit_or_length_wrong_is_none);
    tcase_add_test(c, many_processes_that_want_the_same_kernels_compile_each_once);
    suite_add_tcase(s, c);
    return run_suite(s);
}
