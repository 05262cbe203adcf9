/* test_npy.c: .npy files are read strictly, any bytes are safe, and a target is never half written. Where
 * /usr/bin/python3 has NumPy, files go through it both ways. */
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/support/child.h"
#include "tests/support/scratch.h"
#include "tests/support/suite.h"
#include "tools/input.h"
#include "tools/output.h"
#include "tools/parts.h"
#undef fail /* Check's */
#include "tools/say.h"

static char dir[SCRATCH_PATH], file[128];

/* What the command would say: say.c's functions, which the test is linked without. */
static char err[1024];

int fail(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(err, sizeof err, fmt, ap);
    va_end(ap);
    return EXIT_BAD_INPUT;
}

int fail_file(const char *path, const char *fmt, ...)
{
    int n = snprintf(err, sizeof err, "%s: ", path);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(err + n, sizeof err - (size_t)n, fmt, ap);
    va_end(ap);
    return EXIT_BAD_INPUT;
}

char *clean(char *dst, size_t size, const char *s)
{
    snprintf(dst, size, "%s", s);
    return dst;
}

static void start(void)
{
    make_scratch(dir, "npy");
    snprintf(file, sizeof file, "%s/a.npy", dir);
}

static void finish(void) { remove_scratch(dir); }

static void put_file(const char *path, const void *p, size_t n)
{
    FILE *f = fopen(path, "wb");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(p, 1, n, f), n);
    fclose(f);
}

/* A file of the given version whose header is text and whose elements are n zero bytes. */
static void put_npy(int version, const char *text, size_t n)
{
    unsigned char b[3000] = "\x93NUMPY";
    size_t len = strlen(text), at = 8;
    b[6] = (unsigned char)version;
    for (int i = 0; i < (version == 1 ? 2 : 4); i++)
        b[at++] = (unsigned char)(len >> (8 * i));
    memcpy(b + at, text, len);
    ck_assert_uint_lt(at + len + n, sizeof b);
    put_file(file, b, at + len + n);
}

static int read_back(struct input *a)
{
    err[0] = 0;
    return input_open(file, a);
}

static int put_array(const char *path, const struct npy *a, const void *data)
{
    struct output o;
    char header[NPY_HEADER_ROOM];
    if (output_open(&o, path, false))
        return EXIT_BAD_INPUT;
    if (!output_write(&o, header, npy_make_header(a, header)) && !output_write(&o, data, a->bytes))
        return output_close(&o);
    output_drop(&o);
    return EXIT_BAD_INPUT;
}

static size_t size_of(const struct npy *a)
{
    size_t n = xt_dtype_bytes(a->dtype);
    for (int i = 0; i < a->rank; i++)
        n *= (size_t)a->shape[i];
    return n;
}

static int count_names(void)
{
    char cmd[128];
    int n = -1;
    snprintf(cmd, sizeof cmd, "ls -A %s | wc -l", dir);
    FILE *p = popen(cmd, "r");
    ck_assert_int_eq(fscanf(p, "%d", &n), 1);
    pclose(p);
    return n;
}

/* ------------------------------------------------------------------------------------------------------
 * reading */

