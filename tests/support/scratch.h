/* scratch.h: a directory of a test's own under /tmp, and its removal with all that lies in it. */
#ifndef TESTS_SUPPORT_SCRATCH_H
#define TESTS_SUPPORT_SCRATCH_H

#include <check.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { SCRATCH_PATH = 64 };

/* name: of the test file. */
static inline void make_scratch(char path[SCRATCH_PATH], const char *name)
{
    snprintf(path, SCRATCH_PATH, "/tmp/xt-%s-XXXXXX", name);
    ck_assert_ptr_nonnull(mkdtemp(path));
}

static inline int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st, (void)flag, (void)ftw;
    return remove(path), 0;
}

/* Follows no link. */
static inline void remove_scratch(const char *path) { nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS); }

#endif
