/* journal.h: OUT.xt-part: what a run makes and what of it is done, for the run that takes it up, and for the
 * shares of one run, each of which writes of its own tiles. Layer 6. */
#ifndef XTI_FILES_JOURNAL_H
#define XTI_FILES_JOURNAL_H

#include "base/hash.h"
#include "files/choose.h"

/* As it stands in the file. */
struct xti_journal_head {
    char magic[8];
    unsigned char line[XTI_SHA256_BYTES];   /* of the line, and of the result's form */
    unsigned char inputs[XTI_SHA256_BYTES]; /* of their sizes and times */
    int64_t passes, rank;
    int64_t between[XT_MAX_RANK];                  /* tiles of the temporary file */
    int64_t depth[2], tiles[2], n[2][XT_MAX_RANK]; /* of a pass */
    int64_t since_ns; /* by the clock that stamps it: a chunk that is changed later is of another input */
    unsigned char sum[XTI_SHA256_BYTES]; /* of all before */
};

struct xti_journal {
    char *path;
    int fd; /* < 0: not open */
    struct xti_journal_head head;
    unsigned char *mark; /* [n] of the tiles of all passes: 1: done, 2: spoiled */
    int64_t n, set;      /* set: that are done, as far as this share knows */
    int64_t from, to;    /* tiles [from, to) of the pass at hand are this share's */
    bool changed;        /* since the last commit */
    bool spoiled;        /* a share saw that an input was changed: what is done is of no use */
};

/* What is there, for looking; false: nothing, or nothing that a run could be taken up by. XT_EINVAL: it is no
 * journal. */
xt_status xti_journal_peek(const char *path, struct xti_journal_head *head, bool *there, struct xti_err *err);

/* Opens and locks it: XT_EIO when another run has it. *resumed: it has this head, and j its marks. Else it is
 * begun anew, where `restart`, or where nothing is there; else it is XT_EINVAL. */
xt_status xti_journal_open(const char *path, const struct xti_journal_head *head, bool restart,
                           struct xti_journal *j, bool *resumed, struct xti_err *err);
/* The same of one that share 0 has open. */
xt_status xti_journal_join(const char *path, const struct xti_journal_head *head, struct xti_journal *j,
                           struct xti_err *err);
/* Writes head and marks, all clear. */
xt_status xti_journal_begin(struct xti_journal *j, struct xti_err *err);
/* What the other shares have committed is read, too. */
xt_status xti_journal_look(struct xti_journal *j, struct xti_err *err);
/* A pass begins, of whose tiles this is a share: what the others have made before is read. */
xt_status xti_journal_pass(struct xti_journal *j, int pass, int share, int shares, struct xti_err *err);

bool xti_journal_has(const struct xti_journal *j, int pass, int64_t tile);
void xti_journal_set(struct xti_journal *j, int pass, int64_t tile);
/* Makes what was set durable. What the tiles wrote is so already. */
xt_status xti_journal_commit(struct xti_journal *j, int pass, struct xti_err *err);
/* Says so, to all shares that look from then on, and to later runs. Nothing is committed after it. */
void xti_journal_spoil(struct xti_journal *j);
void xti_journal_close(struct xti_journal *j, bool remove); /* accepts one that is not open */

#endif
