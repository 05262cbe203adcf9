/* cuda_double_stream.c: the double's streams, launches, captures and graphs. Work on a stream is done at
 * once, but nobody knows it before he has waited. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes" /* the driver's header declares them */
#include "support/cuda_double.h"

#include <stdlib.h>
#include <string.h>

struct CUgraph_st {
    struct work *first, **last;
    int n;
};
struct CUstream_st {
    struct CUstream_st *next;
    struct CUctx_st *ctx;
    struct CUgraph_st *graph; /* being captured; or NULL */
    bool broken;              /* the capture is */
    int mode;
    pthread_t thread; /* that began it */
};

static struct CUstream_st *streams;
static __thread int thread_mode; /* GLOBAL */

/* ---------------------------------------------------------------------------------------------------- graphs
 */

static struct CUgraph_st *new_graph(void)
{
    struct CUgraph_st *g = calloc(1, sizeof *g);
    g->last = &g->first;
    return g;
}

static void free_graph(struct CUgraph_st *g)
{
    while (g && g->first) {
        struct work *w = g->first;
        g->first = w->next;
        for (int i = 0; i < w->n_params; i++)
            free(w->param[i]);
        free(w->param);
        free(w);
    }
    free(g);
}

static void append(struct CUgraph_st *g, const struct work *given)
{
    struct ptx_entry_info info;
    struct work *w = malloc(sizeof *w);
    *w = *given;
    ptx_entry_info(w->function->module->ptx, w->function->entry, &info);
    w->next = NULL;
    w->n_params = info.n_params;
    w->param = calloc((size_t)info.n_params + 1, sizeof *w->param);
    for (int i = 0; i < info.n_params; i++) {
        w->param[i] = malloc(info.param_bytes[i]);
        memcpy(w->param[i], given->param[i], info.param_bytes[i]);
    }
    *g->last = w;
    g->last = &w->next;
    g->n++;
}

/* --------------------------------------------------------------------------------------------------- streams
 */

static bool is_stream(const struct CUstream_st *s)
{
    struct CUstream_st *at = streams;
    while (at && at != s)
        at = at->next;
    return at != NULL;
}

/* Captures that forbid this thread what may be unsafe. With the lock. */
static bool forbids(const struct CUstream_st *s)
{
    bool mine = s->graph && pthread_equal(s->thread, pthread_self());
    if (!s->graph || thread_mode == RELAXED)
        return false;
    return mine ? s->mode != RELAXED : s->mode == GLOBAL && thread_mode == GLOBAL;
}

int double_unsafe(void)
{
    int r = SUCCESS;
    LOCK();
    for (struct CUstream_st *s = streams; s; s = s->next)
        if (forbids(s)) {
            s->broken = true;
            r = CAPTURE_UNSUPPORTED;
        }
    UNLOCK();
    return r;
}

/* To wait for what is only recorded is wrong in every mode. */
CU int cuCtxSynchronize(void)
{
    ENTER();
    struct CUctx_st *c = double_current();
    int r = c ? SUCCESS : INVALID_CONTEXT;
    LOCK();
    for (struct CUstream_st *s = streams; s; s = s->next)
        if (s->graph && s->ctx == c) {
            s->broken = true;
            r = CAPTURE_UNSUPPORTED;
        }
    if (!r)
        double_rest(c);
    UNLOCK();
    return r;
}

CU int cuStreamCreate(struct CUstream_st **out, unsigned flags)
{
    ENTER();
    if (!double_current() || flags > 1)
        return INVALID_VALUE;
    struct CUstream_st *s = calloc(1, sizeof *s);
    s->ctx = double_current();
    LOCK();
    s->next = streams;
    streams = s;
    UNLOCK();
    *out = s;
    return SUCCESS;
}

CU int cuStreamDestroy_v2(struct CUstream_st *s)
{
    ENTER();
    LOCK();
    struct CUstream_st **at = &streams;
    while (*at && *at != s)
        at = &(*at)->next;
    bool found = *at != NULL;
    if (found) {
        *at = s->next;
        free_graph(s->graph);
        free(s);
    }
    UNLOCK();
    return found ? SUCCESS : INVALID_HANDLE;
}

