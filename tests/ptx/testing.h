/* testing.h: what the tests of the interpreter share: files, a launch in one call, CUDA sources through
 * NVRTC. Tests run with the repository root as the working directory. */
#ifndef PTX_TESTING_H
#define PTX_TESTING_H

#include "from_cuda.h"
#include "ptx.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KERNELS "tests/ptx/kernels/"

static inline char *read_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    ck_assert_msg(f != NULL, "%s: not found; run from the repository root", path);
    char *text = calloc(1, 1 << 20);
    size_t n = fread(text, 1, (1 << 20) - 1, f);
    ck_assert_msg(n > 0, "%s: empty", path);
    fclose(f);
    return text;
}

static inline struct ptx_module *load_text(const char *text)
{
    struct ptx_module *m;
    char err[256];
    ck_assert_msg(ptx_load(text, &m, err, sizeof err) == 0, "%s", err);
    return m;
}

static inline struct ptx_module *load_file(const char *path)
{
    char *text = read_file(path);
    struct ptx_module *m = load_text(text);
    free(text);
    return m;
}

/* A .cu file as PTX text for one architecture; `define` is one more option or NULL. Caller frees. */
static inline char *compile_file(const char *path, const char *arch, const char *define)
{
    char *source = read_file(path), *ptx, err[4096];
    ck_assert_msg(ptx_from_cuda(source, arch, &define, define != NULL, &ptx, err, sizeof err) == 0,
                  "%s, %s: %s", path, arch, err);
    free(source);
    return ptx;
}

static inline struct ptx_module *load_cuda(const char *path, const char *arch, const char *define)
{
    char *ptx = compile_file(path, arch, define);
    struct ptx_module *m = load_text(ptx);
    free(ptx);
    return m;
}

static inline struct ptx_param pointer_to(int buffer, int64_t byte_offset)
{
    return (struct ptx_param){.is_pointer = 1, .buffer = buffer, .byte_offset = byte_offset};
}

#define VALUE(x) ((struct ptx_param){.bytes = &(x), .n_bytes = sizeof(x)})

/* Runs and asserts that nothing is at fault; with `last`, that everything was written. */
static inline void run_fine(struct ptx_world *w, const struct ptx_module *m, const struct ptx_launch *l,
                            int last, struct ptx_report *r)
{
    struct ptx_report sum;
    ck_assert_msg(ptx_run(w, m, l, r) == 0, "%s", r->error);
    ck_assert_int_eq(r->fault, PTX_FINE);
    ck_assert_msg(!last || ptx_finish(w, &sum) == 0, "%s", sum.error);
}

/* The fault of one launch and of the finish after it, PTX_FINE when there is none. Checks the sentence's
 * first words. */
static inline enum ptx_fault fault_of(struct ptx_world *w, const struct ptx_module *m,
                                      const struct ptx_launch *l, struct ptx_report *r)
{
    int failed = ptx_run(w, m, l, r);
    ck_assert_int_eq(failed != 0, r->fault != PTX_FINE);
    if (!failed)
        failed = ptx_finish(w, r);
    ck_assert_int_eq(failed != 0, r->fault != PTX_FINE);
    if (failed)
        ck_assert_msg(!strncmp(r->error, ptx_fault_name(r->fault), strlen(ptx_fault_name(r->fault))), "%s",
                      r->error);
    return r->fault;
}

static inline uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state * 0x2545F4914F6CDD1Dull;
}

static inline void fill_random(void *to, size_t bytes, uint64_t seed)
{
    uint64_t state = seed + 0x9E3779B97F4A7C15ull;
    for (size_t i = 0; i < bytes; i++)
        ((unsigned char *)to)[i] = (unsigned char)(next_random(&state) >> 40);
}

static inline int run_suite(Suite *s)
{
    SRunner *runner = srunner_create(s);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

#endif
