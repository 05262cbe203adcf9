/* files.c: from a line and paths to a run that may begin, and what it is. Layer 6. */
#include "files/files.h"

#include <dirent.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/give.h"
#include "base/num.h"
#include "base/os.h"
#include "graph/graph.h"

enum { CHUNK_BYTES = 4 << 20, MEMORY_BYTES = 256 << 20 }; /* where nothing is said of them */
enum { MOST_LINKS = 40 };                                 /* as Linux follows */

/* ---- the result's form */

static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), m = strlen(end);
    return n > m && !strcmp(s + n - m, end);
}

static bool names_zarr(const char *s) { return ends_with(s, ".zarr") || ends_with(s, "/"); }

/* Extents are halved, the longest first, until a chunk has 4 MiB at most. */
static void default_chunks(struct xti_array *a)
{
    int64_t bytes = (int64_t)xt_dtype_bytes(a->dtype);
    for (int i = 0; i < a->rank; i++) {
        a->chunk[i] = a->shape[i] ? a->shape[i] : 1;
        bytes = xti_mul_most(bytes, a->chunk[i]);
    }
    while (bytes > CHUNK_BYTES) {
        int k = 0;
        for (int i = 1; i < a->rank; i++)
            k = a->chunk[i] > a->chunk[k] ? i : k;
        a->chunk[k] = (a->chunk[k] + 1) / 2;
        bytes = (int64_t)xt_dtype_bytes(a->dtype);
        for (int i = 0; i < a->rank; i++)
            bytes = xti_mul_most(bytes, a->chunk[i]);
    }
}

static xt_status take_chunks(struct xt_files *f, struct xti_err *err)
{
    struct xti_array *a = &f->out;
    if (!f->opt.chunk_rank)
        return default_chunks(a), XT_OK;
    if (f->opt.chunk_rank != a->rank)
        return xti_fail(err, XT_ERANK, "chunks have %d axes, the result has %d", f->opt.chunk_rank, a->rank);
    for (int i = 0; i < a->rank; i++) {
        if (f->opt.chunk[i] < 1)
            return xti_fail(err, XT_ERANGE, "chunks: an extent of axis %d is not positive", i);
        a->chunk[i] = f->opt.chunk[i];
    }
    return XT_OK;
}

static xt_status form_of(struct xt_files *f, struct xti_err *err)
{
    const struct xt_graph *g = f->chain;
    const struct xti_node *n = &g->node[g->out];
    struct xti_array *a = &f->out;
    bool zarr = names_zarr(a->said);
    if (!g->out_dense)
        return xti_fail(err, XT_EUNSUPPORTED,
                        "a result with a layout changes a part of a file, and what is made in tiles takes a "
                        "file's place when it is whole: run it without --mem");
    if (!zarr && !ends_with(a->said, ".npy"))
        return xti_fail(err, XT_EINVAL, "%s: its name ends with none of .npy, .zarr and /", a->said);
    if (!zarr && (f->opt.chunk_rank || f->opt.zarr_format))
        return xti_fail(err, XT_EINVAL, "%s: only a zarr result has chunks", a->said);
    if (f->opt.zarr_format && f->opt.zarr_format != 2 && f->opt.zarr_format != 3)
        return xti_fail(err, XT_EINVAL, "zarr's formats are 2 and 3, not %d", f->opt.zarr_format);
    a->kind = !zarr ? XTI_ARRAY_NPY : f->opt.zarr_format == 2 ? XTI_ARRAY_ZARR2 : XTI_ARRAY_ZARR3;
    a->separator = f->opt.zarr_format == 2 ? '.' : '/';
    a->prefix = a->kind == XTI_ARRAY_ZARR3;
    a->dtype = n->dtype;
    a->rank = n->rank;
    memcpy(a->shape, n->shape, (size_t)n->rank * sizeof *n->shape);
    memcpy(a->chunk, a->shape, sizeof a->chunk);
    xt_status s = zarr ? take_chunks(f, err) : XT_OK;
    return s ? s : xti_array_measure(a, err);
}

/* ---- paths */

/* What a link at path names, whether or not it is there; NULL: path is none, or there is no memory. */
static char *link_of(const char *path)
{
    char to[PATH_MAX];
    const char *slash = strrchr(path, '/');
    ssize_t n = readlink(path, to, sizeof to);
    struct xti_str b = {0};
    if (n <= 0 || n == sizeof to)
        return NULL;
    xti_str_addf(&b, "%.*s%.*s", slash && *to != '/' ? (int)(slash - path) + 1 : 0, path, (int)n, to);
    if (!b.failed)
        return b.s;
    xti_str_free(&b);
    return NULL;
}

