/* xt_files.h: chains on files of any size, in a bounded amount of memory.
 *
 *     struct xt_files *f;
 *     struct xt_files_options o = {.size = sizeof o, .mem_bytes = 256 << 20};
 *     xt_files_new("x; x.permute(2,0,1)", 1, (const char *[]){"in.npy"}, "out.zarr", &o, &f);
 *     xt_files_run(f);
 *     xt_files_free(f);
 *
 * A file is a .npy file (C or Fortran order), or a directory with an uncompressed zarr array of format 2
 * (.zarray) or 3 (zarr.json). The result is made tile by tile: what a tile needs is read, copied by one fused
 * kernel and written, while requests for others are under way. Where tiles under the cap would make requests
 * too short, the elements go through a temporary file of tiles, in two passes. No file is mapped, and where
 * the file system can, what is read and written stays out of the page cache.
 *
 * Until it is whole the result is OUT.xt-data, and OUT.xt-part keeps what of it is done, so that a run that
 * was ended, by whatever, is taken up by the next call with the same line, files and sizes; in two passes
 * OUT.xt-tiles is the temporary file. Then it is renamed to OUT.
 *
 * Rules of xt.h hold: units, errors, ownership. An object belongs to one thread at a time. */
#ifndef XT_XT_FILES_H
#define XT_XT_FILES_H

#include <xt/xt.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Called while a run goes on, by the thread that runs it, some times a second: bytes of the result that are
 * written, in two passes half of all that is. Not 0: the run ends with XT_ESTOPPED, to be taken up later. */
typedef int (*xt_files_progress)(void *arg, int64_t done, int64_t total);

/* All shares of a run call it, and none goes on before all have: whether one of them has failed. */
typedef int (*xt_files_meet)(void *arg, int failed);

struct xt_files_options {
    size_t size;        /* sizeof(struct xt_files_options) */
    int64_t mem_bytes;  /* buffers and page cache together; 0: 256 MiB */
    int64_t tile_bytes; /* of a tile, at most; 0: as mem_bytes allows */
    int passes;         /* 1 or 2; 0: the cheaper */
    int requests;       /* under way at once; 0: as measured */
    int chunk_rank;     /* of the result, where it is zarr: an extent an axis; 0: xt's choice */
    const int64_t *chunk;
    int zarr_format;    /* 2 or 3; 0: 3 */
    int restart;        /* 1: what is left of an earlier run is thrown away */
    int buffered;       /* 1: by the page cache, also where O_DIRECT is possible */
    xt_files_progress progress; /* may be NULL */
    void *arg;
    /* The tiles of one run are dealt among processes that see the same files: this one is share `share` of
     * `shares`. Others are opened, with the same line, paths and options, when share 0 has begun. 0: alone */
    int share, shares;
    xt_files_meet meet;
    void *meet_arg;
};

struct xt_files;

/* Opens the inputs, chooses tiles and passes; nothing is written but, for a third of a second, a temporary
 * file beside OUT, to measure requests of what lengths take (the figures are kept in the cache directory).
 * inputs NULL, and n 0: the line declares them in full, and the plan can be looked at alone.
 * OUT ends with ".npy": a .npy file; with ".zarr" or "/": a zarr array, which must not be there yet.
 * Fails as xt_parse and xt_compile; XT_EIO: a file cannot be read, or is none of these; XT_EUNSUPPORTED:
 * compressed or sharded chunks, big-endian elements, "-> layout"; XT_ENOMEM: mem_bytes is too small;
 * XT_EINVAL: what an earlier run left is of another line, an input changed since, or lies where the run keeps
 * what it makes. */
XT_API xt_status xt_files_new(const char *line, int n, const char *const *inputs, const char *output,
                              const struct xt_files_options *opt, struct xt_files **out);
XT_API void xt_files_free(struct xt_files *f);

/* What xt_files_run does first, where it was not called: the journal and the result's file are there. */
XT_API xt_status xt_files_begin(struct xt_files *f);

/* post: OUT holds what the chain gives, bit for bit; on failure what was there before is untouched, and what
 * is done already is kept for the next call. XT_EIO: a read or a write failed, the disk is full, an input
 * changed, or OUT is in its place, as the message says then, and its folder cannot be written; XT_ESTOPPED:
 * progress asked for it; XT_EPEER: another share failed. Once. */
XT_API xt_status xt_files_run(struct xt_files *f);

struct xt_files_info {
    size_t size; /* sizeof(struct xt_files_info) */
    int passes;
    int64_t tiles, reads, writes; /* requests, of all passes */
    int64_t read_bytes, written_bytes, memory_bytes;
    int64_t kernels;   /* after a run: different copies */
    int64_t resumed;   /* tiles that an earlier run had done */
    double seconds;    /* predicted */
};
XT_API xt_status xt_files_get(const struct xt_files *f, struct xt_files_info *out);

/* What is read, in which tiles, with how many requests, and what it takes, for people, or as JSON (XT_JSON).
 * As xt_print. */
XT_API xt_status xt_files_explain(const struct xt_files *f, int flags, char *buf, size_t size, size_t *need);

/* ---- .npy */

/* What a header says. */
struct xt_npy {
    size_t size; /* sizeof(struct xt_npy) */
    xt_dtype dtype;
    int raw; /* the file says only how wide an element is; dtype is a guess: bf16, f8e4m3 .. */
    int rank;
    int64_t shape[XT_MAX_RANK];
    int fortran_order;
    int64_t at;    /* where the elements begin, in bytes */
    int64_t bytes; /* of the elements */
};
/* Reads the header in a file's first n bytes. XT_EBUFFER: it has *need bytes, and n is less; 12 are enough to
 * know. XT_EIO: it is none, or of what xt does not know. */
XT_API xt_status xt_npy_read(const void *head, size_t n, struct xt_npy *out, size_t *need);
/* A header of dtype, shape and fortran_order, of version 1.0, whose elements begin at a multiple of `align`
 * (64 .. 4096). Returns its bytes, at most XT_NPY_ROOM; 0: there is no such array, or alignment. */
enum { XT_NPY_ROOM = 4096 };
XT_API size_t xt_npy_write(const struct xt_npy *a, size_t align, char head[XT_NPY_ROOM]);

#ifdef __cplusplus
}
#endif
#endif
