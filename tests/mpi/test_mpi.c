/* test_mpi.c: run by mpirun on 1 to 8 ranks: chains over ranks against the same chains on whole tensors. A
 * line spreads a whole tensor that each rank has (no message), the line under test runs, and a third brings
 * the result together on every rank, where all bytes are compared. Prints from rank 0; exit status 1: wrong.
 */
#include <xt/xt_mpi.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int rank, size, wrong, cases;
static int64_t bytes_compared;

static void expect(int ok, const char *what, const char *line)
{
    if (ok)
        return;
    wrong++;
    fprintf(stderr, "rank %d of %d: %s: %s: %s\n", rank, size, line, what, xt_last_error()->message);
}

/* # becomes the number of ranks. */
static char *with_ranks(char *buf, size_t n, const char *mesh, const char *rest)
{
    size_t at = 0;
    for (const char *part[] = {mesh, rest, NULL}, **p = part; *p; p++)
        for (const char *s = *p; *s && at + 12 < n; s++)
            at += *s == '#' ? (size_t)snprintf(buf + at, n - at, "%d", size) : (buf[at] = *s, 1);
    buf[at] = 0;
    return buf;
}

static void *local(struct xt_mpi_plan *p, int input)
{
    struct xt_end_info e = {.size = sizeof e};
    xt_mpi_shape(p, input, &e);
    return calloc(1, (size_t)e.to_bytes + 64);
}

/* The same out of memory that the ranks of this machine see. */
static void run_seen(struct xt_mpi_plan *p, const char *line, const void *src, const void *want)
{
    struct xt_end_info e = {.size = sizeof e}, d = {.size = sizeof d};
    void *seen, *dst = local(p, XT_MPI_RESULT);
    xt_mpi_shape(p, 0, &e);
    xt_mpi_shape(p, XT_MPI_RESULT, &d);
    expect(!xt_mpi_alloc(MPI_COMM_WORLD, (size_t)e.to_bytes, &seen), "alloc", line);
    memcpy(seen, src, (size_t)e.to_bytes);
    for (int i = 0; i < 3; i++) { /* the others read it until the run is over, and no longer */
        expect(!xt_mpi_run(p, dst, (const void *[]){seen}), "run, seen", line);
        memset(seen, 0x5a, (size_t)e.to_bytes);
        expect(!memcmp(dst, want, (size_t)d.to_bytes), "other bytes, seen", line);
        memcpy(seen, src, (size_t)e.to_bytes);
    }
    xt_mpi_release(seen);
    free(dst);
}

/* Runs a line of one input; gives the result, whose array is the caller's. in NULL: not compared. */
static void *run_line(const char *line, const void *src)
{
    struct xt_mpi_plan *p;
    expect(!xt_mpi_plan(line, MPI_COMM_WORLD, &p), "plan", line);
    if (!p)
        MPI_Abort(MPI_COMM_WORLD, 1);
    void *dst = local(p, XT_MPI_RESULT);
    expect(!xt_mpi_run(p, dst, &src), "run", line);
    run_seen(p, line, src, dst);
    xt_mpi_free(p);
    return dst;
}

struct chain {
    const char *dtype, *whole, *spread, *expression, *result, *result_whole; /* # : ranks */
};

static const struct chain chains[] = {
    {"f64", "[37,53]", "[37 r,53]", "x.T", "[53 r,37]", "[53,37]"},
    {"f32", "[640,512]", "[640 r,512]", "x.T", "[512 r(balanced),640]", "[512,640]"},
    {"u8", "[1000003]", "[1000003 r]", "x[::-1]", "[1000003 r(17)]", "[1000003]"},
    {"i16", "[3,100]", "[3,100 r(1)]", "x.pad((1,2),(5,0), value=7)", "[6 r,105]", "[6,105]"},
    {"f16", "[64,4,16,32]", "[64,4,16 r,32]", "x.permute(0,2,1,3)", "[64 r,16,4,32]", "[64,16,4,32]"},
    {"c128", "[5,7,11]", "[5 r,7,11]", "x.permute(2,1,0).reshape(7,55)", "[7 r,55]", "[7,55]"},
    {"u32", "[2,9]", "[2 r,9]", "x.unsqueeze(0).expand(6,2,9)", "[6 r,2,9]", "[6,2,9]"},
    {"f32", "[4096,2048]", "[4096 r,2048]", "x.T", "[2048 r,4096]", "[2048,4096]"},
    {"f64", "[1]", "[1 r]", "x", "[1 r(2)]", "[1]"},
    {"bf16", "[33,33]", "[33 r,33]", "x.tril(2)", "[33,33 r]", "[33,33]"},
};

static int64_t elements(const char *shape)
{
    int64_t n = 1;
    for (char *s = (char *)shape + 1; *s;) {
        n *= strtoll(s, &s, 10);
        s += *s == ',' || *s == ']';
    }
    return n;
}

