/* near.h: what ranks that share memory tell each other, without a message. Each has a board, which all of
 * them read and it alone writes: whether it has begun a run, where its sources are, two buffers of messages,
 * and for each of the others how many it has sent to them and taken of theirs. Layer 5. */
#ifndef XTI_SHARD_NEAR_H
#define XTI_SHARD_NEAR_H

#include "shard/shard.h"

xt_status xti_near_open(struct xt_shard *p); /* after the plan; memory */
void xti_near_close(struct xt_shard *p);

/* A run begins: p->src is set. */
void xti_near_begin(struct xt_shard *p);
void xti_near_break(struct xt_shard *p);           /* it has failed: the others learn it */
int64_t xti_near_broken(const struct xt_shard *p); /* a near rank whose run has failed; -1: none */

/* Does `near` show its sources in this run? Asked of this rank's own: does it itself. */
enum xti_shows { XTI_NOT_BEGUN, XTI_SHOWS, XTI_HIDES };
enum xti_shows xti_near_shows(struct xt_shard *p, int near);
const void *xti_near_source(const struct xt_shard *p, int near, int input); /* of one that shows them */

/* Whose sources this rank copies now, -1: nobody's. What the k-th of the few ranks beside it said so, that
 * are on its node of memory; -2: there is no k-th. A hint: nothing is ordered by it. */
void xti_near_reads(struct xt_shard *p, int near);
int xti_near_company(const struct xt_shard *p, int k);

/* A message by this rank's board: into the buffer, then told. The tickets of a peer's messages are 1, 2, ..
 */
char *xti_near_buffer(const struct xt_shard *p, int slot);
uint64_t xti_near_send(struct xt_shard *p, int near, int slot);
bool xti_near_taken(const struct xt_shard *p, int near, uint64_t ticket);
uint64_t xti_near_expect(struct xt_shard *p, int near);
/* Where that message of the peer's is, NULL: it is not there yet, or one before it has not been taken. */
const char *xti_near_arrived(const struct xt_shard *p, int near, uint64_t ticket);
void xti_near_take(struct xt_shard *p, int near);

/* The peer's sources are not needed any more; has it said so of this rank's? */
void xti_near_pulled(struct xt_shard *p, int near);
bool xti_near_has_pulled(const struct xt_shard *p, int near);

#endif
