/* cuda_double_run.c: the double's memory, and kernels in the PTX interpreter. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes" /* the driver's header declares them */
#include "support/cuda_double.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_OF_A_MAPPING = 16 << 20 }; /* those of sanitizers are TB; the interpreter keeps a byte a byte */

static struct {
    char *p;
    size_t bytes;
} memory[MAX_MEMORY];

CU int cuMemAlloc_v2(uintptr_t *out, size_t bytes)
{
    ENTER_UNSAFE();
    void *p = bytes ? aligned_alloc(256, (bytes + 255) / 256 * 256) : NULL;
    LOCK();
    int i = 0;
    while (i < MAX_MEMORY && memory[i].p)
        i++;
    if (p && i < MAX_MEMORY) {
        memory[i].p = p;
        memory[i].bytes = bytes;
    } else {
        free(p);
        p = NULL;
    }
    UNLOCK();
    *out = (uintptr_t)p;
    return p ? SUCCESS : OUT_OF_MEMORY;
}

CU int cuMemFree_v2(uintptr_t p)
{
    ENTER_UNSAFE();
    bool found = false;
    LOCK();
    for (int i = 0; i < MAX_MEMORY && p && !found; i++)
        if ((uintptr_t)memory[i].p == p) {
            free(memory[i].p);
            memory[i].p = NULL;
            found = true;
        }
    UNLOCK();
    return found ? SUCCESS : INVALID_VALUE;
}

/* How many allocations of cuMemAlloc live. */
CU int double_memories(void)
{
    int n = 0;
    LOCK();
    for (int i = 0; i < MAX_MEMORY; i++)
        n += memory[i].p != NULL;
    UNLOCK();
    return n;
}

CU int cuMemcpyHtoD_v2(uintptr_t d, const void *s, size_t bytes)
{
    ENTER_UNSAFE();
    memcpy((void *)d, s, bytes);
    return SUCCESS;
}

CU int cuMemcpyDtoH_v2(void *d, uintptr_t s, size_t bytes)
{
    ENTER_UNSAFE();
    memcpy(d, (const void *)s, bytes);
    return SUCCESS;
}

bool double_memory(uintptr_t p, char **base, size_t *bytes)
{
    char line[512];
    bool found = false;
    LOCK();
    for (int i = 0; i < MAX_MEMORY && !found; i++)
        if (memory[i].p && p - (uintptr_t)memory[i].p < memory[i].bytes) {
            *base = memory[i].p;
            *bytes = memory[i].bytes;
            found = true;
        }
    UNLOCK();
    FILE *f = found ? NULL : fopen("/proc/self/maps", "r");
    char mode;
    for (unsigned long lo, hi, end = 0; f && fgets(line, sizeof line, f);) { /* a program's data are two */
        if (sscanf(line, "%lx-%lx %c", &lo, &hi, &mode) != 3 || mode != 'r' || (found && lo != end))
            continue;
        if (!found && (p < lo || p >= hi))
            continue;
        if (!found)
            *base = (char *)(p / 256 * 256);
        end = hi;
        *bytes = end - (uintptr_t)*base;
        found = true;
    }
    if (f)
        fclose(f);
    if (f && found && *bytes > MOST_OF_A_MAPPING)
        *bytes = MOST_OF_A_MAPPING;
    return found;
}

/* ------------------------------------------------------------------------------------------------- kernels
 */

/* The memory that parameters point to, each word of it a buffer; addresses are those of the interpreter. */
struct pointers {
    struct ptx_buffer *buffer;
    struct pointer {
        uint64_t *address; /* in an array of pointers; NULL: the parameter itself */
        int64_t byte_offset;
    } * at;
    int n;
};

