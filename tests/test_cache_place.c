/* test_cache_place.c: the disk cache's directory, and the host that it is in: what others could have written
 * is not used, and what cannot be had fails no call. */
#include "cache/cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "cache/entry.h"
#include "tests/support/disk.h"
#include "tests/support/suite.h"

static char self_exe[512];

/* ---------------------------------------------------------------------------------- the directory */

/* Off, with a reason that contains `word`, and every call harmless. */
static void expect_off(const char *path, const char *word)
{
    struct xti_disk *d = open_dir(path);
    struct xt_cache_stats s = {.size = sizeof s};
    int64_t removed = -1;
    put_text(d, "k", "v");
    ck_assert_msg(xti_disk_path(d) == NULL, "%s is used as %s", path ? path : "NULL", xti_disk_path(d));
    ck_assert_msg(strstr(xti_disk_why(d), word) != NULL, "'%s' does not say '%s'", xti_disk_why(d), word);
    ck_assert_int_eq(get_text(d, "k", "v"), 0);
    ck_assert_int_eq(xti_disk_lock(d, "k", 1), -1);
    xti_disk_unlock(d, -1);
    xti_disk_drop(d, "k", 1);
    ck_assert_int_eq(xti_disk_clear(d, &removed, NULL), XT_OK);
    ck_assert_int_eq(removed, 0);
    s = stats_of(d);
    ck_assert_int_eq(s.entries + s.stored + s.disk_hits, 0);
    xti_disk_close(d);
}

START_TEST(a_directory_that_others_can_write_is_refused)
{
    char k1[128];
    snprintf(k1, sizeof k1, "%s/k1", dir);
    ck_assert_int_eq(mkdir(dir, 0700), 0);
    ck_assert_int_eq(mkdir(k1, 0700), 0);
    const char *both[] = {dir, k1};
    for (int i = 0; i < 2; i++) {
        const unsigned modes[] = {0777, 0720, 0702, 01777};
        for (int m = 0; m < 4; m++) {
            ck_assert_int_eq(chmod(both[i], modes[m]), 0);
            expect_off(dir, "others may write");
        }
        chmod(both[i], 0700);
        if (is_root("foreign directory")) {
            ck_assert_int_eq(chown(both[i], 65534, 65534), 0);
            expect_off(dir, "belongs to user 65534");
            ck_assert_int_eq(chown(both[i], 0, 0), 0);
        }
    }
    chmod(dir, 0755); /* readable by others is no danger */
    struct xti_disk *d = open_dir(dir);
    put_text(d, "k", "v");
    ck_assert_int_eq(get_text(d, "k", "v"), 1);
    chmod(dir, 0777); /* checked at every use */
    ck_assert_int_eq(get_text(d, "k", "v"), 0);
    ck_assert_ptr_null(xti_disk_path(d));
    xti_disk_close(d);
}
END_TEST

START_TEST(a_symbolic_link_or_a_file_in_place_of_the_directory_is_refused)
{
    char real[96], slashed[128], k1[128];
    snprintf(real, sizeof real, "%s/real", root);
    snprintf(slashed, sizeof slashed, "%s//", dir);
    snprintf(k1, sizeof k1, "%s/k1", dir);
    mkdir(real, 0700);
    ck_assert_int_eq(symlink(real, dir), 0);
    expect_off(dir, "symbolic link");
    expect_off(slashed, "symbolic link");
    unlink(dir);
    write_file(dir, "x", 1);
    expect_off(dir, "not a directory");
    unlink(dir);
    mkdir(dir, 0700);
    ck_assert_int_eq(symlink(real, k1), 0);
    expect_off(dir, "symbolic link");
    unlink(k1);
    write_file(k1, "x", 1);
    expect_off(dir, "not a directory");
    snprintf(slashed, sizeof slashed, "%s/k1/below-a-file", dir);
    expect_off(slashed, "not a directory");
    expect_off("/proc/xt-cannot-be-made", "cannot be made");
    unlink(k1);
    struct xti_disk *d = open_dir(dir); /* a link takes its place while it is open */
    put_text(d, "k", "v");
    ck_assert_int_eq(get_text(d, "k", "v"), 1);
    remove_scratch(real);
    ck_assert_int_eq(rename(dir, real), 0);
    ck_assert_int_eq(symlink(real, dir), 0);
    ck_assert_int_eq(get_text(d, "k", "v"), 0);
    ck_assert_msg(strstr(xti_disk_why(d), "symbolic link"), "%s", xti_disk_why(d));
    xti_disk_close(d);
    char *huge = xti_alloc(9000);
    memset(huge, 'a', 8999);
    huge[0] = '/';
    expect_off(huge, "too long");
    xti_free(huge);
}
END_TEST

