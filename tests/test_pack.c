/* test_pack.c: CUDA code made ahead of time: a context with a pack runs its chains with no NVRTC on the
 * machine; a pack that is damaged is refused, entry by entry. On the driver double; without it, or without
 * NVRTC to make packs with, nothing is tested, and said so. */
#include <sys/stat.h>
#include <sys/wait.h>

#include "api/api.h"
#include "support/cuda_program.h"
#include "support/scratch.h"

char now_running[2048];

static const char *const lines[] = {"x: f32[40,60]; x.permute(1,0)", "x: u8[7,300]; x.flip(1)",
                                    "x: f16[9,64]; x.pad((1,2),(0,0), value=3)"};
/* of each entry of code one says its name, and has no bytes */
enum { N_LINES = 3, N_ENTRIES = 2 * (2 * N_LINES + 1), NAME_BYTES = 2000 };
static char dir[SCRATCH_PATH], file[SCRATCH_PATH + 32];

static void setup(void)
{
    make_scratch(dir, "pack");
    snprintf(file, sizeof file, "%s/test.xtpack", dir);
}
static void teardown(void) { remove_scratch(dir); }

static void write_pack(int n_archs, const char *const *archs)
{
    struct xt_ctx *ctx = cuda_context("");
    struct xt_graph *g[N_LINES];
    for (int i = 0; i < N_LINES; i++)
        g[i] = parse_line(lines[i]);
    expect(XT_OK, xt_pack(ctx, N_LINES, (const struct xt_graph *const *)g, n_archs, archs, file));
    for (int i = 0; i < N_LINES; i++)
        xt_graph_free(g[i]);
    xt_ctx_free(ctx);
}

static xt_status open_with(const char *pack, struct xt_ctx **ctx)
{
    struct xt_options o = {.size = sizeof o, .backend = XT_CUDA, .cache_dir = "", .pack = pack};
    return xt_ctx_new(&o, ctx);
}

/* In a new process: NVRTC, once found, stays. */
static void run_without_nvrtc(const char *pack)
{
    struct xt_ctx *ctx;
    setenv("XT_NVRTC", "/nonexistent/libnvrtc.so", 1);
    expect(XT_OK, open_with(pack, &ctx));
    for (int i = 0; i < N_LINES; i++) {
        struct copy c = copy_of(lines[i]);
        struct xt_kernel *k = compile_line(ctx, lines[i]);
        ck_assert_str_eq(xti_kernel_origin(k), "pack");
        expect(XT_OK, run_copy(k, &c, NULL));
        ck_assert_msg(copied(&c), "%s", lines[i]);
        expect(XT_OK, xt_kernel_wait(k)); /* the exact tier is in the pack, too */
        ck_assert_int_eq(atomic_load(&k->now)->tier, XTI_TIER_EXACT);
        ck_assert_str_eq(xti_kernel_origin(k), "pack");
        expect(XT_OK, run_copy(k, &c, NULL));
        ck_assert_msg(copied(&c), "%s", lines[i]);
        xt_kernel_free(k);
        free_copy(&c);
    }
    struct xt_kernel *other = compile_line(ctx, "x: u8[9,300]; x.flip(1)"); /* of a structure in it */
    ck_assert_str_eq(xti_kernel_origin(other), "memory");
    expect(XT_ECOMPILE, xt_kernel_wait(other));
    xt_kernel_free(other);
    const char *unseen = "x: c128[8,8,8]; x.permute(2,0,1).pad((0,1),(0,0),(0,0))";
    struct copy c = copy_of(unseen);
    other = compile_line(ctx, unseen);
    ck_assert_int_eq(atomic_load(&other->now)->tier, XTI_TIER_ANY);
    ck_assert_str_eq(xti_kernel_origin(other), "pack");
    expect(XT_OK, run_copy(other, &c, NULL));
    ck_assert(copied(&c));
    expect(XT_ECOMPILE, xt_kernel_wait(other));
    ck_assert_ptr_nonnull(strstr(xt_last_error()->message, "NVRTC"));
    expect(XT_OK, run_copy(other, &c, NULL));
    ck_assert(copied(&c));
    xt_kernel_free(other);
    struct xt_compile_options o = {.size = sizeof o, .mode = XT_GENERIC};
    struct xt_graph *g = parse_line(unseen);
    expect(XT_ECOMPILE, xt_compile(ctx, g, &o, &other));
    xt_graph_free(g);
    free_copy(&c);
    xt_ctx_free(ctx);
}

