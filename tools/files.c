/* files.c: xt run --mem and xt explain --mem. */
#include "files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "bar.h"
#include "tool.h"

bool files_wanted(const struct files_options *o, int n, char **inputs, const char *output)
{
    bool wanted = o->mem || o->tile || o->passes || o->chunks || o->zarr || o->restart;
    for (int i = 0; i <= n && !wanted; i++) {
        const char *path = i < n ? inputs[i] : output;
        size_t bytes = path ? strlen(path) : 0;
        struct stat st;
        wanted = (bytes > 1 && path[bytes - 1] == '/') || (bytes > 5 && !strcmp(path + bytes - 5, ".zarr")) ||
                 (i < n && path && !stat(path, &st) && S_ISDIR(st.st_mode));
    }
    return wanted;
}

static int parse_chunks(const char *s, int64_t *chunk, int *rank)
{
    char *end = NULL;
    for (const char *p = s; p; p = *end ? end + 1 : NULL) {
        if (*rank == XT_MAX_RANK || (chunk[(*rank)++] = strtoll(p, &end, 10)) < 1 || end == p ||
            (*end && *end != ','))
            return fail("--chunks: '%.40s' is no list of extents, as 256,256", s);
    }
    return 0;
}

static int parse_digit(const char *option, const char *s, const char *of, int *out)
{
    if (s && (strlen(s) != 1 || !strchr(of, *s)))
        return fail("%s: '%.40s' is neither %c nor %c", option, s, of[0], of[1]);
    *out = s ? *s - '0' : 0;
    return 0;
}

static int parse_options(const struct files_options *o, struct xt_files_options *out, int64_t *chunk)
{
    *out = (struct xt_files_options){.size = sizeof *out, .chunk = chunk, .restart = o->restart};
    int status = take_size("--mem", o->mem, &out->mem_bytes);
    if (!status)
        status = take_size("--tile", o->tile, &out->tile_bytes);
    if (!status)
        status = parse_chunks(o->chunks, chunk, &out->chunk_rank);
    if (!status)
        status = parse_digit("--passes", o->passes, "12", &out->passes);
    return status ? status : parse_digit("--zarr", o->zarr, "23", &out->zarr_format);
}

static int open_run(const char *chain, int n, char **inputs, const char *output, struct xt_files_options *opt,
                    struct xt_files **f)
{
    if (!xt_files_new(chain, n, (const char *const *)inputs, output, opt, f))
        return 0;
    return xt_last_error()->column ? fail_chain(NULL, chain) : fail("%s", xt_last_error()->message);
}

static int draw(void *arg, int64_t done, int64_t total)
{
    struct bar *b = arg;
    char text[128];
    b->total = total;
    snprintf(text, sizeof text, "%.1f of %.1f GB, %.2f GB/s", (double)done / 1e9, (double)total / 1e9,
             (double)done / 1e9 / bar_seconds(b));
    bar_at(b, done, text);
    return 0;
}

static void tell(const struct xt_files *f, double seconds)
{
    struct xt_files_info i = {.size = sizeof i};
    xt_files_get(f, &i);
    fprintf(stderr,
            "xt: %lld tiles, %lld of them done before, %d pass%s, %lld kernels: %.3g s, predicted %.3g s\n",
            (long long)i.tiles, (long long)i.resumed, i.passes, i.passes == 1 ? "" : "es",
            (long long)i.kernels, seconds, i.seconds);
}

int files_run(const char *chain, int n, char **inputs, const char *output, const struct files_options *o,
              bool verbose)
{
    struct xt_files_options opt;
    struct xt_files *f;
    struct bar bar;
    int64_t chunk[XT_MAX_RANK];
    int status = parse_options(o, &opt, chunk);
    opt.progress = draw;
    opt.arg = &bar;
    if (!status)
        status = open_run(chain, n, inputs, output, &opt, &f);
    if (status)
        return status;
    bar_begin(&bar, 1);
    xt_status s = xt_files_run(f);
    bar_clear();
    status = s ? fail("%s", xt_last_error()->message) : 0;
    if (!s && verbose)
        tell(f, bar_seconds(&bar));
    xt_files_free(f);
    return status;
}

int files_explain(const char *chain, int n, char **inputs, const char *output, const struct files_options *o,
                  bool json)
{
    struct xt_files_options opt;
    struct xt_files *f;
    int64_t chunk[XT_MAX_RANK];
    int status = parse_options(o, &opt, chunk);
    if (!status)
        status = open_run(chain, n, inputs, output ? output : "result.npy", &opt, &f);
    if (status)
        return status;
    char *s = explanation(&(struct explained){.files = f, .flags = json ? XT_JSON : 0});
    status = s ? 0 : EXIT_BAD_INPUT;
    if (s)
        printf("%s%s", s, json ? "\n" : "");
    free(s);
    xt_files_free(f);
    return status;
}
