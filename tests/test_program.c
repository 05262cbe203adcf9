/* test_program.c: programs as text: tests/golden/programs.txt holds those of a hundred chains on a machine
 * that there is not, so that they are the same wherever the tests run. `make programs` writes them anew. */
#include "plan/program.h"

#include <string.h>

#include "cpu/cpu.h"
#include "support/map_of.h"

/* Round figures and every habit. */
static const struct xti_prices prices = {.run = 10,
                                         .step = 20,
                                         .call = 5,
                                         .row = 1,
                                         .short_row = 1,
                                         .unit = 0.2,
                                         .fetch = {0.5, 1, 2},
                                         .store = {1, 1, 2},
                                         .stream = 2,
                                         .split = 5,
                                         .jump = 1,
                                         .together = 0.5,
                                         .beside = 0.5,
                                         .vector = 1,
                                         .picked = 1,
                                         .share = 0.5,
                                         .thread = 25000,
                                         .full = 2};
static const struct xti_machine made_up = {.name = "made-up",
                                           .prices = &prices,
                                           .hints = {{[XTI_FETCHES_TILES] = XTI_HINT_T1}},
                                           .habits = {.follows = 8,
                                                      .far_ahead = true,
                                                      .prefetch_writes = true,
                                                      .early_stores = true}};

enum { GOLDEN = 102, LONGEST = 1 << 10 };

#define PROGRAMS "tests/golden/programs.txt"
struct golden {
    char head[LONGEST]; /* "avx512 1 x: f32[4,6]; x.T": instruction set, threads, chain */
    struct xti_str program, want;
};
static struct golden golden[GOLDEN];
static int n_golden;
static struct xti_str comment; /* before the first of them */

/* Lines of a program are indented, heads are not. */
static bool read_golden(void)
{
    char line[LONGEST];
    FILE *f = fopen(PROGRAMS, "r");
    while (f && fgets(line, sizeof line, f)) {
        if (*line == '#') {
            xti_str_add(&comment, line);
        } else if (*line == ' ' && n_golden) {
            xti_str_add(&golden[n_golden - 1].want, line);
        } else if (*line != '\n' && n_golden < GOLDEN) {
            line[strcspn(line, "\n")] = 0;
            strcpy(golden[n_golden++].head, line);
        }
    }
    return f && !fclose(f);
}

static void indented(const struct xti_str *text, struct xti_str *b)
{
    for (const char *at = text->s; at && *at;) {
        size_t n = strcspn(at, "\n") + 1;
        xti_str_addf(b, "    %.*s", (int)n, at);
        at += n;
    }
}

static void program_of(struct golden *g)
{
    struct xti_target t = {.backend = XT_CPU,
                           .l1_bytes = 32 << 10,
                           .l2_bytes = 256 << 10,
                           .l3_bytes = 8 << 20,
                           .machine = &made_up};
    struct xti_str text = {0};
    struct xti_plan p;
    struct xti_err err = {0};
    struct xti_map m;
    char isa[16] = "";
    int at = 0;
    ck_assert_msg(sscanf(g->head, "%15s %d %n", isa, &t.threads, &at) == 2, "%s", g->head);
    while (t.isa < XTI_ISA_COUNT && strcmp(isa, xti_isa_name[t.isa]))
        t.isa++;
    ck_assert_msg(t.isa < XTI_ISA_COUNT, "%s", g->head);
    map_of(g->head + at, &m);
    ck_assert_msg(!xti_plan_make(&m, &t, &p, &err), "%s: %s", g->head, err.e.message);
    xti_program_text(&p, &text);
    indented(&text, &g->program);
    xti_str_free(&text);
    xti_plan_free(&p);
    xti_map_free(&m);
}

START_TEST(a_chain_has_its_program)
{
    struct golden *g = &golden[_i];
    program_of(g);
    ck_assert_msg(g->program.s && g->want.s && !strcmp(g->program.s, g->want.s), "%s\n%s is\n%s", g->head,
                  g->want.s, g->program.s);
    xti_str_free(&g->program);
}
END_TEST

/* Each is one node a line, two spaces deeper than what it is in. */
START_TEST(the_golden_ones_are_a_hundred_trees_of_every_kernel)
{
    ck_assert_int_eq(n_golden, GOLDEN);
    for (int op = 0; op < XTI_CPU_OP_COUNT; op++) {
        char leaf[64];
        bool found = false;
        snprintf(leaf, sizeof leaf, "leaf %s.", xti_cpu_op_name[op]);
        for (int i = 0; i < n_golden; i++)
            found |= strstr(golden[i].want.s, leaf) != NULL;
        ck_assert_msg(found, "no %s", leaf);
    }
    for (int i = 0; i < n_golden; i++) {
        int last = 2;
        for (const char *at = golden[i].want.s; *at; at += strcspn(at, "\n") + 1) {
            int depth = (int)strspn(at, " ");
            ck_assert_msg(depth >= 4 && depth % 2 == 0 && depth <= last + 2, "%s", at);
            last = depth;
        }
    }
}
END_TEST

START_TEST(the_page_prints_a_program_that_there_is)
{
    struct golden g = {.head = "avx512 1 x: u8[2000,1500,5]; x.permute(1,0,2)"};
    char page[1 << 16];
    FILE *f = fopen("runtime/README.md", "r");
    ck_assert(f != NULL);
    page[fread(page, 1, sizeof page - 1, f)] = 0;
    fclose(f);
    ck_assert(strstr(page, strchr(g.head, ':') - 1));
    program_of(&g);
    char *at = strchr(g.program.s, '\n') + 1;
    for (int i = 0; i < 7; i++) {
        char *line = at + strspn(at, " ");
        at = strchr(line, '\n') + 1;
        at[-1] = 0;
        ck_assert_msg(strstr(page, line), "%s", line);
    }
    xti_str_free(&g.program);
}
END_TEST

START_TEST(programs_are_written_anew)
{
    for (int i = 0; i < n_golden; i++)
        program_of(&golden[i]);
    FILE *f = fopen(PROGRAMS, "w");
    ck_assert_msg(f != NULL, PROGRAMS);
    fputs(comment.s, f);
    for (int i = 0; i < n_golden; i++)
        fprintf(f, "\n%s\n%s", golden[i].head, golden[i].program.s);
    ck_assert_int_eq(fclose(f), 0);
}
END_TEST

int main(int argc, char **argv)
{
    Suite *s = suite_create("program");
    TCase *c = tcase_create("program");
    if (!read_golden())
        return 1;
    if (argc == 2 && !strcmp(argv[1], "--write")) {
        tcase_add_test(c, programs_are_written_anew);
    } else {
        tcase_add_test(c, the_page_prints_a_program_that_there_is);
        tcase_add_loop_test(c, a_chain_has_its_program, 0, n_golden);
        tcase_add_test(c, the_golden_ones_are_a_hundred_trees_of_every_kernel);
    }
    suite_add_tcase(s, c);
    return run_suite(s);
}