/* By another program: this one has found an NVRTC by the time that it runs. */
static void pack_by_command(void)
{
    char list[SCRATCH_PATH + 32], xt[4200], command[9000];
    ck_assert_msg(find_beside("../xt", xt), "xt is not built");
    snprintf(list, sizeof list, "%s/list.txt", dir);
    FILE *f = fopen(list, "w");
    fprintf(f, "# chains\n%s\nname | where | %s | x: u8[1]; x\n%s # the last\n", lines[0], lines[1],
            lines[2]);
    fclose(f);
    snprintf(command, sizeof command,
             "'%s' pack %s --arch sm_80,sm_90 -o %s | grep -q '3 chains for sm_80,sm_90'", xt, list, file);
    ck_assert_msg(system(command) == 0, "%s", command);
}

START_TEST(a_context_with_a_pack_needs_no_nvrtc)
{
    pack_by_command();
    if (_i == 0) {
        run_without_nvrtc(file);
        return;
    }
    setenv("XT_PACK", file, 1);
    setenv("XT_DOUBLE_SM", "80", 1);
    run_without_nvrtc(NULL);
}
END_TEST

START_TEST(a_pack_that_cannot_be_read_is_named)
{
    struct xt_ctx *ctx;
    struct stat st;
    expect(XT_EIO, open_with("/nonexistent/a.xtpack", &ctx));
    ck_assert_str_eq(xt_last_error()->message, "pack /nonexistent/a.xtpack: No such file or directory");
    setenv("XT_PACK", "/nonexistent/a.xtpack", 1);
    expect(XT_EIO, open_with(NULL, &ctx));
    ck_assert_str_eq(xt_last_error()->message,
                     "XT_PACK: pack /nonexistent/a.xtpack: No such file or directory");
    unsetenv("XT_PACK");
    write_pack(1, (const char *[]){"sm_90"});
    ck_assert_int_eq(stat(file, &st), 0);
    for (int at = 0; at < 24; at += 5) { /* the head, the rows */
        FILE *f = fopen(file, "r+b");
        fseek(f, at, SEEK_SET);
        int c = fgetc(f);
        fseek(f, at, SEEK_SET);
        fputc(c ^ 4, f);
        fclose(f);
        expect(XT_EIO, open_with(file, &ctx));
        f = fopen(file, "r+b");
        fseek(f, at, SEEK_SET);
        fputc(c, f);
        fclose(f);
    }
    ck_assert_int_eq(truncate(file, 30), 0);
    expect(XT_EIO, open_with(file, &ctx));
    expect(XT_OK, open_with("", &ctx));
    xt_ctx_free(ctx);
}
END_TEST

static void change_byte(FILE *f, long at)
{
    fseek(f, at, SEEK_SET);
    int c = fgetc(f);
    fseek(f, at, SEEK_SET);
    fputc(c ^ 4, f);
}

/* Of the first two entries of code: one's key is another, one's last byte. */
static void damage_two(void)
{
    FILE *f = fopen(file, "r+b");
    int done = 0;
    for (int i = 0; i < N_ENTRIES && done < 2; i++) {
        uint64_t place[2]; /* offset, bytes */
        fseek(f, 24 + 48 * i + 32, SEEK_SET);
        ck_assert_uint_eq(fread(place, sizeof place, 1, f), 1);
        if (place[1] > NAME_BYTES)
            change_byte(f, (long)place[0] + (done++ ? (long)place[1] - 1 : 60));
    }
    fclose(f);
    ck_assert_int_eq(done, 2);
}

START_TEST(a_damaged_entry_is_as_if_it_were_not_there)
{
    struct xt_ctx *ctx;
    write_pack(1, (const char *[]){"sm_90"});
    damage_two();
    expect(XT_OK, open_with(file, &ctx));
    int built = 0;
    for (int i = 0; i < N_LINES; i++) {
        struct xt_compile_options o = {.size = sizeof o};
        for (o.mode = XT_SYNC; o.mode <= XT_GENERIC; o.mode += 2) {
            struct xt_graph *g = parse_line(lines[i]);
            struct copy c = copy_of(lines[i]);
            struct xt_kernel *k;
            expect(XT_OK, xt_compile(ctx, g, &o, &k));
            built += !strcmp(xti_kernel_origin(k), "built");
            expect(XT_OK, run_copy(k, &c, NULL));
            ck_assert(copied(&c));
            xt_kernel_free(k);
            xt_graph_free(g);
            free_copy(&c);
        }
    }
    ck_assert(built == 1 || built == 2); /* one may be the kernel that runs anything: nobody asks for it */
    xt_ctx_free(ctx);
}
END_TEST

