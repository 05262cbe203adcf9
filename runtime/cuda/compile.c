/* compile.c: source -> PTX and cubin with NVRTC, in this process, which is xt-cc (helper.h) or one that asked
 * for it.
 * What NVRTC does to a process (measured with 13.0) and what is done about it: it overflows stacks of 80 KiB,
 * and of 256 KiB with large sources: a thread with 16 MiB compiles. It hangs in the child of a fork that
 * happened during a compile: fork waits until none is under way. It raises the stack limit: an option. It
 * calls any failure, lack of memory too, a compilation error: so a failure is never remembered. Compiles of
 * several threads run side by side: NVRTC locks nothing (40 of two threads took half the time of one's).
 * Layer 4. */
#include "cuda/cuda.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/os.h"
#include "cuda/writer.h"
#include "cuda/nvrtc.h"

enum { STACK_BYTES = 16 << 20 };

/* Any number of compiles, or a fork: not both. A fork that waits lets no new compile begin. A mutex and
 * counts, for the child of a fork may not unlock a read-write lock: it is another thread there. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int compiles, forks;
} gate = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void begin_compile(void)
{
    pthread_mutex_lock(&gate.lock);
    while (gate.forks)
        pthread_cond_wait(&gate.changed, &gate.lock);
    gate.compiles++;
    pthread_mutex_unlock(&gate.lock);
}

static void end_compile(void)
{
    pthread_mutex_lock(&gate.lock);
    gate.compiles--;
    pthread_cond_broadcast(&gate.changed);
    pthread_mutex_unlock(&gate.lock);
}

static void before_fork(void)
{
    pthread_mutex_lock(&gate.lock);
    gate.forks++;
    while (gate.compiles)
        pthread_cond_wait(&gate.changed, &gate.lock);
}

static void after_fork(void)
{
    gate.forks--;
    pthread_cond_broadcast(&gate.changed);
    pthread_mutex_unlock(&gate.lock);
}

/* Those who wait in the parent, for a compile or for another fork, are not here. */
static void in_child(void)
{
    gate.forks = 0;
    pthread_cond_init(&gate.changed, NULL);
    pthread_mutex_unlock(&gate.lock);
}

static void guard_fork(void) { pthread_atfork(before_fork, after_fork, in_child); }

/* Newer NVRTCs know the last two; one that does not is asked again without them. They change no code. */
static const char *const fixed_options[] = {"-default-device", "--std=c++17"};
static const char *const extra_options[] = {"--modify-stack-limit=false", "-minimal"};
enum { N_FIXED = 2, N_EXTRA = 2 };

struct job {
    const struct xti_nvrtc *nvrtc;
    const char *source, *name;
    int sm;
    struct xti_code *out;
    struct xti_err *err;
    xt_status status;
};

void xti_code_free(struct xti_code *c)
{
    xti_free(c->ptx);
    xti_free(c->cubin);
    *c = (struct xti_code){0};
}

static void arch_option(const struct xti_nvrtc *n, int sm, char *text, size_t size)
{
    bool cubin;
    int arch = xti_nvrtc_arch(n, sm, &cubin);
    snprintf(text, size, "--gpu-architecture=%s_%d", cubin ? "sm" : "compute", arch);
}

void xti_nvrtc_options(const struct xti_nvrtc *n, int sm, struct xti_str *out)
{
    char arch[48] = "";
    if (n)
        arch_option(n, sm, arch, sizeof arch);
    xti_str_addf(out, "%s\n", arch);
    for (int i = 0; i < N_FIXED; i++)
        xti_str_addf(out, "%s\n", fixed_options[i]);
    for (int i = 0; i < N_EXTRA; i++)
        xti_str_addf(out, "%s\n", extra_options[i]);
}

/* The first line of the log that says "error", else its first line. */
static xt_status refuse(const struct job *j, xti_nvrtc_program program, xti_nvrtc_result r)
{
    size_t size = 0;
    char *log = NULL, *line;
    if (program && !j->nvrtc->api.log_size(program, &size) && size && (log = xti_alloc(size + 1)))
        j->nvrtc->api.log(program, log);
    line = log ? strstr(log, "error") : NULL;
    while (line && line > log && line[-1] != '\n')
        line--;
    if (!line)
        line = log ? log : (char *)"";
    xt_status s = xti_fail(j->err, XT_ECOMPILE, "NVRTC %d.%d: %s for sm_%d: error %d: %.*s", j->nvrtc->major,
                           j->nvrtc->minor, j->name, j->sm, r, (int)strcspn(line, "\n"), line);
    xti_free(log);
    return s;
}

