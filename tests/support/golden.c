/* golden.c: the reader of the golden file. Its operations are in Polish order: arguments come before. */
#include "tests/support/golden.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_ARGS = 128, MAX_LINE = 1 << 16, MAX_STACK = 16 };

struct stack {
    struct xt_graph *g;
    xt_node input[MAX_STACK], x[MAX_STACK];
    int n_inputs, n;
};

static void die(const char *name, const char *what)
{
    fprintf(stderr, "golden.txt: case %s: %s\n", name, what);
    exit(2);
}

FILE *golden_open(void)
{
    const char *path = getenv("GOLDEN");
    return fopen(path ? path : "tests/golden/golden.txt", "r");
}

uint64_t golden_fnv(int64_t n, const int64_t *v)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (int64_t i = 0; i < n; i++)
        for (int k = 0; k < 8; k++)
            h = (h ^ ((uint64_t)v[i] >> 8 * k & 255)) * 0x100000001b3u;
    return h;
}

static int read_numbers(const char *s, int64_t *v, int cap)
{
    int n = 0;
    for (char *end; n < cap; s = end) {
        v[n] = strtoll(s, &end, 10);
        if (end == s)
            break;
        n++;
    }
    return n;
}

static void to_ints(int n, const int64_t *v, int *out)
{
    for (int i = 0; i < n; i++)
        out[i] = (int)v[i];
}

static int rank_of(const struct stack *s, xt_node x)
{
    struct xt_node_info info = {.size = sizeof info};
    return xt_node_get(s->g, x, &info) ? 0 : info.rank;
}

/* (start, length, step) as Python's start:stop:step; stepping down past 0 needs the stop left out. */
static xt_node build_slice(struct stack *s, xt_node x, int n, const int64_t *v)
{
    struct xt_index it[XT_MAX_RANK];
    for (int i = 0; i < n / 3; i++) {
        int64_t start = v[3 * i], len = v[3 * i + 1], step = v[3 * i + 2], stop = start + len * step;
        it[i] = (struct xt_index){XT_SLICE, start, len == 0 ? start : stop < 0 ? XT_NONE : stop, step};
    }
    return xt_index(s->g, x, n / 3, it);
}

static xt_node build_pad(struct stack *s, xt_node x, int n, const int64_t *v)
{
    return xt_pad(s->g, x, n / 2, v, &(int64_t){-1 - v[n - 1]});
}

static xt_node build_tri(struct stack *s, xt_node x, const int64_t *v, bool lower)
{
    int64_t value = -1 - v[1];
    return lower ? xt_tril(s->g, x, v[0], &value) : xt_triu(s->g, x, v[0], &value);
}

static xt_node build_join(struct stack *s, const int64_t *v, bool stack)
{
    s->n -= (int)v[1];
    const xt_node *xs = s->x + s->n;
    return stack ? xt_stack(s->g, (int)v[0], (int)v[1], xs) : xt_concat(s->g, (int)v[0], (int)v[1], xs);
}

static void build(struct stack *s, const char *op, int n, const int64_t *v)
{
    int axes[MAX_ARGS];
    xt_node r = -1, x = s->n ? s->x[s->n - 1] : -1;
    bool unary = false;
    to_ints(n, v, axes);
#define IS(name) (!strcmp(op, name))
    if (IS("load"))
        r = s->input[v[0]];
    else if (IS("concat") || IS("stack"))
        r = build_join(s, v, IS("stack"));
    else
        unary = true;
    if (unary) {
        s->n--;
        r = IS("permute")    ? xt_permute(s->g, x, n, axes)
            : IS("reshape")  ? xt_reshape(s->g, x, n, v)
            : IS("flip")     ? xt_flip(s->g, x, n, axes)
            : IS("expand")   ? xt_expand(s->g, x, n, v)
            : IS("slice")    ? build_slice(s, x, n, v)
            : IS("pad")      ? build_pad(s, x, n, v)
            : IS("tril")     ? build_tri(s, x, v, true)
            : IS("triu")     ? build_tri(s, x, v, false)
            : IS("roll")     ? xt_roll(s->g, x, v[1], (int)v[0])
            : IS("tile")     ? xt_tile(s->g, x, n, v)
            : IS("repeat")   ? xt_repeat(s->g, x, v[1], (int)v[0])
            : IS("diagonal") ? xt_diagonal(s->g, x, v[2], (int)v[0], (int)v[1])
            : IS("unfold")   ? xt_unfold(s->g, x, (int)v[0], v[1], v[2])
                             : -1;
    }
#undef IS
    s->x[s->n++] = r;
}