/* The chain on whole tensors, by this rank alone. */
static void *alone(const char *line, const void *src, size_t bytes)
{
    struct xt_ctx *ctx;
    struct xt_graph *g;
    struct xt_kernel *k;
    struct xt_options opt = {.size = sizeof opt, .cache_dir = "", .threads = 1};
    void *dst = malloc(bytes + 64);
    expect(!xt_ctx_new(&opt, &ctx) && !xt_parse(line, 0, NULL, &g) && !xt_compile(ctx, g, NULL, &k) &&
               !xt_run(k, dst, &src, NULL),
           "alone", line);
    xt_kernel_free(k);
    xt_graph_free(g);
    xt_ctx_free(ctx);
    return dst;
}

static void try_chain(const struct chain *c)
{
    char line[512], rest[400];
    xt_dtype t;
    xt_dtype_parse(c->dtype, &t);
    size_t in = (size_t)elements(c->whole) * xt_dtype_bytes(t);
    size_t out = (size_t)elements(c->result_whole) * xt_dtype_bytes(t);
    unsigned char *whole = malloc(in);
    for (size_t i = 0; i < in; i++)
        whole[i] = (unsigned char)(i * 2654435761u >> 13);
    snprintf(rest, sizeof rest, "x: %s%s; x -> %s", c->dtype, c->whole, c->spread);
    void *mine = run_line(with_ranks(line, sizeof line, "mesh r[#]; ", rest), whole);
    snprintf(rest, sizeof rest, "x: %s%s; %s -> %s", c->dtype, c->spread, c->expression, c->result);
    void *got = run_line(with_ranks(line, sizeof line, "mesh r[#]; ", rest), mine);
    snprintf(rest, sizeof rest, "x: %s%s; x -> %s", c->dtype, c->result, c->result_whole);
    void *all = run_line(with_ranks(line, sizeof line, "mesh r[#]; ", rest), got);
    snprintf(rest, sizeof rest, "x: %s%s; %s", c->dtype, c->whole, c->expression);
    void *want = alone(rest, whole, out);
    expect(!memcmp(all, want, out), "other bytes", rest);
    cases++;
    bytes_compared += (int64_t)out;
    free(whole), free(mine), free(got), free(all), free(want);
}

static void try_steps(void)
{
    char line[256];
    struct xt_mpi_plan *p;
    int done = 0;
    with_ranks(line, sizeof line, "mesh r[#]; ", "x: f32[96 r,80]; x.T -> [80 r,96]");
    expect(!xt_mpi_plan(line, MPI_COMM_WORLD, &p), "plan", line);
    void *src = local(p, 0), *dst = local(p, XT_MPI_RESULT);
    for (int i = 0; i < 3; i++) {
        expect(!xt_mpi_start(p, dst, (const void *[]){src}), "start", line);
        if (i == 1)
            while (!done)
                expect(!xt_mpi_test(p, &done), "test", line);
        expect(!xt_mpi_wait(p), "wait", line);
    }
    xt_mpi_free(p);
    free(src), free(dst);
}

/* Rows of a matrix, dealt in turn, go to where all of its columns are blocks, rank 0 having one of more. */
static void try_boxes(void)
{
    enum { N = 96 };
    static const int64_t shape[] = {N, N};
    int64_t rank_of[2][N], lo[2][2 * N], len[2][2 * N], each = (N - N / 4) / size;
    struct xt_boxes from = {sizeof from, N, rank_of[0], lo[0], len[0], NULL, NULL}, to = from;
    struct xt_mpi_plan *p;
    for (int64_t i = 0; i < N; i++) {
        rank_of[0][i] = i % size;
        lo[0][2 * i] = i;
        lo[0][2 * i + 1] = 0;
        len[0][2 * i] = 1;
        len[0][2 * i + 1] = N;
    }
    to.n = size;
    to.rank = rank_of[1];
    to.lo = lo[1];
    to.len = len[1];
    for (int64_t i = 0; i < size; i++) {
        rank_of[1][i] = i;
        lo[1][2 * i] = 0;
        lo[1][2 * i + 1] = i ? N - (size - i) * each : 0;
        len[1][2 * i] = N;
        len[1][2 * i + 1] = i ? each : N - (size - 1) * each;
    }
    expect(!xt_mpi_boxes(XT_I32, 2, shape, &from, &to, MPI_COMM_WORLD, &p), "plan", "boxes");
    int32_t *x = local(p, 0), *y = local(p, XT_MPI_RESULT);
    for (int64_t i = 0; i * size + rank < N; i++)
        for (int64_t j = 0; j < N; j++)
            x[i * N + j] = (int32_t)((i * size + rank) * N + j);
    expect(!xt_mpi_run(p, y, (const void *[]){x}), "run", "boxes");
    int64_t n = len[1][2 * rank + 1], differ = 0;
    for (int64_t i = 0; i < N; i++)
        for (int64_t j = 0; j < n; j++)
            differ += y[i * n + j] != (int32_t)(i * N + lo[1][2 * rank + 1] + j);
    expect(!differ, "other bytes", "boxes");
    xt_mpi_free(p);
    free(x), free(y);
    rank_of[0][0] = size > 1 && rank == size - 1;
    xt_status s = xt_mpi_boxes(XT_I32, 2, shape, &from, &to, MPI_COMM_WORLD, &p);
    expect(s == (size > 1 ? XT_EMISMATCH : XT_OK), "other boxes", xt_last_error()->message);
    xt_mpi_free(p);
    expect(xt_mpi_boxes(XT_I32, 2, shape, NULL, &to, MPI_COMM_WORLD, &p) == XT_EINVAL, "no boxes", "");
    cases += 3;
}