static bool add_pointer(struct pointers *o, uintptr_t p, uint64_t *address)
{
    char *base;
    size_t bytes;
    struct ptx_buffer *buffer = realloc(o->buffer, ((size_t)o->n + 1) * sizeof *buffer);
    o->buffer = buffer ? buffer : o->buffer;
    struct pointer *at = realloc(o->at, ((size_t)o->n + 1) * sizeof *at);
    o->at = at ? at : o->at;
    if (!buffer || !at || !double_memory(p, &base, &bytes))
        return false;
    buffer[o->n] =
        (struct ptx_buffer){.base = base, .bytes = bytes, .writable = o->n == 0, .scratch = o->n == 0};
    at[o->n++] = (struct pointer){address, (int64_t)(p - (uintptr_t)base)};
    return true;
}

/* A structure whose every word points to memory is an array of pointers. */
static bool add_structure(struct pointers *o, struct ptx_param *param)
{
    char *base;
    size_t bytes, words = param->n_bytes / 8, i = 0;
    const void *given = param->bytes;
    uint64_t *copy = malloc(param->n_bytes + 1);
    param->bytes = copy;
    if (!copy)
        return false;
    memcpy(copy, given, param->n_bytes);
    while (i < words && param->n_bytes % 8 == 0 && double_memory((uintptr_t)copy[i], &base, &bytes))
        i++;
    bool fine = true;
    for (size_t k = 0; k < words && i == words && fine; k++)
        fine = add_pointer(o, (uintptr_t)copy[k], &copy[k]);
    return fine;
}

static bool make_params(const struct work *k, const struct ptx_entry_info *info, struct ptx_param *param,
                        struct pointers *o)
{
    void *const *given = k->param;
    for (int i = 0; i < info->n_params; i++) {
        uintptr_t p;
        if (info->param_bytes[i] != sizeof p ||
            ptx_param_is_struct(k->function->module->ptx, k->function->entry, i)) {
            param[i] = (struct ptx_param){.bytes = given[i], .n_bytes = info->param_bytes[i]};
            if (!add_structure(o, &param[i]))
                return false;
            continue;
        }
        memcpy(&p, given[i], sizeof p);
        if (!add_pointer(o, p, NULL)) {
            fprintf(stderr, "cuda_double: parameter %d: no memory at %#lx\n", i, (unsigned long)p);
            return false;
        }
        param[i] = (struct ptx_param){
            .is_pointer = 1, .buffer = o->n - 1, .byte_offset = o->at[o->n - 1].byte_offset};
    }
    return true;
}

/* False: the kernel failed. */
static bool interpret(struct ptx_module *m, struct ptx_launch *l, const struct pointers *o)
{
    struct ptx_report report = {0};
    struct ptx_world *w = ptx_world_new(o->buffer, o->n);
    for (int i = 0; w && i < o->n; i++)
        if (o->at[i].address)
            *o->at[i].address = ptx_address(w, i, o->at[i].byte_offset);
    bool bad = !w || ptx_run(w, m, l, &report);
    ptx_world_free(w);
    if (bad)
        fprintf(stderr, "cuda_double: %s\n", report.error);
    return !bad;
}

int double_run(const struct work *k)
{
    struct ptx_entry_info info;
    struct pointers o = {0};
    struct CUctx_st *c = double_current();
    struct CUmod_st *m = k->function->module;
    ptx_entry_info(m->ptx, k->function->entry, &info);
    struct ptx_param *param = calloc((size_t)info.n_params + 1, sizeof *param);
    struct ptx_launch l = {.entry = info.name,
                           .grid = {k->grid[0], k->grid[1], k->grid[2]},
                           .block = {k->block[0], k->block[1], k->block[2]},
                           .shared_bytes = k->shared,
                           .params = param,
                           .n_params = info.n_params};
    bool fine = param && make_params(k, &info, param, &o) && interpret(m->ptx, &l, &o);
    for (int i = 0; param && i < info.n_params; i++)
        if (!param[i].is_pointer)
            free((void *)param[i].bytes);
    free(o.buffer);
    free(o.at);
    free(param);
    LOCK();
    m->busy = true;
    if (!fine)
        c->sticky = ILLEGAL_ADDRESS;
    UNLOCK();
    return SUCCESS; /* a launch is asynchronous: what became of it is told later */
}
