/* work.h: a piece while it is being fused, and the operations on it. Private to runtime/map.
 *
 * A working piece is a matrix of int64: each row is an affine form c + sum a[v]*v, column 0 is the constant,
 * the other columns are variables: iteration dims (x in [0, ext)) and divs (q = floor(row num / ext)). The
 * rows are the destination address, the coordinates of the node that is being pulled back, the numerators,
 * the guards (row >= 0) and the digits of reshapes passed so far. Rows are shared and counted: whoever
 * changes one for himself takes a copy; a change of variables goes through all of them.
 *
 * Failures (no memory, overflow, too many columns) are remembered in the pool, and work goes on with rubbish
 * until somebody looks: callers test pool->st in every loop. Pointers into the matrix die with row_new and
 * col_new. Always true: dims have an extent > 1, so that there are at most 62 of them; free columns are 0 in
 * every row, and behind the last that is used there is one. Layer 2. */
#ifndef XTI_MAP_WORK_H
#define XTI_MAP_WORK_H

#include "base/num.h"
#include "map/map.h"

enum {
    XTI_COLS = 128,               /* 1 + 62 dims + 64 divs, most of which die again, and a free one */
    XTI_COORDS = 2 * XT_MAX_RANK, /* tile splits every axis in two */
    XTI_KNOWN = 12,               /* digit lists remembered; older ones are forgotten */
    XTI_DIGITS = 128,
    XTI_ROW_DST = 0,
    XTI_ROW_ZERO = 1 /* the coordinate of an axis of extent 1: never changed */
};

/* What fusing one chain may take: nodes may be shared, so that a short line can ask for any amount of work. A
 * step is a number of a matrix that is read or written. */
enum { XTI_MAX_STEPS = 3 << 24, XTI_MAX_WORK_BYTES = 24 << 20 };
/* What the rest of a copy, a node that is passed and a finished piece take as well, in such steps. */
enum { XTI_COPY_STEPS = 128, XTI_NODE_STEPS = 16, XTI_PIECE_STEPS = 512 };

enum xti_col { XTI_COL_FREE, XTI_COL_DIM, XTI_COL_DIV };

/* Working pieces for reuse, and the first failure. */
struct xti_pool {
    struct xti_work *spare;
    xt_status st;
    bool guard_windows; /* struct xti_fuse_options */
    bool cut_windows;   /* struct xti_map */
    int steps, bytes;   /* taken: at most XTI_MAX_STEPS, XTI_MAX_WORK_BYTES, or st is XT_EUNSUPPORTED */
};

struct xti_known {
    short flat, n, at; /* row of the flat index; its digits are digit[at .. at + n) */
};

/* Digits of reshapes passed so far: n_known lists, n_digits of them in all. */
struct xti_digits {
    struct xti_known known[XTI_KNOWN];
    short digit[XTI_DIGITS];    /* rows */
    int64_t weight[XTI_DIGITS]; /* flat = sum digit*weight */
};

/* ext to ref lie one behind the other in memory of `bytes` bytes, in as many rows of the width w as fit. */
struct xti_work {
    struct xti_work *next; /* list */
    struct xti_pool *pool;
    size_t bytes;
    void *home;                /* where ext is at first: memory that lives as long as the piece */
    struct xti_digits *digits; /* NULL: there have never been any */
    bool lent, lent_digits;    /* by the caller: the piece and its home; digits */
    int64_t *ext;              /* [w] dim: extent > 1. div: denominator > 1 */
    short *num;                /* [w] div: row of its numerator */
    unsigned char *kind;       /* [w] enum xti_col */
    unsigned char *stuck;      /* [w] div: it does not go in so many boxes. 0: not known (cut.c) */
    int64_t *m;                /* [rows][w] */
    short *ref;                /* [rows]: 0: free */
    int w, rows;
    int nc, nr;               /* used: highest column and row + 1. A copy takes what stands from here on */
    int full_cols, full_rows; /* below these nothing is free */
    int n_divs;               /* columns that are divs */
    short off, probe;         /* rows, or -1: source address; what is being cut */
    uint64_t stuck_key;       /* of dims and divs: stuck is for these numbers */
    short n_guards, n_known, n_digits, n_coords;
    short coord[XTI_COORDS], guard[XTI_MAX_GUARDS];
};

