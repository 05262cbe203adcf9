/* peers.c: other libraries on the whole chain, each in one process of its own: chains go in by a file,
 * seconds come back a line each. Nothing is installed here: $PYTHON, python3 and /usr/bin/python3 are asked
 * what they have. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"

const char *const bench_peer_name[N_PEERS] = {"numpy", "torch", "jax"};

static const char script[] = "bench/peer_chain.py";

static bool can_import(const char *python, const char *library)
{
    char command[512];
    snprintf(command, sizeof command, "%s -c 'import numpy, %s' >/dev/null 2>&1", python, library);
    return system(command) == 0;
}

static const char *find_python(const char *library)
{
    const char *const pythons[] = {getenv("PYTHON"), "python3", "/usr/bin/python3"};
    for (int i = 0; i < 3; i++)
        if (pythons[i] && can_import(pythons[i], library))
            return pythons[i];
    return NULL;
}

static void run_peer(int peer, const char *chains, struct bench_row *rows, int n, int samples)
{
    char command[1024];
    const char *python = find_python(bench_peer_name[peer]);
    if (!python)
        return;
    snprintf(command, sizeof command, "%s %s %s %d %d %s 2>/dev/null", python, script, bench_peer_name[peer],
             bench_threads(), samples, chains);
    FILE *out = popen(command, "r");
    for (int i = 0; out && i < n && fscanf(out, "%lf", &rows[i].peer_seconds[peer]) == 1; i++)
        continue;
    if (out)
        pclose(out);
}

void bench_peers(struct bench_row *rows, int n, int samples)
{
    char path[] = "/tmp/xt-bench-XXXXXX";
    if (access(script, R_OK))
        return;
    int fd = mkstemp(path);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
    for (int i = 0; f && i < n; i++)
        fprintf(f, "%s\n", rows[i].work->chain);
    if (f && !fclose(f))
        for (int peer = 0; peer < N_PEERS; peer++)
            run_peer(peer, path, rows, n, samples);
    if (fd >= 0)
        unlink(path);
}
