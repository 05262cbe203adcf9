/* describe.c: see describe.h. Layer 4. */
#include "cuda/describe.h"

#include <inttypes.h>
#include <math.h>

#include "cuda/box.h"
#include "cuda/family.h"
#include "cuda/predict.h"

static int load_bytes(const struct xti_cuda_plan *p, const struct xti_cuda_step *s)
{
    return p->map.piece[s->piece].src < 0 ? 0 : s->src_bytes;
}

/* The extents of a box, the destination's outermost dim first. */
static void add_box(const struct xti_box *box, const char *between, struct xti_str *b)
{
    for (int j = box->n - 1; j >= 0; j--)
        xti_str_addf(b, "%" PRId64 "%s", box->dim[j].t, j ? between : "");
}

void xti_cuda_box_text(const struct xti_cuda_plan *p, const struct xti_cuda_step *s, struct xti_str *b)
{
    add_box(s->box, " x ", b);
}

struct xti_cuda_words xti_cuda_family_words(enum xti_cuda_family f)
{
    static const struct xti_cuda_words words[XTI_CUDA_FAMILY_COUNT] = {
        [XTI_CUDA_TILE] = {"a transpose", "boxes change their order in shared memory"},
        [XTI_CUDA_WEAVE] = {"elements in and out of step", "threads permute the bytes of wide accesses"},
        [XTI_CUDA_SEGMENTS] = {"rows from several places", "threads store 16 aligned bytes at a time"},
        [XTI_CUDA_PACKED] = {"short records of several parts", "they are put together in shared memory"},
        [XTI_CUDA_CONTIGUOUS] = {"a plain copy", "it is copied whole"},
        [XTI_CUDA_FILL] = {"a fill", NULL},
        [XTI_CUDA_ROWS] = {"a copy of runs", "each run is copied by wide accesses"},
        [XTI_CUDA_BROADCAST] = {"a broadcast", "each element is repeated along the row that it fills"},
        [XTI_CUDA_REVERSED] = {"a reversed copy", "wide accesses are reversed in registers"},
        [XTI_CUDA_GENERIC] = {"a copy by elements", "each thread finds its element by the map"},
    };
    if (words[f].what)
        return words[f];
    return (struct xti_cuda_words){xti_cuda_family_name(f), NULL};
}

void xti_cuda_step_text(const struct xti_cuda_plan *p, const struct xti_cuda_step *s, struct xti_str *b)
{
    int load = load_bytes(p, s);
    xti_str_addf(b, "%s, ", xti_cuda_family_name(s->family));
    if (load && load != s->dst_bytes)
        xti_str_addf(b, "%d-byte loads and %d-byte stores", load, s->dst_bytes);
    else
        xti_str_addf(b, "%d-byte %sstores", s->dst_bytes, load ? "loads and " : "");
    if (s->family == XTI_CUDA_TILE) {
        xti_str_add(b, ", a box of ");
        add_box(s->box, " x ", b);
        xti_str_addf(b, " units of %d bytes, %" PRId64 " B shared", p->map.esize, s->shared_bytes);
    } else {
        xti_str_addf(b, ", %d a thread", s->per_thread);
    }
    xti_str_addf(b, ", blocks %" PRId64 "..%" PRId64 " of %d threads", s->first_block,
                 s->first_block + s->blocks - 1, p->threads_per_block);
}

void xti_cuda_step_json(const struct xti_cuda_plan *p, const struct xti_cuda_step *s, struct xti_str *b)
{
    xti_str_addf(b,
                 "{\"family\": \"%s\", \"piece\": %d, \"load_bytes\": %d, \"store_bytes\": %d, "
                 "\"first_block\": %" PRId64 ", \"blocks\": %" PRId64 ", \"shared_bytes\": %" PRId64
                 ", \"box\": ",
                 xti_cuda_family_name(s->family), s->piece, load_bytes(p, s), s->dst_bytes, s->first_block,
                 s->blocks, s->shared_bytes);
    if (s->family == XTI_CUDA_TILE) {
        xti_str_add(b, "[");
        add_box(s->box, ", ", b);
        xti_str_add(b, "]}");
    } else {
        xti_str_add(b, "null}");
    }
}

/* Requested over needed; a side without any asks for nothing too much. */
static double ratio(const struct xti_sectors *s) { return s->needed > 0 ? s->requested / s->needed : 1; }

void xti_cuda_prediction_text(const struct xti_cuda_plan *p, struct xti_str *b)
{
    struct xti_cuda_prediction x;
    if (!xti_cuda_predict(p, &x))
        return;
    xti_str_addf(b, "  predicted %.2f of the sectors needed read, %.2f written", ratio(&x.load),
                 ratio(&x.store));
    if (x.parts > x.store.needed / 100)
        xti_str_addf(b, ", %.2f in parts by two blocks", x.parts / x.store.needed);
    xti_str_addf(b, "; %.0f instructions for 16 B", x.instructions);
    if (!isinf(x.in_flight))
        xti_str_addf(b, "; %.0f KB in flight an SM", x.in_flight / 1024);
    xti_str_addf(b, ": an estimated %.2f of a device copy\n", x.fraction);
}

void xti_cuda_prediction_json(const struct xti_cuda_plan *p, struct xti_str *b)
{
    struct xti_cuda_prediction x;
    if (!xti_cuda_predict(p, &x)) {
        xti_str_add(b, "null");
        return;
    }
    xti_str_addf(
        b,
        "{\"load_sectors\": %.0f, \"load_needed\": %.0f, \"store_sectors\": %.0f, \"store_needed\": "
        "%.0f, \"store_parts\": %.0f, \"instructions_per_16B\": %.1f, \"bytes_in_flight_per_sm\": %.0f, "
        "\"estimate\": %.2f}",
        x.load.requested, x.load.needed, x.store.requested, x.store.needed, x.parts, x.instructions,
        isinf(x.in_flight) ? 0 : x.in_flight, x.fraction);
}
