/* memo.c: a hash table of objects and of builds under way, under one mutex that is never held while building.
 * Objects are kept in order of use; builds are not in that order and so are never dropped. A fork waits until
 * no thread is inside the lock, and the child forgets the builds of threads that it does not have. Layer 5.
 */
#include "cache/cache.h"

#include <assert.h>
#include <pthread.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"

/* One build, and those who wait for it. The last of them to leave frees it. */
struct flight {
    pthread_t builder;
    pthread_cond_t landed;
    int users;
    bool done;
    xt_status status;
    void *object; /* a reference, once done */
    struct xti_err err;
};

struct entry {
    struct entry *next;          /* in its bucket */
    struct entry *newer, *older; /* in the order of use, when flight is NULL */
    struct flight *flight;       /* NULL: object is there */
    void *object;
    uint64_t hash;
    size_t key_bytes;
    const void *key; /* in room, in the object, or while it is being built the caller's */
    unsigned char room[];
};

struct xti_memo {
    pthread_mutex_t lock;
    struct xti_memo_ops ops;
    struct entry **bucket;
    size_t n_buckets; /* a power of two */
    size_t n_objects, max_objects;
    struct entry *newest, *oldest;
    struct flight *spare;       /* for the next build; or NULL */
    struct xti_memo *next_memo; /* of all_memos */
};

/* ----------------------------------------------------------------------------------- table, order */

static struct entry **find_slot(struct xti_memo *m, uint64_t hash, const void *key, size_t key_bytes)
{
    struct entry **e = &m->bucket[hash & (m->n_buckets - 1)];
    while (*e && ((*e)->hash != hash || (*e)->key_bytes != key_bytes || memcmp((*e)->key, key, key_bytes)))
        e = &(*e)->next;
    return e;
}

static void unlink_entry(struct xti_memo *m, struct entry *gone)
{
    struct entry **e = &m->bucket[gone->hash & (m->n_buckets - 1)];
    while (*e != gone)
        e = &(*e)->next;
    *e = gone->next;
}

static void leave_order(struct xti_memo *m, struct entry *e)
{
    *(e->newer ? &e->newer->older : &m->newest) = e->older;
    *(e->older ? &e->older->newer : &m->oldest) = e->newer;
}

static void enter_order(struct xti_memo *m, struct entry *e)
{
    e->newer = NULL;
    e->older = m->newest;
    *(m->newest ? &m->newest->newer : &m->oldest) = e;
    m->newest = e;
}

/* Takes the oldest entry out when there are too many; NULL: there are not. */
static struct entry *pop_excess(struct xti_memo *m)
{
    struct entry *e = m->oldest;
    if (m->n_objects <= m->max_objects)
        return NULL;
    leave_order(m, e);
    unlink_entry(m, e);
    m->n_objects--;
    return e;
}

/* ------------------------------------------------------------------------------------------- fork */

static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;
static struct xti_memo *all_memos;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

static void before_fork(void)
{
    pthread_mutex_lock(&all_lock);
    for (struct xti_memo *m = all_memos; m; m = m->next_memo)
        pthread_mutex_lock(&m->lock);
}

static void after_fork(void)
{
    for (struct xti_memo *m = all_memos; m; m = m->next_memo)
        pthread_mutex_unlock(&m->lock);
    pthread_mutex_unlock(&all_lock);
}

/* The forking thread lives on and may be a builder itself; of its build the waiters are gone. */
static void forget_builds(struct entry **e)
{
    while (*e) {
        struct entry *x = *e;
        struct flight *f = x->flight;
        if (f && !pthread_equal(f->builder, pthread_self())) {
            *e = x->next;
            xti_free(f);
            xti_free(x);
            continue;
        }
        if (f) {
            f->users = 1;
            pthread_cond_init(&f->landed, NULL);
        }
        e = &x->next;
    }
}

static void after_fork_in_child(void)
{
    for (struct xti_memo *m = all_memos; m; m = m->next_memo)
        for (size_t i = 0; i < m->n_buckets; i++)
            forget_builds(&m->bucket[i]);
    after_fork();
}

static void watch_forks(void) { pthread_atfork(before_fork, after_fork, after_fork_in_child); }

static void register_memo(struct xti_memo *m)
{
    pthread_once(&fork_once, watch_forks);
    pthread_mutex_lock(&all_lock);
    m->next_memo = all_memos;
    all_memos = m;
    pthread_mutex_unlock(&all_lock);
}

static void unregister_memo(struct xti_memo *m)
{
    pthread_mutex_lock(&all_lock);
    struct xti_memo **p = &all_memos;
    while (*p != m)
        p = &(*p)->next_memo;
    *p = m->next_memo;
    pthread_mutex_unlock(&all_lock);
}

/* ----------------------------------------------------------------------------------- new and free */

static xt_status fail_memory(struct xti_err *err)
{
    return xti_fail(err, XT_ENOMEM, "memory cache: out of memory");
}

xt_status xti_memo_new(const struct xti_memo_ops *ops, size_t max_entries, struct xti_memo **out,
                       struct xti_err *err)
{
    *out = NULL;
    size_t n = 16;
    while (n < max_entries && n < (size_t)1 << 16)
        n *= 2;
    struct xti_memo *m = xti_alloc(sizeof *m);
    struct entry **bucket = xti_alloc_array(n, sizeof *bucket);
    if (!m || !bucket) {
        xti_free(m);
        xti_free(bucket);
        return fail_memory(err);
    }
    m->ops = *ops;
    m->bucket = bucket;
    m->n_buckets = n;
    m->max_objects = max_entries ? max_entries : 1;
    pthread_mutex_init(&m->lock, NULL);
    register_memo(m);
    *out = m;
    return XT_OK;
}

