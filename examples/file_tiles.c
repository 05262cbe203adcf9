/* file_tiles.c: a file is transposed within 1 MB of memory, however large it is.
 *
 *     file_tiles IN.npy OUT.npy */
#include <stdbool.h>
#include <stdio.h>
#include <xt/xt_files.h>

static int tell(void *arg, int64_t done, int64_t total)
{
    (void)arg;
    fprintf(stderr, "%lld of %lld bytes\n", (long long)done, (long long)total);
    return 0; /* not 0: stop; the next call goes on from there */
}

int main(int argc, char **argv)
{
    struct xt_files_options opt = {.size = sizeof opt, .mem_bytes = 1 << 20, .progress = tell};
    struct xt_files_info info = {.size = sizeof info};
    struct xt_files *f = NULL;
    if (argc != 3) {
        fprintf(stderr, "want: file_tiles IN.npy OUT.npy\n");
        return 1;
    }
    bool ok = !xt_files_new("x; x.T", 1, (const char *[]){argv[1]}, argv[2], &opt, &f) && !xt_files_run(f) &&
              !xt_files_get(f, &info);
    if (ok)
        printf("%lld bytes read, %lld written, within 1 MB: %s\n", (long long)info.read_bytes,
               (long long)info.written_bytes, info.memory_bytes <= opt.mem_bytes ? "yes" : "no");
    else
        fprintf(stderr, "%s\n", xt_last_error()->message);
    xt_files_free(f); /* accepts NULL */
    return !ok;
}
