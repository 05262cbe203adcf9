/* cursor.c: a step in the order of the destination. The outer loops are an odometer. In affine pieces the
 * kernel takes as many rows at once as there are. Guards cut these rows and their columns to intervals, row
 * by row where one is of both and lets a part pass; with divs a row goes by runs on which no div changes its
 * quotient, so that all is affine there. In: a step of xti_order_step, of a checked piece: numerators are
 * never negative. Layer 4. */
#include "cpu/cursor.h"

#include "base/num.h"
#include "cpu/run.h"

int xti_cursor_room(const struct xti_step *step, const struct xti_piece *piece)
{
    return step->n_loops + piece->n_divs + piece->n_guards;
}

/* Where the source is prefetched while the buffer of an assembled plan is filled: in the same row, or in the
 * one that begins about so far ahead. far: xti_habits.far_ahead. */
static int64_t prefetch_ahead(const struct xti_step *step, bool far)
{
    const struct xti_loop *row =
        step->row.n > 1 || !step->n_loops ? &step->row : &step->loop[step->n_loops - 1];
    int64_t bytes = step->col.n * (int64_t)xti_abs64(step->col.s), ahead = far ? 8192 : 4096;
    return bytes >= 2 * ahead || row->n == 1 ? ahead
           : bytes >= ahead                  ? row->s
           : bytes                           ? ahead / bytes * row->s
                                             : 0;
}

/* Windows that overlap read their lines again: these should stay in the caches. */
static bool reads_once(const struct xti_step *step)
{
    int64_t bytes = (int64_t)xti_abs64(step->col.s) * step->col.n;
    bool once = step->row.n == 1 || (int64_t)xti_abs64(step->row.s) >= bytes;
    for (int i = 0; i < step->n_loops; i++)
        once = once && (int64_t)xti_abs64(step->loop[i].s) >= bytes;
    return once;
}

static const int64_t *coefficients(const struct xti_piece *p, int number)
{
    return number < p->n_divs ? p->div[number].x : p->guard[number - p->n_divs].x;
}

/* How much a row or a column adds to a numerator. */
static int64_t per_row(const struct xti_cursor *c, int number)
{
    return c->step->row.n > 1 ? coefficients(c->piece, number)[c->step->n_loops] : 0;
}

static int64_t per_column(const struct xti_cursor *c, int number)
{
    int inner = c->piece->n_dims - 1;
    return inner < 0 ? 0 : coefficients(c->piece, number)[inner];
}

void xti_cursor_begin(struct xti_cursor *c, const struct xti_copy *copy, const struct xti_step *step,
                      int64_t *room)
{
    const struct xti_target *t = &copy->plan->target;
    const struct xti_piece *p = &copy->plan->map.piece[step->piece];
    c->step = step;
    c->piece = p;
    c->kernel = xti_kernel_of(step, t);
    c->esize = copy->plan->map.esize;
    c->ahead = prefetch_ahead(step, t->machine->habits.far_ahead);
    c->hints = reads_once(step) ? t->machine : xti_machine_careful;
    c->per_col = step->kernel == XTI_CPU_BLOCKS ? step->col.d : 1;
    c->width = xti_step_col_bytes(step);
    c->row_bytes = xti_step_row_bytes(step);
    c->row = c->col = 0;
    c->next = c->d = step->d_byte;
    for (int i = 0; i < 16; i++)
        c->value[i] = p->value[i % c->esize];
    c->s = p->src < 0 ? (const char *)c->value : xti_place(copy->src[p->src], step->s_byte);
    c->at = room;
    c->numerator = room + step->n_loops;
    for (int i = 0; i < step->n_loops; i++)
        c->at[i] = 0;
    for (int k = 0; k < p->n_divs; k++)
        c->numerator[k] = p->div[k].c;
    for (int k = 0; k < p->n_guards; k++)
        c->numerator[p->n_divs + k] = p->guard[k].c;
}

/* Moves loop i by `by` points. */
static void shift(struct xti_cursor *c, int i, int64_t by)
{
    const struct xti_loop *l = &c->step->loop[i];
    c->at[i] += by;
    c->d += by * l->d;
    c->s = xti_place(c->s, by * l->s);
    for (int k = 0; k < c->piece->n_divs + c->piece->n_guards; k++)
        c->numerator[k] += by * coefficients(c->piece, k)[i];
}

