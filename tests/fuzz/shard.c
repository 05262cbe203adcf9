/* shard.c: problem lines over a mesh, the first two bytes a rank. What can be planned is looked at, but for
 * large meshes: each pair of ranks takes 80 us to 3 ms, ten times as much here; a small mesh runs, every rank
 * with arrays of exactly their sizes, and no message is left. */
#include "fuzz.h"

#include "graph/mesh.h"
#include "shard/shard.h"
#include "support/mailbox.h"

enum {
    MAX_PLANNED = 64,
    MAX_RANKS = 6,
    MAX_BYTES = 1 << 14,
    MAX_INPUTS = 16,
    MESSAGE_BYTES = 64,
    MAX_ROUNDS = 100000
};

/* Bytes of the rank's array; -1: too many. */
static int64_t bytes_of(const struct xt_shard *p, int input, int64_t rank)
{
    struct xt_end_info e = {.size = sizeof e};
    must(!xt_shard_shape(p, input, rank, &e));
    return e.from_bytes >= 0 && e.to_bytes <= MAX_BYTES ? e.to_bytes : -1;
}

static bool is_large(const char *line)
{
    struct xt_graph *g;
    struct xti_mesh m;
    struct xti_err err = {0};
    if (xti_parse_mesh(line, &g, &m, &err))
        return false; /* xt_shard_new says so, too */
    bool large = m.ranks > MAX_PLANNED;
    xt_graph_free(g);
    xti_mesh_free(&m);
    return large;
}

static void look(const struct xt_shard *p, int64_t rank)
{
    struct xt_shard_info info = {.size = sizeof info};
    size_t need;
    must(!xt_shard_get(p, &info) && info.ranks == xt_shard_ranks(p) && info.rank == rank);
    for (int flags = 0; flags <= XT_JSON; flags++)
        must(!xt_shard_explain(p, flags, NULL, 0, &need) && need > 1);
    for (int i = -1; i < xt_shard_inputs(p); i++)
        bytes_of(p, i, rank);
}

static bool is_small(const struct xt_shard *p)
{
    bool small = xt_shard_ranks(p) <= MAX_RANKS && xt_shard_inputs(p) <= MAX_INPUTS;
    for (int r = 0; small && r < xt_shard_ranks(p); r++)
        for (int i = -1; small && i < xt_shard_inputs(p); i++)
            small = bytes_of(p, i, r) >= 0;
    return small;
}

static void run(const char *line, int ranks)
{
    struct xt_shard *p[MAX_RANKS] = {0};
    void *dst[MAX_RANKS] = {0}, *src[MAX_RANKS][MAX_INPUTS] = {{0}};
    struct mailbox *m = mailbox_new(ranks, 1);
    bool going = true;
    for (int r = 0; r < ranks; r++) {
        must(!xti_shard_new(line, r, mailbox_end(m, r), MESSAGE_BYTES, &p[r]));
        dst[r] = calloc(1, (size_t)bytes_of(p[r], -1, r));
        for (int i = 0; i < xt_shard_inputs(p[r]); i++)
            src[r][i] = calloc(1, (size_t)bytes_of(p[r], i, r));
        must(!xt_shard_start(p[r], dst[r], (const void *const *)src[r]));
    }
    for (int round = 0; going; round++) {
        must(round < MAX_ROUNDS);
        going = false;
        for (int r = 0, done; r < ranks; r++) {
            must(!xt_shard_test(p[r], &done));
            going |= !done;
        }
    }
    must(!mailbox_wrong(m) && !mailbox_free(m));
    for (int r = 0; r < ranks; r++) {
        for (int i = 0; i < xt_shard_inputs(p[r]); i++)
            free(src[r][i]);
        free(dst[r]);
        xt_shard_free(p[r]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes b = {data, size};
    int64_t rank = take(&b);
    struct xt_shard *p;
    rank = rank << 8 | take(&b);
    char *line = malloc(b.n + 1);
    memcpy(line, b.p, b.n);
    line[b.n] = 0;
    if (is_large(line)) {
        free(line);
        return 0;
    }
    xt_status s = xt_shard_new(line, rank, NULL, &p);
    must(s == xt_last_error()->status && !s == !!p && !s == !*xt_last_error()->message);
    if (!s) {
        look(p, rank);
        if (is_small(p))
            run(line, (int)xt_shard_ranks(p));
        xt_shard_free(p);
    }
    free(line);
    return 0;
}
