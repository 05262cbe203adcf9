/* xt-cc.c: the compile helper: NVRTC runs here, so that it cannot hurt the program that xt is part of.
 * Started by the library, with a socket as standard input; not by people. */
#include <stdio.h>
#include <sys/stat.h>

#include "cuda/helper.h"

int main(void)
{
    struct stat in;
    if (fstat(0, &in) || !S_ISSOCK(in.st_mode)) {
        fputs("xt-cc: compiles CUDA kernels for the xt library, which starts it itself\n", stderr);
        return 2;
    }
    return xti_helper_serve(0);
}