START_TEST(only_absolute_paths_count_and_the_environment_is_asked_in_order)
{
    char want[128];
    expect_off("", "empty");
    expect_off("relative/dir", "not an absolute path");
    setenv("HOME", root, 1);
    setenv("XDG_CACHE_HOME", root, 1);
    setenv("XT_CACHE_DIR", "", 1);
    expect_off(NULL, "XT_CACHE_DIR is empty");
    setenv("XT_CACHE_DIR", "rel", 1);
    expect_off(NULL, "not an absolute path");
    setenv("XT_CACHE_DIR", dir, 1);
    struct xti_disk *d = open_dir(NULL);
    ck_assert_str_eq(xti_disk_path(d), dir);
    xti_disk_close(d);
    unsetenv("XT_CACHE_DIR");
    d = open_dir(NULL);
    ck_assert_str_eq(xti_disk_path(d), dir); /* root/xt */
    xti_disk_close(d);
    const char *ignored[] = {"rel", "", NULL};
    snprintf(want, sizeof want, "%s/.cache/xt", root);
    for (int i = 0; i < 3; i++) {
        ignored[i] ? setenv("XDG_CACHE_HOME", ignored[i], 1) : unsetenv("XDG_CACHE_HOME");
        d = open_dir(NULL);
        ck_assert_str_eq(xti_disk_path(d), want);
        xti_disk_close(d);
    }
    for (int i = 0; i < 3; i++) {
        ignored[i] ? setenv("HOME", ignored[i], 1) : unsetenv("HOME");
        expect_off(NULL, "HOME");
    }
    static char far[5000];
    memset(far, '/', sizeof far - 1);
    memset(far + 1, 'a', 4095);
    setenv("HOME", far, 1);
    expect_off(NULL, "too long");
}
END_TEST

static int use_read_only(void *arg)
{
    char k1[128];
    int bad = 0;
    snprintf(k1, sizeof k1, "%s/k1", dir);
    struct xti_disk *d = open_dir(dir);
    put_text(d, "old", "1");
    chmod(k1, 0500);
    put_text(d, "new", "2");
    bad |= get_text(d, "old", "1") != 1;
    bad |= (get_text(d, "new", "2") != 0) << 1;
    bad |= (stats_of(d).store_failed != 1) << 2;
    bad |= (xti_disk_path(d) == NULL) << 3;
    bad |= (count_names("\\.tmp") != 0) << 4;
    chmod(k1, 0700);
    xti_disk_close(d);
    return bad;
}

static int use_unmakable(void *arg)
{
    struct xti_disk *d = open_dir(arg);
    if (strcmp(xti_disk_why(d), ""))
        return 1;
    put_text(d, "k", "v");
    return !strstr(xti_disk_why(d), "cannot be made") || xti_disk_path(d) || get_text(d, "k", "v");
}

START_TEST(a_directory_that_cannot_be_written_still_gives_hits)
{
    if (!is_root("read-only directory as another user"))
        return;
    chmod(root, 0777); /* a parent: as the user has it */
    ck_assert_int_eq(in_child(use_read_only, NULL, 65534), 0);
    finish();
    mkdir(root, 0755);
    ck_assert_int_eq(in_child(use_unmakable, dir, 65534), 0);
}
END_TEST

START_TEST(a_read_only_file_system_and_a_full_one_fail_no_call)
{
    mkdir(dir, 0700);
    if (!is_root("tmpfs") || mount("xt", dir, "tmpfs", MS_NOSUID, "size=64k,mode=0700")) {
        printf("skipped: tmpfs cannot be mounted here\n");
        return;
    }
    struct xti_disk *d = open_dir(dir);
    static char big[20000];
    memset(big, 'b', sizeof big - 1);
    int stored = 0;
    for (char k[] = "a"; k[0] < 'i'; k[0]++) {
        put_text(d, k, big);
        int got = get_text(d, k, big);
        ck_assert_int_ge(got, 0);
        stored += got;
        ck_assert_int_eq(count_names("\\.tmp"), 0);
    }
    struct xt_cache_stats s = stats_of(d);
    bool fine = stored == s.stored && s.store_failed == 8 - stored && s.store_failed > 0 && stored > 0;
    fine = fine && !mount("xt", dir, "tmpfs", MS_REMOUNT | MS_RDONLY, "size=64k,mode=0700");
    fine = fine && get_text(d, "a", big) == 1;
    put_text(d, "z", "v");
    fine = fine && get_text(d, "z", "v") == 0 && stats_of(d).store_failed == 9 - stored;
    int token = xti_disk_lock(d, "k", 1); /* `lock` was never made here */
    fine = fine && token == -1;
    xti_disk_close(d);
    umount(dir);
    ck_assert_msg(fine, "stored %d", stored);
}
END_TEST

static int open_descriptors(void)
{
    DIR *fds = opendir("/proc/self/fd");
    int n = 0;
    ck_assert_ptr_nonnull(fds);
    while (readdir(fds))
        n++;
    closedir(fds);
    return n;
}

