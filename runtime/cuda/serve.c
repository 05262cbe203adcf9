/* serve.c: the compile helper's side: limits itself, reads one request, compiles, answers. Layer 4. */
#include "cuda/helper.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cuda/message.h"
#include "cuda/nvrtc.h"

enum { CPU_SECONDS = 60, WALL_SECONDS = 140 };
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
enum { LIMIT_MEMORY = 0 }; /* their shadows take terabytes of addresses */
#else
enum { LIMIT_MEMORY = 1 };
#endif

static void limit(int what, rlim_t most)
{
    struct rlimit r;
    if (getrlimit(what, &r))
        return;
    r.rlim_max = r.rlim_max < most ? r.rlim_max : most;
    r.rlim_cur = r.rlim_max;
    setrlimit(what, &r);
}

static void limit_myself(void)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* of the thread that waits */
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
#ifdef SYS_close_range
    syscall(SYS_close_range, 3u, ~0u, 0u);
#endif
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_CPU, CPU_SECONDS);
    if (LIMIT_MEMORY)
        limit(RLIMIT_AS, (rlim_t)4 << 30);
    alarm(WALL_SECONDS);
    if (chdir("/")) /* NVRTC looks at the current directory, which may be gone */
        return;
}

/* The NVRTC that the host has chosen. */
static const struct xti_nvrtc *open_nvrtc(const char *path, const char *build, int sm, struct xti_err *err)
{
    setenv("XT_NVRTC", path, 1);
    const struct xti_nvrtc *n = xti_nvrtc_for(sm, 0, err);
    if (!n || !strcmp(n->build, build))
        return n;
    xti_fail(err, XT_ECOMPILE, "%s is NVRTC %s for xt-cc, %s for its host", path, n->build, build);
    return NULL;
}

static xt_status compile(struct xti_message *m, struct xti_code *code, struct xti_err *err)
{
    const char *version = xti_message_text(m), *path = xti_message_text(m), *build = xti_message_text(m);
    pid_t host = (pid_t)xti_message_take_number(m);
    int sm = (int)xti_message_take_number(m);
    const char *name = xti_message_text(m), *source = xti_message_text(m);
    if (strcmp(version, XT_VERSION))
        return xti_fail(err, XT_ECOMPILE, "xt-cc is of xt %s, the library of %s", XT_VERSION, version);
    if (m->bad)
        return xti_fail(err, XT_ECOMPILE, "xt-cc was asked nonsense");
    if (getppid() != host) /* it died before its death was of interest */
        return xti_fail(err, XT_ECOMPILE, "xt-cc has lost its host");
    const struct xti_nvrtc *n = open_nvrtc(path, build, sm, err);
    return n ? xti_nvrtc_compile(n, source, name, sm, code, err) : XT_ECOMPILE;
}

int xti_helper_serve(int fd)
{
    struct xti_message m;
    struct xti_code code = {0};
    struct xti_err err = {0};
    struct xti_str b = {0};
    limit_myself();
    if (xti_message_receive(fd, -1, -1, &m))
        return 2;
    xt_status s = compile(&m, &code, &err);
    xti_message_number(&b, s);
    xti_message_field(&b, err.e.message, strlen(err.e.message) + 1);
    xti_message_field(&b, code.ptx ? code.ptx : "", code.ptx_bytes);
    xti_message_field(&b, code.cubin ? code.cubin : "", code.cubin_bytes);
    xt_status sent = xti_message_send(fd, -1, -1, &b);
    xti_str_free(&b);
    xti_code_free(&code);
    xti_message_free(&m);
    return sent != XT_OK;
}
