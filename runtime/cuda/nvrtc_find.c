/* nvrtc_find.c: where NVRTCs lie on a machine, and how to tell one build from another.
 * In: XT_NVRTC, the libraries of the process, the system's and the toolkit's directories. Layer 4. */
#include "cuda/nvrtc.h"

#include <dlfcn.h>
#include <elf.h>
#include <glob.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/hash.h"

/* Newest first. 11.2 is the soname of 11.2 to 11.8. */
static const char *const sonames[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "libnvrtc.so"};
enum { N_SONAMES = sizeof sonames / sizeof *sonames };

struct find {
    const int *have;
    void (*take)(void *arg, void *library);
    void *arg;
};

static void offer(const struct find *f, const char *name, int flags)
{
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL | flags);
    if (library)
        f->take(f->arg, library);
}

/* libnvrtc.so.12 is a link to libnvrtc.so.12.4.127: 12004. 0: it does not say. */
static int file_version(const char *path)
{
    char real[PATH_MAX];
    int major = 0, minor = 0;
    const char *file = realpath(path, real) ? strrchr(real, '/') : NULL;
    return file && sscanf(file, "/libnvrtc.so.%d.%d", &major, &minor) == 2 ? 1000 * major + minor : 0;
}

static void offer_directory(const struct find *f, const char *dir)
{
    char path[PATH_MAX];
    for (int i = 0; i < N_SONAMES; i++) {
        int n = snprintf(path, sizeof path, "%s/%s", dir, sonames[i]);
        int version = n > 0 && (size_t)n < sizeof path ? file_version(path) : 0;
        if (n > 0 && (size_t)n < sizeof path && (!version || version > *f->have))
            offer(f, path, 0);
    }
}

static void offer_home(const struct find *f, const char *variable)
{
    char dir[PATH_MAX];
    const char *home = secure_getenv(variable);
    int n = home && *home ? snprintf(dir, sizeof dir, "%s/lib64", home) : -1;
    if (n > 0 && (size_t)n < sizeof dir)
        offer_directory(f, dir);
}

static void offer_toolkits(const struct find *f)
{
    glob_t found = {0};
    if (glob("/usr/local/cuda-*/lib64", 0, NULL, &found) == 0)
        for (size_t i = found.gl_pathc; i-- > 0;) /* 13.0 before 12.4 */
            offer_directory(f, found.gl_pathv[i]);
    globfree(&found);
}

/* Those that the process already has come first: they cost nothing. */
void xti_nvrtc_find(const int *have, void (*take)(void *arg, void *library), void *arg)
{
    struct find f = {have, take, arg};
    const char *path = xti_env(XTI_ENV_NVRTC);
    if (path && *path) {
        offer(&f, path, 0);
        return;
    }
    for (int i = 0; i < N_SONAMES; i++)
        offer(&f, sonames[i], RTLD_NOLOAD);
    for (int i = 0; i < N_SONAMES && !*have; i++)
        offer(&f, sonames[i], 0);
    offer_home(&f, "CUDA_HOME");
    offer_home(&f, "CUDA_PATH");
    offer_directory(&f, "/usr/local/cuda/lib64");
    offer_toolkits(&f);
}

/* ---- the build id */

struct build_id {
    uintptr_t inside; /* an address of the library */
    char *hex;
};

static void read_notes(const char *p, size_t left, struct build_id *id)
{
    while (left >= sizeof(ElfW(Nhdr))) {
        const ElfW(Nhdr) *note = (const void *)p;
        size_t name = ((size_t)note->n_namesz + 3) / 4 * 4, desc = ((size_t)note->n_descsz + 3) / 4 * 4,
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

void xti_build_id(const void *inside, char hex[XTI_BUILD_ID_CHARS])
{
    struct build_id id = {(uintptr_t)inside, hex};
    snprintf(hex, XTI_BUILD_ID_CHARS, "no build id");
    dl_iterate_phdr(read_object, &id);
}
