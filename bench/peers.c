/* peers.c: other libraries. Those of Python evaluate the whole chain, each in a process of its own that
 * answers a line with a line (peer_chain.py): $PYTHON, python3 and /usr/bin/python3 are asked what they have.
 * The compiled ones copy in this process what is one strided copy: their side is compiled when the benchmark
 * runs (bench/peers/), by $CC and $CXX, which find headers and libraries where they always do. Nothing is
 * installed here. */
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "peers/peer.h"
#include "strided.h"

extern char **environ;

const char *const bench_peer_name[N_PEERS] = {"numpy",  "torch",         "jax",
                                              "onednn", "hptt_estimate", "hptt_measure"};

struct python {
    pid_t pid; /* 0: none */
    FILE *to, *from;
};

struct compiled {
    void *library, *plan; /* NULL: none */
    void *(*make)(const struct peer_copy *c);
    void (*run)(void *plan);
    void (*drop)(void *plan);
};

struct peers {
    struct python python[N_PEERS];
    struct compiled compiled[N_PEERS];
};

/* ---- Python */
static const char script[] = "bench/peer_chain.py";

/* Without importing it, which takes seconds. */
static bool has_library(const char *python, const char *library)
{
    char command[512];
    snprintf(command, sizeof command,
             "'%s' -c 'from importlib.util import find_spec as f; exit(not f(\"numpy\") or not f(\"%s\"))' "
             ">/dev/null 2>&1",
             python, library);
    return system(command) == 0;
}

static const char *find_python(const char *library)
{
    const char *const pythons[] = {getenv("PYTHON"), "python3", "/usr/bin/python3"};
    for (int i = 0; i < 3; i++)
        if (pythons[i] && has_library(pythons[i], library))
            return pythons[i];
    return NULL;
}

static void stop_python(struct python *p)
{
    if (p->to)
        fclose(p->to);
    if (p->from)
        fclose(p->from);
    if (p->pid)
        waitpid(p->pid, NULL, 0);
    *p = (struct python){0};
}

static void start_python(struct python *p, const char *library)
{
    char threads[16];
    const char *python = access(script, R_OK) ? NULL : find_python(library);
    int in[2], out[2];
    if (!python || pipe2(in, O_CLOEXEC))
        return;
    if (pipe2(out, O_CLOEXEC)) {
        close(in[0]);
        close(in[1]);
        return;
    }
    snprintf(threads, sizeof threads, "%d", bench_threads());
    char *argv[] = {(char *)python, (char *)script, (char *)library, threads, NULL};
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, in[0], 0);
    posix_spawn_file_actions_adddup2(&files, out[1], 1);
    posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0);
    p->to = fdopen(in[1], "w");
    p->from = fdopen(out[0], "r");
    if (!p->to || !p->from || posix_spawnp(&p->pid, python, &files, NULL, argv, environ))
        p->pid = 0;
    posix_spawn_file_actions_destroy(&files);
    close(in[0]);
    close(out[1]);
    if (!p->pid)
        stop_python(p);
}

static void tell_python(struct python *p, const char *first, const char *second)
{
    if (!p->pid)
        return;
    fprintf(p->to, "%s|%s\n", first, second);
    fflush(p->to);
}

/* The number that answers a line. A process that does not answer is gone for good. */
static double hear_python(struct python *p)
{
    double answer;
    char text[64];
    if (!p->pid)
        return 0;
    if (fgets(text, sizeof text, p->from) && sscanf(text, "%lf", &answer) == 1)
        return answer;
    stop_python(p);
    return 0;
}

/* ---- compiled. The shell expands the variables */
static const struct {
    int peer;
    const char *needs; /* this variable; NULL: nothing */
    const char *command;
} native[] = {
    {PEER_ONEDNN, NULL, "\"${CC:-cc}\" -O2 -shared -fPIC -fopenmp -o %s bench/peers/onednn.c -ldnnl"},
    {PEER_HPTT_ESTIMATE, "HPTT_DIR",
     "\"${CXX:-c++}\" -O2 -std=c++11 -shared -fPIC -fopenmp -I\"$HPTT_DIR/include\" -o %s "
     "bench/peers/hptt.cpp "
     "-L\"$HPTT_DIR/lib\" -Wl,-rpath,\"$HPTT_DIR/lib\" -lhptt"},
};

