/* wisdom.c: measured choices in memory and on disk. In memory: lists that only grow, so that lookups need no
 * lock and a forked child none that is held. On disk: one entry, rewritten under its lock by whoever adds to
 * it. Its payload is a row of records, oldest first. Layer 6. */
#include "api/measure.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "base/mem.h"
#include "plan/choice.h"

enum { N_LISTS = 64, MAX_RECORDS = 4096, NAME_BYTES = 64 };
enum { ID_BYTES = sizeof(struct xti_map_id), RECORD_BYTES = ID_BYTES + 32 };
_Static_assert(sizeof(struct xti_map_id) == 16, "no padding: compared and stored as bytes");

struct record {
    struct xti_map_id id;
    struct xti_measured m;
    struct record *next;
};

struct xti_wisdom {
    struct xti_disk *disk;
    _Atomic(struct record *) list[N_LISTS]; /* newest first */
};

/* ---- memory */

static unsigned list_of(uint64_t outline) { return outline % N_LISTS; }

static bool remember(struct xti_wisdom *w, const struct xti_map_id *id, const struct xti_measured *m)
{
    struct record *r = xti_alloc(sizeof *r);
    if (!r)
        return false;
    _Atomic(struct record *) *list = &w->list[list_of(id->outline)];
    r->id = *id;
    r->m = *m;
    r->next = atomic_load(list);
    while (!atomic_compare_exchange_weak(list, &r->next, r))
        continue;
    return true;
}

bool xti_wisdom_may_know(const struct xti_wisdom *w, uint64_t outline)
{
    const struct record *r = atomic_load(&w->list[list_of(outline)]);
    while (r && r->id.outline != outline)
        r = r->next;
    return r;
}

bool xti_wisdom_find(const struct xti_wisdom *w, const struct xti_map_id *id, struct xti_measured *out)
{
    const struct record *r = atomic_load(&w->list[list_of(id->outline)]);
    while (r && memcmp(&r->id, id, ID_BYTES))
        r = r->next;
    if (r)
        *out = r->m;
    return r;
}

/* ---- records */

static void encode(struct xti_str *b, const struct xti_map_id *id, const struct xti_measured *m)
{
    const struct xti_choice c = m->choice;
    /* sixth: lines in pairs or alone, which plans could once turn */
    const int8_t small[8] = {c.stream, c.order, c.rows, c.cols, (int8_t)m->tried, 0, c.first};
    xti_str_addn(b, id, ID_BYTES);
    xti_str_addn(b, small, sizeof small);
    xti_str_u64le(b, c.without);
    xti_str_u64le(b, (uint64_t)m->model_ns);
    xti_str_u64le(b, (uint64_t)m->chosen_ns);
}

static int64_t load_i64(const unsigned char *p)
{
    uint64_t v = 0;
    for (int i = 7; i >= 0; i--)
        v = v << 8 | p[i];
    return (int64_t)v;
}

static bool within(int n, int most) { return n >= -most && n <= most; }

bool xti_choice_valid(struct xti_choice c)
{
    enum { MOST_BLOCKS = 2 };
    return within(c.stream, 1) && c.order >= 0 && c.order < XTI_ORDER_COUNT && within(c.rows, MOST_BLOCKS) &&
           within(c.cols, MOST_BLOCKS) && within(c.first, 1);
}

/* False for what no version writes. */
static bool decode(const unsigned char *p, struct xti_map_id *id, struct xti_measured *m)
{
    int8_t small[8];
    memcpy(id, p, ID_BYTES);
    memcpy(small, p + ID_BYTES, sizeof small);
    *m = (struct xti_measured){.choice = {.stream = small[0],
                                          .order = small[1],
                                          .rows = small[2],
                                          .cols = small[3],
                                          .first = small[6],
                                          .without = (uint64_t)load_i64(p + ID_BYTES + 8)},
                               .tried = small[4],
                               .model_ns = load_i64(p + ID_BYTES + 16),
                               .chosen_ns = load_i64(p + ID_BYTES + 24)};
    return xti_choice_valid(m->choice) && !small[5] && m->tried > 0 && m->tried <= XTI_MAX_CHOICES &&
           m->model_ns > 0 && m->chosen_ns > 0;
}