/* kB of shared memory in large pages, of all that this process has mapped. */
static long large_kb(void)
{
    char line[256];
    long sum = 0;
    FILE *f = fopen("/proc/self/smaps", "r");
    while (f && fgets(line, sizeof line, f))
        if (!strncmp(line, "ShmemPmdMapped:", 15))
            sum += strtol(line + 15, NULL, 10);
    if (f)
        fclose(f);
    return sum;
}

/* Can this system make shared memory's pages large? */
static int has_large_pages(void)
{
    enum { LARGE = 2 << 20, COLLAPSE = 25 };
    int fd = memfd_create("probe", 0);
    char *room = mmap(NULL, 2 * LARGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *at = fd < 0 || room == MAP_FAILED || ftruncate(fd, LARGE)
                   ? MAP_FAILED
                   : mmap(room + -(uintptr_t)room % LARGE, LARGE, PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_FIXED, fd, 0);
    int can = at != MAP_FAILED && (*at = 1, !madvise(at, LARGE, COLLAPSE));
    if (fd >= 0)
        close(fd);
    if (room != MAP_FAILED)
        munmap(room, 2 * LARGE);
    return can;
}

static void try_memory(void)
{
    const size_t bytes = ((size_t)5 << 20) + (size_t)rank, some[] = {0, 1, 4096};
    unsigned char *at, *small, any = 0;
    long before = large_kb();
    expect(!xt_mpi_alloc(MPI_COMM_WORLD, bytes, (void **)&at), "alloc", "");
    for (size_t i = 0; i < bytes; i++)
        any |= at[i];
    expect(!any && (uintptr_t)at % 64 == 0, "zero, and aligned", "");
    expect(!has_large_pages() || large_kb() >= before + 4096, "large pages", "");
    for (int i = 0; i < 3; i++) {
        expect(!xt_mpi_alloc(MPI_COMM_WORLD, some[i], (void **)&small), "alloc, small", "");
        xt_mpi_release(small);
    }
    /* More than there is, asked for by the last rank alone, is told to all. */
    for (int i = 0; i < 2; i++) {
        int last = rank == size - 1;
        void *none = &none;
        xt_status s = xt_mpi_alloc(MPI_COMM_WORLD, !last ? 16 : i ? SIZE_MAX : (size_t)1 << 46, &none);
        expect((s == XT_ENOMEM || (!last && s == XT_EPEER)) && !none, "too much", "");
    }
    xt_mpi_release(at);
    xt_mpi_release(NULL);
    expect(large_kb() <= before, "pages are given back", "");
    cases += 4;
}

struct user {
    pthread_t thread;
    MPI_Comm comm;
    int failed;
};

static void *use(void *arg)
{
    struct user *u = arg;
    char line[128];
    with_ranks(line, sizeof line, "mesh r[#]; ", "x: f32[96 r,80]; x.T -> [80 r,96]");
    for (int i = 0; i < 20; i++) {
        struct xt_mpi_plan *p;
        void *src, *dst = malloc(96 * 80 * 4);
        u->failed += xt_mpi_alloc(u->comm, 96 * 80 * 4, &src) || xt_mpi_plan(line, u->comm, &p) ||
                     xt_mpi_run(p, dst, (const void *[]){src});
        if (u->failed)
            MPI_Abort(MPI_COMM_WORLD, 1);
        xt_mpi_free(p);
        xt_mpi_release(src);
        free(dst);
    }
    return NULL;
}

/* Two threads a rank, each with a communicator of its own: neither waits for the other. */
static void try_threads(void)
{
    struct user u[2] = {{0}};
    int level;
    MPI_Query_thread(&level);
    if (level < MPI_THREAD_MULTIPLE)
        return;
    for (int i = 0; i < 2; i++)
        MPI_Comm_dup(MPI_COMM_WORLD, &u[i].comm);
    for (int i = 0; i < 2; i++)
        expect(!pthread_create(&u[i].thread, NULL, use, &u[i]), "thread", "");
    for (int i = 0; i < 2; i++) {
        pthread_join(u[i].thread, NULL);
        MPI_Comm_free(&u[i].comm);
    }
    cases++;
}

static void try_disagreement(void)
{
    static const char *const good = "mesh r[#]; x: f32[8 r]; x -> [8 r(1)]";
    static const struct {
        const char *line; /* of the last rank */
        xt_status mine, others;
    } rows[] = {
        {"mesh r[#]; x: f32[8 r]; x[::-1] -> [8 r(1)]", XT_EMISMATCH, XT_EMISMATCH},
        {"mesh r[#]; x: f64[8 r]; x -> [8 r(1)]", XT_EMISMATCH, XT_EMISMATCH},
        {"mesh r[#]; x: f32[8 q]; x -> [8 r(1)]", XT_ESYNTAX, XT_EPEER},
        {"mesh r[#]@1; x: f32[8 r]; x -> [8 r(1)]", XT_EINVAL, XT_EPEER},
    };
    char line[256];
    for (size_t i = 0; size > 1 && i < sizeof rows / sizeof *rows; i++) {
        int last = rank == size - 1;
        struct xt_mpi_plan *p = (struct xt_mpi_plan *)&p;
        xt_status s =
            xt_mpi_plan(with_ranks(line, sizeof line, last ? rows[i].line : good, ""), MPI_COMM_WORLD, &p);
        expect(s == (last ? rows[i].mine : rows[i].others) && !p, xt_status_name(s), line);
        expect(xt_last_error()->status == s, "the last error", line);
        if (rank == 0 && rows[i].others == XT_EMISMATCH) {
            char want[48];
            snprintf(want, sizeof want, "rank %d has another line", size - 1);
            expect(!strncmp(xt_last_error()->message, want, strlen(want)), "which rank", line);
        }
        cases++;
    }
    struct xt_mpi_plan *p;
    int last = rank == size - 1;
    void *at = NULL;
    xt_status want = last ? XT_EINVAL : XT_EPEER;
    expect(xt_mpi_plan(with_ranks(line, sizeof line, good, ""), MPI_COMM_WORLD, last ? NULL : &p) == want &&
               (last || !p),
           "no place for a plan", xt_last_error()->message);
    expect(xt_mpi_alloc(MPI_COMM_WORLD, 4096, last ? NULL : &at) == want && !at, "no place for memory",
           xt_last_error()->message);
    expect(xt_mpi_plan("mesh r[9]; x: f32[8 r]; x", MPI_COMM_WORLD, &p) == XT_EINVAL, "9 ranks", "");
    expect(xt_mpi_plan(NULL, MPI_COMM_WORLD, &p) == XT_EINVAL, "no line", "");
    expect(xt_mpi_run(NULL, NULL, NULL) == XT_EINVAL, "no plan", "");
    xt_mpi_free(NULL);
    cases += 5;
}

/* `test_mpi huge`, on 2 ranks: 2.2 GB from one to the other, in 4.4 GB of memory. */
static void try_huge(void)
{
    static const char *const line = "mesh r[1]@0 s[1]@1; x: u8[46349 r,47491]; x.T -> [47491 s,46349]";
    const int64_t rows = 46349, columns = 47491;
    struct xt_mpi_plan *p;
    expect(!xt_mpi_plan(line, MPI_COMM_WORLD, &p), "plan", line);
    unsigned char *x = local(p, 0), *y = local(p, XT_MPI_RESULT);
    for (int64_t i = 0; !rank && i < rows * columns; i++)
        x[i] = (unsigned char)((uint64_t)i * 0x9e3779b97f4a7c15u >> 56);
    expect(!xt_mpi_run(p, y, (const void *[]){x}), "run", line);
    int64_t differ = 0;
    for (int64_t i = 0; rank && i < columns; i++)
        for (int64_t j = 0; j < rows; j++)
            differ +=
                y[i * rows + j] != (unsigned char)((uint64_t)(j * columns + i) * 0x9e3779b97f4a7c15u >> 56);
    expect(!differ, "other bytes", line);
    xt_mpi_free(p);
    free(x), free(y);
    cases++;
    bytes_compared += rows * columns;
}

int main(int argc, char **argv)
{
    int level;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc > 1 && !strcmp(argv[1], "huge")) {
        try_huge();
    } else {
        for (size_t i = 0; i < sizeof chains / sizeof *chains; i++)
            try_chain(&chains[i]);
        try_steps();
        try_boxes();
        try_memory();
        try_threads();
        try_disagreement();
    }
    int all = 0;
    MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%d ranks: %d cases, %lld bytes compared on each rank, %d wrong\n", size, cases,
               (long long)bytes_compared, all);
    MPI_Finalize();
    return all != 0;
}
