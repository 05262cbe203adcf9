/* input.h: an array from a .npy file, a pipe or standard input. */
#ifndef XT_TOOLS_INPUT_H
#define XT_TOOLS_INPUT_H

#include "guard.h"
#include "npy.h"

/* A regular file is mapped: only the pages that are used are read, and take memory as long as nobody needs
 * it. What comes from a pipe is in memory. */
struct input {
    const char *name; /* of the file, or "standard input" */
    struct npy npy;
    const void *data;
    void *map; /* what is freed */
    size_t map_bytes;
    struct guarded guard;
};

/* "-": standard input. The file has exactly the size that its header announces. 0, or EXIT_BAD_INPUT after a
 * message, and *in is {0}. */
int input_open(const char *path, struct input *in);
void input_close(struct input *in); /* accepts {0} */

/* "f32[2,3]", of a shape and type; buf's content, cut at size. */
const char *shape_text(char *buf, size_t size, xt_dtype dtype, int rank, const int64_t *shape);

#endif