/* To the next box of the kernel; false after the last. */
static bool next_box(struct xti_cursor *c)
{
    for (int i = c->step->n_loops - 1; i >= 0; i--) {
        if (c->at[i] + 1 < c->step->loop[i].n) {
            shift(c, i, 1);
            return true;
        }
        shift(c, i, -c->at[i]);
    }
    return false;
}

int64_t xti_cursor_span(const struct xti_cursor *c)
{
    int64_t span = (c->step->row.n - 1) * c->step->row.d + c->row_bytes;
    for (int i = 0; i < c->step->n_loops; i++)
        span += (c->step->loop[i].n - 1) * c->step->loop[i].d;
    return span;
}

/* Points of a loop at whose end, `span` bytes behind their beginning, byte `from` has not been reached; the
 * first begins at d. */
static int64_t points_before(const struct xti_loop *l, int64_t d, int64_t span, int64_t from)
{
    return l->n == 1 || from - d < span ? 0 : (from - d - span) / l->d + 1;
}

void xti_cursor_seek(struct xti_cursor *c, int64_t from)
{
    const struct xti_step *step = c->step;
    int64_t span = xti_cursor_span(c);
    if (c->d + span <= from) {
        c->next = INT64_MAX;
        return;
    }
    for (int i = 0; i < step->n_loops; i++) {
        span -= (step->loop[i].n - 1) * step->loop[i].d;
        shift(c, i, points_before(&step->loop[i], c->d, span, from));
    }
    c->row = points_before(&step->row, c->d, c->row_bytes, from);
    c->col = points_before(&step->col, c->d + c->row * step->row.d, c->width, from);
    c->next = c->d + c->row * step->row.d + c->col * step->col.d;
}

static int64_t dot(const int64_t *coef, const int64_t *q, int n)
{
    int64_t sum = 0;
    for (int i = 0; i < n; i++)
        sum += coef[i] * q[i];
    return sum;
}

/* The quotients at column `at`, and how many columns from there on keep all of them. */
static int64_t quotients(const struct xti_cursor *c, int64_t at, int64_t left, int64_t *q)
{
    for (int j = 0; j < c->piece->n_divs; j++) {
        const struct xti_div *v = &c->piece->div[j];
        int64_t w = per_column(c, j), e = c->numerator[j] + at * w + dot(v->q, q, j);
        q[j] = xti_floor_div(e, v->den);
        int64_t r = e - q[j] * v->den, keep = w > 0 ? (v->den - r + w - 1) / w : w < 0 ? r / -w + 1 : left;
        left = keep < left ? keep : left;
    }
    return left;
}

/* floor(e / w), w > 0. Most guards are of single points. */
static int64_t points(int64_t e, int64_t w) { return w == 1 ? e : xti_floor_div(e, w); }

struct interval {
    int64_t lo, hi;
};

/* Cuts *x to the points i with e + i*w >= 0. */
static void cut(struct interval *x, int64_t e, int64_t w)
{
    int64_t first = w > 0 && e < 0 ? -points(e, w) : x->lo;
    int64_t end = w < 0 ? points(e, -w) + 1 : w == 0 && e < 0 ? x->lo : x->hi;
    x->lo = first > x->lo ? first : x->lo;
    x->hi = end < x->hi ? end : x->hi;
}

/* The guard at column 0 of the next row, without quotients. */
static int64_t guard_value(const struct xti_cursor *c, int number)
{
    return c->numerator[number] + c->row * per_row(c, number);
}

/* Of `rows` rows from the next one on, those that run at once: a guard of rows and columns lets all columns
 * of each pass, or none. At least one. */
static int64_t rows_alike(const struct xti_cursor *c, int64_t rows)
{
    for (int k = c->piece->n_divs; k < c->piece->n_divs + c->piece->n_guards && rows > 1; k++) {
        int64_t row = per_row(c, k), across = per_column(c, k) * (c->step->col.n - 1);
        int64_t e = guard_value(c, k), lo = across < 0 ? e + across : e, hi = across < 0 ? e : e + across;
        if (!row || !across)
            continue;
        if (lo < 0 && hi >= 0)
            return 1;
        int64_t left = lo >= 0 ? lo : -hi - 1, by = lo >= 0 ? -row : row;
        if (by > 0 && points(left, by) + 1 < rows)
            rows = points(left, by) + 1;
    }
    return rows;
}