START_TEST(headers_that_numpy_accepts_are_read)
{
    static const struct {
        const char *text;
        int rank, fortran_order;
        int64_t n0;
        size_t bytes;
        xt_dtype dtype;
    } c[] = {
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }         \n", 2, 0, 2, 24, XT_F32},
        {"{'shape': (2, 3), 'fortran_order': True, 'descr': '<f8'}", 2, 1, 2, 48, XT_F64},
        {"{\"descr\":\"|u1\",\"fortran_order\":False,\"shape\":(5,)}\n", 1, 0, 5, 5, XT_U8},
        {" { 'descr' : '|b1' , 'fortran_order' : False , 'shape' : ( ) } ", 0, 0, 0, 1, XT_BOOL},
        {"{'descr': '=i8', 'fortran_order': False, 'shape': (3, 2), }", 2, 0, 3, 48, XT_I64},
        {"{'descr': '|u2', 'fortran_order': False, 'shape': (3,), }", 1, 0, 3, 6, XT_U16},
        {"{'descr': 'f2', 'fortran_order': False, 'shape': (0, 9223372036854775807, 9)}", 3, 0, 0, 0, XT_F16},
        {"{'descr': '>i1', 'fortran_order': False, 'shape': (1,2,)}", 2, 0, 1, 2, XT_I8},
        {"{'descr': '<c8', 'fortran_order': False, 'shape': (7,)}", 1, 0, 7, 56, XT_C64},
        {"{'descr': '<c8', 'fortran_order': False, 'shape': (00,)}", 1, 0, 0, 0, XT_C64},
        {"{'descr': '<c16', 'fortran_order': False, 'shape': (7,)}", 1, 0, 7, 112, XT_C128},
        {"{'descr': '<i2', 'fortran_order': False, 'shape': (1,)}", 1, 0, 1, 2, XT_I16},
        {"{'descr': '<i4', 'fortran_order': False, 'shape': (1,)}", 1, 0, 1, 4, XT_I32},
        {"{'descr': '<u4', 'fortran_order': False, 'shape': (1,)}", 1, 0, 1, 4, XT_U32},
        {"{'descr': '<u8', 'fortran_order': False, 'shape': (1,)}", 1, 0, 1, 8, XT_U64},
        {"{'descr': '<f1', 'fortran_order': False, 'shape': (3,)}", 1, 0, 3, 3, XT_F8E5M2},
        {"{'descr': 'bfloat16', 'fortran_order': False, 'shape': (3,)}", 1, 0, 3, 6, XT_BF16},
    };
    for (size_t i = 0; i < sizeof c / sizeof *c; i++)
        for (int version = 1; version <= 3; version++) {
            struct input a;
            put_npy(version, c[i].text, c[i].bytes);
            ck_assert_msg(read_back(&a) == 0, "%s: %s", c[i].text, err);
            ck_assert_int_eq(a.npy.rank, c[i].rank);
            ck_assert_int_eq(a.npy.shape[0], c[i].n0);
            ck_assert_int_eq(a.npy.fortran_order, c[i].fortran_order);
            ck_assert_uint_eq(a.npy.bytes, c[i].bytes);
            ck_assert_int_eq(a.npy.dtype, c[i].dtype);
            ck_assert_int_eq(a.npy.raw, 0);
            ck_assert_ptr_nonnull(a.data);
            input_close(&a);
        }
}
END_TEST

#define OK "'fortran_order': False, 'shape': (2,)}"
#define F4 "{'descr': '<f4', 'fortran_order': False, 'shape': "

START_TEST(headers_that_are_wrong_are_refused_with_a_reason)
{
    static const struct {
        const char *text, *reason;
    } c[] = {
        {"", "no dict"},
        {"[]", "no dict"},
        {"{}", "lacks"},
        {"{'descr': '<f4', 'shape': (2,)}", "lacks"},
        {"{'descr': '<f4', " OK " 1", "follows"},
        {"{'descr': '<f4', 'descr': '<f4', " OK, "twice"},
        {"{'descr': '<f4', 'color': 'red', " OK, "unknown"},
        {"{'descr': '<f4' " OK, "no comma"},
        {"{,'descr': '<f4', " OK, "no dict of strings"},
        {"{'descr' '<f4', " OK, "no dict of strings"},
        {"{'descr': '>f4', " OK, "big-endian"},
        {"{'descr': '>V2', " OK, "big-endian"},
        {"{'descr': '<M8[ns]', " OK, "not supported"},
        {"{'descr': '|O', " OK, "not supported"},
        {"{'descr': '<U4', " OK, "not supported"},
        {"{'descr': '<f16', " OK, "not supported"},
        {"{'descr': '', " OK, "not supported"},
        {"{'descr': '<', " OK, "not supported"},
        {"{'descr': '<<f4', " OK, "not supported"},
        {"{'descr': '<bfloat16', " OK, "not supported"},
        {"{'descr': [('a', '<f4')], " OK, "structured"},
        {"{'descr': '<f4\", " OK, "not supported"},
        {"{'descr': '<\\x664', " OK, "structured"},
        {"{'descr': '<f4', 'fortran_order': 0, 'shape': (2,)}", "neither"},
        {F4 "2}", "no tuple"},
        {F4 "(2)}", "no tuple"},
        {F4 "[2,]}", "no tuple"},
        {F4 "(-2,)}", "no extent"},
        {F4 "(2 3)}", "no extent"},
        {F4 "(2.0,)}", "no extent"},
        {F4 "(,)}", "no extent"},
        {F4 "(2,,)}", "no extent"},
        {F4 "(None,)}", "no extent"},
        {F4 "(9223372036854775808,)}", "63 bits"},
        {F4 "(99999999999999999999999,)}", "63 bits"},
        {F4 "(9223372036854775807,)}", "does not fit"},
        {F4 "(4294967296, 4294967296)}", "does not fit"},
        {F4 "(4611686018427387904,)}", "does not fit"},
        {F4 "(2305843009213693951,)}", "announces 9223372036854775804"},
        {F4 "(04, 6)}", "no extent"}, /* as in Python */
        {F4 "(2", "no extent"},
        {F4 "(2,", "no extent"},
        {F4 "(1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1)}", "more than 32"},
        {F4 "(3,)}", "announces 12 bytes of elements, the file has 8"},
        {F4 "(1,)}", "announces 4 bytes of elements, the file has 8"},
    };
    for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
        struct input a;
        put_npy(1 + (int)(i % 3), c[i].text, 8);
        ck_assert_msg(read_back(&a), "%s was read", c[i].text);
        ck_assert_msg(strstr(err, c[i].reason) && strstr(err, file), "%s: %s", c[i].text, err);
        ck_assert_ptr_null(a.data);
    }
}
END_TEST

