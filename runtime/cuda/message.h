/* message.h: what the library and its compile helper say to each other, over a socket. A message is a list of
 * fields, framed by its length and its SHA-256: one that is cut off, damaged or of another program is
 * refused. Layer 4. */
#ifndef XTI_CUDA_MESSAGE_H
#define XTI_CUDA_MESSAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

enum { XTI_MESSAGE_MAX_BYTES = 64 << 20 };

void xti_message_field(struct xti_str *b, const void *data, size_t bytes);
void xti_message_number(struct xti_str *b, int64_t v);

/* gone: a descriptor that is readable once the process of the other end has ended, or -1: others may hold
 * that end open, children that are forked meanwhile. Sends the fields of b. XT_EIO: the other end is gone;
 * XT_ENOMEM: b has failed, or is longer than a message may be; XT_EDEVICE: not all of it was taken in that
 * time. timeout_ms < 0: waits for ever. No SIGPIPE. */
xt_status xti_message_send(int fd, int gone, int timeout_ms, const struct xti_str *b);

/* One message that was received; fields are taken in order. The data lives until it is freed. */
struct xti_message {
    unsigned char *data;
    size_t n, at;
    bool bad; /* a field was wanted that is not there */
};

/* XT_OK; XT_EIO: no whole message came before the other end closed; XT_ENOMEM; XT_EDEVICE: it did
 * not come in that time. timeout_ms < 0: waits for ever. */
xt_status xti_message_receive(int fd, int gone, int timeout_ms, struct xti_message *m);
const void *xti_message_take(struct xti_message *m, size_t *bytes); /* never NULL */
const char *xti_message_text(struct xti_message *m); /* of a field that ends with a NUL; else "" */
int64_t xti_message_take_number(struct xti_message *m);
void xti_message_free(struct xti_message *m);

#endif
