/* entry.c: bytes where a disk entry, a pack or a message of the compile helper is expected. What is taken is
 * what encoding it again gives. */
#include "fuzz.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/mem.h"
#include "cache/entry.h"
#include "cache/pack.h"
#include "cuda/message.h"

static void as_entry(const uint8_t *data, size_t size)
{
    struct xti_entry e;
    const char *why;
    size_t bytes;
    unsigned char *copy = malloc(size + 1);
    memcpy(copy, data, size);
    if (!xti_entry_decode(copy, size, &e)) {
        void *again = xti_entry_encode(&e, &bytes, &why);
        must(again && bytes == size && !memcmp(again, data, size));
        xti_free(again);
    }
    free(copy);
}

static void as_pack(const uint8_t *data, size_t size)
{
    char path[64];
    struct xti_pack *p;
    struct xti_blob b;
    struct xti_err err = {0};
    int fd = memfd_create("pack", MFD_CLOEXEC);
    must(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (xti_pack_open(path, &p, &err))
        must(*err.e.message);
    else {
        if (xti_pack_get(p, data, size < 8 ? size : 8, &b))
            xti_free(b.data);
        xti_pack_close(p);
    }
    close(fd);
}

static void as_fields(const uint8_t *data, size_t size)
{
    struct xti_message m = {.data = (unsigned char *)data, .n = size};
    while (!m.bad) {
        size_t n, before = m.at;
        const unsigned char *p = xti_message_take(&m, &n);
        must(m.bad ? n == 0 : p >= data && p + n <= data + size && m.at > before);
    }
}

/* What comes first through a socket whose other end sent these bytes and closed it. *left: bytes behind it.
 */
static xt_status receive(const uint8_t *data, size_t size, struct xti_message *m, size_t *left)
{
    int ends[2];
    char rest[16384];
    must(!socketpair(AF_UNIX, SOCK_STREAM, 0, ends) && send(ends[0], data, size, 0) == (ssize_t)size);
    close(ends[0]);
    xt_status s = xti_message_receive(ends[1], -1, 1000, m);
    ssize_t n = recv(ends[1], rest, sizeof rest, MSG_DONTWAIT);
    *left = n > 0 ? (size_t)n : 0;
    close(ends[1]);
    return s;
}

/* As a frame; then framed rightly, twice in a row, of which the first alone is read; then with a length that
 * lies, and with a bit of either changed, where the bytes say: none of these is a message. */
static void as_frame(const uint8_t *data, size_t size)
{
    enum { HEAD = 48 };
    static const char magic[8] = "xt-cc 1";
    struct xti_message m;
    uint64_t bytes = size, lie = 0;
    size_t left;
    uint8_t *frame = malloc(2 * (HEAD + size));
    if (!receive(data, size, &m, &left)) {
        must(m.n + HEAD + left == size);
        xti_message_free(&m);
    }
    must(!m.data);
    memcpy(frame, magic, sizeof magic);
    memcpy(frame + 8, &bytes, sizeof bytes);
    xti_sha256_of(data, size, frame + 16);
    memcpy(frame + HEAD, data, size);
    memcpy(frame + HEAD + size, frame, HEAD + size);
    must(!receive(frame, 2 * (HEAD + size), &m, &left));
    must(m.n == size && !memcmp(m.data, data, size) && left == HEAD + size);
    xti_message_free(&m);
    memcpy(&lie, data, size < sizeof lie ? size : sizeof lie);
    uint64_t bit = lie % (8 * (HEAD + size));
    if (lie != size) {
        memcpy(frame + 8, &lie, sizeof lie);
        must(receive(frame, 2 * (HEAD + size), &m, &left) && !m.data);
        memcpy(frame + 8, &bytes, sizeof bytes);
    }
    frame[bit / 8] ^= (uint8_t)(1u << bit % 8);
    must(receive(frame, HEAD + size, &m, &left) && !m.data);
    free(frame);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    as_entry(data, size);
    as_pack(data, size);
    as_fields(data, size);
    as_frame(data, size);
    return 0;
}