START_TEST(a_long_of_python_2_is_read_in_versions_1_and_2)
{
    for (int version = 1; version <= 3; version++) {
        struct input a;
        put_npy(version, F4 "(3L, 2L), }", 24);
        ck_assert_int_eq(read_back(&a), version < 3 ? 0 : EXIT_BAD_INPUT);
        input_close(&a);
    }
}
END_TEST

START_TEST(a_header_is_at_most_as_long_as_numpys)
{
    static unsigned char b[10100];
    static const char text[] = F4 "(2,)}";
    for (int more = 0; more < 2; more++) {
        struct input a;
        size_t n = 10000 + (size_t)more;
        memset(b, ' ', sizeof b);
        memcpy(b, (unsigned char[]){0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, n & 255, n >> 8}, 10);
        memcpy(b + 10, text, sizeof text - 1);
        put_file(file, b, 10 + n + 8);
        ck_assert_int_eq(read_back(&a), more ? EXIT_BAD_INPUT : 0);
        ck_assert(!more || strstr(err, "10001"));
        input_close(&a);
    }
}
END_TEST

START_TEST(files_that_are_no_npy_are_refused)
{
    struct input a;
    static const char *const head[] = {"\x93NUMPX\1", "\x93NUMPY\4", "\x93NUMPY", "PK\3\4    "};
    for (int i = 0; i < 4; i++) {
        unsigned char b[200] = {0};
        strcpy((char *)b, head[i]);
        put_file(file, b, sizeof b);
        ck_assert_int_eq(read_back(&a), EXIT_BAD_INPUT);
        ck_assert_msg(strstr(err, i && i < 3 ? "version" : i ? ".npz" : "no .npy"), "%s", err);
    }
    put_file(file, "\x93NUMPY\2\0\xff\xff\xff\xff", 12);
    ck_assert_int_eq(read_back(&a), EXIT_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(err, "4294967295"));
    unlink(file);
    ck_assert_int_eq(read_back(&a), EXIT_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(err, "No such file"));
    ck_assert_int_eq(input_open(dir, &a), EXIT_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(err, "is a directory"));
    put_file(file, "", 0);
    ck_assert_int_eq(read_back(&a), EXIT_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(err, "an empty file is no .npy file"));
    put_file(file, "\x93NUMP", 5);
    ck_assert_int_eq(read_back(&a), EXIT_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(err, "is no .npy file"));
}
END_TEST

