/* words.c: the first lines of an explanation: what fusing saves, and the way that was taken in plain words.
 * Layer 6. */
#include "api/explain.h"

#include <inttypes.h>
#include <string.h>

#include "cuda/describe.h"
#include "cuda/segments.h"

void xti_add_bytes(double bytes, struct xti_str *b)
{
    static const char *const unit[] = {"bytes", "KB", "MB", "GB", "TB", "PB", "EB"};
    int i = 0;
    if (bytes < 9999.5) {
        xti_str_addf(b, "%.0f byte%s", bytes, bytes == 1 ? "" : "s");
        return;
    }
    for (; bytes >= 999.5 && i < 6; i++)
        bytes /= 1000;
    xti_str_addf(b, "%.*f %s", bytes < 9.995 ? 2 : bytes < 99.95 ? 1 : 0, bytes, unit[i]);
}

/* " copies once, too"; " copies 2 times, 384 bytes" */
static void times_text(const struct xti_copies *c, double moved, const char *verb, struct xti_str *b)
{
    if (c->n == 1 && c->bytes == moved) {
        xti_str_addf(b, "%s once, too", verb);
        return;
    }
    xti_str_addf(b, c->n == 1 ? "%s once, " : "%s %d times, ", verb, c->n);
    xti_add_bytes(c->bytes, b);
}

/* ", 192 bytes in all; NumPy copies once, too; PyTorch 2 times, 384 bytes". Of one operation nothing where
 * they copy once. */
static void libraries_text(const struct xti_cost_of_steps *s, double moved, struct xti_str *b)
{
    bool same = s->numpy.n == s->pytorch.n && s->numpy.bytes == s->pytorch.bytes;
    if (same && s->numpy.n == 1 && s->operations < 2)
        return;
    if (s->numpy.n != 1 || s->numpy.bytes != moved || !same) {
        xti_str_add(b, ", ");
        xti_add_bytes(moved, b);
        xti_str_add(b, " in all");
    }
    xti_str_add(b, same ? "; NumPy and PyTorch" : "; NumPy");
    times_text(&s->numpy, moved, same ? " copy" : " copies", b);
    if (same)
        return;
    xti_str_add(b, "; PyTorch");
    times_text(&s->pytorch, moved, "", b);
}

/* Of all inputs from the first element that is read to the last. */
static double source_bytes(const struct xti_map *m)
{
    double elements = 0;
    for (int i = 0; i < m->n_srcs; i++)
        if (m->src_hi[i] >= m->src_lo[i])
            elements += (double)m->src_hi[i] - (double)m->src_lo[i] + 1;
    return elements * m->esize;
}

void xti_explain_saved(const struct xt_kernel *k, struct xti_str *b)
{
    struct xti_cost_of_steps steps;
    struct xt_kernel_info info = {.size = sizeof info};
    if (!xti_explain_steps(k, &steps) || xt_kernel_get(k, &info)) {
        b->failed = true;
        return;
    }
    if (!k->map->n_pieces) {
        xti_str_add(b, "nothing to copy: the result is empty");
        return;
    }
    if (steps.operations > 1)
        xti_str_addf(b, "%d operations in ", steps.operations);
    xti_str_add(b, "one copy: ");
    xti_add_bytes((double)info.bytes_read, b);
    xti_str_add(b, " read");
    if (source_bytes(k->map) < (double)info.bytes_read) {
        xti_str_add(b, " from ");
        xti_add_bytes(source_bytes(k->map), b);
    }
    xti_str_add(b, ", ");
    xti_add_bytes((double)info.bytes_written, b);
    xti_str_add(b, " written");
    libraries_text(&steps, (double)info.bytes_read + (double)info.bytes_written, b);
}

/* ---- the way */

struct words {
    const char *what, *how;
};

/* Of the i-th step of a plan. */
static struct words words_of(const struct xt_kernel *k, int i)
{
    if (k->backend == XT_CUDA) {
        struct xti_cuda_words w = xti_cuda_family_words(k->cuda->step[i].family);
        return (struct words){w.what, w.how};
    }
    const struct xti_strategy *s = k->plan->step[i].strategy;
    return (struct words){s->what, s->how};
}

static int n_steps(const struct xt_kernel *k)
{
    return k->backend == XT_CUDA ? k->cuda->n_steps : k->backend == XT_CPU ? k->plan->n_steps : 0;
}

/* Bytes that a step of the kernel writes; guards are not asked. */
static double step_bytes(const struct xt_kernel *k, int i)
{
    const struct xti_map *m = k->backend == XT_CUDA ? &k->cuda->map : &k->plan->map;
    if (k->backend == XT_CPU && k->plan->joint.n && !i) { /* all that the others leave */
        double others = 0;
        for (int j = 1; j < k->plan->n_steps; j++)
            others += step_bytes(k, j);
        return (double)m->numel * m->esize - others;
    }
    const struct xti_cuda_step *c = k->backend == XT_CUDA ? &k->cuda->step[i] : NULL;
    double points = 0;
    if (c && c->rows)
        for (int j = 0; j < c->rows->n_pieces; j++)
            points += (double)xti_piece_numel(&m->piece[c->rows->piece[j]]);
    else
        points = (double)xti_piece_numel(&m->piece[c ? c->piece : k->plan->step[i].piece]);
    return points * m->esize;
}

