/* from_cuda.c: CUDA source to PTX text through NVRTC. */
#include "from_cuda.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_OPTIONS = 32 };

static struct nvrtc {
    int tried;
    void *handle;
    int (*create)(void **, const char *, const char *, int, const char *const *, const char *const *);
    int (*compile)(void *, int, const char *const *);
    int (*log_bytes)(void *, size_t *);
    int (*log)(void *, char *);
    int (*ptx_bytes)(void *, size_t *);
    int (*ptx)(void *, char *);
    int (*destroy)(void **);
} nvrtc;

/* The one cast from object pointer to function pointer, which POSIX allows and C does not spell. */
static int find(const char *name, void *slot)
{
    void *symbol = dlsym(nvrtc.handle, name);
    *(void **)slot = symbol;
    return symbol != NULL;
}

int ptx_nvrtc_present(void)
{
    const char *names[] = {getenv("PTX_NVRTC"),
                           "libnvrtc.so.13",
                           "libnvrtc.so.12",
                           "libnvrtc.so",
                           "/usr/local/cuda/lib64/libnvrtc.so.13",
                           "/usr/local/cuda/lib64/libnvrtc.so.12",
                           "/usr/local/cuda/lib64/libnvrtc.so"};
    if (nvrtc.tried)
        return nvrtc.handle != NULL;
    nvrtc.tried = 1;
    for (size_t i = 0; i < sizeof names / sizeof *names && !nvrtc.handle; i++)
        if (names[i] && *names[i])
            nvrtc.handle = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (nvrtc.handle &&
        !(find("nvrtcCreateProgram", &nvrtc.create) && find("nvrtcCompileProgram", &nvrtc.compile) &&
          find("nvrtcGetProgramLogSize", &nvrtc.log_bytes) && find("nvrtcGetProgramLog", &nvrtc.log) &&
          find("nvrtcGetPTXSize", &nvrtc.ptx_bytes) && find("nvrtcGetPTX", &nvrtc.ptx) &&
          find("nvrtcDestroyProgram", &nvrtc.destroy))) {
        dlclose(nvrtc.handle);
        nvrtc.handle = NULL;
    }
    return nvrtc.handle != NULL;
}

static void copy_log(void *program, char *err, size_t err_bytes)
{
    size_t bytes = 0;
    char *log = NULL;
    if (nvrtc.log_bytes(program, &bytes) == 0 && bytes && (log = malloc(bytes)) &&
        nvrtc.log(program, log) == 0)
        snprintf(err, err_bytes, "%s", log);
    free(log);
}

int ptx_from_cuda(const char *source, const char *arch, const char *const *options, int n_options, char **ptx,
                  char *err, size_t err_bytes)
{
    const char *all[MAX_OPTIONS];
    char arch_option[64], *text = NULL;
    void *program = NULL;
    size_t bytes = 0;
    int failed = 1;

    *ptx = NULL;
    snprintf(err, err_bytes, "NVRTC failed without a log");
    if (!ptx_nvrtc_present() || n_options >= MAX_OPTIONS) {
        snprintf(err, err_bytes, "no NVRTC library, or more than %d options", MAX_OPTIONS - 1);
        return 1;
    }
    snprintf(arch_option, sizeof arch_option, "--gpu-architecture=%s", arch);
    all[0] = arch_option;
    for (int i = 0; i < n_options; i++)
        all[i + 1] = options[i];
    if (nvrtc.create(&program, source, "kernel.cu", 0, NULL, NULL))
        return 1;
    if (nvrtc.compile(program, n_options + 1, all)) {
        copy_log(program, err, err_bytes);
        goto done;
    }
    if (nvrtc.ptx_bytes(program, &bytes) || !(text = malloc(bytes + 1)) || nvrtc.ptx(program, text))
        goto done;
    text[bytes] = 0;
    *ptx = text, text = NULL;
    failed = 0;
done:
    free(text);
    nvrtc.destroy(&program);
    return failed;
}