static void read_piece(struct golden_case *c, char *line)
{
    struct golden_piece *p = &c->piece[c->n_listed++];
    bool fill = !strncmp(line, "piece fill", 10);
    char *dims = strstr(line, " dims ");
    int64_t v[2], d[3 * GOLDEN_DIMS + 1];
    memset(p, 0, sizeof *p);
    p->src = fill ? -1 : atoi(line + 10);
    read_numbers(strstr(line, " soff ") + 6, v, 1);
    p->soff = v[0];
    read_numbers(strstr(line, " doff ") + 6, v, 1);
    p->doff = v[0];
    read_numbers(dims + 6, d, 3 * GOLDEN_DIMS + 1);
    p->n_dims = (int)d[0];
    memcpy(p->dim, d + 1, (size_t)p->n_dims * sizeof p->dim[0]);
    p->general = strstr(line, "general") != NULL;
}

static void read_facts(struct golden_case *c, const char *line)
{
    int affine, memcpy_, guarded;
    unsigned long long fnv;
    if (sscanf(line, "facts npieces %d affine %d rank %d memcpy %d ndivs %d guarded %d fnv %llx",
               &c->n_pieces, &affine, &c->rank, &memcpy_, &c->n_divs, &guarded, &fnv) != 7)
        die(c->name, "facts");
    c->affine = affine;
    c->memcpy = memcpy_;
    c->guarded = guarded;
    c->fnv = fnv;
}

static void read_output(struct golden_case *c, struct stack *s, const char *line)
{
    int64_t v[MAX_ARGS];
    read_numbers(line + 4, v, MAX_ARGS);
    int rank = (int)v[0];
    if (rank != rank_of(s, s->x[0]) || xt_output(s->g, s->x[0], v + 1 + rank, v[1 + 2 * rank]))
        die(c->name, xt_last_error()->message);
    xt_print(s->g, c->text, sizeof c->text, NULL);
}

static void read_line(struct golden_case *c, struct stack *s, char *line)
{
    int64_t v[MAX_ARGS];
    char op[32];
    int at = 0;
    if (!strncmp(line, "input ", 6)) {
        int n = read_numbers(line + 6, v, MAX_ARGS), rank = (int)v[0];
        if (n != 2 * rank + 3)
            die(c->name, "input");
        s->input[s->n_inputs++] = xt_input(s->g, NULL, XT_I64, rank, v + 1, v + 1 + rank, v[1 + 2 * rank]);
    } else if (sscanf(line, "op %31s %*d%n", op, &at) == 1) {
        build(s, op, read_numbers(line + at, v, MAX_ARGS), v);
    } else if (!strncmp(line, "out ", 4)) {
        read_output(c, s, line);
    } else if (!strncmp(line, "facts ", 6)) {
        read_facts(c, line);
    } else if (!strncmp(line, "piece ", 6)) {
        read_piece(c, line);
    } else if (!strncmp(line, "table ", 6)) {
        int64_t n = 0;
        sscanf(line, "table %*d%n", &at);
        n = read_numbers(line + at, c->table, GOLDEN_TABLE);
        c->n_table = (int)n;
    }
}

bool golden_next(FILE *f, struct golden_case *c)
{
    static char line[MAX_LINE];
    struct stack s = {0};
    memset(c, 0, sizeof *c);
    c->n_table = -1;
    while (fgets(line, sizeof line, f)) {
        if (sscanf(line, "case %31s", c->name) == 1) {
            if (xt_graph_new(&s.g))
                die(c->name, "no memory");
            c->g = s.g;
        } else if (!strncmp(line, "end", 3)) {
            return true;
        } else if (s.g) {
            read_line(c, &s, line);
        }
    }
    return false;
}
