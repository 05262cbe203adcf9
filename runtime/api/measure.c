/* measure.c: times the plans that a map could have, on buffers of its own, and keeps the fastest. All plans
 * run in turn, so that a busy moment harms each alike; the few best run again, then the fastest beside the
 * model's, which is left only for one that is clearly faster. Layer 6. */
#include "api/measure.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "api/api.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/os.h"
#include "plan/choice.h"

enum {
    ROUNDS = 3,       /* of all plans .. */
    FINAL_ROUNDS = 5, /* .. and of the FINALISTS and the model's */
    FINALISTS = 3,
    LAST_ROUNDS = 5,     /* of the fastest and the model's alone: they decide */
    SAMPLE_NS = 200000,  /* a run is repeated until a sample takes so long */
    WORTH_PERCENT = 3,   /* what a plan must gain to be taken instead of the model's */
    PATIENCE_MS = 10000, /* how long another thread's measuring is waited for */
    ALIGN = 64,
};
static const int64_t budget_ns = 4000000000; /* of one map; a plan that was begun is ended */

/* ---- buffers */

struct buffers {
    void *dst, **src; /* aligned .. */
    void **made;      /* .. inside of these */
    int n;
};

static int64_t bytes_of(int64_t hi, int64_t lo, int esize) { return hi < lo ? 0 : (hi + 1) * esize; }

/* A quarter of the machine's memory at most. */
static bool affordable(const struct xti_map *m)
{
    double sum = (double)bytes_of(m->dst_hi, m->dst_lo, m->esize);
    for (int i = 0; i < m->n_srcs; i++)
        sum += (double)bytes_of(m->src_hi[i], m->src_lo[i], m->esize);
    return sum < (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE) / 4;
}

static void free_buffers(struct buffers *b)
{
    for (int i = 0; b->made && i < b->n; i++)
        xti_free(b->made[i]);
    xti_free(b->made);
    xti_free(b->src);
}

/* Written to: pages that never were are all one page of zeros. */
static void *buffer(struct buffers *b, int64_t bytes)
{
    char *p = xti_alloc((size_t)bytes + ALIGN);
    if (!(b->made[b->n++] = p))
        return NULL;
    p += -(uintptr_t)p % ALIGN;
    memset(p, 1, (size_t)bytes);
    return p;
}

static bool make_buffers(const struct xti_map *m, struct buffers *b)
{
    b->src = xti_alloc_array((size_t)m->n_srcs + 1, sizeof *b->src);
    b->made = xti_alloc_array((size_t)m->n_srcs + 1, sizeof *b->made);
    if (!b->src || !b->made || !(b->dst = buffer(b, bytes_of(m->dst_hi, m->dst_lo, m->esize))))
        return false;
    for (int i = 0; i < m->n_srcs; i++)
        if (!(b->src[i] = buffer(b, bytes_of(m->src_hi[i], m->src_lo[i], m->esize))))
            return false;
    return true;
}

/* ---- timing */

struct contest {
    struct xti_threads *pool;
    struct buffers buffers;
    int n;
    struct xti_candidate plan[XTI_CHOICE_ROOM]; /* the model's first */
    struct xti_call call[XTI_MAX_CHOICES];
    int repeat[XTI_MAX_CHOICES];
    bool out[XTI_MAX_CHOICES];
    int64_t ns[XTI_MAX_CHOICES]; /* of a run, the shortest sample; 0: none was taken */
    int64_t deadline;
};

static void run_plan(const struct contest *c, int i)
{
    const void *const *src = (const void *const *)c->buffers.src;
    if (c->call[i].fn)
        xti_call_run(&c->call[i], c->buffers.dst, src);
    else
        xti_cpu_run(&c->plan[i].plan, c->buffers.dst, src, c->pool);
}

/* The plan before, of streaming stores perhaps, has taken from the caches what this one leaves there:
 * f32 reversed, 8 MB, took 240 us at first and 148 from then on. (Zen 5, 2026-11) */