START_TEST(arguments_of_xt_pack_are_checked)
{
    struct xt_ctx *ctx = cuda_context("");
    struct xt_graph *g = parse_line(lines[0]);
    const struct xt_graph *one[] = {g};
    const char *arch[] = {"sm_90", NULL}, *bad[] = {"sm_x"};
    expect(XT_EINVAL, xt_pack(NULL, 1, one, 1, arch, file));
    expect(XT_EINVAL, xt_pack(ctx, 1, NULL, 1, arch, file));
    expect(XT_EINVAL, xt_pack(ctx, -1, one, 1, arch, file));
    expect(XT_EINVAL, xt_pack(ctx, 1, one, 0, arch, file));
    expect(XT_EINVAL, xt_pack(ctx, 1, one, 1, NULL, file));
    expect(XT_EINVAL, xt_pack(ctx, 1, one, 1, arch, NULL));
    expect(XT_EINVAL, xt_pack(ctx, 1, one, 1, arch, ""));
    ck_assert_str_eq(xt_last_error()->message, "xt_pack: file has no name");
    expect(XT_EINVAL, xt_pack(ctx, 1, one, 1, bad, file));
    expect(XT_EINVAL, xt_pack(ctx, 0, NULL, 1, bad, file)); /* of no chains, too */
    expect(XT_EINVAL, xt_pack(ctx, 1, one, 2, arch, file));
    expect(XT_EIO, xt_pack(ctx, 1, one, 1, arch, "/nonexistent/dir/a.xtpack"));
    expect(XT_OK, xt_pack(ctx, 0, NULL, 1, arch, file));
    xt_graph_free(g);
    xt_ctx_free(ctx);
}
END_TEST

/* The way of a temporary file and rename would take a device, or a pipe that somebody reads, away. */
START_TEST(a_pack_takes_the_place_of_files_alone)
{
    struct xt_ctx *ctx = cuda_context("");
    const char *arch[] = {"sm_90"};
    struct stat st;
    ck_assert(!mkfifo(file, 0600));
    expect(XT_EIO, xt_pack(ctx, 0, NULL, 1, arch, file));
    ck_assert_ptr_nonnull(strstr(xt_last_error()->message, "is there, and is no file"));
    ck_assert(!stat(file, &st) && S_ISFIFO(st.st_mode) && !remove(file));
    xt_ctx_free(ctx);
}
END_TEST

/* ---- the base pack, which make puts beside the library */

static char base[4200];

static bool has_base(void)
{
    bool there = find_beside("../xtview.xtpack", base);
    if (!there)
        printf("skipped: the base pack: it was not built (PACK=no)\n");
    return there;
}

/* each(ctx, chain) for the chains that the pack was made of. */
static int for_each_chain(struct xt_ctx *ctx, void (*each)(struct xt_ctx *, const char *))
{
    char text[1024];
    int n = 0;
    FILE *f = fopen("bench/problems/base.txt", "r");
    ck_assert_ptr_nonnull(f);
    while (fgets(text, sizeof text, f)) {
        char *chain = strstr(text, " | ");
        chain = *text != '#' && chain ? strstr(chain + 3, " | ") : NULL;
        if (!chain)
            continue;
        chain[strcspn(chain, "\n")] = 0;
        each(ctx, chain + 3);
        n++;
    }
    fclose(f);
    return n;
}

static void has_its_structure(struct xt_ctx *ctx, const char *chain)
{
    struct xt_kernel *k = compile_line(ctx, chain);
    ck_assert_msg(atomic_load(&k->now)->tier == XTI_TIER_STRUCTURE, "%s", chain);
    xt_kernel_free(k);
}

/* Devices that came after the first of their generation, and drivers that are older than the compiler. */
static const struct {
    const char *sm, *driver;
} machines[] = {{"75", "13000"},  {"80", "13000"},  {"86", "13000"},  {"89", "13000"},  {"90", "13000"},
                {"100", "13000"}, {"103", "13000"}, {"120", "13000"}, {"121", "13000"}, {"75", "11070"},
                {"86", "11070"},  {"90", "11080"},  {"89", "12040"},  {"100", "12080"}, {"122", "12080"}};