static void *build(const char *template)
{
    char dir[] = "/tmp/xt-bench-XXXXXX", path[64], command[1024];
    if (access("bench/peers/peer.h", R_OK) || !mkdtemp(dir))
        return NULL;
    snprintf(path, sizeof path, "%s/peer.so", dir);
    int n = snprintf(command, sizeof command, template, path);
    snprintf(command + n, sizeof command - (size_t)n, " >/dev/null 2>&1");
    void *library = system(command) ? NULL : dlopen(path, RTLD_NOW | RTLD_LOCAL);
    unlink(path);
    rmdir(dir);
    return library;
}

static void open_compiled(struct compiled *c, const char *template)
{
    void *library = build(template);
    if (!library)
        return;
    c->make = (void *(*)(const struct peer_copy *))dlsym(library, "peer_new");
    c->run = (void (*)(void *))dlsym(library, "peer_run");
    c->drop = (void (*)(void *))dlsym(library, "peer_free");
    c->library = c->make && c->run && c->drop ? library : NULL;
}

static void drop_plan(struct compiled *c)
{
    if (c->plan)
        c->drop(c->plan);
    c->plan = NULL;
}

/* Writes nothing (HPTT's measuring mode does, for some shapes) or other bytes: no contestant. */
static void make_plan(struct compiled *c, const struct peer_task *t, int measure)
{
    const struct strided *s = &t->copy;
    struct peer_copy copy = {s->rank, s->width, bench_threads(), measure, s->n, s->s, s->d, t->src, t->dst};
    if (!c->library || !t->is_copy || !(c->plan = c->make(&copy)))
        return;
    memset(t->buffer, BENCH_UNWRITTEN, t->bytes);
    c->run(c->plan);
    if (memcmp(t->buffer, t->want, t->bytes))
        drop_plan(c);
}

/* ---- both */
struct peers *peers_open(bool hptt_measure)
{
    struct peers *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    signal(SIGPIPE, SIG_IGN); /* a peer that died is an answer of its own */
    setenv("OMP_WAIT_POLICY", "passive",
           1); /* threads that wait leave the processors to who is being timed */
    for (int i = PEER_NUMPY; i <= PEER_JAX; i++)
        start_python(&p->python[i], bench_peer_name[i]);
    for (size_t i = 0; i < sizeof native / sizeof *native; i++) {
        struct compiled *c = &p->compiled[native[i].peer];
        if (native[i].needs && !getenv(native[i].needs))
            continue;
        open_compiled(c, native[i].command);
        if (!c->library && native[i].needs)
            fprintf(stderr, "xt: bench: %s: %s is set, but its peer did not build\n",
                    bench_peer_name[native[i].peer], native[i].needs);
    }
    if (hptt_measure)
        p->compiled[PEER_HPTT_MEASURE] = p->compiled[PEER_HPTT_ESTIMATE];
    return p;
}

void peers_announce(struct peers *p, const struct bench_workload *w)
{
    for (int i = PEER_NUMPY; i <= PEER_JAX; i++)
        tell_python(&p->python[i], w->chain, w->small);
}

bool peers_prepare(struct peers *p, int peer, const struct peer_task *t)
{
    if (peer <= PEER_JAX)
        return hear_python(&p->python[peer]) > 0;
    make_plan(&p->compiled[peer], t, peer == PEER_HPTT_MEASURE);
    return p->compiled[peer].plan != NULL;
}

bool peers_keep_time(int peer) { return peer <= PEER_JAX; }

double peers_ask(struct peers *p, int peer)
{
    tell_python(&p->python[peer], "", "");
    return hear_python(&p->python[peer]);
}

void peers_run(struct peers *p, int peer) { p->compiled[peer].run(p->compiled[peer].plan); }

void peers_release(struct peers *p)
{
    for (int i = 0; i < N_PEERS; i++)
        drop_plan(&p->compiled[i]);
}

void peers_close(struct peers *p)
{
    for (int i = 0; p && i < N_PEERS; i++)
        stop_python(&p->python[i]);
    free(p);
}