/* A link stays, what it names is made or replaced. */
static char *target_of(const char *output)
{
    char *at = xti_strdup(output), *next;
    for (int i = 0; at; i++) {
        for (size_t n = strlen(at); n > 1 && at[n - 1] == '/'; n--)
            at[n - 1] = 0;
        if (i == MOST_LINKS || !(next = link_of(at)))
            break;
        xti_free(at);
        at = next;
    }
    return at;
}

static char *beside(const char *target, const char *more)
{
    struct xti_str b = {0};
    xti_str_addf(&b, "%s%s", target, more);
    if (!b.failed)
        return b.s;
    xti_str_free(&b);
    return NULL;
}

static xt_status name_files(struct xt_files *f, const char *output, struct xti_err *err)
{
    f->target = target_of(output);
    if (f->target) {
        bool zarr = names_zarr(output);
        f->journal = beside(f->target, ".xt-part");
        f->out.path = beside(f->target, zarr ? ".xt-data/" : ".xt-data");
        f->tiles.path = beside(f->target, ".xt-tiles");
    }
    f->out.said = xti_strdup(output);
    f->tiles.said = f->tiles.path ? xti_strdup(f->tiles.path) : NULL;
    return f->journal && f->out.path && f->tiles.path && f->out.said && f->tiles.said
               ? XT_OK
               : xti_fail(err, XT_ENOMEM, "names of files");
}

static bool is_empty(const char *path)
{
    DIR *d = opendir(path);
    int n = 0;
    for (; d && n < 3 && readdir(d); n++)
        ;
    if (d)
        closedir(d);
    return d && n < 3; /* . and .. */
}

/* Is it, or does it lie in, what a run makes at `left` and clears away? */
static bool is_in(const char *input, const char *left)
{
    char in[PATH_MAX], of[PATH_MAX];
    struct stat a, b;
    struct xti_str bare = {0};
    size_t n = strlen(left);
    xti_str_addf(&bare, "%.*s", (int)(left[n - 1] == '/' ? n - 1 : n), left);
    bool there = !bare.failed && !lstat(bare.s, &b) && !S_ISLNK(b.st_mode) && realpath(bare.s, of);
    xti_str_free(&bare);
    if (!there || stat(input, &a) || !realpath(input, in))
        return false;
    n = strlen(of);
    return (a.st_dev == b.st_dev && a.st_ino == b.st_ino) || (!strncmp(in, of, n) && in[n] == '/');
}

/* What lies there would be taken for what an earlier run left. */
static xt_status check_leftovers(const struct xt_files *f, struct xti_err *err)
{
    char *probe = beside(f->target, XTI_CURVE_PROBE);
    const char *const left[] = {f->journal, f->out.path, f->tiles.path, probe};
    xt_status s = probe ? XT_OK : xti_fail(err, XT_ENOMEM, "names of files");
    for (int i = 0; i < f->n && !f->imagined; i++)
        for (size_t k = 0; k < sizeof left / sizeof *left && !s; k++)
            if (is_in(f->in[i].path, left[k]))
                s = xti_fail(err, XT_EINVAL, "%s: is an input, and %s is a name that the run uses: rename it",
                             f->in[i].said, left[k]);
    xti_free(probe);
    return s;
}

/* What is made is as private as what it replaces. */
static xt_status check_target(struct xt_files *f, struct xti_err *err)
{
    if (lstat(f->target, &f->out.stat))
        return XT_OK;
    f->tiles.stat = f->out.stat;
    if (xti_array_is_zarr(&f->out))
        return is_empty(f->target)
                   ? XT_OK
                   : xti_fail(err, XT_EIO, "%s: is there already: remove it first", f->out.said);
    return S_ISREG(f->out.stat.st_mode) ? XT_OK
                                        : xti_fail(err, XT_EIO, "%s: is there, and is no file", f->out.said);
}

/* ---- the line */

static xt_status make_inputs(struct xt_files *f, int n, struct xti_err *err)
{
    f->n = n;
    f->in = xti_alloc_array((size_t)n + 1, sizeof *f->in);
    f->in_list = xti_alloc_array((size_t)n + 1, sizeof *f->in_list);
    if (!f->in || !f->in_list)
        return xti_fail(err, XT_ENOMEM, "inputs");
    for (int i = 0; i < n; i++)
        f->in_list[i] = &f->in[i];
    return XT_OK;
}

static xt_status open_inputs(struct xt_files *f, int n, const char *const *paths, struct xti_err *err)
{
    xt_status s = make_inputs(f, n, err);
    for (int i = 0; i < n && !s; i++) {
        s = paths[i] && *paths[i] ? xti_array_open(paths[i], &f->in[i], err)
                                  : xti_fail(err, XT_EINVAL, "xt_files_new: input %d %s", i,
                                             paths[i] ? "has no name" : "is NULL");
        f->in[i].buffered = f->opt.buffered;
    }
    return s;
}