/* Whoever calls the library has no file's name in front of its sentences. */
START_TEST(what_is_wrong_with_a_header_is_a_whole_sentence)
{
    static const struct {
        const char *head;
        size_t n;
        xt_status status;
        const char *message;
    } c[] = {
        {NULL, 0, XT_EIO, "an empty file is no .npy file"},
        {"\x93NUMP", 5, XT_EIO, "this is no .npy file: np.save writes one"},
        {"PK\3\4....", 8, XT_EIO,
         "this is no .npy file but an archive, perhaps .npz: np.save each of its arrays"},
        {"\x93NUMPY\4\0", 8, XT_EIO, "version 4.0 of the .npy format is not supported"},
        {"\x93NUMPY\1\0", 8, XT_EBUFFER, "the header is cut short"},
        {"\x93NUMPY\1\0\x40\0{", 11, XT_EBUFFER, "the header is cut short"},
        {"\x93NUMPY\1\0\2\0[]", 12, XT_EIO, "the header is no dict"},
    };
    for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
        struct xt_npy a = {.size = sizeof a};
        ck_assert_int_eq(xt_npy_read(c[i].head, c[i].n, &a, NULL), c[i].status);
        ck_assert_str_eq(xt_last_error()->message, c[i].message);
    }
}
END_TEST

START_TEST(raw_elements_take_the_type_that_is_asked_for)
{
    struct input a;
    static const struct {
        const char *descr;
        xt_dtype asked, got;
    } c[] = {
        {"<V2", 0, XT_BF16},   {"|V2", XT_F16, XT_F16},       {"|V2", XT_F32, XT_BF16},
        {"|V1", 0, XT_F8E4M3}, {"<V1", XT_F8E5M2, XT_F8E5M2}, {"|V8", XT_C64, XT_C64},
    };
    for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
        char text[128];
        snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': (2,)}", c[i].descr);
        put_npy(1, text, 2 * (size_t)(c[i].descr[2] - '0'));
        ck_assert_int_eq(read_back(&a), 0);
        ck_assert_int_eq(npy_is(&a.npy, c[i].asked), c[i].got == c[i].asked);
        ck_assert_int_eq(a.npy.dtype, c[i].got);
        ck_assert_int_eq(a.npy.raw, 1);
        input_close(&a);
    }
    put_npy(1, "{'descr': '<u2', 'fortran_order': False, 'shape': (2,)}", 4);
    ck_assert_int_eq(read_back(&a), 0);
    ck_assert_int_eq(npy_is(&a.npy, XT_BF16), 0);
    ck_assert_int_eq(a.npy.dtype, XT_U16); /* the file knows better */
    ck_assert_int_eq(a.npy.raw, 0);
    input_close(&a);
}
END_TEST

static uint64_t seed = 1;

static uint32_t draw(uint32_t n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(seed >> 33) % n;
}

