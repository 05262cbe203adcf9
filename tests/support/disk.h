/* disk.h: a disk cache in a scratch directory, as the tests of the cache have it, and what may lie in the
 * place of its files. */
#ifndef TESTS_SUPPORT_DISK_H
#define TESTS_SUPPORT_DISK_H

#include <check.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/mem.h"
#include "cache/cache.h"
#include "tests/support/child.h"
#include "tests/support/scratch.h"

static char root[SCRATCH_PATH], dir[96]; /* dir: the cache, not made yet */

static inline void start(void)
{
    make_scratch(root, "cache");
    snprintf(dir, sizeof dir, "%s/xt", root);
    unsetenv("XT_CACHE_DIR");
}

static inline void finish(void) { remove_scratch(root); }

static inline struct xti_disk *open_dir(const char *path)
{
    struct xti_disk *d;
    struct xti_err err = {0};
    ck_assert_int_eq(xti_disk_open(path, &d, &err), XT_OK);
    return d;
}

static inline void put_text(struct xti_disk *d, const char *key, const char *payload)
{
    xti_disk_put(d, key, strlen(key), key, payload, strlen(payload));
}

/* 1: a hit with exactly this payload, 0: a miss, -1: a hit with something else. */
static inline int get_text(struct xti_disk *d, const char *key, const char *payload)
{
    struct xti_blob b;
    bool hit = xti_disk_get(d, key, strlen(key), &b);
    int r = !hit ? 0 : b.bytes == strlen(payload) && !memcmp(b.data, payload, b.bytes) ? 1 : -1;
    ck_assert(hit || (!b.data && !b.bytes));
    xti_free(b.data);
    return r;
}

static inline struct xt_cache_stats stats_of(struct xti_disk *d)
{
    struct xt_cache_stats s = {0};
    xti_disk_stats(d, &s);
    return s;
}

static inline char *entry_path(const char *key, char *out)
{
    unsigned char h[32];
    char hex[65];
    xti_sha256_of(key, strlen(key), h);
    xti_hex(h, 32, hex);
    sprintf(out, "%s/k1/%s", dir, hex);
    return out;
}

static inline size_t read_file(const char *path, unsigned char *buf, size_t size)
{
    FILE *f = fopen(path, "rb");
    ck_assert_ptr_nonnull(f);
    size_t n = fread(buf, 1, size, f);
    fclose(f);
    return n;
}

static inline void write_file(const char *path, const void *data, size_t n)
{
    FILE *f = fopen(path, "wb");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(data, 1, n, f), n);
    fclose(f);
    chmod(path, 0600);
}

static inline int count_names(const char *prefix)
{
    char cmd[256];
    int n = -1;
    snprintf(cmd, sizeof cmd, "ls -A %s/k1 2>/dev/null | grep -c '^%s'", dir, prefix);
    FILE *p = popen(cmd, "r");
    ck_assert_int_eq(fscanf(p, "%d", &n), 1);
    pclose(p);
    return n;
}

static inline void set_age(const char *path, int64_t seconds)
{
    struct timespec t[2] = {{.tv_sec = time(NULL) - seconds}, {.tv_sec = time(NULL) - seconds}};
    ck_assert_int_eq(utimensat(AT_FDCWD, path, t, AT_SYMLINK_NOFOLLOW), 0);
}

/* Exit status of body(arg) in a child, as that user (0: as we are). Failures inside are its exit status. */
static inline int in_child(int (*body)(void *), void *arg, unsigned uid)
{
    pid_t pid = fork_child();
    if (pid == 0) {
        if (uid && (setresgid(uid, uid, uid) || setresuid(uid, uid, uid)))
            _exit(99);
        _exit(body(arg));
    }
    int st = end_of(pid);
    return WIFEXITED(st) ? WEXITSTATUS(st) : 1000 + WTERMSIG(st);
}

static inline bool is_root(const char *what)
{
    if (geteuid() == 0)
        return true;
    printf("skipped: needs root: %s\n", what);
    return false;
}

static const char victim[] = "the key", content[] = "forty-two bytes that matter to somebody ok";

struct listed {
    int n;
    char what[8][64];
};

static inline void note_entry(void *arg, const char *file, int64_t bytes, const char *what)
{
    struct listed *l = arg;
    ck_assert_uint_eq(strlen(file), 64);
    ck_assert_int_gt(bytes, 72);
    ck_assert_int_lt(l->n, 8);
    snprintf(l->what[l->n++], 64, "%s", what);
}

/* ---- in the place of a file */

static inline void make_fifo(const char *path) { unlink(path), mkfifo(path, 0600); }
static inline void make_directory(const char *path) { unlink(path), mkdir(path, 0700); }
static inline void make_foreign(const char *path) { ck_assert_int_eq(chown(path, 65534, 65534), 0); }
static inline void make_dangling(const char *path)
{
    unlink(path);
    ck_assert_int_eq(symlink("/nowhere", path), 0);
}

#endif
