/* transactions.c: counts what the CUDA kernels of a list of chains ask of the memory, at full size, without a
 * GPU.
 *     transactions [--arch sm_90] [--json FILE] [--known FILE] [--every N] [--blocks N] [--seed N]
 *                  [LIST[:DTYPE][@structure][@unaligned[+N]] ..]
 * LIST: lines "name | where | chain | small chain" (bench/README.md); ":u8" reads all chains with that
 * dtype, and makes the first extent of every source so much longer that the bytes stay; "@structure" counts
 * the kernels that serve every shape of a structure, not those of one map; "@unaligned" what runs where
 * buffers begin one element, and N bytes, behind a line. No list: the 57 and the workloads. Works in as many
 * processes as there are processors. --known: lines "list name kernel", rows that are not counted while their
 * kernel is that one; --every: of the others only each list's rows 0, N, .. are counted.
 */
#include <inttypes.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench/bench.h"
#include "cuda/cuda.h"
#include "support/block_sample.h"

struct row {
    char list[48], name[64];
    const char *chain; /* malloc'ed before the processes part */
    enum xti_cuda_tier tier;
    bool unaligned;
    int further; /* bytes */
    char known[17];
    bool skipped; /* unless its kernel is the known one */
    struct block_sample s;
};

struct options {
    struct xti_cuda_target target;
    const char *json, *known;
    int every, blocks;
    uint64_t seed;
};

/* What the processes share. */
struct shared {
    atomic_int next;
    int n;
    struct row row[];
};

static int quit(const char *what, const char *why)
{
    fprintf(stderr, "transactions: %s: %s\n", what, why);
    return 2;
}

/* ---- lists */

struct rows {
    struct row *row;
    int n, cap;
};

static char *read_text(const char *path)
{
    char *text = NULL, part[4096];
    size_t size = 0, n;
    FILE *in = fopen(path, "rb"), *out = in ? open_memstream(&text, &size) : NULL;
    while (out && (n = fread(part, 1, sizeof part, in)) > 0)
        fwrite(part, 1, n, out);
    if (out)
        fclose(out);
    if (in)
        fclose(in);
    return text;
}

/* What an argument says. name: "ttc57-u8-structure". */
struct list {
    char path[4096], dtype[8], name[48];
    enum xti_cuda_tier tier;
    bool unaligned;
    int further;
};

static void read_list(const char *arg, struct list *out)
{
    const char *slash = strrchr(arg, '/'), *base = slash ? slash + 1 : arg, *colon = strchr(base, ':');
    bool structure = strstr(base, "@structure") != NULL;
    const char *unaligned = strstr(base, "@unaligned");
    out->unaligned = unaligned != NULL;
    out->further = unaligned ? atoi(unaligned + sizeof "@unaligned" - 1) : 0;
    snprintf(out->path, sizeof out->path, "%.*s", (int)(base - arg + (int)strcspn(base, ":@")), arg);
    snprintf(out->dtype, sizeof out->dtype, "%.*s", colon ? (int)strcspn(colon + 1, "@") : 0,
             colon ? colon + 1 : "");
    snprintf(out->name, sizeof out->name, "%.*s%s%s%s%s%.*s", (int)strcspn(base, ".:@"), base,
             *out->dtype ? "-" : "", out->dtype, structure ? "-structure" : "", unaligned ? "-" : "",
             unaligned ? (int)strcspn(unaligned + 1, "@") : 0, unaligned ? unaligned + 1 : "");
    out->tier = structure ? XTI_TIER_STRUCTURE : XTI_TIER_EXACT;
}

static char *chain_as(const char *chain, const char *dtype)
{
    if (!*dtype)
        return strdup(chain);
    int times = !strcmp(dtype, "u8") ? 4 : !strcmp(dtype, "f16") ? 2 : 1;
    char *as = bench_chain_as(chain, dtype), *grown = as ? bench_chain_grown(as, times) : NULL;
    free(as);
    return grown;
}