static xt_status fetch_ptx(const struct job *j, xti_nvrtc_program program)
{
    size_t n = 0;
    xti_nvrtc_result r = j->nvrtc->api.ptx_size(program, &n);
    if (r)
        return refuse(j, program, r);
    if (!(j->out->ptx = xti_alloc(n + 1))) /* the size counts a NUL; one more costs nothing and is certain */
        return xti_fail(j->err, XT_ENOMEM, "PTX, %zu bytes", n);
    if ((r = j->nvrtc->api.ptx(program, j->out->ptx)))
        return refuse(j, program, r);
    j->out->ptx_bytes = strlen(j->out->ptx) + 1;
    return XT_OK;
}

static xt_status fetch_cubin(const struct job *j, xti_nvrtc_program program)
{
    size_t n = 0;
    xti_nvrtc_result r = j->nvrtc->api.cubin_size(program, &n);
    if (r)
        return refuse(j, program, r);
    if (!(j->out->cubin = xti_alloc(n)))
        return xti_fail(j->err, XT_ENOMEM, "cubin, %zu bytes", n);
    if ((r = j->nvrtc->api.cubin(program, j->out->cubin)))
        return refuse(j, program, r);
    j->out->cubin_bytes = n;
    return XT_OK;
}

static xti_nvrtc_result run_compiler(const struct job *j, xti_nvrtc_program *program, int n_extra)
{
    char file[160], arch[48];
    const char *option[1 + N_FIXED + N_EXTRA];
    int n = 0;
    snprintf(file, sizeof file, "%s.cu", j->name);
    arch_option(j->nvrtc, j->sm, arch, sizeof arch);
    option[n++] = arch;
    for (int i = 0; i < N_FIXED; i++)
        option[n++] = fixed_options[i];
    for (int i = 0; i < n_extra; i++)
        option[n++] = extra_options[i];
    xti_nvrtc_result r = j->nvrtc->api.create(program, j->source, file, 0, NULL, NULL);
    return r ? r : j->nvrtc->api.compile(*program, n, option);
}

/* PTX and cubin come out of one compile for a real architecture. */
static xt_status compile(const struct job *j)
{
    xti_nvrtc_program program = NULL;
    xti_nvrtc_result r = XTI_NVRTC_INVALID_OPTION;
    xt_status s;
    bool cubin;
    xti_nvrtc_arch(j->nvrtc, j->sm, &cubin);
    for (int n = N_EXTRA; n >= 0 && r == XTI_NVRTC_INVALID_OPTION; n--) {
        if (program)
            j->nvrtc->api.destroy(&program);
        r = run_compiler(j, &program, n);
    }
    s = r ? refuse(j, program, r) : fetch_ptx(j, program);
    if (!s && cubin)
        s = fetch_cubin(j, program);
    if (program)
        j->nvrtc->api.destroy(&program);
    return s;
}

static void *compile_thread(void *arg)
{
    struct job *j = arg;
    j->status = compile(j);
    return NULL;
}

static xt_status on_own_stack(struct job *j)
{
    pthread_t thread;
    int r = xti_thread_start(&thread, STACK_BYTES, false, compile_thread, j);
    if (r)
        return xti_fail(j->err, XT_ENOMEM, "compile thread: %s", strerror(r));
    pthread_join(thread, NULL);
    return j->status;
}

xt_status xti_nvrtc_compile(const struct xti_nvrtc *n, const char *source, const char *name, int sm,
                            struct xti_code *out, struct xti_err *err)
{
    struct job j = {.nvrtc = n, .source = source, .name = name, .sm = sm, .out = out, .err = err};
    *out = (struct xti_code){0};
    pthread_once(&once, guard_fork);
    begin_compile();
    xt_status s = on_own_stack(&j);
    end_compile();
    if (s)
        xti_code_free(out);
    return s;
}
