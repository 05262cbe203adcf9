/* bench_mpi.c: tensors whose axes are permuted while they move from blocks of one axis to blocks of another:
 * xt beside what MPI and FFTW have for it. Run by mpirun; `bench_mpi [ROW ..] [-w WAY] [-r rounds]`, of ways
 * those with WAY in their names. The ways take turns, round by round. Prints milliseconds of the slowest
 * rank, the best of the rounds and the median, and how the best other way whose source lies in the same kind
 * of memory compares; every way's result is compared, all bytes. */
#include <xt/xt_mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#ifdef WITH_FFTW
#include <fftw3-mpi.h>
#endif

enum { PAGE = 2 << 20, RANK = 5, MAX_PEERS = 64, MAX_ROUNDS = 64, MOST_SECONDS = 2 /* of a way */ };

struct row {
    const char *name, *dtype;
    int rank;
    int64_t shape[RANK];
    int perm[RANK], from, to; /* axes that are cut: of the source, of the result */
};

/* clang-format off */
static const struct row rows[] = {
    {"T", "f64", 2, {4096, 8192}, {1, 0}, 0, 0},
    {"Q", "f32", 4, {256, 64, 64, 64}, {3, 1, 2, 0}, 0, 0},
    {"K", "f16", 4, {2048, 16, 32, 128}, {0, 1, 2, 3}, 2, 0},
    {"T32", "f32", 2, {4096, 4096}, {1, 0}, 0, 0},
    {"T16", "f16", 2, {4096, 8192}, {1, 0}, 0, 0},
    {"T8", "u8", 2, {8192, 8192}, {1, 0}, 0, 0},
    {"Tc", "c128", 2, {2048, 2048}, {1, 0}, 0, 0},
    {"Todd", "f64", 2, {2999, 3001}, {1, 0}, 0, 0},
    {"Twide", "f64", 2, {64, 131072}, {1, 0}, 0, 0},
    {"Ttall", "f64", 2, {131072, 64}, {1, 0}, 0, 0},
    {"recut", "f64", 2, {4096, 2048}, {0, 1}, 0, 1},
    {"rows", "f32", 2, {2048, 8192}, {0, 1}, 1, 0},
    {"pencil", "c64", 3, {256, 128, 256}, {0, 1, 2}, 0, 1},
    {"fft3", "c128", 3, {160, 160, 160}, {1, 0, 2}, 0, 0},
    {"fft3t", "c128", 3, {160, 160, 160}, {2, 1, 0}, 0, 0},
    {"zyx", "f32", 3, {256, 256, 256}, {2, 1, 0}, 0, 0},
    {"zyxodd", "f32", 3, {251, 255, 257}, {2, 1, 0}, 0, 0},
    {"heads", "f16", 4, {16, 512, 16, 128}, {0, 2, 1, 3}, 0, 1},
    {"heads2", "f16", 4, {16, 512, 16, 128}, {0, 2, 1, 3}, 1, 1},
    {"nchw", "u8", 4, {32, 512, 512, 3}, {0, 3, 1, 2}, 0, 2},
    {"nhwc", "f32", 4, {32, 64, 96, 96}, {0, 2, 3, 1}, 0, 3},
    {"experts", "f16", 3, {64, 256, 2048}, {1, 0, 2}, 0, 0},
    {"five", "f32", 5, {16, 32, 8, 64, 64}, {4, 1, 3, 2, 0}, 0, 0},
};
/* clang-format on */

static int me, ranks;
static MPI_Comm world;