/* A list of working pieces, in order. */
struct xti_works {
    struct xti_work *head, **tail;
    int n;
    bool fills; /* who adds to it need not keep what only sources are found by: xti_work_copy_box */
};

static inline void xti_works_add(struct xti_works *l, struct xti_work *p)
{
    if (!l->head)
        l->tail = &l->head;
    p->next = NULL;
    *l->tail = p;
    l->tail = &p->next;
    l->n++;
}

static inline struct xti_work *xti_works_pop(struct xti_works *l)
{
    struct xti_work *p = l->head;
    l->head = p->next;
    l->n--;
    return p;
}

static inline int64_t *xti_row(const struct xti_work *p, int r) { return p->m + (size_t)r * (size_t)p->w; }

static inline void xti_pool_fail(struct xti_pool *pool, xt_status st)
{
    if (!pool->st)
        pool->st = st;
}

static inline void xti_pool_steps(struct xti_pool *pool, int n)
{
    pool->steps += n;
    if (pool->steps > XTI_MAX_STEPS) {
        pool->steps = XTI_MAX_STEPS + 1;
        xti_pool_fail(pool, XT_EUNSUPPORTED);
    }
}

static inline void xti_pool_bytes(struct xti_pool *pool, size_t bytes)
{
    pool->bytes += (int)bytes;
    if (pool->bytes > XTI_MAX_WORK_BYTES) {
        pool->bytes = XTI_MAX_WORK_BYTES + 1;
        xti_pool_fail(pool, XT_EUNSUPPORTED);
    }
}

/* ---- work.c: storage and changes of variables */
/* Has the rows DST and ZERO, both 0, and room for some more than n_rows rows and for n_cols columns, the
 * constant and a free one among them. NULL: pool->st. */
struct xti_work *xti_work_new(struct xti_pool *pool, int n_rows, int n_cols);
struct xti_work *xti_work_copy(const struct xti_work *p);
/* The dims of p, which has no divs, and where they go: what a fill needs. */
struct xti_work *xti_work_copy_box(const struct xti_work *p);
void xti_work_free(struct xti_work *p); /* to the pool. Accepts NULL */
void xti_works_free(struct xti_works *l);
void xti_pool_free(struct xti_pool *pool);
struct xti_work *xti_pool_leave(struct xti_pool *pool); /* what is not lent; the pool has nothing any more */
/* First pieces in the caller's memory, which outlives the pool: most chains need no others. Nothing of it is
 * read before it is written. */
enum { XTI_LENT = 3, XTI_LENT_LARGE = 2, XTI_LARGE_BYTES = 3584, XTI_SMALL_BYTES = 1280 };
struct xti_first_work {
    struct xti_work work[XTI_LENT];
    int64_t large[XTI_LENT_LARGE][XTI_LARGE_BYTES / sizeof(int64_t)];
    int64_t small[XTI_LENT - XTI_LENT_LARGE][XTI_SMALL_BYTES / sizeof(int64_t)];
    struct xti_digits digits; /* of the first */
};
void xti_pool_lend(struct xti_pool *pool, struct xti_first_work *first);

int xti_row_new(struct xti_work *p);                    /* zeroed, one reference */
int xti_row_from(struct xti_work *p, const int64_t *v); /* v: scratch */
int xti_row_own(struct xti_work *p, int r);             /* the same row for changing: r itself, or a copy */
void xti_row_drop(struct xti_work *p, int r);
static inline int xti_row_share(struct xti_work *p, int r)
{
    p->ref[r] = (short)(p->ref[r] + (r > XTI_ROW_ZERO));
    return r;
}
void xti_row_add(struct xti_pool *pool, int n, int64_t *row, int64_t a, const int64_t *v); /* row += a*v */
void xti_row_add_const(struct xti_work *p, int r, int64_t c);

/* Scratch rows live on the C stack and are valid for the columns that exist when they are made and for those
 * that were reserved before. */