static void run_text(int64_t bytes, struct xti_str *b)
{
    xti_str_add(b, "runs of ");
    xti_add_bytes((double)bytes, b);
    if (bytes < XTI_LINE)
        xti_str_addf(b, " of a %d-byte line", XTI_LINE);
}

static void threads_text(const struct xt_kernel *k, struct xti_str *b)
{
    const struct xti_plan *p = k->plan;
    bool shared = p->assembled || p->n_steps > 1;
    for (int i = 0; i < p->n_steps; i++)
        shared |= p->step[i].split >= 0;
    int n = shared ? xti_plan_threads(p->target.threads, p->bytes_written) : 1;
    xti_str_addf(b, "; %d thread%s", n, n == 1 ? "" : "s");
}

/* "; 6 % of the bytes by a fill": what else there is, the same words once. */
static void others_text(const struct xt_kernel *k, const char *main, double all, struct xti_str *b)
{
    enum { MOST = 4 };
    const char *said[MOST];
    int n = 0;
    for (int i = 0; i < n_steps(k) && n < MOST; i++) {
        const char *what = words_of(k, i).what;
        bool known = what == main;
        for (int j = 0; j < n; j++)
            known |= said[j] == what;
        if (known)
            continue;
        double bytes = 0;
        for (int j = i; j < n_steps(k); j++)
            bytes += words_of(k, j).what == what ? step_bytes(k, j) : 0;
        double percent = 100 * bytes / all;
        xti_str_addf(b, n ? ", %.*f %% %s" : "; %.*f %% of the bytes by %s", percent < 9.5 ? 1 : 0, percent,
                     what);
        said[n++] = what;
    }
}

static bool fills(const struct xt_kernel *k, int i)
{
    return k->backend == XT_CUDA ? k->cuda->step[i].family == XTI_CUDA_FILL
                                 : k->plan->map.piece[k->plan->step[i].piece].src < 0;
}

/* The largest step of the way that writes the most bytes, of those that copy where there are any; of very
 * many steps, the largest. */
static int main_step(const struct xt_kernel *k)
{
    enum { MANY = 256 };
    double most = -1, largest = -1;
    int best = 0, n = n_steps(k);
    bool copies = false;
    for (int i = 0; i < n; i++)
        copies |= !fills(k, i);
    for (int i = 0; i < n; i++) {
        if (copies && fills(k, i))
            continue;
        double own = step_bytes(k, i), all = own;
        for (int j = 0; j < n && n <= MANY; j++)
            all += j != i && words_of(k, j).what == words_of(k, i).what ? step_bytes(k, j) : 0;
        if (all > most || (all == most && own > largest))
            most = all, largest = own, best = i;
    }
    return best;
}

const char *xti_kernel_way(const struct xt_kernel *k)
{
    return !k->map->n_pieces      ? "nothing to copy"
           : k->backend == XT_REF ? "the reference"
                                  : words_of(k, main_step(k)).what;
}

void xti_explain_way(const struct xt_kernel *k, struct xti_str *b)
{
    const struct xti_piece *piece = xti_main_piece(k->map);
    if (!piece)
        return;
    if (k->backend == XT_REF) {
        xti_str_add(b, "the reference: each operation by its definition, element by element");
        return;
    }
    double all = (double)k->map->numel * k->map->esize;
    int best = main_step(k);
    struct words w = words_of(k, best);
    xti_str_add(b, w.what);
    if (w.how) {
        xti_str_add(b, ": ");
        run_text(xti_common_run(piece) * k->map->esize, b);
        xti_str_addf(b, ", so %s", w.how);
    }
    if (n_steps(k) > 1 && n_steps(k) <= 256)
        others_text(k, w.what, all, b);
    if (k->backend == XT_CUDA) {
        xti_str_addf(b, "; %" PRId64 " block%s of %d threads", k->cuda->grid, k->cuda->grid == 1 ? "" : "s",
                     k->cuda->threads_per_block);
        return;
    }
    if (k->plan->step[best].store.stream)
        xti_str_add(b, "; written past the caches");
    threads_text(k, b);
}

void xti_explain_why(const struct xt_kernel *k, struct xti_str *b)
{
    struct xti_str refused = {0};
    const struct xti_measured *m = &k->shared->measured;
    if (!n_steps(k))
        return;
    if (k->backend == XT_CPU && m->tried)
        xti_str_addf(b, "\nwhy: it is the fastest of %d plans that were timed here", m->tried);
    else
        xti_str_addf(
            b, "\nwhy: ways are asked in order, the most special first, and this is the first that fits%s",
            k->backend == XT_CPU ? " and whose estimate is not several times what its memory costs" : "");
    xti_kernel_refusals(k, &refused);
    if (refused.n)
        xti_str_add(b, "; what others lack stands behind \"refused\" below");
    b->failed |= refused.failed;
    xti_str_free(&refused);
}