START_TEST(every_machine_runs_with_the_base_pack_alone)
{
    struct xt_ctx *ctx;
    const char *unseen = "x: i16[7,9,11]; x.permute(2,0,1).roll(2,1).pad((1,0),(0,0),(0,3))";
    if (!has_base())
        return;
    setenv("XT_NVRTC", "/nonexistent/libnvrtc.so", 1);
    setenv("XT_DOUBLE_SM", machines[_i].sm, 1);
    setenv("XT_DOUBLE_DRIVER", machines[_i].driver, 1);
    expect(XT_OK, open_with(base, &ctx));
    ck_assert_int_ge(for_each_chain(ctx, has_its_structure), 40);
    struct copy c = copy_of(unseen);
    struct xt_kernel *k = compile_line(ctx, unseen);
    ck_assert_int_eq(atomic_load(&k->now)->tier, XTI_TIER_ANY);
    expect(XT_OK, run_copy(k, &c, NULL));
    ck_assert(copied(&c));
    xt_kernel_free(k);
    xt_ctx_free(ctx);
    free_copy(&c);
}
END_TEST

/* ptxas knows in which version of PTX an instruction came. */
static void assembles(struct xt_ctx *ctx, const char *chain)
{
    char path[SCRATCH_PATH + 32], command[SCRATCH_PATH + 256];
    const void *ptx;
    size_t bytes;
    struct xt_kernel *k = compile_line(ctx, chain);
    expect(XT_OK, xt_kernel_artifact(k, XT_PTX, &ptx, &bytes));
    const char *version = strstr(ptx, ".version ");
    ck_assert(version && strncmp(version, ".version 9", 10));
    snprintf(path, sizeof path, "%s/one.ptx", dir);
    FILE *f = fopen(path, "w");
    ck_assert(f && fwrite(ptx, 1, bytes, f) == bytes && !fclose(f));
    snprintf(command, sizeof command, "PATH=$PATH:/usr/local/cuda/bin ptxas -arch=sm_%s -o /dev/null %s 2>&1",
             getenv("XT_DOUBLE_SM"), path);
    ck_assert_msg(system(command) == 0, "%s", chain);
    xt_kernel_free(k);
}

START_TEST(ptx_in_the_base_pack_has_the_version_that_it_says)
{
    static const char *const sm[] = {"75", "90", "100"};
    struct xt_ctx *ctx;
    if (!has_base() || system("PATH=$PATH:/usr/local/cuda/bin command -v ptxas >/dev/null"))
        return;
    setenv("XT_NVRTC", "/nonexistent/libnvrtc.so", 1);
    setenv("XT_DOUBLE_SM", sm[_i], 1);
    expect(XT_OK, open_with(base, &ctx));
    for_each_chain(ctx, assembles);
    assembles(ctx, "x: i16[7,9,11]; x.permute(2,0,1).roll(2,1).pad((1,0),(0,0),(0,3))");
    xt_ctx_free(ctx);
}
END_TEST

/* Asked in a child: an NVRTC that was found stays. */
static const char *unable(void)
{
    int status = -1;
    if (!use_double())
        return "libcuda_double.so is not there";
    pid_t child = fork();
    if (!child)
        _exit(cuda_prove_unable() != NULL);
    return waitpid(child, &status, 0) == child && !status ? NULL : "NVRTC not found";
}

int main(void)
{
    const char *why = unable();
    if (why)
        return skip_suite("test_pack", why);
    Suite *s = suite_create("pack");
    TCase *c = tcase_create("pack");
    tcase_set_timeout(c, 300);
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_loop_test(c, a_context_with_a_pack_needs_no_nvrtc, 0, 2);
    tcase_add_test(c, a_pack_that_cannot_be_read_is_named);
    tcase_add_test(c, a_damaged_entry_is_as_if_it_were_not_there);
    tcase_add_test(c, arguments_of_xt_pack_are_checked);
    tcase_add_test(c, a_pack_takes_the_place_of_files_alone);
    tcase_add_loop_test(c, every_machine_runs_with_the_base_pack_alone, 0,
                        (int)(sizeof machines / sizeof *machines));
    tcase_add_loop_test(c, ptx_in_the_base_pack_has_the_version_that_it_says, 0, 3);
    suite_add_tcase(s, c);
    return run_suite(s);
}
