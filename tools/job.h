/* job.h: a run of a chain on files, as cmd_run.c sets it up and result.c carries it out. */
#ifndef XT_TOOLS_JOB_H
#define XT_TOOLS_JOB_H

#include <xt/xt.h>

#include "bar.h"
#include "input.h"

/* 512 MB of f32 into a file of ext4: by parts of 4 MB 0.46 to 0.71 s, 64 MB 0.71 to 1.1 s, at once 2.3 to 3.1
 * s. Smaller ones use less of each page of a transposed source. (Zen 5, 2 shared cores, 2026-11) */
enum { JOB_PART_BYTES = 16 << 20 };

struct job {
    const char *chain, *path; /* of the result */
    bool force;               /* to a terminal, too */
    int n;                    /* inputs */
    struct input *in;
    const void **src; /* where their elements are */
    struct xt_compile_options opt;
    struct xt_ctx *ctx;
    struct xt_kernel *kernel; /* of the whole chain */
    struct xt_kernel_info info;
    struct xt_end_info result;
    bool dense; /* the chain names no layout for its result */
    struct bar bar;
    double copy_seconds; /* without the writing of files */
};

/* The chain on the job's files: their shapes, types and orders. 0, or EXIT_BAD_INPUT after a message. */
int job_graph(const struct job *j, struct xt_graph **out);

/* Copies, and writes the file: in parts, so that the memory that this takes has a bound. 0, or EXIT_BAD_INPUT
 * after a message; then what was there is untouched. (result.c) */
int job_write(struct job *j);

#endif
