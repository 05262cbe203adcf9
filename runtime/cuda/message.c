/* message.c: messages between the library and its compile helper. See message.h. Layer 4. */
#include "cuda/message.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/os.h"

struct head {
    char magic[8];
    uint64_t bytes;
    unsigned char hash[XTI_SHA256_BYTES];
};

static const char magic[8] = "xt-cc 1";

void xti_message_field(struct xti_str *b, const void *data, size_t bytes)
{
    xti_str_u64le(b, bytes);
    xti_str_addn(b, data, bytes);
}

void xti_message_number(struct xti_str *b, int64_t v) { xti_message_field(b, &v, sizeof v); }

/* Monotonic, ns; -1: for ever. */
static int64_t end_of(int timeout_ms)
{
    return timeout_ms < 0 ? -1 : xti_now_ns() + (int64_t)timeout_ms * 1000000;
}

/* Until bytes can go that way. XT_EDEVICE: not before `until`; XT_EIO: not before the other end was gone. */
static xt_status wait_for(int fd, short events, int gone, int64_t until)
{
    struct pollfd wait[] = {{.fd = fd, .events = events}, {.fd = gone, .events = POLLIN}};
    int64_t left = until < 0 ? -1 : (until - xti_now_ns()) / 1000000;
    if ((until >= 0 && left <= 0) || !poll(wait, 2, (int)left))
        return XT_EDEVICE;
    bool over = !wait[0].revents && wait[1].revents; /* what it sent before may have come since */
    return over && !poll(wait, 1, 0) ? XT_EIO : XT_OK;
}

/* Sends, or receives, all of it. */
static xt_status move_all(int fd, short way, int gone, int64_t until, char *p, size_t bytes)
{
    while (bytes) {
        xt_status s = wait_for(fd, way, gone, until);
        if (s)
            return s;
        ssize_t n = way == POLLOUT ? send(fd, p, bytes, MSG_NOSIGNAL | MSG_DONTWAIT)
                                   : recv(fd, p, bytes, MSG_DONTWAIT);
        if (n < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (n <= 0)
            return XT_EIO;
        p += n;
        bytes -= (size_t)n;
    }
    return XT_OK;
}

xt_status xti_message_send(int fd, int gone, int timeout_ms, const struct xti_str *b)
{
    struct head h = {.bytes = b->n};
    int64_t until = end_of(timeout_ms);
    if (b->failed || b->n > XTI_MESSAGE_MAX_BYTES)
        return XT_ENOMEM;
    memcpy(h.magic, magic, sizeof magic);
    xti_sha256_of(b->s, b->n, h.hash);
    xt_status s = move_all(fd, POLLOUT, gone, until, (char *)&h, sizeof h);
    return s ? s : move_all(fd, POLLOUT, gone, until, b->s, b->n);
}

xt_status xti_message_receive(int fd, int gone, int timeout_ms, struct xti_message *m)
{
    struct head h;
    unsigned char hash[XTI_SHA256_BYTES];
    int64_t until = end_of(timeout_ms);
    *m = (struct xti_message){0};
    xt_status s = move_all(fd, POLLIN, gone, until, (char *)&h, sizeof h);
    if (s)
        return s;
    if (memcmp(h.magic, magic, sizeof magic) || h.bytes > XTI_MESSAGE_MAX_BYTES)
        return XT_EIO;
    m->n = (size_t)h.bytes;
    if (!(m->data = xti_alloc(m->n)))
        return XT_ENOMEM;
    s = move_all(fd, POLLIN, gone, until, (char *)m->data, m->n);
    if (!s)
        xti_sha256_of(m->data, m->n, hash);
    if (!s && memcmp(hash, h.hash, sizeof hash))
        s = XT_EIO;
    if (s)
        xti_message_free(m);
    return s;
}

const void *xti_message_take(struct xti_message *m, size_t *bytes)
{
    uint64_t n = 0;
    *bytes = 0;
    m->bad = m->bad || m->n - m->at < sizeof n;
    for (size_t i = 0; !m->bad && i < sizeof n; i++)
        n |= (uint64_t)m->data[m->at + i] << 8 * i;
    m->bad = m->bad || m->n - m->at - sizeof n < n;
    if (m->bad)
        return "";
    const void *field = m->data + m->at + sizeof n;
    m->at += sizeof n + (size_t)n;
    *bytes = (size_t)n;
    return field;
}

const char *xti_message_text(struct xti_message *m)
{
    size_t n;
    const char *text = xti_message_take(m, &n);
    m->bad = m->bad || !n || text[n - 1];
    return m->bad ? "" : text;
}

int64_t xti_message_take_number(struct xti_message *m)
{
    size_t n;
    int64_t v = 0;
    const void *field = xti_message_take(m, &n);
    m->bad = m->bad || n != sizeof v;
    if (!m->bad)
        memcpy(&v, field, sizeof v);
    return v;
}

void xti_message_free(struct xti_message *m)
{
    xti_free(m->data);
    *m = (struct xti_message){0};
}