static void warm_up(struct contest *c, int i)
{
    const struct xti_plan *p = &c->plan[i].plan;
    if (p->bytes_read <= p->target.l3_bytes - p->bytes_written)
        run_plan(c, i);
}

/* Of a copy by one thread its own time: other work on the machine makes that little longer. */
static int64_t sample(struct contest *c, int i)
{
    const struct xti_plan *p = &c->plan[i].plan;
    bool alone = xti_plan_threads(p->target.threads, p->bytes_written) == 1;
    int64_t (*const now)(void) = alone ? xti_thread_ns : xti_now_ns;
    warm_up(c, i);
    for (;;) {
        int64_t t = now();
        for (int k = 0; k < c->repeat[i]; k++)
            run_plan(c, i);
        t = now() - t;
        if (t >= SAMPLE_NS || c->repeat[i] >= 1 << 20)
            return t / c->repeat[i] > 0 ? t / c->repeat[i] : 1;
        c->repeat[i] *= t < SAMPLE_NS / 16 ? 8 : 2;
    }
}

/* One sample of each that is in; false when time is up: then none counts that was not taken. What disturbs a
 * sample makes it longer: the shortest is kept. */
static bool run_round(struct contest *c)
{
    for (int i = 0; i < c->n; i++) {
        if (c->out[i])
            continue;
        if (i && xti_now_ns() > c->deadline)
            return false;
        int64_t t = sample(c, i);
        c->ns[i] = !c->ns[i] || t < c->ns[i] ? t : c->ns[i];
    }
    return true;
}

/* Of those that are in; -1: there is none but the model's. */
static int fastest_other(const struct contest *c)
{
    int best = -1;
    for (int i = 1; i < c->n; i++)
        if (!c->out[i] && c->ns[i] && (best < 0 || c->ns[i] < c->ns[best]))
            best = i;
    return best;
}

static void keep_finalists(struct contest *c)
{
    bool final[XTI_MAX_CHOICES] = {true};
    for (int k = 0, i; k < FINALISTS && (i = fastest_other(c)) >= 0; k++)
        final[i] = c->out[i] = true;
    for (int i = 0; i < c->n; i++)
        c->out[i] = !final[i];
}

/* The fastest of many owes some of it to luck: it and the model's plan are judged by samples that chose
 * neither, one at least of each. */
static bool is_worth(struct contest *c, int best)
{
    int64_t deadline = c->deadline;
    for (int i = 0; i < c->n; i++)
        c->out[i] = i && i != best;
    c->ns[0] = c->ns[best] = 0;
    c->deadline = INT64_MAX;
    for (int k = 0; k < LAST_ROUNDS && run_round(c); k++)
        c->deadline = deadline;
    return c->ns[best] * 100 < c->ns[0] * (100 - WORTH_PERCENT);
}

/* The winner. */
static int hold(struct contest *c)
{
    bool time = true;
    for (int i = 0; i < c->n; i++) {
        c->repeat[i] = 1;
        xti_call_make(&c->plan[i].plan, &c->call[i]);
    }
    c->deadline = xti_now_ns() + budget_ns;
    for (int k = 0; k < ROUNDS && time; k++)
        time = run_round(c);
    keep_finalists(c);
    for (int k = 0; k < FINAL_ROUNDS && time; k++)
        time = run_round(c);
    int best = fastest_other(c);
    return best > 0 && is_worth(c, best) ? best : 0;
}

static bool measure(const struct xti_tuning *tuning, const struct xti_map *m, const struct xti_target *t,
                    struct xti_measured *out)
{
    struct contest *c = affordable(m) ? xti_alloc(sizeof *c) : NULL;
    bool ok = c && make_buffers(m, &c->buffers) && (c->n = xti_choice_plans(m, t, c->plan)) > 0;
    if (ok) {
        c->pool = tuning->pool;
        int best = hold(c);
        *out = (struct xti_measured){c->plan[best].plan.target.choice, c->n, c->ns[0], c->ns[best]};
    }
    for (int i = 0; c && i < c->n; i++)
        xti_plan_free(&c->plan[i].plan);
    if (c)
        free_buffers(&c->buffers);
    xti_free(c);
    return ok;
}