void xti_work_reserve_cols(struct xti_work *p, int n);
void xti_scratch_zero(const struct xti_work *p, int64_t *v);
void xti_scratch_load(const struct xti_work *p, int64_t *v, int r);

int xti_dim_new(struct xti_work *p, int64_t n);
int xti_div_new(struct xti_work *p, const int64_t *num, int64_t den);
void xti_div_free(struct xti_work *p, int col);
void xti_work_subst(struct xti_work *p, int col, const int64_t *e); /* col := e; e may hold col itself */
void xti_dim_flip(struct xti_work *p, int col);
int xti_dim_factor(struct xti_work *p, int col, int64_t m); /* x = m*y + z: col becomes z; returns y's */
void xti_dim_restrict(struct xti_work *p, int col, int64_t lo, int64_t hi); /* lo <= x < hi */
void xti_col_free(struct xti_work *p, int col);                             /* zeroes the column */
void xti_known_add(struct xti_work *p, int flat, int n, const short *digit, const int64_t *weight);
void xti_known_drop(struct xti_work *p, int i);
void xti_known_forget(struct xti_work *p);
void xti_work_forget(struct xti_work *p); /* drops coordinates and known digits */

/* ---- div.c: ranges and floors */

/* Bounds of e over the box, inclusive: exact without divs, sound with them. False: beyond int64. */
bool xti_work_range(const struct xti_work *p, const int64_t *e, int64_t *lo, int64_t *hi);

/* floor(num/den) = out + floor(num'/den'), in place. True when a floor is left. `reduce`: coefficients are
 * brought into (-den/2, den/2]; without, they stay as they are, because reduced rows no longer merge. */
bool xti_floor_reduce(const struct xti_work *p, int64_t *num, int64_t *den, int64_t *out, bool reduce);
void xti_work_div(struct xti_work *p, int64_t *num, int64_t den, int64_t *out); /* out += floor(num/den) */
void xti_work_simplify(struct xti_work *p, bool reduce); /* all divs again, after the dims have changed */

/* Columns of the divs that the given rows need, dependencies first. */
int xti_work_live(const struct xti_work *p, int n, const short *rows, short *cols);

/* ---- normal.c */
enum { XTI_MAX_ROWS = 2 + XTI_MAX_GUARDS + XTI_COORDS };
int xti_work_rows(const struct xti_work *p, short *rows); /* all but dst, numerators and known digits */
/* Drops divs that nothing but known digits needs, and those digits. */
void xti_work_collect(struct xti_work *p);
/* Makes d positive, merges what merges, drops dead divs. order: the dims' columns, outermost first. */
int xti_work_normal(struct xti_work *p, bool reduce, short *order);

/* ---- cut.c */

/* Boxes equal to p, in which the divs that p->probe (or off and guards) needs are gone where at most `room`
 * boxes achieve it. Takes p. */
void xti_work_resolve(struct xti_work *p, int room, struct xti_works *out);
/* Splits p (taken) by its row r (a reference is taken too): where r < t goes to lt, the rest to ge: boxes
 * when at most `room` do, else two pieces with a guard each. lt or ge may be NULL: that side is not wanted,
 * and the other is what it is without. */
void xti_work_side(struct xti_work *p, int r, int64_t t, int room, struct xti_works *lt,
                   struct xti_works *ge);
/* Removes guards that always hold. False: one never holds, the piece is empty. */
bool xti_work_guards(struct xti_work *p);

/* ---- reshape.c */

/* Coordinates of the shape `out` become coordinates of the shape `in`; no extent is 0. remember: the digits
 * are known to reshapes that come later, which may put them together again. dims: a dim all points of which
 * are split becomes several, and no floors: for who goes on with all digits. (A dim that only a dropped digit
 * needs would keep others from merging.) */
void xti_work_reshape(struct xti_work *p, int n_out, const int64_t *out, int n_in, const int64_t *in,
                      bool remember, bool dims);

/* ---- canon.c */

/* The finished form of p, whose off row is set (src >= 0) or missing (fill); arrays in the map's arena. */
void xti_work_finish(struct xti_work *p, struct xti_map *m, struct xti_piece *out);

#endif