/* As the line declares them, in .npy files that nobody has: for looking at a plan. */
static xt_status imagine_inputs(struct xt_files *f, struct xti_err *err)
{
    const struct xt_graph *g = f->chain;
    xt_status s = make_inputs(f, g->n_inputs, err);
    f->imagined = true;
    for (int i = 0; i < f->n && !s; i++) {
        const struct xti_node *n = &g->node[g->input[i]];
        struct xti_array *a = &f->in[i];
        int64_t lo, hi, flat[1];
        if (!n->dense && xti_span(n->rank, n->shape, n->strides, n->offset, &lo, &hi))
            flat[0] = hi + 1;
        a->dtype = n->dtype;
        a->rank = n->dense ? n->rank : 1;
        memcpy(a->shape, n->dense ? n->shape : flat, (size_t)a->rank * sizeof *a->shape);
        memcpy(a->chunk, a->shape, sizeof a->chunk);
        a->said = xti_strdup("any .npy");
        s = a->said ? xti_array_measure(a, err) : xti_fail(err, XT_ENOMEM, "inputs");
    }
    return s;
}

static xt_status parse_line(struct xt_files *f, struct xti_err *err)
{
    struct xt_shape *given = xti_alloc_array((size_t)f->n + 1, sizeof *given);
    if (!given)
        return xti_fail(err, XT_ENOMEM, "inputs");
    for (int i = 0; i < f->n; i++) {
        given[i].dtype = f->in[i].raw ? (xt_dtype)0 : f->in[i].dtype;
        given[i].rank = f->in[i].rank;
        memcpy(given[i].shape, f->in[i].shape, sizeof given[i].shape);
    }
    xt_status s = xt_parse(f->line, f->n, given, &f->chain);
    xti_free(given);
    if (s)
        err->e = *xt_last_error();
    return s;
}

static xt_status check_inputs(struct xt_files *f, struct xti_err *err)
{
    const struct xt_graph *g = f->chain;
    if (g->n_inputs != f->n)
        return xti_fail(err, XT_EINVAL, "the chain has %d input%s, and %d file%s given", g->n_inputs,
                        g->n_inputs == 1 ? "" : "s", f->n, f->n == 1 ? " is" : "s are");
    for (int i = 0; i < f->n; i++) {
        const struct xti_node *n = &g->node[g->input[i]];
        struct xti_array *a = &f->in[i];
        if (a->raw && xt_dtype_bytes(n->dtype) != xt_dtype_bytes(a->dtype))
            return xti_fail(err, XT_EDTYPE, "%s: input %s is %s, the file has raw elements of %zu bytes",
                            a->said, n->name, xt_dtype_name(n->dtype), xt_dtype_bytes(a->dtype));
        if (!n->dense && (a->fortran || xti_array_is_zarr(a)))
            return xti_fail(err, XT_EUNSUPPORTED, "%s: is %s, but input %s has strides of its own", a->said,
                            a->fortran ? "column-major" : "in chunks", n->name);
        a->dtype = n->dtype;
    }
    return XT_OK;
}

static void add(struct xti_sha256 *h, int64_t x) { xti_sha256_add(h, &x, sizeof x); }

/* Which run it is: for who takes it up. */
static void identify(struct xt_files *f)
{
    struct xti_sha256 h;
    const struct xti_array *o = &f->out;
    xti_sha256_start(&h);
    xti_sha256_add(&h, f->line, strlen(f->line) + 1);
    xti_sha256_add(&h, XT_VERSION, sizeof XT_VERSION);
    add(&h, o->kind);
    add(&h, (int64_t)o->dtype);
    for (int i = 0; i < o->rank; i++) {
        add(&h, o->shape[i]);
        add(&h, o->chunk[i]);
    }
    for (int i = 0; i < f->n; i++) {
        add(&h, (int64_t)f->in[i].stat.st_ino);
    }
    xti_sha256_end(&h, f->head.line);
    xti_sha256_start(&h);
    for (int i = 0; i < f->n; i++) {
        add(&h, f->in[i].stat.st_size);
        add(&h, f->in[i].stat.st_mtim.tv_sec);
        add(&h, f->in[i].stat.st_mtim.tv_nsec);
    }
    xti_sha256_end(&h, f->head.inputs);
}

