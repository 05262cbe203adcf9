/* structure.c: what a kernel of the structure tier is called, what it is found by, and the numbers that it
 * takes. In: a plan. Out: the plan's `structure` and the `numbers` of both entries. Layer 4. */
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "cuda/writer.h"

/* Every driver hands over so many bytes of parameters; later ones more. */
enum { PARAM_BYTES = 4096 };

static bool fits(const struct xti_cuda_plan *p)
{
    size_t pointers = 8 * (1 + (size_t)p->map.n_srcs), fills = 16 * (size_t)xti_emit_fill(p, p->map.n_pieces);
    return pointers + (p->numbers.n + 15) / 16 * 16 + fills <= PARAM_BYTES;
}

/* Words as wide as the index, lowest byte first; the writer's have 8 bytes. */
static void pack(struct xti_cuda_plan *p, const struct xti_str *words)
{
    size_t width = p->index32 ? 4 : 8, n = words->n / 8;
    xti_str_free(&p->numbers);
    p->numbers = (struct xti_str){.failed = words->failed};
    if (words->failed || !n)
        return;
    for (size_t i = 0; i < n && width == 4; i++)
        memcpy(words->s + 4 * i, words->s + 8 * i, 4);
    xti_str_set(&p->numbers, words->s, width * n);
}

static void number(struct xti_cuda_plan *p, const char *prefix, struct xti_str *structure)
{
    char room[8 * 128];
    struct xti_writing e = {.p = p, .tier = XTI_TIER_STRUCTURE, .prefix = prefix, .structure = structure};
    e.numbers = XTI_STR_ON(room);
    xti_write_entry(&e, "");
    pack(p, &e.numbers);
    xti_str_free(&e.numbers);
}

xt_status xti_cuda_structure_make(struct xti_cuda_plan *p, struct xti_err *err)
{
    char room[1024];
    struct xti_str key = XTI_STR_ON(room);
    xti_str_free(&p->structure);
    p->structure = (struct xti_str){0};
    if (!p->n_steps)
        return XT_OK;
    number(p, "xt_a", &key);
    number(p->elem, "xt_e", &key);
    if (fits(p) && fits(p->elem))
        xti_str_set(&p->structure, key.s, key.n);
    bool failed = key.failed || p->structure.failed || p->numbers.failed || p->elem->numbers.failed;
    xti_str_free(&key);
    return failed ? xti_fail(err, XT_ENOMEM, "numbers of a CUDA plan") : XT_OK;
}

xt_status xti_cuda_structure(const struct xti_cuda_plan *p, struct xti_str *key, struct xti_err *err)
{
    if (!p->structure.n)
        return xti_fail(err, XT_EUNSUPPORTED,
                        "%d pieces: %zu and %zu bytes of numbers do not fit in %d bytes of parameters",
                        p->n_steps, p->numbers.n, p->elem ? p->elem->numbers.n : 0, PARAM_BYTES);
    xti_str_addn(key, p->structure.s, p->structure.n);
    return XT_OK;
}

/* Which piece writes the most is no matter of structure: the first that reads stands for all. */
void xti_cuda_structure_name(const struct xti_cuda_plan *p, char name[XTI_CUDA_NAME_CHARS])
{
    int i = 0;
    while (i + 1 < p->n_steps && p->map.piece[p->step[i].piece].src < 0)
        i++;
    if (p->n_steps && p->map.piece[p->step[i].piece].src < 0)
        i = 0;
    const char *family = p->n_steps ? xti_cuda_family_name(p->step[i].family) : "empty";
    struct xti_str b = {.s = name, .cap = XTI_CUDA_NAME_CHARS, .lent = true};
    xti_str_add(&b, "xt_");
    xti_str_add(&b, family);
    xti_str_add(&b, "_");
    uint32_t hash = (uint32_t)xti_hash64(p->structure.s, p->structure.n);
    const unsigned char byte[] = {(unsigned char)(hash >> 24), (unsigned char)(hash >> 16),
                                  (unsigned char)(hash >> 8), (unsigned char)hash};
    char hex[2 * sizeof byte + 1];
    xti_hex(byte, sizeof byte, hex);
    xti_str_add(&b, hex);
}
