/* splice.h: a window of an assembled plan as lists of where each of its lines comes from. Internal to cpu.
 * Layer 4. */
#ifndef XTI_CPU_SPLICE_H
#define XTI_CPU_SPLICE_H

#include "cpu/cursor.h"

/* Room for the 9 planes of 3 x 3 windows on pictures of 64 x 64, on lines or not. */
enum { XTI_SPLICE_SEGMENTS = 1408, XTI_SPLICE_SOURCES = 384, XTI_SPLICE_GROUPS = 192 };

/* Rows of which each has what the one before has, further on. */
struct xti_splice_rows {
    int16_t segment, source, segments, sources; /* the first one's, and how many */
    int32_t n;
};

struct xti_splice {
    struct xti_cursor *cursor; /* of every step */
    int n_segments, n_sources, n_groups;
    bool failed;        /* no room, or steps that are no lists */
    struct xtk_job job; /* of the cursors' kernels */
    int step;           /* that is listened to */
    char *line;         /* that it writes .. */
    uint64_t listed;    /* .. and which bytes of it have been seen */
    int64_t ahead;      /* where to prefetch, in bytes from what is loaded */
    struct xtk_segment segment[XTI_SPLICE_SEGMENTS];
    struct xtk_source source[XTI_SPLICE_SOURCES];
    unsigned char of[XTI_SPLICE_SOURCES]; /* step; their number: zeros */
    int64_t next[XTI_ASSEMBLE_STEPS + 1]; /* of a step's sources: from a window to the next */
    struct xti_splice_rows group[XTI_SPLICE_GROUPS];
    char value[XTI_ASSEMBLE_STEPS][64]; /* a line of each fill */
    bool blank[XTI_ASSEMBLE_STEPS + 1]; /* those of zeros */
};

/* Lists the window that begins at byte `at` of the destination, which is on a line. The cursors stand there;
 * they are at the next window afterwards. False: there are no such lists. */
bool xti_splice_list(struct xti_splice *t, const struct xti_copy *c, struct xti_cursor *cursor, int64_t at);
/* Runs so many windows from there. */
void xti_splice_run(struct xti_splice *t, const struct xti_copy *c, int64_t at, int64_t windows);

#endif