static xt_status prepare(struct xt_files *f, int n, const char *const *inputs, const char *output,
                         struct xti_err *err)
{
    xt_status s = inputs ? open_inputs(f, n, inputs, err) : XT_OK;
    if (!s)
        s = parse_line(f, err);
    if (!s)
        s = inputs ? check_inputs(f, err) : imagine_inputs(f, err);
    if (!s)
        s = name_files(f, output, err);
    if (!s)
        s = form_of(f, err);
    if (!s)
        s = check_leftovers(f, err);
    if (!s)
        s = check_target(f, err);
    if (s)
        return s;
    f->out.buffered = f->tiles.buffered = f->opt.buffered;
    f->out.shared = f->tiles.shared = f->opt.shares > 1;
    identify(f);
    if (!f->opt.mem_bytes)
        f->opt.mem_bytes = MEMORY_BYTES;
    xti_curve_get(f->target, f->opt.buffered, f->out.elements * f->out.esize, f->opt.mem_bytes, &f->curve);
    return xti_files_plan(f, err);
}

static xt_status take_options(struct xt_files *f, const struct xt_files_options *opt, struct xti_err *err)
{
    if (opt && opt->size < XTI_UP_TO(struct xt_files_options, arg))
        return xti_fail(err, XT_EINVAL, "xt_files_new: xt_files_options.size is %zu, want its sizeof",
                        opt->size);
    if (opt)
        memcpy(&f->opt, opt, opt->size < sizeof *opt ? opt->size : sizeof *opt);
    f->opt.shares = f->opt.shares ? f->opt.shares : 1;
    if (f->opt.mem_bytes < 0 || f->opt.tile_bytes < 0 || f->opt.passes < 0 || f->opt.passes > 2 ||
        f->opt.requests < 0 || f->opt.chunk_rank < 0 || f->opt.chunk_rank > XT_MAX_RANK ||
        (f->opt.chunk_rank && !f->opt.chunk) || f->opt.share < 0 || f->opt.share >= f->opt.shares ||
        (f->opt.shares > 1 && !f->opt.meet))
        return xti_fail(err, XT_EINVAL, "xt_files_new: an option is out of range");
    return XT_OK;
}

int64_t xti_files_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return xti_ns_of(t);
}

xt_status xt_files_new(const char *line, int n, const char *const *inputs, const char *output,
                       const struct xt_files_options *opt, struct xt_files **out)
{
    struct xti_err err = {0};
    if (out)
        *out = NULL;
    if (!line || !out || !output || n < 0 || (n && !inputs))
        return xti_publish(xti_fail(&err, XT_EINVAL, "xt_files_new: an argument is NULL"), &err);
    if (!*output)
        return xti_publish(xti_fail(&err, XT_EINVAL, "xt_files_new: output has no name"), &err);
    struct xt_files *f = xti_alloc(sizeof *f);
    if (!f)
        return xti_publish(xti_fail(&err, XT_ENOMEM, "xt_files_new: out of memory"), &err);
    f->made.fd = -1;
    f->opened_ns = f->head.since_ns = xti_files_now();
    xt_status s = take_options(f, opt, &err);
    if (!s && !(f->line = xti_strdup(line)))
        s = xti_fail(&err, XT_ENOMEM, "xt_files_new: out of memory");
    if (!s)
        s = prepare(f, n, inputs, output, &err);
    if (s)
        xt_files_free(f);
    else
        *out = f;
    return xti_publish(s, &err);
}

/* ---- looking at it */

xt_status xt_files_get(const struct xt_files *f, struct xt_files_info *out)
{
    struct xti_err err = {0};
    struct xt_files_info i;
    if (xti_give_check(out, XTI_UP_TO(struct xt_files_info, seconds), "xt_files_get", "xt_files_info", &err))
        return xti_publish(XT_EINVAL, &err);
    if (!f)
        return xti_fail_null("xt_files_get", "the run");
    xti_files_info(f, &i);
    xti_give(out, &i, sizeof i);
    return xti_publish(XT_OK, NULL);
}

xt_status xt_files_explain(const struct xt_files *f, int flags, char *buf, size_t size, size_t *need)
{
    struct xti_err err = {0};
    struct xti_str b = {0};
    if (!f)
        return xti_fail_null("xt_files_explain", "the run");
    if (flags & ~XT_JSON)
        return xti_publish(xti_fail(&err, XT_EINVAL, "xt_files_explain: flags are not 0 or XT_JSON"), &err);
    if (flags & XT_JSON)
        xti_files_json(f, &b);
    else
        xti_files_text(f, &b);
    xt_status s =
        b.failed ? xti_fail(&err, XT_ENOMEM, "xt_files_explain") : xti_copy_out(b.s, b.n, buf, size, need);
    xti_str_free(&b);
    return xti_publish(s, &err);
}
