/* distinct.h: a list of numbers as a set. Layer 0. */
#ifndef XTI_BASE_DISTINCT_H
#define XTI_BASE_DISTINCT_H

#include <stdint.h>

/* Sorts n numbers and keeps each once. Returns how many are left. Allocates nothing, as qsort may. */
int xti_distinct(int32_t *x, int n);

#endif
