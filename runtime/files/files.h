/* files.h: the object behind xt_files. Layer 6. */
#ifndef XTI_FILES_FILES_H
#define XTI_FILES_FILES_H

#include "files/pass.h"

struct xt_files {
    struct xt_files_options opt;
    char *line;
    char *target, *journal; /* where the result is going to be; OUT.xt-part */
    struct xt_graph *chain;
    int n;
    struct xti_array *in, out, tiles; /* out: OUT.xt-data; tiles: OUT.xt-tiles */
    const struct xti_array **in_list, *tiles_list[1];
    struct xti_curve curve;
    int requests;
    int64_t room;
    int passes; /* 0: the result has no elements */
    struct xti_task task[2];
    struct xti_tiling cut[2];
    double other_seconds;   /* of the other number of passes; 0: it has no room, or is not asked for */
    int64_t other_requests; /* 0: its seconds are what it takes at least */
    struct xti_journal_head head;
    struct xti_journal made; /* of a run that has begun */
    bool begun, parted;      /* parted: a share has failed, and they meet no more */
    int64_t kernels, resumed, opened_ns;
    bool imagined; /* there are no input files */
};

/* Chooses passes and tiles, or takes those of the journal. (planning.c) */
xt_status xti_files_plan(struct xt_files *f, struct xti_err *err);

int64_t xti_files_now(void); /* ns of this host's clock, which stamps the files that it has itself */

void xti_files_text(const struct xt_files *f, struct xti_str *b);
void xti_files_json(const struct xt_files *f, struct xti_str *b);
void xti_files_info(const struct xt_files *f, struct xt_files_info *i);

#endif