START_TEST(any_bytes_are_safe_to_read)
{
    static const char words[][16] = {
        "'",   "\"",     "{",    "}",     "(", ")",           ",", ":",  "descr", "shape", "fortran_order",
        "<f4", ">",      "True", "False", "1", "99999999999", " ", "\n", "\\",    "L",     "-",
        "|V2", "'shape'"};
    unsigned char good[200], b[300];
    put_npy(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n", 24);
    FILE *f = fopen(file, "rb");
    size_t n = fread(good, 1, sizeof good, f);
    fclose(f);
    int read = 0;
    for (int i = 0; i < 8000; i++) {
        struct input a;
        size_t m = n;
        memcpy(b, good, n);
        for (uint32_t k = draw(4); k > 0; k--)
            b[draw((uint32_t)m)] = (unsigned char)draw(256);
        for (uint32_t k = draw(3); k > 0; k--) {
            const char *w = words[draw(sizeof words / sizeof *words)];
            memcpy(b + 10 + draw(100), w, strlen(w));
        }
        if (draw(4) == 0)
            m = draw((uint32_t)n);
        put_file(file, b, m);
        if (read_back(&a) == 0) {
            read++;
            ck_assert_msg(a.npy.rank <= XT_MAX_RANK && size_of(&a.npy) == a.npy.bytes, "file %d", i);
            input_close(&a);
        }
    }
    ck_assert_msg(read > 200 && read < 6000, "%d of 8000 were read", read);
}
END_TEST

/* ------------------------------------------------------------------------------------------------------
 * writing */

static const xt_dtype all[] = {XT_BOOL, XT_U8,   XT_I8,  XT_U16, XT_I16,    XT_U32,    XT_I32, XT_U64, XT_I64,
                               XT_F16,  XT_BF16, XT_F32, XT_F64, XT_F8E4M3, XT_F8E5M2, XT_C64, XT_C128};
enum { N_ALL = sizeof all / sizeof *all };

START_TEST(what_is_written_is_read_back_for_every_type_and_rank)
{
    static unsigned char data[4096];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (unsigned char)(i * 37 + 11);
    for (int t = 0; t < N_ALL; t++)
        for (int rank = 0; rank <= XT_MAX_RANK; rank++) {
            struct npy a = {.dtype = all[t], .rank = rank, .fortran_order = rank % 3 == 1};
            struct input b;
            for (int i = 0; i < rank; i++)
                a.shape[i] = i == rank - 1 ? 1 + t % 4 : i < 3 ? 2 : 1;
            a.bytes = size_of(&a);
            ck_assert_msg(put_array(file, &a, data) == 0, "%s", err);
            ck_assert_msg(read_back(&b) == 0, "%s", err);
            ck_assert(npy_is(&b.npy, all[t]));
            ck_assert_int_eq(b.npy.rank, rank);
            ck_assert_int_eq(b.npy.fortran_order, a.fortran_order);
            ck_assert_int_eq(memcmp(a.shape, b.npy.shape, sizeof a.shape), 0);
            ck_assert_uint_eq(a.bytes, b.npy.bytes);
            ck_assert_int_eq(memcmp(data, b.data, b.npy.bytes), 0);
            input_close(&b);
            struct stat st;
            stat(file, &st);
            ck_assert_uint_eq(((size_t)st.st_size - a.bytes) % 64, 0);
        }
    struct npy huge = {.dtype = XT_C128, .rank = XT_MAX_RANK}; /* the longest header */
    for (int i = 0; i < XT_MAX_RANK; i++)
        huge.shape[i] = i ? INT64_MAX : 0;
    ck_assert_int_eq(put_array(file, &huge, data), 0);
    struct input b;
    ck_assert_msg(read_back(&b) == 0, "%s", err);
    ck_assert_int_eq(memcmp(huge.shape, b.npy.shape, sizeof b.npy.shape), 0);
    input_close(&b);
    ck_assert_int_eq(count_names(), 1);
}
END_TEST

static int write_above_the_file_limit(void)
{
    static unsigned char data[100000];
    struct npy a = {.dtype = XT_U8, .rank = 1, .shape = {sizeof data}, .bytes = sizeof data};
    struct rlimit r = {50000, 50000};
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &r);
    return !put_array(file, &a, data) || !strstr(err, "File too large");
}

START_TEST(a_write_that_fails_keeps_the_old_file_and_leaves_no_other)
{
    char path[160];
    unsigned char data[4] = {1, 2, 3, 4};
    struct npy a = {.dtype = XT_U8, .rank = 1, .shape = {4}, .bytes = 4};
    struct input b;
    ck_assert_int_eq(put_array(file, &a, data), 0);
    pid_t pid = fork_child();
    if (pid == 0)
        _exit(write_above_the_file_limit());
    ck_assert_int_eq(end_of(pid), 0);
    ck_assert_int_eq(input_open(file, &b), 0);
    ck_assert_int_eq(memcmp(b.data, data, 4), 0);
    input_close(&b);
    snprintf(path, sizeof path, "%s/absent/a.npy", dir);
    ck_assert_int_eq(put_array(path, &a, data), EXIT_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(err, "there is no such directory"));
    ck_assert_int_eq(put_array("", &a, data), EXIT_BAD_INPUT);
    ck_assert_int_eq(put_array(dir, &a, data), EXIT_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(err, "is a directory"));
    ck_assert_int_eq(put_array("/dev/null", &a, data), 0); /* not replaced */
    struct stat null;
    stat("/dev/null", &null);
    ck_assert(S_ISCHR(null.st_mode));
    ck_assert_int_eq(count_names(), 1);
}
END_TEST