static bool add_row(struct rows *rows, const struct list *list, const char *name, char *chain)
{
    if (rows->n == rows->cap) {
        rows->cap = rows->cap ? 2 * rows->cap : 256;
        struct row *more = realloc(rows->row, (size_t)rows->cap * sizeof *more);
        if (!more)
            return false;
        rows->row = more;
    }
    struct row *r = &rows->row[rows->n++];
    memset(r, 0, sizeof *r);
    snprintf(r->list, sizeof r->list, "%s", list->name);
    r->tier = list->tier;
    r->unaligned = list->unaligned;
    r->further = list->further;
    snprintf(r->name, sizeof r->name, "%s", name);
    return (r->chain = chain) != NULL;
}

static bool add_list(struct rows *rows, const char *arg, int every, char *why, size_t why_bytes)
{
    struct bench_workload *work = NULL;
    struct list list;
    read_list(arg, &list);
    char *text = read_text(list.path);
    snprintf(why, why_bytes, "cannot be read");
    int n = text ? bench_workloads_read(text, &work, why, why_bytes) : -1;
    bool ok = n >= 0;
    for (int i = 0; i < n && ok; i++) {
        ok = add_row(rows, &list, work[i].name, chain_as(work[i].chain, list.dtype));
        rows->row[rows->n - 1].skipped = i % every != 0;
    }
    bench_workloads_free(work, n > 0 ? n : 0);
    free(text);
    return ok;
}

static void read_known(const char *path, struct rows *rows)
{
    char list[48], name[64], kernel[17];
    FILE *f = fopen(path, "r");
    while (f && fscanf(f, "%47s %63s %16s", list, name, kernel) == 3)
        for (int i = 0; i < rows->n; i++)
            if (!strcmp(rows->row[i].list, list) && !strcmp(rows->row[i].name, name))
                memcpy(rows->row[i].known, kernel, sizeof rows->row[i].known);
    if (f)
        fclose(f);
}

/* ---- work */

static void count(struct row *r, const struct options *opt)
{
    struct xt_graph *g = NULL;
    struct xti_map m;
    struct xti_err err = {0};
    if (xt_parse(r->chain, 0, NULL, &g)) {
        snprintf(r->s.error, sizeof r->s.error, "%.700s", xt_last_error()->message);
        return;
    }
    struct block_sample_options o = {opt->target, r->tier,     r->unaligned, r->further,
                                     opt->seed,   opt->blocks, r->known,     r->skipped};
    o.target.n_sms = block_sample_sms(o.target.sm);
    if (xti_cuda_fuse(g, &o.target, &m, &err)) {
        snprintf(r->s.error, sizeof r->s.error, "%.700s", err.e.message);
    } else {
        block_sample(&m, &o, &r->s);
        xti_map_free(&m);
    }
    xt_graph_free(g);
}

static void work_off(struct shared *all, const struct options *opt)
{
    for (int i; (i = atomic_fetch_add(&all->next, 1)) < all->n;) {
        snprintf(all->row[i].s.error, sizeof all->row[i].s.error, "the process died");
        count(&all->row[i], opt);
    }
}

/* The processes part before any of them has opened NVRTC, which does not survive a fork. */
static void work_together(struct shared *all, const struct options *opt)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    pid_t child[64];
    int n = 0;
    fflush(NULL);
    for (long i = 1; i < processors && n < 64 && n + 1 < all->n; i++) {
        child[n] = fork();
        if (!child[n]) {
            work_off(all, opt);
            _exit(0);
        }
        n += child[n] > 0;
    }
    work_off(all, opt);
    for (int i = 0; i < n; i++)
        waitpid(child[i], NULL, 0);
}

/* ---- reports */

static const char *const tier_name[] = {[XTI_TIER_STRUCTURE] = "structure", [XTI_TIER_EXACT] = "exact"};

static void print_head(void)
{
    printf("%-22s %-28s %6s %6s %6s %7s %6s %8s %8s %5s %6s %6s %5s %8s\n", "name", "family", "loads",
           "stores", "parts", "rereads", "banks", "inst/16B", "KB/SM", "regs", "spills", "st<ld", "est.",
           "planner");
}