/* ---- disk */

/* "Intel(R) Xeon(R) Processor c06f2": brand and signature, or the machine's name. Asked once: in a virtual
 * machine each cpuid is left to the host, and these took more than the rest of xt_ctx_new. */
static pthread_once_t asked = PTHREAD_ONCE_INIT;
static char processor[NAME_BYTES];

static void ask_processor(void)
{
#if defined(__x86_64__)
    unsigned r[12] = {0}, a = 0, b, c, d;
    for (unsigned i = 0; i < 3; i++)
        if (!__get_cpuid(0x80000002 + i, &r[4 * i], &r[4 * i + 1], &r[4 * i + 2], &r[4 * i + 3]))
            return;
    __get_cpuid(1, &a, &b, &c, &d);
    snprintf(processor, sizeof processor, "%.48s %x", (const char *)r, a);
#else
    struct utsname u;
    if (!uname(&u))
        memcpy(processor, u.machine, strnlen(u.machine, NAME_BYTES - 1));
#endif
}

static void entry_key(struct xti_str *key)
{
    xti_str_add(key, "xt choices 5\n" XT_VERSION "\n");
    xti_str_add(key, processor);
}

static void load(struct xti_wisdom *w, const struct xti_str *key)
{
    struct xti_blob b = {0};
    struct xti_map_id id;
    struct xti_measured m;
    if (!xti_disk_get(w->disk, key->s, key->n, &b))
        return;
    const unsigned char *p = b.data;
    for (size_t i = 0; i + RECORD_BYTES <= b.bytes; i += RECORD_BYTES)
        if (decode(p + i, &id, &m))
            remember(w, &id, &m);
    xti_free(b.data);
}

/* Appends to what is there now: other processes add too. */
static void store(struct xti_wisdom *w, const struct xti_str *key, const struct xti_map_id *id,
                  const struct xti_measured *m)
{
    struct xti_blob b = {0};
    struct xti_str all = {0}, what = {0};
    int token = xti_disk_lock(w->disk, key->s, key->n);
    xti_disk_get(w->disk, key->s, key->n, &b);
    const unsigned char *p = b.data;
    size_t n = b.bytes / RECORD_BYTES, first = n >= MAX_RECORDS ? n - MAX_RECORDS + 1 : 0;
    for (size_t i = first; i < n; i++)
        if (memcmp(p + i * RECORD_BYTES, id, ID_BYTES))
            xti_str_addn(&all, p + i * RECORD_BYTES, RECORD_BYTES);
    encode(&all, id, m);
    xti_str_addf(&what, "measured choices: %zu, %s", all.n / RECORD_BYTES, processor);
    if (!all.failed && !what.failed)
        xti_disk_put(w->disk, key->s, key->n, what.s, all.s, all.n);
    xti_disk_unlock(w->disk, token);
    xti_str_free(&all);
    xti_str_free(&what);
    xti_free(b.data);
}

xt_status xti_wisdom_open(struct xti_disk *d, struct xti_wisdom **out, struct xti_err *err)
{
    struct xti_str key = {0};
    struct xti_wisdom *w = xti_alloc(sizeof *w);
    if (!(*out = w))
        return xti_fail(err, XT_ENOMEM, "measured choices");
    w->disk = d;
    pthread_once(&asked, ask_processor);
    entry_key(&key);
    if (!key.failed && xti_disk_path(d))
        load(w, &key);
    xti_str_free(&key);
    return XT_OK;
}

void xti_wisdom_close(struct xti_wisdom *w)
{
    for (int i = 0; w && i < N_LISTS; i++)
        for (struct record *r = atomic_load(&w->list[i]), *next; r; r = next) {
            next = r->next;
            xti_free(r);
        }
    xti_free(w);
}

void xti_wisdom_add(struct xti_wisdom *w, const struct xti_map_id *id, const struct xti_measured *m)
{
    struct xti_str key = {0};
    remember(w, id, m);
    entry_key(&key);
    if (!key.failed && xti_disk_path(w->disk))
        store(w, &key, id, m);
    xti_str_free(&key);
}
