/* explain.c: a run in words and as JSON: tiles, requests, memory, seconds. Layer 6. */
#include "files/files.h"

#include <inttypes.h>

static const char *const kind_name[] = {[XTI_ARRAY_NPY] = "npy",
                                        [XTI_ARRAY_ZARR2] = "zarr v2",
                                        [XTI_ARRAY_ZARR3] = "zarr v3",
                                        [XTI_ARRAY_TILES] = "tiles"};

static int64_t buffers(const struct xt_files *f)
{
    int64_t most = 0;
    for (int i = 0; i < f->passes; i++) {
        int64_t bytes = f->cut[i].depth * (f->cut[i].src_bytes + f->cut[i].dst_bytes);
        most = bytes > most ? bytes : most;
    }
    most = most < f->room ? most : f->room; /* a run that is taken up with less memory halves tiles */
    return most + xti_io_memory(f->requests, f->curve.piece_bytes);
}

void xti_files_info(const struct xt_files *f, struct xt_files_info *i)
{
    *i = (struct xt_files_info){
        .passes = f->passes, .memory_bytes = buffers(f), .kernels = f->kernels, .resumed = f->resumed};
    for (int k = 0; k < f->passes; k++) {
        const struct xti_tiling *c = &f->cut[k];
        i->tiles += c->tiles;
        i->reads += c->reads;
        i->writes += c->writes;
        i->read_bytes += c->read_bytes;
        i->written_bytes += f->task[k].out->elements * f->task[k].out->esize;
        i->seconds += c->seconds;
    }
}

static void array_text(const struct xti_array *a, struct xti_str *b)
{
    xti_str_addf(b, "%s ", xt_dtype_name(a->dtype));
    xti_str_list(b, a->rank, a->shape);
    xti_str_addf(b, "%s, %s%s", a->fortran ? " column-major" : "", a->said, "");
    if (xti_array_is_zarr(a)) {
        xti_str_addf(b, ", %s in chunks of ", kind_name[a->kind]);
        xti_str_list(b, a->rank, a->chunk);
    }
    xti_str_add(b, "\n");
}

static void side_text(const char *what, int64_t requests, int64_t bytes, struct xti_str *b)
{
    char all[32], each[32];
    xti_str_addf(b, "  %-9s %s in %" PRId64 " requests of %s\n", what, xti_size_text(bytes, all, sizeof all),
                 requests, xti_size_text(requests ? bytes / requests : 0, each, sizeof each));
}

static void pass_text(const struct xt_files *f, int k, struct xti_str *b)
{
    const struct xti_tiling *c = &f->cut[k];
    const struct xti_task *t = &f->task[k];
    char src[32], dst[32];
    if (f->passes > 1)
        xti_str_addf(b, "pass %d, %s\n", k + 1,
                     k ? "from the temporary file" : "into a temporary file of tiles");
    xti_str_addf(b, "  %-9s ", "tiles");
    xti_str_list(b, t->to.n, c->n);
    xti_str_add(b, " of ");
    xti_str_list(b, t->to.n, t->to.extent);
    xti_str_addf(b, ", %" PRId64 " of them: %s read, %s written%s\n", c->tiles,
                 xti_size_text(c->src_bytes, src, sizeof src), xti_size_text(c->dst_bytes, dst, sizeof dst),
                 c->depth > 1 ? ", two in memory" : "");
    side_text("reads", c->reads, c->read_bytes, b);
    side_text("writes", c->writes, t->out->elements * t->out->esize, b);
}

void xti_files_text(const struct xt_files *f, struct xti_str *b)
{
    struct xt_files_info i;
    char memory[32];
    xti_files_info(f, &i);
    for (int k = 0; k < f->n; k++) {
        xti_str_addf(b, "%-11.40s ", f->chain->node[f->chain->input[k]].name);
        array_text(&f->in[k], b);
    }
    xti_str_addf(b, "%-11s ", "result");
    array_text(&f->out, b);
    for (int k = 0; k < f->passes; k++)
        pass_text(f, k, b);
    xti_str_addf(b, "memory      %s of buffers; %d requests under way\n",
                 xti_size_text(i.memory_bytes, memory, sizeof memory), f->requests);
    xti_str_addf(b, "predicted   %.3g s in %d pass%s", i.seconds, f->passes, f->passes == 1 ? "" : "es");
    const struct xti_curve *c = &f->curve;
    if (c->runs)
        xti_str_addf(b, "; as %d run%s on this disk took", c->runs, c->runs == 1 ? "" : "s");
    else
        xti_str_add(b, "; by a short probe or a guess: twice as much is possible");
    xti_str_add(b, "\n");
    if (f->other_requests)
        xti_str_addf(b, "otherwise   %.3g s in %s, of %" PRId64 " requests\n", f->other_seconds,
                     f->passes == 1 ? "2 passes" : "1 pass", f->other_requests);
    else if (f->other_seconds)
        xti_str_addf(b, "otherwise   %.3g s at least in 2 passes\n", f->other_seconds);
}

static void pass_json(const struct xt_files *f, int k, struct xti_str *b)
{
    const struct xti_tiling *c = &f->cut[k];
    xti_str_addf(b, "%s{\"axes\": ", k ? ", " : "");
    xti_str_list(b, f->task[k].to.n, f->task[k].to.extent);
    xti_str_add(b, ", \"tile\": ");
    xti_str_list(b, f->task[k].to.n, c->n);
    xti_str_addf(b,
                 ", \"tiles\": %" PRId64 ", \"in_memory\": %d, \"reads\": %" PRId64 ", \"writes\": %" PRId64
                 ", \"read_bytes\": %" PRId64 ", \"written_bytes\": %" PRId64 ", \"seconds\": %.6g}",
                 c->tiles, c->depth, c->reads, c->writes, c->read_bytes,
                 f->task[k].out->elements * f->task[k].out->esize, c->seconds);
}

void xti_files_json(const struct xt_files *f, struct xti_str *b)
{
    struct xt_files_info i;
    xti_files_info(f, &i);
    xti_str_add(b, "{\"passes\": [");
    for (int k = 0; k < f->passes; k++)
        pass_json(f, k, b);
    xti_str_addf(b,
                 "], \"memory_bytes\": %" PRId64
                 ", \"requests\": %d, \"seconds\": %.6g, \"other_seconds\": %.6g, "
                 "\"other_requests\": %" PRId64 ", \"runs\": %d}",
                 i.memory_bytes, f->requests, i.seconds, f->other_seconds, f->other_requests, f->curve.runs);
}