START_TEST(a_directory_deleted_or_descriptors_closed_meanwhile_do_no_harm)
{
    struct xti_disk *d = open_dir(dir);
    put_text(d, "k", "v");
    remove_scratch(dir);
    ck_assert_int_eq(get_text(d, "k", "v"), 0);
    put_text(d, "k", "v");
    ck_assert_int_eq(get_text(d, "k", "v"), 1);
    int before = open_descriptors();
    for (int i = 0; i < 50; i++) {
        put_text(d, i % 2 ? "k" : "j", "v");
        get_text(d, "k", "v");
        get_text(d, "absent", "v");
        xti_disk_unlock(d, xti_disk_lock(d, "k", 1));
        stats_of(d);
    }
    ck_assert_int_eq(open_descriptors(), before);
    xti_disk_close(d);
}
END_TEST

static int store_above_the_file_limit(void *arg)
{
    struct xti_disk *d = open_dir(dir);
    struct rlimit r = {100, 100};
    setrlimit(RLIMIT_FSIZE, &r);
    put_text(d, "k", content);
    struct xti_blob b; /* no assertions from here: they write to a file */
    return xti_disk_get(d, "k", 1, &b) || stats_of(d).store_failed != 1;
}

/* Each file that is opened gets descriptor 0, and errno is what a caller left there. */
static int work_on_descriptor_0(void *arg)
{
    struct xti_disk *d = open_dir(arg);
    struct listed list = {0};
    int64_t removed = 0;
    close(0);
    errno = EINTR;
    put_text(d, victim, content);
    int bad = get_text(d, victim, content) != 1;
    bad += 2 * (xti_disk_list(d, note_entry, &list, NULL) != XT_OK || list.n != 1);
    xti_disk_drop(d, victim, strlen(victim));
    bad += 4 * (get_text(d, victim, content) != 0 || stats_of(d).store_failed != 0);
    put_text(d, victim, content);
    bad += 8 * (xti_disk_clear(d, &removed, NULL) != XT_OK || removed != 1);
    int token = xti_disk_lock(d, victim, strlen(victim));
    bad += 16 * (token != 0);
    xti_disk_unlock(d, token);
    bad += 32 * (dup(1) != 0); /* nobody kept it */
    xti_disk_close(d);
    return bad;
}

START_TEST(a_host_without_standard_input_has_a_cache)
{
    ck_assert_int_eq(in_child(work_on_descriptor_0, dir, 0), 0);
}
END_TEST

START_TEST(a_file_size_limit_does_not_kill_the_host)
{
    ck_assert_int_eq(in_child(store_above_the_file_limit, NULL, 0), 0);
}
END_TEST

/* A setuid copy of this program, run by another user, prints what it thinks of its cache. */
START_TEST(a_setuid_program_has_no_disk_cache)
{
    char copy[128], cmd[2048], line[256] = "";
    if (!is_root("setuid"))
        return;
    snprintf(copy, sizeof copy, "%s/setuid", root);
    chmod(root, 0755);
    snprintf(cmd, sizeof cmd, "cp %s %s && chmod 4755 %s && XT_CACHE_DIR=%s setpriv --reuid 65534 %s --probe",
             self_exe, copy, copy, dir, copy);
    FILE *p = popen(cmd, "r");
    char *got = fgets(line, sizeof line, p);
    pclose(p);
    if (!got) {
        printf("skipped: setpriv or setuid does not work here\n");
        return;
    }
    ck_assert_msg(strstr(line, "raised privileges") && !strstr(line, "is used"), "%s", line);
}
END_TEST

static int probe(void)
{
    for (int i = 0; i < 2; i++) {
        struct xti_disk *d;
        if (xti_disk_open(i ? "/tmp/xt-given" : NULL, &d, NULL))
            return 1;
        printf("%s%s", xti_disk_path(d) ? xti_disk_path(d) : "",
               xti_disk_path(d) ? "is used" : xti_disk_why(d));
        xti_disk_close(d);
    }
    printf("\n");
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "--probe"))
        return probe();
    if (readlink("/proc/self/exe", self_exe, sizeof self_exe - 1) < 0)
        return 1;
    Suite *s = suite_create("cache_place");
    TCase *c = tcase_create("disk");
    tcase_set_timeout(c, 600);
    tcase_add_checked_fixture(c, start, finish);
    tcase_add_test(c, a_directory_that_others_can_write_is_refused);
    tcase_add_test(c, a_symbolic_link_or_a_file_in_place_of_the_directory_is_refused);
    tcase_add_test(c, only_absolute_paths_count_and_the_environment_is_asked_in_order);
    tcase_add_test(c, a_directory_that_cannot_be_written_still_gives_hits);
    tcase_add_test(c, a_read_only_file_system_and_a_full_one_fail_no_call);
    tcase_add_test(c, a_directory_deleted_or_descriptors_closed_meanwhile_do_no_harm);
    tcase_add_test(c, a_host_without_standard_input_has_a_cache);
    tcase_add_test(c, a_file_size_limit_does_not_kill_the_host);
    tcase_add_test(c, a_setuid_program_has_no_disk_cache);
    suite_add_tcase(s, c);
    return run_suite(s);
}
