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

static bool send_all(int fd, const void *data, size_t bytes)
{
    const char *p = data;
    while (bytes) {
        ssize_t n = send(fd, p, bytes, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        p += n;
        bytes -= (size_t)n;
    }
    return true;
}

bool xti_message_send(int fd, const struct xti_str *b)
{
    struct head h = {.bytes = b->n};
    if (b->failed || b->n > XTI_MESSAGE_MAX_BYTES) {
        errno = ENOMEM;
        return false;
    }
    memcpy(h.magic, magic, sizeof magic);
    xti_sha256_of(b->s, b->n, h.hash);
    return send_all(fd, &h, sizeof h) && send_all(fd, b->s, b->n);
}

/* until: monotonic, ns; < 0: for ever. */
static xt_status receive_all(int fd, int64_t until, void *data, size_t bytes)
{
    char *p = data;
    while (bytes) {
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        int64_t left = until < 0 ? -1 : (until - xti_now_ns()) / 1000000;
        int ready = until >= 0 && left <= 0 ? 0 : poll(&wait, 1, (int)left);
        if (!ready)
            return XT_EDEVICE;
        ssize_t n = ready < 0 ? -1 : recv(fd, p, bytes, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return XT_EIO;
        p += n;
        bytes -= (size_t)n;
    }
    return XT_OK;
}

xt_status xti_message_receive(int fd, int timeout_ms, struct xti_message *m)
{
    struct head h;
    unsigned char hash[XTI_SHA256_BYTES];
    int64_t until = timeout_ms < 0 ? -1 : xti_now_ns() + (int64_t)timeout_ms * 1000000;
    *m = (struct xti_message){0};
    xt_status s = receive_all(fd, until, &h, sizeof h);
    if (s)
        return s;
    if (memcmp(h.magic, magic, sizeof magic) || h.bytes > XTI_MESSAGE_MAX_BYTES)
        return XT_EIO;
    m->n = (size_t)h.bytes;
    if (!(m->data = xti_alloc(m->n)))
        return XT_ENOMEM;
    s = receive_all(fd, until, m->data, m->n);
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
