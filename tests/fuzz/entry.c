/* entry.c: bytes where a disk entry, a pack or a message of the compile helper is expected. What is taken is
 * what encoding it again gives. */
#include "fuzz.h"

#include <sys/mman.h>
#include <unistd.h>

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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    as_entry(data, size);
    as_pack(data, size);
    as_fields(data, size);
    return 0;
}
