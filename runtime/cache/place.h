/* place.h: which directory the disk cache lives in, and whether it may be trusted: whoever can write there
 * can run code in this process's name. Layer 5. */
#ifndef XTI_CACHE_PLACE_H
#define XTI_CACHE_PLACE_H

#include <stdbool.h>

struct xti_refusal {
    bool lasting; /* asking again will not help */
    int error;    /* errno, 0 when a check refused */
    char text[512];
};

/* The directory to use, xti_alloc'ed, absolute, without trailing slashes. NULL with why->text set: none; NULL
 * without: out of memory. dir as for xti_disk_open. */
char *xti_place_choose(const char *dir, struct xti_refusal *why);

/* A descriptor of dir/k1, or -1 with *why. make: makes what is missing, 0700. Both directories must belong to
 * this user, be no symbolic links and not be writable by others; parents are as the user has them. Without
 * make, a missing directory is no lasting refusal. */
int xti_place_open(const char *dir, bool make, struct xti_refusal *why);

#endif