START_TEST(a_target_gets_the_umasks_mode_and_a_link_stays_a_link)
{
    char link[160];
    unsigned char data[1] = {9};
    struct npy a = {.dtype = XT_U8, .rank = 0, .bytes = 1};
    struct input b;
    struct stat st;
    mode_t old = umask(027);
    ck_assert_int_eq(put_array(file, &a, data), 0);
    umask(old);
    stat(file, &st);
    ck_assert_int_eq(st.st_mode & 07777, 0640);
    snprintf(link, sizeof link, "%s/link", dir);
    ck_assert_int_eq(symlink("a.npy", link), 0);
    data[0] = 8;
    ck_assert_int_eq(put_array(link, &a, data), 0);
    lstat(link, &st);
    ck_assert(S_ISLNK(st.st_mode));
    ck_assert_int_eq(input_open(file, &b), 0);
    ck_assert_int_eq(*(unsigned char *)b.data, 8);
    input_close(&b);
    ck_assert_int_eq(chdir(dir), 0);
    ck_assert_int_eq(put_array("new.npy", &a, data), 0); /* no slash: the current directory */
    ck_assert_int_eq(input_open("new.npy", &b), 0);
    input_close(&b);
    ck_assert_int_eq(symlink("link2", "link1"), 0); /* what it names in the end is made */
    snprintf(link, sizeof link, "%s/made.npy", dir);
    ck_assert_int_eq(symlink(link, "link2"), 0);
    ck_assert_int_eq(put_array("link1", &a, data), 0);
    ck_assert(!lstat("link1", &st) && S_ISLNK(st.st_mode) && !lstat("link2", &st) && S_ISLNK(st.st_mode));
    ck_assert_int_eq(input_open(link, &b), 0);
    input_close(&b);
    ck_assert_int_eq(symlink("round", "round"), 0);
    ck_assert_int_ne(put_array("round", &a, data), 0);
    ck_assert(!lstat("round", &st) && S_ISLNK(st.st_mode));
    ck_assert_int_eq(count_names(), 7);
}
END_TEST

/* --------------------------------------------------------------------------------------------------------
 * NumPy */

static int run_python(const char *code)
{
    char path[160], cmd[256];
    snprintf(path, sizeof path, "%s/t.py", dir);
    put_file(path, code, strlen(code));
    snprintf(cmd, sizeof cmd, "cd %s && /usr/bin/python3 t.py", dir);
    return system(cmd);
}

static int has_numpy(void)
{
    if (!system("/usr/bin/python3 -c 'import numpy' 2>/dev/null"))
        return 1;
    printf("skipped: /usr/bin/python3 has no NumPy\n");
    return 0;
}

/* File i: dtype i of NumPy's, shape by i, elements' bytes 0, 1, 2 .. in the file's order. */
static const char make_files[] =
    "import numpy as np\n"
    "kinds = 'b1 u1 i1 u2 i2 f2 u4 i4 f4 u8 i8 f8 c8 c16 V2 V1'.split()\n"
    "shapes = [(), (5,), (2, 3), (0, 4), (2, 1, 3)]\n"
    "for i, k in enumerate(kinds):\n"
    "    for j, s in enumerate(shapes):\n"
    "        for v in (1, 2, 3):\n"
    "            n = int(np.prod(s, dtype=int)) * np.dtype(k).itemsize\n"
    "            a = np.frombuffer(bytes(range(n)), dtype=k).reshape(s, order='CF'[v == 2])\n"
    "            with open(f'{i}-{j}-{v}.npy', 'wb') as f:\n"
    "                np.lib.format.write_array(f, a, version=(v, 0))\n";