static void die(const char *what)
{
    fprintf(stderr, "rank %d: %s: %s\n", me, what, xt_last_error()->message);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* ---- a row's numbers on this rank */

struct half {
    int64_t lo, n;
};
static struct half block(int64_t n, int r)
{
    int64_t c = (n + ranks - 1) / ranks, lo = c * r < n ? c * r : n;
    return (struct half){lo, lo + c < n ? c : n - lo};
}

struct problem {
    const struct row *row;
    size_t size;
    xt_dtype dtype;
    int64_t src_shape[RANK], dst_shape[RANK], src_st[RANK], dst_st[RANK]; /* local; strides in elements */
    int64_t src_n, dst_n, src_lo, dst_lo;
    char *src, *seen, *dst; /* seen: the source, in memory of xt_mpi_alloc */
    char *buf[2];           /* staging of the ways that have one */
};

static int64_t dense(int n, const int64_t *shape, int64_t *st)
{
    int64_t all = 1;
    for (int i = n - 1; i >= 0; i--) {
        st[i] = all;
        all *= shape[i];
    }
    return all;
}

/* Byte b of the element at a place of the whole source. */
static unsigned char byte_of(int64_t at, size_t b)
{
    return (unsigned char)((uint64_t)(at * 16 + (int64_t)b) * 0x9e3779b97f4a7c15u >> 53);
}

/* Calls for each element of a local array: its place in the whole source. */
static int walk(const struct problem *p, int n, const int64_t *shape, const int64_t *weight, int64_t base,
                char *at, int check)
{
    int64_t i[RANK] = {0}, place = base;
    int wrong = 0, k;
    do {
        for (size_t b = 0; b < p->size; b++)
            if (check)
                wrong |= at[b] != (char)byte_of(place, b);
            else
                at[b] = (char)byte_of(place, b);
        at += p->size;
        for (k = n - 1; k >= 0; k--) {
            place += weight[k];
            if (++i[k] < shape[k])
                break;
            place -= weight[k] * shape[k];
            i[k] = 0;
        }
    } while (k >= 0);
    return wrong;
}

static void each_source(struct problem *p, char *to)
{
    int64_t whole[RANK];
    dense(p->row->rank, p->row->shape, whole);
    if (p->src_n)
        walk(p, p->row->rank, p->src_shape, whole, p->src_lo * whole[p->row->from], to, 0);
}

static int is_wrong(struct problem *p)
{
    int64_t whole[RANK], weight[RANK];
    dense(p->row->rank, p->row->shape, whole);
    for (int i = 0; i < p->row->rank; i++)
        weight[i] = whole[p->row->perm[i]];
    return p->dst_n && walk(p, p->row->rank, p->dst_shape, weight, p->dst_lo * weight[p->row->to], p->dst, 1);
}

/* In large pages, as NumPy's arrays: with small ones a process was up to three times as slow as the next. */
static void *touched(int64_t bytes)
{
    size_t all = (size_t)(bytes / PAGE + 1) * PAGE;
    void *at = aligned_alloc(PAGE, all);
    if (!at)
        die("out of memory");
    madvise(at, all, MADV_HUGEPAGE);
    memset(at, 1, (size_t)bytes);
    return at;
}

static void setup(const struct row *r, struct problem *p)
{
    *p = (struct problem){.row = r};
    xt_dtype_parse(r->dtype, &p->dtype);
    p->size = xt_dtype_bytes(p->dtype);
    for (int i = 0; i < r->rank; i++) {
        p->src_shape[i] = r->shape[i];
        p->dst_shape[i] = r->shape[r->perm[i]];
    }
    struct half s = block(p->src_shape[r->from], me), d = block(p->dst_shape[r->to], me);
    p->src_shape[r->from] = s.n;
    p->dst_shape[r->to] = d.n;
    p->src_lo = s.lo;
    p->dst_lo = d.lo;
    p->src_n = dense(r->rank, p->src_shape, p->src_st);
    p->dst_n = dense(r->rank, p->dst_shape, p->dst_st);
    p->src = touched(p->src_n * (int64_t)p->size);
    p->dst = touched(p->dst_n * (int64_t)p->size);
    p->buf[0] = touched(p->src_n * (int64_t)p->size);
    p->buf[1] = touched(p->dst_n * (int64_t)p->size);
    if (xt_mpi_alloc(world, (size_t)p->src_n * p->size, (void **)&p->seen))
        die("xt_mpi_alloc");
    each_source(p, p->src);
    memcpy(p->seen, p->src, (size_t)p->src_n * p->size);
}

static void cleanup(struct problem *p)
{
    free(p->src);
    free(p->dst);
    free(p->buf[0]);
    free(p->buf[1]);
    xt_mpi_release(p->seen);
}

/* ---- what a way has made: all of a row's are there at once, and their rounds take turns */

struct made {
    struct xt_mpi_plan *plan;
    MPI_Datatype send_type[MAX_PEERS], recv_type[MAX_PEERS];
    int one_or_none[2][MAX_PEERS];
    struct xt_kernel *pack[MAX_PEERS], *unpack[MAX_PEERS];
    int counts[2][MAX_PEERS], starts[2][MAX_PEERS];
};
static struct made *m; /* of the way at hand */

/* ---- xt over the mesh */

static void list(char *text, int n, const int64_t *shape, int cut)
{
    strcat(text, "[");
    for (int i = 0; i < n; i++)
        sprintf(text + strlen(text), "%s%lld%s", i ? "," : "", (long long)shape[i], i == cut ? " r" : "");
    strcat(text, "]");
}

static int make_xt(struct problem *p)
{
    const struct row *r = p->row;
    char line[512];
    int64_t out[RANK];
    sprintf(line, "mesh r[%d]; x: %s", ranks, r->dtype);
    list(line, r->rank, r->shape, r->from);
    strcat(line, "; x.permute(");
    for (int i = 0; i < r->rank; i++) {
        sprintf(line + strlen(line), "%s%d", i ? "," : "", r->perm[i]);
        out[i] = r->shape[r->perm[i]];
    }
    strcat(line, ") -> ");
    list(line, r->rank, out, r->to);
    if (xt_mpi_plan(line, world, &m->plan))
        die(line);
    return 1;
}
static void run_xt(struct problem *p)
{
    if (xt_mpi_run(m->plan, p->dst, (const void *[]){p->src}))
        die("xt_mpi_run");
}
static void run_xt_seen(struct problem *p)
{
    if (xt_mpi_run(m->plan, p->dst, (const void *[]){p->seen}))
        die("xt_mpi_run");
}
static void free_xt(void) { xt_mpi_free(m->plan); }

/* ---- boxes between ranks, as MPI and hand-written packing want them */

struct box {
    int64_t n[RANK], src_off, dst_off, elements; /* extents in the order of the result's axes */
    int64_t src_st[RANK], dst_st[RANK];
};

/* What rank a sends to b; offsets are those of the end that is here. */
static struct box between(const struct problem *p, int a, int b)
{
    const struct row *r = p->row;
    struct box x = {.elements = 1};
    struct half s = block(r->shape[r->from], a), d = block(r->shape[r->perm[r->to]], b);
    int64_t lo[RANK], n[RANK];
    for (int i = 0; i < r->rank; i++) {
        lo[i] = 0;
        n[i] = r->shape[i];
    }
    lo[r->from] = s.lo;
    n[r->from] = s.n;
    int k = r->perm[r->to];
    int64_t hi = lo[k] + n[k] < d.lo + d.n ? lo[k] + n[k] : d.lo + d.n;
    lo[k] = lo[k] > d.lo ? lo[k] : d.lo;
    n[k] = hi > lo[k] ? hi - lo[k] : 0;
    for (int i = 0; i < r->rank; i++) {
        int j = r->perm[i];
        x.n[i] = n[j];
        x.elements *= n[j];
        x.src_st[i] = p->src_st[j];
        x.dst_st[i] = p->dst_st[i];
        x.src_off += (lo[j] - (j == r->from ? s.lo : 0)) * p->src_st[j];
        x.dst_off += (lo[j] - (i == r->to ? d.lo : 0)) * p->dst_st[i];
    }
    return x;
}

/* A type whose elements come in the order of axes order[0..], the last the fastest. */
static MPI_Datatype strided_type(const struct problem *p, const struct box *x, const int64_t *st,
                                 const int *order, int64_t off)
{
    MPI_Datatype t, u;
    int one = 1;
    MPI_Aint at = (MPI_Aint)(off * (int64_t)p->size);
    if (!x->elements) {
        MPI_Type_contiguous(0, MPI_BYTE, &t);
        MPI_Type_commit(&t);
        return t;
    }
    MPI_Type_contiguous((int)p->size, MPI_BYTE, &t);
    for (int k = p->row->rank - 1; k >= 0; k--) {
        int i = order[k];
        MPI_Type_create_hvector((int)x->n[i], 1, (MPI_Aint)(st[i] * (int64_t)p->size), t, &u);
        MPI_Type_free(&t);
        t = u;
    }
    MPI_Type_create_hindexed(1, &one, &at, t, &u);
    MPI_Type_free(&t);
    MPI_Type_commit(&u);
    return u;
}

static int zero[MAX_PEERS];

static void run_w(struct problem *p, char *to)
{
    MPI_Alltoallw(p->src, m->one_or_none[0], zero, m->send_type, to, m->one_or_none[1], zero, m->recv_type,
                  world);
}

static void free_types(void)
{
    for (int i = 0; i < ranks; i++) {
        MPI_Type_free(&m->send_type[i]);
        MPI_Type_free(&m->recv_type[i]);
    }
}

static void source_order(const struct problem *p, int *order)
{
    for (int i = 0; i < p->row->rank; i++)
        order[p->row->perm[i]] = i;
}

/* Types that permute: both sides name the elements in the result's order. */
static int make_types(struct problem *p)
{
    int order[RANK];
    for (int i = 0; i < p->row->rank; i++)
        order[i] = i;
    for (int i = 0; i < ranks; i++) {
        struct box s = between(p, me, i), d = between(p, i, me);
        m->send_type[i] = strided_type(p, &s, s.src_st, order, s.src_off);
        m->recv_type[i] = strided_type(p, &d, d.dst_st, order, d.dst_off);
        m->one_or_none[0][i] = s.elements > 0;
        m->one_or_none[1][i] = d.elements > 0;
    }
    return 1;
}
static void run_types(struct problem *p) { run_w(p, p->dst); }

/* ---- xt's kernels around MPI's collectives */

static struct xt_ctx *ctx;

static struct xt_kernel *copy_of(const struct problem *p, const struct box *x, const int64_t *src_st,
                                 int64_t src_off, const int64_t *dst_st, int64_t dst_off)
{
    struct xt_graph *g;
    struct xt_kernel *k;
    if (!x->elements)
        return NULL;
    xt_graph_new(&g);
    xt_node n = xt_input(g, NULL, p->dtype, p->row->rank, x->n, src_st, src_off);
    xt_output(g, n, dst_st, dst_off);
    if (xt_compile(ctx, g, NULL, &k))
        die("xt_compile");
    xt_graph_free(g);
    return k;
}

static void box_strides(const struct problem *p, const struct box *x, const int *order, int64_t *st)
{
    int64_t all = 1;
    for (int k = p->row->rank - 1; k >= 0; k--) {
        st[order[k]] = all;
        all *= x->n[order[k]];
    }
}

/* sender: it permutes; else the receiver does. */
static void make_kernels(struct problem *p, int sender)
{
    int order[RANK];
    int64_t at[2] = {0, 0}, st[RANK];
    for (int i = 0; i < p->row->rank; i++)
        order[i] = i;
    if (!sender)
        source_order(p, order);
    for (int i = 0; i < ranks; i++) {
        struct box s = between(p, me, i), d = between(p, i, me);
        box_strides(p, &s, order, st);
        m->pack[i] = copy_of(p, &s, s.src_st, s.src_off, st, at[0]);
        box_strides(p, &d, order, st);
        m->unpack[i] = copy_of(p, &d, st, at[1], d.dst_st, d.dst_off);
        m->counts[0][i] = (int)(s.elements * (int64_t)p->size);
        m->counts[1][i] = (int)(d.elements * (int64_t)p->size);
        m->starts[0][i] = (int)(at[0] * (int64_t)p->size);
        m->starts[1][i] = (int)(at[1] * (int64_t)p->size);
        at[0] += s.elements;
        at[1] += d.elements;
    }
}
static void free_kernels(void)
{
    for (int i = 0; i < ranks; i++) {
        xt_kernel_free(m->pack[i]);
        xt_kernel_free(m->unpack[i]);
        m->pack[i] = m->unpack[i] = NULL;
    }
}
static void run_kernels(struct xt_kernel **k, char *dst, const char *src)
{
    for (int i = 0; i < ranks; i++)
        if (k[i] && xt_run(k[i], dst, (const void *[]){src}, NULL))
            die("xt_run");
}

static int make_sender(struct problem *p) { return make_kernels(p, 1), 1; }
static int make_receiver(struct problem *p) { return make_kernels(p, 0), 1; }
static void run_v(struct problem *p)
{
    run_kernels(m->pack, p->buf[0], p->src);
    MPI_Alltoallv(p->buf[0], m->counts[0], m->starts[0], MPI_BYTE, p->buf[1], m->counts[1], m->starts[1],
                  MPI_BYTE, world);
    run_kernels(m->unpack, p->dst, p->buf[1]);
}

/* Subarrays out of the source, then xt permutes. */
static int make_subarrays(struct problem *p)
{
    int order[RANK];
    make_kernels(p, 0);
    source_order(p, order);
    for (int i = 0; i < ranks; i++) {
        struct box s = between(p, me, i);
        int at = m->starts[1][i];
        MPI_Datatype t;
        m->send_type[i] = strided_type(p, &s, s.src_st, order, s.src_off);
        MPI_Type_create_hindexed(1, &m->counts[1][i], (MPI_Aint[]){at}, MPI_BYTE, &t);
        MPI_Type_commit(&t);
        m->recv_type[i] = t;
        m->one_or_none[0][i] = s.elements > 0;
        m->one_or_none[1][i] = m->counts[1][i] > 0;
    }
    return 1;
}
static void run_subarrays(struct problem *p)
{
    run_w(p, p->buf[1]);
    run_kernels(m->unpack, p->dst, p->buf[1]);
}
static void free_subarrays(void)
{
    free_types();
    free_kernels();
}

/* Each rank reads the others' sources, which lie in a window, by one kernel of all of them. */
static struct xt_kernel *fused;
static const void *seen_of[MAX_PEERS];
static MPI_Win win;

static int make_window(struct problem *p)
{
    struct xt_graph *g;
    xt_node part[MAX_PEERS];
    int n = 0, axis = 0;
    void *mine;
    MPI_Win_allocate_shared((MPI_Aint)((size_t)p->src_n * p->size + 64), 1, MPI_INFO_NULL, world, &mine,
                            &win);
    memcpy(mine, p->src, (size_t)p->src_n * p->size);
    for (int i = 0; i < p->row->rank; i++)
        axis = p->row->perm[i] == p->row->from ? i : axis;
    xt_graph_new(&g);
    for (int i = 0; i < ranks; i++) {
        struct box d = between(p, i, me);
        MPI_Aint bytes;
        int unit;
        void *at;
        MPI_Win_shared_query(win, i, &bytes, &unit, &at);
        if (!d.elements)
            continue;
        int64_t shape[RANK], st[RANK], off = d.src_off;
        for (int k = 0; k < p->row->rank; k++)
            shape[k] = p->row->shape[k];
        shape[p->row->from] = block(shape[p->row->from], i).n;
        dense(p->row->rank, shape, st);
        off = 0;
        for (int k = 0; k < p->row->rank; k++)
            if (k == p->row->to && p->row->perm[k] != p->row->from)
                off = p->dst_lo * st[p->row->perm[k]];
            else if (k == p->row->to)
                off = (p->dst_lo > block(p->row->shape[p->row->from], i).lo
                           ? p->dst_lo - block(p->row->shape[p->row->from], i).lo
                           : 0) *
                      st[p->row->perm[k]];
        int64_t in_st[RANK];
        for (int k = 0; k < p->row->rank; k++)
            in_st[k] = st[p->row->perm[k]];
        seen_of[n] = at;
        part[n++] = xt_input(g, NULL, p->dtype, p->row->rank, d.n, in_st, off);
    }
    fused = NULL;
    if (n) {
        xt_node all = n == 1 ? part[0] : xt_concat(g, axis, n, part);
        xt_output(g, all, NULL, 0);
        if (xt_compile(ctx, g, NULL, &fused))
            die("window");
    }
    xt_graph_free(g);
    MPI_Barrier(world);
    return 1;
}
static void run_window(struct problem *p)
{
    MPI_Barrier(world); /* sources are there */
    if (fused && xt_run(fused, p->dst, seen_of, NULL))
        die("window");
    MPI_Barrier(world); /* and were read */
}
static void free_window(void)
{
    xt_kernel_free(fused);
    MPI_Win_free(&win);
}

/* ---- FFTW's transpose: matrices of doubles */
#ifdef WITH_FFTW
static fftw_plan fftw;
static double *in, *out;
static int make_fftw(struct problem *p)
{
    const struct row *r = p->row;
    ptrdiff_t a, b, c, d;
    if (r->rank != 2 || r->perm[0] != 1 || r->from || r->to || (p->size != 8 && p->size != 16))
        return 0;
    ptrdiff_t many = (ptrdiff_t)p->size / 8;
    ptrdiff_t n = fftw_mpi_local_size_many_transposed(2, (ptrdiff_t[]){r->shape[0], r->shape[1]}, many,
                                                      FFTW_MPI_DEFAULT_BLOCK, FFTW_MPI_DEFAULT_BLOCK, world,
                                                      &a, &b, &c, &d);
    in = fftw_alloc_real((size_t)n);
    out = fftw_alloc_real((size_t)n);
    fftw = fftw_mpi_plan_many_transpose(r->shape[0], r->shape[1], many, FFTW_MPI_DEFAULT_BLOCK,
                                        FFTW_MPI_DEFAULT_BLOCK, in, out, world, FFTW_MEASURE);
    memcpy(in, p->src, (size_t)p->src_n * p->size);
    return fftw != NULL;
}
static void run_fftw(struct problem *p)
{
    (void)p;
    fftw_mpi_execute_r2r(fftw, in, out);
}
static void finish_fftw(struct problem *p) { memcpy(p->dst, out, (size_t)p->dst_n * p->size); }
static void free_fftw(void)
{
    fftw_destroy_plan(fftw);
    fftw_free(in);
    fftw_free(out);
}
#endif

/* ---- one process, as many threads as there are ranks */

static struct xt_kernel *alone;
static struct xt_ctx *alone_ctx;
static char *whole_src, *whole_dst;

static int make_alone(struct problem *p)
{
    const struct row *r = p->row;
    struct xt_options opt = {.size = sizeof opt, .threads = ranks, .cache_dir = ""};
    struct xt_graph *g;
    int64_t st[RANK];
    if (me)
        return 1;
    int64_t bytes = dense(r->rank, r->shape, st) * (int64_t)p->size;
    whole_src = touched(bytes);
    whole_dst = touched(bytes);
    xt_ctx_new(&opt, &alone_ctx);
    xt_graph_new(&g);
    xt_output(g, xt_permute(g, xt_input(g, NULL, p->dtype, r->rank, r->shape, NULL, 0), r->rank, r->perm),
              NULL, 0);
    if (xt_compile(alone_ctx, g, NULL, &alone))
        die("alone");
    xt_graph_free(g);
    return 1;
}
static void run_alone(struct problem *p)
{
    (void)p;
    if (!me && xt_run(alone, whole_dst, (const void *[]){whole_src}, NULL))
        die("alone");
}
static void free_alone(void)
{
    if (me)
        return;
    xt_kernel_free(alone);
    xt_ctx_free(alone_ctx);
    free(whole_src);
    free(whole_dst);
}

/* ---- the table */

static const struct way {
    const char *name;
    int (*make)(struct problem *p); /* 0: not for this row */
    void (*run)(struct problem *p);
    void (*finish)(struct problem *p);
    void (*free)(void);
    int alone; /* by rank 0 */
    int seen;  /* 1: its source has to lie in memory that the ranks share */
} ways[] = {
    {"xt, arrays of malloc", make_xt, run_xt, NULL, free_xt, 0, 0},
    {"xt, shared arrays", make_xt, run_xt_seen, NULL, free_xt, 0, 1},
    {"Alltoallw, permuting types", make_types, run_types, NULL, free_types, 0, 0},
    {"Alltoallw, subarrays; xt", make_subarrays, run_subarrays, NULL, free_subarrays, 0, 0},
    {"xt permutes; Alltoallv; xt", make_sender, run_v, NULL, free_kernels, 0, 0},
    {"xt; Alltoallv; xt permutes", make_receiver, run_v, NULL, free_kernels, 0, 0},
    {"shared window, one kernel of xt", make_window, run_window, NULL, free_window, 0, 1},
#ifdef WITH_FFTW
    {"FFTW-MPI", make_fftw, run_fftw, finish_fftw, free_fftw, 0, 0},
#endif
    {"one process of xt", make_alone, run_alone, NULL, free_alone, 1, 0},
};
enum { WAYS = sizeof ways / sizeof *ways, XT_WAYS = 2 /* the first: of malloc, and shared */ };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Who waits for rank 0 does not take its processor. */
static void wait_quietly(void)
{
    MPI_Request r;
    int done = 0;
    MPI_Ibarrier(world, &r);
    while (!done) {
        nanosleep(&(struct timespec){0, 1000000}, NULL);
        MPI_Test(&r, &done, MPI_STATUS_IGNORE);
    }
}

static double once(const struct way *w, struct problem *p)
{
    double t, most;
    MPI_Barrier(world);
    t = now();
    w->run(p);
    t = now() - t;
    if (w->alone)
        wait_quietly();
    MPI_Allreduce(&t, &most, 1, MPI_DOUBLE, MPI_MAX, world);
    return most;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Makes a way and compares its result, all bytes. 0: not for this row. */
static int try_way(const struct way *w, struct problem *p)
{
    if (!w->make(p))
        return 0;
    memset(p->dst, 1, (size_t)p->dst_n * p->size);
    once(w, p);
    if (w->finish)
        w->finish(p);
    int bad = !w->alone && is_wrong(p), all = 0;
    MPI_Allreduce(&bad, &all, 1, MPI_INT, MPI_SUM, world);
    if (all && !me)
        fprintf(stderr, "%s: %s: WRONG\n", p->row->name, w->name);
    return 1;
}

struct times {
    int n; /* rounds; the same on all ranks, as the times are */
    double t[MAX_ROUNDS], spent;
};

static void tell_row(const struct row *r, struct times *of, const char *of_ways)
{
    double best[2] = {1e9, 1e9}, middle[2] = {1e9, 1e9};
    printf("%s: %s", r->name, r->dtype);
    for (int i = 0; i < r->rank; i++)
        printf("%s%lld%s", i ? "," : "[", (long long)r->shape[i], i == r->from ? " r" : "");
    printf("] permute(");
    for (int i = 0; i < r->rank; i++)
        printf("%s%d", i ? "," : "", r->perm[i]);
    printf("), axis %d cut; best ms, median\n", r->to);
    for (int w = 0; w < WAYS; w++) {
        struct times *x = &of[w];
        if (!x->n)
            continue;
        qsort(x->t, (size_t)x->n, sizeof *x->t, by_size);
        printf("  %-32s %8.2f %8.2f\n", ways[w].name, x->t[0] * 1e3, x->t[x->n / 2] * 1e3);
        if (w < XT_WAYS || ways[w].alone)
            continue;
        best[ways[w].seen] = x->t[0] < best[ways[w].seen] ? x->t[0] : best[ways[w].seen];
        middle[ways[w].seen] = x->t[x->n / 2] < middle[ways[w].seen] ? x->t[x->n / 2] : middle[ways[w].seen];
    }
    for (int k = 0; k < XT_WAYS && !*of_ways; k++)
        printf("  best other / xt, %s: %.2f, of medians %.2f\n", k ? "shared arrays" : "arrays of malloc",
               best[k] / of[k].t[0], middle[k] / of[k].t[of[k].n / 2]);
    fflush(stdout);
}

static void measure(const struct row *r, const char *of_ways, int rounds)
{
    static struct made made[WAYS];
    static struct times of[WAYS];
    struct problem p;
    int there[WAYS];
    setup(r, &p);
    memset(of, 0, sizeof of);
    for (int w = 0; w < WAYS; w++) {
        m = &made[w];
        there[w] = strstr(ways[w].name, of_ways) && try_way(&ways[w], &p);
    }
    for (int k = 0; k < rounds; k++)
        for (int w = 0; w < WAYS; w++) {
            m = &made[w];
            if (!there[w] || (k >= 3 && of[w].spent > MOST_SECONDS))
                continue;
            double t = once(&ways[w], &p);
            of[w].t[of[w].n++] = t;
            of[w].spent += t;
        }
    for (int w = 0; w < WAYS; w++) {
        m = &made[w];
        if (there[w])
            ways[w].free();
    }
    if (!me)
        tell_row(r, of, of_ways);
    cleanup(&p);
}

int main(int argc, char **argv)
{
    int rounds = 9, any = 0;
    const char *of_ways = "";
    MPI_Init(&argc, &argv);
    world = MPI_COMM_WORLD;
    MPI_Comm_rank(world, &me);
    MPI_Comm_size(world, &ranks);
#ifdef WITH_FFTW
    fftw_mpi_init();
#endif
    struct xt_options opt = {.size = sizeof opt, .threads = 1, .cache_dir = ""};
    if (ranks > MAX_PEERS || xt_ctx_new(&opt, &ctx))
        die("at most 64 ranks");
    if (argc > 2 && !strcmp(argv[argc - 2], "-r")) {
        rounds = atoi(argv[argc - 1]);
        rounds = rounds < 1 ? 1 : rounds > MAX_ROUNDS ? MAX_ROUNDS : rounds;
        argc -= 2;
    }
    if (argc > 2 && !strcmp(argv[argc - 2], "-w")) {
        of_ways = argv[argc - 1];
        argc -= 2;
    }
    if (!me)
        printf("%d ranks, %d rounds\n", ranks, rounds);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int want = argc < 2;
        for (int k = 1; k < argc; k++)
            want |= !strcmp(argv[k], rows[i].name);
        if (want)
            measure(&rows[i], of_ways, rounds);
        any |= want;
    }
    xt_ctx_free(ctx);
    MPI_Finalize();
    return !any;
}