CU int cuStreamSynchronize(struct CUstream_st *s)
{
    ENTER();
    LOCK();
    int r = s && !is_stream(s) ? INVALID_HANDLE : s && s->graph ? CAPTURE_UNSUPPORTED : SUCCESS;
    if (r == CAPTURE_UNSUPPORTED)
        s->broken = true;
    UNLOCK();
    return r;
}

/* --------------------------------------------------------------------------------------------------- capture
 */

CU int cuThreadExchangeStreamCaptureMode(int *mode)
{
    ENTER();
    int before = thread_mode;
    thread_mode = *mode;
    *mode = before;
    return SUCCESS;
}

CU int cuStreamBeginCapture_v2(struct CUstream_st *s, int mode)
{
    ENTER();
    LOCK();
    int r = !is_stream(s) ? INVALID_HANDLE : s->graph ? INVALID_VALUE : SUCCESS;
    if (!r) {
        s->graph = new_graph();
        s->broken = false;
        s->mode = mode;
        s->thread = pthread_self();
    }
    UNLOCK();
    return r;
}

CU int cuStreamIsCapturing(struct CUstream_st *s, int *status)
{
    ENTER();
    LOCK();
    *status = s && s->graph ? s->broken ? 2 : 1 : 0;
    UNLOCK();
    return SUCCESS;
}

CU int cuStreamEndCapture(struct CUstream_st *s, struct CUgraph_st **out)
{
    ENTER();
    *out = NULL;
    LOCK();
    int r = !is_stream(s) ? INVALID_HANDLE
            : !s->graph   ? INVALID_VALUE
            : s->broken   ? CAPTURE_INVALIDATED
                          : SUCCESS;
    if (!r)
        *out = s->graph;
    else if (r == CAPTURE_INVALIDATED)
        free_graph(s->graph);
    if (!r || r == CAPTURE_INVALIDATED)
        s->graph = NULL;
    UNLOCK();
    return r;
}

/* ------------------------------------------------------------------------------------------ launches, graphs
 */

CU int cuLaunchKernel(struct CUfunc_st *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                      unsigned bz, unsigned shared, struct CUstream_st *s, void **given, void **extra)
{
    ENTER();
    struct CUctx_st *c = double_current();
    struct work w = {NULL, f, f ? f->module : NULL, {gx, gy, gz}, {bx, by, bz}, shared, 0, given};
    if (!c || !c->alive)
        return INVALID_CONTEXT;
    if (extra || !given)
        return INVALID_VALUE;
    LOCK();
    int r = !f || f->module->ctx != c || (s && (!is_stream(s) || s->ctx != c)) ? INVALID_HANDLE : SUCCESS;
    bool record = !r && s && s->graph;
    if (record && !s->broken)
        append(s->graph, &w);
    if (record && s->broken)
        r = CAPTURE_INVALIDATED;
    UNLOCK();
    return r || record ? r : double_run(&w);
}

/* An executable graph is the graph: nothing is copied, so the graph must not go before it. */
CU int cuGraphInstantiateWithFlags(struct CUgraph_st **out, struct CUgraph_st *g, unsigned long long flags)
{
    ENTER();
    *out = g;
    return g && !flags ? SUCCESS : INVALID_VALUE;
}

CU int cuGraphGetNodes(struct CUgraph_st *g, void **nodes, size_t *n)
{
    ENTER();
    *n = (size_t)g->n;
    return nodes ? INVALID_VALUE : SUCCESS;
}

CU int cuGraphLaunch(struct CUgraph_st *g, struct CUstream_st *s)
{
    ENTER();
    for (const struct work *w = g->first; w; w = w->next) {
        LOCK();
        bool there = double_is_loaded(w->module);
        if (!there)
            double_hazard("a graph launches a kernel whose module was unloaded");
        UNLOCK();
        int r = there ? double_run(w) : INVALID_HANDLE;
        if (r)
            return r;
    }
    return SUCCESS;
}

CU int cuGraphExecDestroy(struct CUgraph_st *g)
{
    ENTER();
    return g ? SUCCESS : INVALID_VALUE;
}

CU int cuGraphDestroy(struct CUgraph_st *g)
{
    ENTER();
    free_graph(g);
    return SUCCESS;
}