/* Is the planner's estimate more than a tenth away from the one that was counted? */
static bool is_off(const struct block_sample *s)
{
    return s->planned > 0 && fabs(s->planned - s->estimate) > 0.1 * s->estimate;
}

static void print_row(const struct row *r)
{
    const struct block_sample *s = &r->s;
    if (*s->error) {
        printf("%-22s %s\n", r->name, s->error);
        return;
    }
    if (s->known) {
        printf("%-22s %-28s not counted\n", r->name, s->family);
        return;
    }
    char planned[16] = "-";
    if (s->planned > 0)
        snprintf(planned, sizeof planned, "%.2f%s", s->planned, is_off(s) ? " off" : "");
    printf("%-22s %-28s %6.2f %6.2f %6.2f %7.2f %6.2f %8.1f %8.1f %5d %6d %6s %5.2f %8s\n", r->name,
           s->family, s->load_ratio, s->store_ratio, s->store_parts, s->rereads, s->wavefront_ratio,
           s->instructions_per_16b, s->in_flight / 1024, s->registers, s->spill_bytes,
           s->store_before_load < 0 ? "?"
           : s->store_before_load   ? "yes"
                                    : "no",
           s->estimate, planned);
}

/* Geometric means; rows that ask for nothing have ratio 1. */
static void print_sums(const struct shared *all)
{
    double load = 0, store = 0, waves = 0, inst = 0, estimate = 0, least = 1;
    int n = 0, bad = 0, spills = 0, early = 0, below = 0, off = 0;
    for (int i = 0; i < all->n; i++) {
        const struct block_sample *s = &all->row[i].s;
        bad += *s->error != 0;
        if (*s->error || s->known)
            continue;
        n++;
        load += log(s->load_ratio);
        store += log(s->store_ratio);
        waves += log(s->wavefront_ratio);
        inst += log(s->instructions_per_16b);
        estimate += log(s->estimate);
        least = fmin(least, s->estimate);
        spills += s->spill_bytes > 0;
        early += s->store_before_load > 0;
        below += s->estimate < 0.9;
        off += is_off(s);
    }
    if (n)
        printf("%d rows, %d failed; geometric means: loads %.3f, stores %.3f, banks %.3f, inst/16B %.1f, "
               "estimate "
               "%.3f (least %.2f, %d below 0.90); %d spill, %d store before their last load; "
               "the planner's estimate is off by more than a tenth in %d\n",
               n, bad, exp(load / n), exp(store / n), exp(waves / n), exp(inst / n), exp(estimate / n), least,
               below, spills, early, off);
    else
        printf("%d rows, %d failed\n", n, bad);
}

static void put_json_row(FILE *f, const struct row *r)
{
    const struct block_sample *s = &r->s;
    fprintf(f, "{\"list\": \"%s\", \"name\": \"%s\", \"chain\": \"%s\", ", r->list, r->name, r->chain);
    if (*s->error) {
        fprintf(f, "\"error\": \"");
        for (const char *c = s->error; *c; c++)
            fputc(*c == '"' || *c == '\\' || *c == '\n' ? '\'' : *c, f);
        fprintf(f, "\"}");
        return;
    }
    fprintf(f, "\"kernel\": \"%s\", ", s->kernel);
    if (s->known) {
        fprintf(f, "\"counted\": false}");
        return;
    }
    fprintf(f, "\"family\": \"%s\", \"tier\": \"%s\", ", s->family, tier_name[s->tier]);
    fprintf(f,
            "\"load_ratio\": %.3f, \"store_ratio\": %.3f, \"store_parts\": %.3f, \"rereads\": %.2f, "
            "\"wavefront_ratio\": %.3f, "
            "\"instructions_per_16B\": %.1f, \"bytes_in_flight_per_sm\": %.0f, \"registers\": %d, "
            "\"spill_bytes\": %d, \"stores_before_last_load\": %s, \"blocks\": %" PRId64
            ", \"estimate\": %.2f, \"planner\": %.2f}",
            s->load_ratio, s->store_ratio, s->store_parts, s->rereads, s->wavefront_ratio,
            s->instructions_per_16b, s->in_flight, s->registers, s->spill_bytes,
            s->store_before_load < 0 ? "null"
            : s->store_before_load   ? "true"
                                     : "false",
            s->blocks, s->estimate, s->planned);
}