void xti_memo_free(struct xti_memo *m)
{
    if (!m)
        return;
    unregister_memo(m);
    while (m->oldest) {
        m->max_objects = 0;
        struct entry *e = pop_excess(m);
        m->ops.unref(e->object);
        xti_free(e);
    }
    pthread_mutex_destroy(&m->lock);
    xti_free(m->spare);
    xti_free(m->bucket);
    xti_free(m);
}

/* --------------------------------------------------------------------------------------- building */

/* Called with the lock held. */
static struct entry *start_flight(struct xti_memo *m, uint64_t hash, const void *key, size_t key_bytes)
{
    size_t bytes, room = m->ops.key ? 0 : key_bytes;
    bool fits = !__builtin_add_overflow(sizeof(struct entry), room, &bytes);
    struct entry *e = fits ? xti_alloc(bytes) : NULL;
    struct flight *f = m->spare ? m->spare : xti_alloc(sizeof *f);
    m->spare = NULL;
    if (!e || !f) {
        xti_free(e);
        xti_free(f);
        return NULL;
    }
    f->builder = pthread_self();
    f->users = 1;
    f->done = false;
    f->object = NULL;
    pthread_cond_init(&f->landed, NULL);
    e->flight = f;
    e->hash = hash;
    e->key_bytes = key_bytes;
    e->key = room ? memcpy(e->room, key, room) : key;
    struct entry **slot = &m->bucket[hash & (m->n_buckets - 1)];
    e->next = *slot;
    *slot = e;
    return e;
}

/* Called with the lock held; unlocks it. When nobody else is in it, f becomes the spare one, or is freed. */
static void leave_flight(struct xti_memo *m, struct flight *f)
{
    bool last = --f->users == 0, keep = last && !m->spare;
    void *object = f->object;
    if (last)
        pthread_cond_destroy(&f->landed);
    if (keep)
        m->spare = f;
    pthread_mutex_unlock(&m->lock);
    if (!last)
        return;
    if (object)
        m->ops.unref(object);
    if (!keep)
        xti_free(f);
}

static xt_status land(struct xti_memo *m, struct entry *e, void *object, xt_status s,
                      const struct xti_err *why)
{
    struct flight *f = e->flight;
    struct entry *gone = NULL;
    pthread_mutex_lock(&m->lock);
    f->done = true;
    f->status = s;
    if (s == XT_OK) {
        f->object = f->users > 1 ? m->ops.ref(object) : NULL; /* for those who wait */
        e->object = m->ops.ref(object);
        e->key = m->ops.key ? m->ops.key(object) : e->room;
        e->flight = NULL;
        m->n_objects++;
        enter_order(m, e);
        gone = pop_excess(m);
    } else {
        f->err = *why;
        unlink_entry(m, e);
    }
    pthread_cond_broadcast(&f->landed);
    leave_flight(m, f);
    if (gone)
        m->ops.unref(gone->object);
    xti_free(s ? e : gone);
    return s;
}

static void pass_on(struct xti_err *err, const struct xti_err *from)
{
    if (err && !err->e.status)
        *err = *from;
}

static xt_status build_entry(struct xti_memo *m, struct entry *e,
                             xt_status (*build)(void *arg, void **object, struct xti_err *err), void *arg,
                             void **out, struct xti_err *err)
{
    struct xti_err why;
    void *object = NULL;
    xti_err_clear(&why);
    xt_status s = build(arg, &object, &why);
    if (s == XT_OK && !object)
        s = xti_fail(&why, XT_EINTERNAL, "memory cache: a build gave no object");
    land(m, e, object, s, &why);
    if (s == XT_OK)
        *out = object;
    else
        pass_on(err, &why);
    return s;
}

/* Called with the lock held; unlocks it. */
static xt_status wait_for(struct xti_memo *m, struct flight *f, void **out, struct xti_err *err)
{
    if (pthread_equal(f->builder, pthread_self())) {
        pthread_mutex_unlock(&m->lock);
        return xti_fail(err, XT_EINTERNAL, "memory cache: a build asks for its own key");
    }
    f->users++;
    while (!f->done)
        pthread_cond_wait(&f->landed, &m->lock);
    xt_status s = f->status;
    if (s == XT_OK)
        *out = m->ops.ref(f->object);
    else
        pass_on(err, &f->err);
    leave_flight(m, f);
    return s;
}

xt_status xti_memo_get(struct xti_memo *m, const void *key, size_t key_bytes,
                       xt_status (*build)(void *arg, void **object, struct xti_err *err), void *arg,
                       void **out, bool *hit, struct xti_err *err)
{
    uint64_t hash = xti_hash64(key, key_bytes);
    *out = NULL;
    if (hit)
        *hit = true;
    pthread_mutex_lock(&m->lock);
    struct entry *e = *find_slot(m, hash, key, key_bytes);
    if (e && !e->flight) {
        if (m->newest != e) {
            leave_order(m, e);
            enter_order(m, e);
        }
        *out = m->ops.ref(e->object);
        pthread_mutex_unlock(&m->lock);
        return XT_OK;
    }
    if (!build) {
        if (hit)
            *hit = e != NULL;
        pthread_mutex_unlock(&m->lock);
        return XT_OK;
    }
    if (e)
        return wait_for(m, e->flight, out, err);
    if (hit)
        *hit = false;
    e = start_flight(m, hash, key, key_bytes);
    pthread_mutex_unlock(&m->lock);
    return e ? build_entry(m, e, build, arg, out, err) : fail_memory(err);
}
