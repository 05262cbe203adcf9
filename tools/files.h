/* files.h: chains on files of any size, by xt_files.h. */
#ifndef XT_TOOLS_FILES_H
#define XT_TOOLS_FILES_H

#include <xt/xt_files.h>

#include "args.h"

/* The options as they were typed; NULL: not there. */
struct files_options {
    const char *mem, *tile, *passes, *chunks, *zarr;
    bool restart;
};
/* Their rows, for `run` and `explain`. */
#define FILES_ROWS(o)                                                                                        \
    {"mem",    'm', "SIZE", "at most so much memory and page cache, as 256M or 2G: tile by tile",            \
     &(o).mem, NULL},                                                                                        \
        {"chunks", 'c', "N,N,..", "of a zarr result", &(o).chunks, NULL},                                    \
        {"zarr", 'z', "2|3", "the format of a zarr result; 3 if left out", &(o).zarr, NULL},                 \
        {"tile", 0, "SIZE", "a tile is not larger", &(o).tile, NULL},                                        \
    {                                                                                                        \
        "passes", 0, "1|2", "not the cheaper, but so many", &(o).passes, NULL                                \
    }

/* Is this for xt_files.h: options of it are there, or a path is a directory or names a zarr array? */
bool files_wanted(const struct files_options *o, int n, char **inputs, const char *output);

/* 0, or EXIT_BAD_INPUT after a message. inputs NULL: as the chain declares them; for explaining. */
int files_run(const char *chain, int n, char **inputs, const char *output, const struct files_options *o,
              bool verbose);
int files_explain(const char *chain, int n, char **inputs, const char *output, const struct files_options *o,
                  bool json);

#endif
