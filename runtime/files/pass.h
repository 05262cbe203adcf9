/* pass.h: carries out a pass: tile after tile is read, copied and written. Layer 6. */
#ifndef XTI_FILES_PASS_H
#define XTI_FILES_PASS_H

#include "files/journal.h"

struct xti_pass {
    struct xti_task *task;
    const struct xti_tiling *cut;
    int number; /* of the journal */
    struct xti_journal *journal;
    struct xti_io *io;
    struct xti_threads *threads;
    char *buffer; /* of all passes: pages that are there are taken again */
    int64_t room; /* its bytes: 2 * XTI_IO_BLOCK goes into them */
    xt_files_progress progress;
    void *arg;
    int64_t done, total; /* bytes that are written, before this pass; of all passes */
};

/* post: every tile of this share that the journal does not have is written, durable, and in the journal. On
 * failure some are. */
xt_status xti_pass_run(struct xti_pass *p, struct xti_err *err);

#endif
