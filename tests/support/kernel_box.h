/* kernel_box.h: one job of a micro-kernel between pages that must not be touched, compared byte for byte with
 * its definition. What the box does not cover of the destination are canaries. */
#ifndef TESTS_SUPPORT_KERNEL_BOX_H
#define TESTS_SUPPORT_KERNEL_BOX_H

#include "support/kernel_job.h"

enum { KERNEL_LINE = 64, KERNEL_FLUSH = -1, KERNEL_LAYOUTS = 64 };

/* How a box lies in memory. */
struct kernel_layout {
    struct kernel_pitch pitch;
    bool stream, at_end;  /* at_end: near the guard page behind, else near the one before */
    int s_align, d_align; /* of the lowest byte, 0 .. 63; KERNEL_FLUSH: whatever it is right at the page */
};

/* Pitch (rows that follow each other, that begin at odd addresses, on lines, on pages), directions, streaming
 * and guard page: all 64 layouts, or 16 in which any two of the four meet in every combination. Returns how
 * many. Alignments are left to the caller. */
int kernel_layouts(bool all, struct kernel_layout out[KERNEL_LAYOUTS]);

/* The memory of the boxes, before the first and after the last of them. false: there is none. */
bool kernel_box_setup(void);
void kernel_box_teardown(void);

/* Runs k once. NULL, or a sentence that describes the job whose bytes are wrong (until the next call); a job
 * that touches a guard page prints it and dies of the signal. Boxes of more than half a MiB (many rows, a
 * page apart) are left out. */
const char *kernel_box_check(const struct xtk_row *k, int64_t rows, int64_t cols,
                             const struct kernel_layout *l);

#endif