/* Cuts rows, counted from the next one on, and columns to where every guard holds. */
static void cut_by_guards(const struct xti_cursor *c, const int64_t *q, struct interval *rows,
                          struct interval *cols)
{
    const struct xti_piece *p = c->piece;
    for (int k = 0; k < p->n_guards; k++) {
        int64_t row = per_row(c, p->n_divs + k), col = per_column(c, p->n_divs + k);
        int64_t e = guard_value(c, p->n_divs + k) + dot(p->guard[k].q, q, p->n_divs);
        cut(row && !col ? rows : cols, e, row && !col ? row : col);
    }
}

static void set_job(const struct xti_cursor *c, struct xtk_job *job)
{
    job->s_row = c->step->row.s;
    job->s_col = c->step->col.s;
    job->d_row = c->step->row.d;
    job->d_col = c->step->col.d;
    job->value = c->value;
    job->next.ahead = c->ahead;
    job->store.stream = c->step->store.stream;
    job->machine.hints = c->hints->hints;
    job->machine.far = c->hints->habits.far_ahead;
}

/* Columns [lo, hi) of `rows` rows, as far as divs and guards let; d, s: column 0 of the first. */
static void run_box(const struct xti_cursor *c, struct xtk_job *job, int64_t rows, int64_t lo, int64_t hi,
                    char *d, const char *s)
{
    const struct xti_piece *p = c->piece;
    int64_t q[XTI_MAX_DIVS];
    for (int64_t at = lo, n; at < hi; at += n) {
        n = quotients(c, at, hi - at, q);
        struct interval row = {0, rows}, col = {at, at + n};
        cut_by_guards(c, q, &row, &col);
        if (row.lo >= row.hi || col.lo >= col.hi)
            continue;
        int64_t s_q = p->src < 0 ? 0 : dot(p->sq, q, p->n_divs) * c->esize;
        job->rows = row.hi - row.lo;
        job->cols = (col.hi - col.lo) * c->per_col;
        c->kernel(job, d + row.lo * job->d_row + col.lo * job->d_col,
                  xti_place(s, s_q + row.lo * job->s_row + col.lo * job->s_col));
    }
}

/* Rows that end before byte `to`, from the next one on. */
static int64_t whole_rows(const struct xti_cursor *c, int64_t to)
{
    int64_t left = c->step->row.n - c->row, room = to - c->next - c->row_bytes, d = c->step->row.d;
    return c->col || room < 0 ? 0 : room >= (left - 1) * d ? left : room / d + 1;
}

/* The columns of the current row that begin before byte `to`. Returns how many end before it. */
static int64_t run_part_of_row(const struct xti_cursor *c, struct xtk_job *job, char *d, const char *s,
                               int64_t room)
{
    const struct xti_loop *col = &c->step->col;
    int64_t begun = room >= c->row_bytes ? col->n : (room + col->d - 1) / col->d;
    begun = begun < col->n ? begun : col->n;
    run_box(c, job, 1, c->col, begun, d, s);
    return room >= c->row_bytes ? col->n : room < c->width ? 0 : (room - c->width) / col->d + 1;
}

/* The next one or more rows, or a part of one. Returns false when byte `to` is inside the row. */
static bool run_rows(struct xti_cursor *c, struct xtk_job *job, char *d, const char *s, int64_t to)
{
    int64_t rows = whole_rows(c, to);
    if (rows) {
        rows = rows_alike(c, rows);
        run_box(c, job, rows, 0, c->step->col.n, d, s);
        c->row += rows;
        return true;
    }
    c->col = run_part_of_row(c, job, d, s, to - (c->next - c->col * c->step->col.d));
    if (c->col < c->step->col.n)
        return false;
    c->col = 0;
    c->row++;
    return true;
}

void xti_cursor_run(struct xti_cursor *c, struct xtk_job *job, char *out, int64_t at, int64_t to)
{
    const struct xti_loop *row = &c->step->row;
    bool room = true;
    set_job(c, job);
    while (room && c->next < to) {
        room = run_rows(c, job, out + (c->d + c->row * row->d - at), xti_place(c->s, c->row * row->s), to);
        bool more = c->row < row->n;
        if (!more) {
            c->row = 0;
            more = next_box(c);
        }
        c->next = more ? c->d + c->row * row->d + c->col * c->step->col.d : INT64_MAX;
    }
}
