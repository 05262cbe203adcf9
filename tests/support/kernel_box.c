/* kernel_box.c: see kernel_box.h. */
#include "support/kernel_box.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { AREA = 1 << 19, PAGE = 4096, LINE = KERNEL_LINE, BESIDE = 256, CANARY = 0xa5 };

static char *src_area, *dst_area, *want;
static struct kernel_job job;
static const struct kernel_layout *layout; /* of the job */

int kernel_layouts(bool all, struct kernel_layout out[KERNEL_LAYOUTS])
{
    static const struct kernel_pitch pitch[] = {
        {.round = 1}, {.round = 1, .pad = 13}, {.round = LINE}, {.round = PAGE}};
    int n = 0;
    for (int i = 0; i < KERNEL_LAYOUTS; i++) {
        int p = i % 4, down = i / 4 % 4, rest = i / 16;
        if (!all && rest != (p ^ down))
            continue;
        out[n] = (struct kernel_layout){.pitch = pitch[p], .stream = rest & 1, .at_end = rest & 2};
        out[n].pitch.s_down = down & 1;
        out[n++].pitch.d_down = down & 2;
    }
    return n;
}

static const char *describe(void)
{
    static char text[300];
    const struct xtk_job *b = &job.job;
    snprintf(text, sizeof text,
             "%s: %lld rows, %lld cols; source strides %lld, %lld, alignment %d; destination "
             "%lld, %lld, %d; stream %d, at_end %d\n",
             job.row->name, (long long)b->rows, (long long)b->cols,
             (long long)b->s_row, (long long)b->s_col, layout->s_align, (long long)b->d_row,
             (long long)b->d_col, layout->d_align, layout->stream, layout->at_end);
    return text;
}

/* A kernel touched a guard page, or aligned what is not. */
static void die(int signal_number)
{
    fputs(describe(), stderr);
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

/* AREA bytes between two pages that fault. */
static char *guarded(void)
{
    char *p = mmap(NULL, AREA + 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED || mprotect(p, PAGE, PROT_NONE) || mprotect(p + PAGE + AREA, PAGE, PROT_NONE))
        return NULL;
    return p + PAGE;
}

bool kernel_box_setup(void)
{
    src_area = guarded();
    dst_area = guarded();
    want = malloc(AREA);
    if (!src_area || !dst_area || !want)
        return false;
    uint32_t x = 1;
    for (int i = 0; i < AREA; i++)
        src_area[i] = (char)((x = x * 1664525 + 1013904223) >> 24);
    memset(dst_area, CANARY, AREA);
    memset(want, CANARY, AREA);
    signal(SIGSEGV, die);
    return true;
}

void kernel_box_teardown(void)
{
    munmap(src_area - PAGE, AREA + 2 * PAGE);
    munmap(dst_area - PAGE, AREA + 2 * PAGE);
    free(want);
}

/* Offset of unit (0, 0) in the area. */
static int64_t place(int64_t lo, int64_t hi, bool at_end, int align)
{
    int64_t slack = align;
    if (align == KERNEL_FLUSH)
        slack = 0;
    else if (at_end)
        slack = (AREA - (hi - lo) - align) % LINE;
    return at_end ? AREA - slack - hi : slack - lo;
}

const char *kernel_box_check(const struct xtk_row *k, int64_t rows, int64_t cols,
                             const struct kernel_layout *l)
{
    kernel_job_make(k, rows, cols, l->pitch, l->stream, &job);
    if (job.s_hi - job.s_lo > AREA - LINE || job.d_hi - job.d_lo > AREA - LINE)
        return NULL;
    int64_t s_at = place(job.s_lo, job.s_hi, l->at_end, l->s_align);
    int64_t d_at = place(job.d_lo, job.d_hi, l->at_end, l->d_align);
    int64_t from = d_at + job.d_lo - BESIDE, to = d_at + job.d_hi + BESIDE;
    from = from > 0 ? from : 0;
    to = to < AREA ? to : AREA;
    kernel_job_define(&job, want + d_at, src_area + s_at);
    kernel_job_place(&job, dst_area + d_at, src_area + s_at);
    layout = l;
    kernel_job_run(&job, dst_area + d_at, src_area + s_at);
    bool same = !memcmp(dst_area + from, want + from, (size_t)(to - from));
    memset(dst_area + from, CANARY, (size_t)(to - from));
    memset(want + from, CANARY, (size_t)(to - from));
    return same ? NULL : describe();
}
