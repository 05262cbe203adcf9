/* mailbox.h: a transport of memcpy among ranks of one process and thread. Messages between two ranks keep
 * their order; which slot is done first is drawn. */
#ifndef TESTS_SUPPORT_MAILBOX_H
#define TESTS_SUPPORT_MAILBOX_H

#include <xt/xt_shard.h>

struct mailbox;

struct mailbox *mailbox_new(int ranks, uint64_t seed);
/* Number of messages that nobody has received: 0 when both sides agree. */
int mailbox_free(struct mailbox *m);
/* Ranks first, first + 1, .. share memory; shows: of those, whether a rank's arrays are seen. */
int mailbox_near(struct mailbox *m, int first, int n, const unsigned char *shows);
/* A rank's end; lives as long as m. */
const struct xt_transport *mailbox_end(struct mailbox *m, int rank);
/* Of the first failure: a message has other bytes than the receive that it meets. NULL: none. */
const char *mailbox_wrong(const struct mailbox *m);

#endif
