/* span.c: what graph/graph.h promises of dense strides, and of a strided box's lowest and highest address,
 * for frama-c to prove of all shapes, strides and offsets: `make proof`. The loops' invariants stand in
 * graph/layout.c. */
#include "num.c"

/* dense(n, rank, i): the product of max(n, 1) of the axes after i. */
/*@ axiomatic Dense {
      logic integer dense{L}(int64_t *n, integer rank, integer i) reads n[i + 1 .. rank - 1];
      axiom dense_last{L}: \forall int64_t *n, integer rank; dense(n, rank, rank - 1) == 1;
      axiom dense_step{L}: \forall int64_t *n, integer rank, i; 0 <= i < rank ==>
          dense(n, rank, i - 1) == dense(n, rank, i) * (n[i] > 1 ? n[i] : 1); } */
/*@ requires 0 <= rank && \valid_read(shape + (0 .. rank - 1)) && \valid(strides + (0 .. rank - 1));
    requires \separated(shape + (0 .. rank - 1), strides + (0 .. rank - 1));
    assigns strides[0 .. rank - 1];
    ensures \forall integer i; 0 <= i < rank ==>
        strides[i] == \min(dense{Pre}(shape, rank, i), INT64_MAX); */
void xti_dense_strides(int rank, const int64_t *shape, int64_t *strides);

/* The sum over axes of the most that one axis takes the address down, and up. */
/*@ axiomatic Span {
      logic integer low{L}(int64_t *n, int64_t *st, integer k) reads n[0 .. k - 1], st[0 .. k - 1];
      logic integer high{L}(int64_t *n, int64_t *st, integer k) reads n[0 .. k - 1], st[0 .. k - 1];
      axiom low_none{L}: \forall int64_t *n, *st; low(n, st, 0) == 0;
      axiom high_none{L}: \forall int64_t *n, *st; high(n, st, 0) == 0;
      axiom low_step{L}: \forall int64_t *n, *st, integer k; k > 0 ==>
          low(n, st, k) == low(n, st, k - 1) + (st[k - 1] < 0 ? st[k - 1] * (n[k - 1] - 1) : 0);
      axiom high_step{L}: \forall int64_t *n, *st, integer k; k > 0 ==>
          high(n, st, k) == high(n, st, k - 1) + (st[k - 1] < 0 ? 0 : st[k - 1] * (n[k - 1] - 1)); } */

/*@ requires 0 <= rank && \valid_read(shape + (0 .. rank - 1)) && \valid_read(strides + (0 .. rank - 1));
    requires \valid(lo) && \valid(hi) && \separated(lo, hi);
    requires \separated(lo, shape + (0 .. rank - 1)) && \separated(lo, strides + (0 .. rank - 1));
    requires \separated(hi, shape + (0 .. rank - 1)) && \separated(hi, strides + (0 .. rank - 1));
    requires \forall integer i; 0 <= i < rank ==> shape[i] >= 0;
    assigns *lo, *hi;
    behavior empty:
      assumes \exists integer i; 0 <= i < rank && shape[i] == 0;
      ensures \result <==> offset > INT64_MIN;
      ensures \result ==> *lo == offset && *hi == offset - 1;
    behavior full:
      assumes \forall integer i; 0 <= i < rank ==> shape[i] > 0;
      ensures \result ==> *lo == offset + low{Pre}(shape, strides, rank);
      ensures \result ==> *hi == offset + high{Pre}(shape, strides, rank);
    complete behaviors; disjoint behaviors; */
bool xti_span(int rank, const int64_t *shape, const int64_t *strides, int64_t offset, int64_t *lo,
              int64_t *hi);

#include "graph/layout.c"