static bool put_json(const struct shared *all, const struct options *opt)
{
    FILE *f = !strcmp(opt->json, "-") ? stdout : fopen(opt->json, "w");
    if (!f)
        return false;
    const char *nvrtc = xti_nvrtc_build(xti_nvrtc_for(opt->target.sm, 0, NULL));
    fprintf(f, "{\"arch\": \"sm_%d\", \"nvrtc\": \"%.*s\", \"rows\": [\n", opt->target.sm,
            (int)strcspn(nvrtc, " "), nvrtc);
    for (int i = 0; i < all->n; i++) {
        put_json_row(f, &all->row[i]);
        fprintf(f, i + 1 < all->n ? ",\n" : "\n");
    }
    fprintf(f, "]}\n");
    return f == stdout ? fflush(f) == 0 : fclose(f) == 0;
}

/* ---- the command line */

static bool take_option(const char *name, const char *value, struct options *opt, struct xti_err *err)
{
    if (!strcmp(name, "--arch"))
        return !xti_cuda_arch(value, &opt->target, err);
    if (!strcmp(name, "--json"))
        opt->json = value;
    else if (!strcmp(name, "--known"))
        opt->known = value;
    else if (!strcmp(name, "--every"))
        opt->every = atoi(value);
    else if (!strcmp(name, "--blocks"))
        opt->blocks = atoi(value);
    else if (!strcmp(name, "--seed"))
        opt->seed = strtoull(value, NULL, 10);
    else
        return false;
    return opt->every > 0 && opt->blocks > 0;
}

static struct shared *share(const struct rows *rows)
{
    size_t bytes = sizeof(struct shared) + (size_t)rows->n * sizeof(struct row);
    struct shared *all = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED)
        return NULL;
    all->n = rows->n;
    if (rows->n)
        memcpy(all->row, rows->row, (size_t)rows->n * sizeof *rows->row);
    return all;
}

int main(int argc, char **argv)
{
    static const char *const usual[] = {"bench/problems/ttc57.txt", "bench/workloads.txt"};
    struct options opt = {.target = {.sm = 90}, .every = 1, .blocks = 64, .seed = 1};
    struct xti_err err = {0};
    struct rows rows = {0};
    char why[256];
    bool named = false;
    for (int i = 1; i < argc; i++)
        if (!strncmp(argv[i], "--", 2)) {
            if (i + 1 == argc || !take_option(argv[i], argv[i + 1], &opt, &err))
                return quit(argv[i], *err.e.message ? err.e.message : "no such option or value");
            i++;
        }
    for (int i = 1; i < argc; i++) {
        if (!strncmp(argv[i], "--", 2)) {
            i++;
            continue;
        }
        named = true;
        if (!add_list(&rows, argv[i], opt.every, why, sizeof why))
            return quit(argv[i], why);
    }
    for (int i = 0; i < 2 && !named; i++)
        if (!add_list(&rows, usual[i], opt.every, why, sizeof why))
            return quit(usual[i], why);
    if (opt.known)
        read_known(opt.known, &rows);
    struct shared *all = share(&rows);
    if (!all)
        return quit("rows", "no memory");
    work_together(all, &opt);
    int failed = 0;
    bool table = !opt.json || strcmp(opt.json, "-");
    if (table)
        print_head();
    for (int i = 0; i < all->n; i++) {
        failed += *all->row[i].s.error != 0;
        if (table)
            print_row(&all->row[i]);
    }
    if (table)
        print_sums(all);
    if (opt.json && !put_json(all, &opt))
        return quit(opt.json, "cannot be written");
    return failed != 0;
}
