/* golden.h: reads tests/golden/golden.txt: named chains with the facts that were derived for them by hand. */
#ifndef TESTS_SUPPORT_GOLDEN_H
#define TESTS_SUPPORT_GOLDEN_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <xt/xt.h>

enum { GOLDEN_DIMS = 16, GOLDEN_PIECES = 8, GOLDEN_TABLE = 4096 };

struct golden_piece {
    int src; /* -1: fill */
    int64_t soff, doff;
    int n_dims;
    int64_t dim[GOLDEN_DIMS][3]; /* n, s, d */
    bool general;                /* has divs or guards, which the file does not list */
};

struct golden_case {
    char name[32];
    struct xt_graph *g; /* of i64 elements; fill number f is the element -1 - f. Of the caller */
    char text[4096];    /* the problem line, for messages */
    int n_pieces, rank, n_divs;
    bool affine, memcpy, guarded;
    uint64_t fnv; /* of the table */
    int n_listed;
    struct golden_piece piece[GOLDEN_PIECES];
    int n_table; /* -1: not listed */
    int64_t table[GOLDEN_TABLE];
};

FILE *golden_open(void); /* $GOLDEN, else tests/golden/golden.txt; NULL when there is none */

/* Reads the next case and builds its graph with the public builders. False at the end. Prints and exits on a
 * file that does not parse. */
bool golden_next(FILE *f, struct golden_case *c);

/* 64-bit FNV-1a over little-endian int64. */
uint64_t golden_fnv(int64_t n, const int64_t *v);

#endif
