/* ptx.c: which version of PTX a text needs. Layer 4. */
#include <stdio.h>
#include <string.h>

#include "cuda/cuda.h"

/* The version, times ten, in which a target or a feature of what xt emits appeared (the PTX manual's release
 * notes). Without any of them: 6.3, of CUDA 10. test_pack asks ptxas about every kernel of the base pack. */
static const struct {
    const char *word;
    int version;
} needs[] = {
    {".target sm_8", 70},  {".target sm_86", 71},  {".target sm_87", 74},  {".target sm_89", 78},
    {".target sm_9", 78},  {".target sm_10", 86},  {".target sm_103", 88}, {".target sm_11", 90},
    {".target sm_12", 87}, {".target sm_121", 88}, {".L1::", 74},          {".L2::", 74},
    {"createpolicy", 74},  {"cvta.param", 77},     {".v8.", 88},           {".v4.b64", 88},
    {".v4.u64", 88},
};

/* A pragma of 8.3 tells checkers which bytes of a load nobody reads; nothing else needs it. Blanks take its
 * place. */
static void drop_masks(char *ptx)
{
    static const char mask[] = ".pragma \"used_bytes_mask";
    while ((ptx = strstr(ptx, mask)))
        memset(ptx, ' ', strcspn(ptx, "\n"));
}

void xti_ptx_lower(char *ptx)
{
    int least = 63, major, minor, n = 0;
    char *at = strstr(ptx, ".version ");
    if (!at || sscanf(at, ".version %d.%d%n", &major, &minor, &n) != 2)
        return;
    for (size_t i = 0; i < sizeof needs / sizeof *needs; i++)
        if (needs[i].version > least && strstr(ptx, needs[i].word))
            least = needs[i].version;
    if (least >= 10 * major + minor)
        return;
    if (least < 83)
        drop_masks(ptx);
    char version[16];
    int m = snprintf(version, sizeof version, ".version %d.%d", least / 10, least % 10);
    memset(at, ' ', (size_t)n);
    memcpy(at, version, (size_t)m);
}