/* ---- whose turn it is */

/* The process whose thread measures, or 0: two at a time would time each other. In a forked child its
 * parent's number means nothing. */
static atomic_int measurer;

static bool take_turn(void)
{
    const struct timespec ms = {.tv_nsec = 1000000};
    int me = (int)getpid();
    for (int i = 0; i < PATIENCE_MS; i++) {
        int now = atomic_load(&measurer);
        if (now != me && atomic_compare_exchange_strong(&measurer, &now, me))
            return true;
        nanosleep(&ms, NULL);
    }
    return false;
}

/* What neither wider elements nor another place in memory nor another order of the inputs change: how many
 * bytes are written, and how far the destination and the inputs reach. */
static uint64_t outline(const struct xti_map *m)
{
    uint64_t bytes[] = {(uint64_t)m->numel, (uint64_t)(m->dst_hi - m->dst_lo + 1), 0};
    for (int i = 0; i < m->n_srcs; i++)
        if (m->src_hi[i] >= m->src_lo[i])
            bytes[2] += (uint64_t)(m->src_hi[i] - m->src_lo[i] + 1);
    for (int i = 0; i < 3; i++)
        bytes[i] *= (uint64_t)m->esize;
    return xti_hash64(bytes, sizeof bytes);
}

static bool identify(const struct xti_map *m, const struct xti_target *t, struct xti_map_id *id)
{
    char signature[XTI_SIGNATURE_CHARS];
    struct xti_str key = {0};
    unsigned char digest[XTI_SHA256_BYTES];
    const int64_t numbers[] = {(int64_t)t->isa, t->threads,  t->l1_bytes,
                               t->l2_bytes,     t->l3_bytes, (int64_t)t->choice.without};
    if (xti_signature(m, t->backend, 0, signature, NULL))
        return false;
    xti_str_add(&key, signature);
    xti_str_add(&key, t->machine->name);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        xti_str_u64le(&key, (uint64_t)numbers[i]);
    bool ok = !key.failed;
    if (ok) {
        xti_sha256_of(key.s, key.n, digest);
        memcpy(id->digest, digest, sizeof id->digest);
    }
    xti_str_free(&key);
    return ok;
}

static void log_result(const struct xti_measured *m)
{
    struct xti_str text = {0};
    xti_choice_text(m->choice, &text);
    xti_logf(XTI_LOG_TIME, "measured %d plans: %s: %.3f us, the model's: %.3f us", m->tried,
             text.s ? text.s : "", (double)m->chosen_ns / 1e3, (double)m->model_ns / 1e3);
    xti_str_free(&text);
}

/* Another thread may have measured the same map meanwhile. */
static void measure_in_turn(const struct xti_tuning *tuning, const struct xti_map *m,
                            const struct xti_target *t, const struct xti_map_id *id, struct xti_measured *out)
{
    if (!take_turn()) {
        xti_logf(XTI_LOG_TIME, "not measured: another thread is at it");
        return;
    }
    if (!xti_wisdom_find(tuning->wisdom, id, out)) {
        if (measure(tuning, m, t, out)) {
            xti_wisdom_add(tuning->wisdom, id, out);
            log_result(out);
        } else {
            xti_logf(XTI_LOG_TIME, "not measured: no memory for buffers as large as the operands");
        }
    }
    atomic_store(&measurer, 0);
}

void xti_choose(const struct xti_tuning *tuning, const struct xti_map *m, struct xti_target *t,
                struct xti_measured *out)
{
    *out = (struct xti_measured){0};
    if (!m->n_pieces)
        return;
    struct xti_map_id id = {.outline = outline(m)};
    if ((!tuning->measure && !xti_wisdom_may_know(tuning->wisdom, id.outline)) || !identify(m, t, &id))
        return;
    if (!xti_wisdom_find(tuning->wisdom, &id, out) && tuning->measure)
        measure_in_turn(tuning, m, t, &id, out);
    if (out->tried)
        t->choice = out->choice;
}