START_TEST(files_that_numpy_wrote_are_read)
{
    static const xt_dtype want[] = {XT_BOOL, XT_U8,  XT_I8,  XT_U16, XT_I16, XT_F16,  XT_U32,  XT_I32,
                                    XT_F32,  XT_U64, XT_I64, XT_F64, XT_C64, XT_C128, XT_BF16, XT_F8E4M3};
    static const int rank[] = {0, 1, 2, 2, 3}, numel[] = {1, 5, 6, 0, 6};
    if (!has_numpy())
        return;
    ck_assert_int_eq(run_python(make_files), 0);
    for (int i = 0; i < 16; i++)
        for (int j = 0; j < 5; j++)
            for (int v = 1; v <= 3; v++) {
                struct input a;
                char path[160];
                snprintf(path, sizeof path, "%s/%d-%d-%d.npy", dir, i, j, v);
                ck_assert_msg(input_open(path, &a) == 0, "%s", err);
                ck_assert_int_eq(a.npy.dtype, want[i]);
                ck_assert_int_eq(a.npy.rank, rank[j]);
                ck_assert_uint_eq(a.npy.bytes, (size_t)numel[j] * xt_dtype_bytes(want[i]));
                ck_assert_msg(a.npy.fortran_order == (v == 2 && j == 2) || j == 4 || j == 3, "%s", path);
                for (size_t b = 0; b < a.npy.bytes; b++)
                    ck_assert_uint_eq(((unsigned char *)a.data)[b], b);
                input_close(&a);
            }
}
END_TEST

static const char check_files[] =
    "import numpy as np\n"
    "names = 'bool uint8 int8 uint16 int16 uint32 int32 uint64 int64 float16 V2 float32 float64 V1 V1 "
    "complex64 '\\\n"
    "        'complex128'.split()\n"
    "for i, k in enumerate(names):\n"
    "    for fortran in (0, 1):\n"
    "        a = np.load(f'{i}-{fortran}.npy')\n"
    "        assert a.dtype == np.dtype(k), (i, a.dtype, k)\n"
    "        assert a.shape == (2, 3, 4), (i, a.shape)\n"
    "        assert a.flags.f_contiguous == bool(fortran)\n"
    "        assert a.tobytes('A') == bytes(x % 2 for x in range(a.nbytes)), i\n"
    "assert np.load('scalar.npy').shape == () and np.load('vector.npy').shape == (7,)\n";

START_TEST(files_that_are_written_are_read_by_numpy)
{
    static unsigned char data[24 * 16];
    char path[160];
    if (!has_numpy())
        return;
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (unsigned char)(i % 2);
    for (int t = 0; t < N_ALL; t++)
        for (int fortran = 0; fortran < 2; fortran++) {
            struct npy a = {.dtype = all[t], .rank = 3, .shape = {2, 3, 4}, .fortran_order = fortran};
            a.bytes = 24 * xt_dtype_bytes(all[t]);
            snprintf(path, sizeof path, "%s/%d-%d.npy", dir, t, fortran);
            ck_assert_int_eq(put_array(path, &a, data), 0);
        }
    struct npy a = {.dtype = XT_U8, .rank = 0, .bytes = 1};
    snprintf(path, sizeof path, "%s/scalar.npy", dir);
    ck_assert_int_eq(put_array(path, &a, data), 0);
    a = (struct npy){.dtype = XT_U8, .rank = 1, .shape = {7}, .bytes = 7};
    snprintf(path, sizeof path, "%s/vector.npy", dir);
    ck_assert_int_eq(put_array(path, &a, data), 0);
    ck_assert_int_eq(run_python(check_files), 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("npy");
    TCase *c = tcase_create("npy");
    tcase_set_timeout(c, 120);
    tcase_add_checked_fixture(c, start, finish);
    tcase_add_test(c, headers_that_numpy_accepts_are_read);
    tcase_add_test(c, headers_that_are_wrong_are_refused_with_a_reason);
    tcase_add_test(c, a_long_of_python_2_is_read_in_versions_1_and_2);
    tcase_add_test(c, a_header_is_at_most_as_long_as_numpys);
    tcase_add_test(c, files_that_are_no_npy_are_refused);
    tcase_add_test(c, what_is_wrong_with_a_header_is_a_whole_sentence);
    tcase_add_test(c, raw_elements_take_the_type_that_is_asked_for);
    tcase_add_test(c, any_bytes_are_safe_to_read);
    tcase_add_test(c, what_is_written_is_read_back_for_every_type_and_rank);
    tcase_add_test(c, a_write_that_fails_keeps_the_old_file_and_leaves_no_other);
    tcase_add_test(c, a_target_gets_the_umasks_mode_and_a_link_stays_a_link);
    tcase_add_test(c, files_that_numpy_wrote_are_read);
    tcase_add_test(c, files_that_are_written_are_read_by_numpy);
    suite_add_tcase(s, c);
    return run_suite(s);
}
