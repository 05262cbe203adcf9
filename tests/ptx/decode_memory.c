/* decode_memory.c: ld, st and cp.async with their qualifiers. */
#include "parse.h"

#include <stdio.h>
#include <string.h>

/* Qualifiers of ld and st. Hints change no value and no address; memory orders beyond weak and volatile
 * would. */
static const struct qualifier {
    const char *name;
    int space;      /* SPACE_GENERIC: none named */
    int n;          /* elements of a vector, 0: not a vector */
    const char *on; /* l, s: allowed on ld, st; g: only with .global */
} qualifiers[] = {
    /* clang-format off */
    {"global", SPACE_GLOBAL, 0, "ls"}, {"shared", SPACE_SHARED, 0, "ls"}, {"shared::cta", SPACE_SHARED, 0,
    "ls"},
    {"local", SPACE_LOCAL, 0, "ls"}, {"param", SPACE_PARAM, 0, "l"}, {"param::entry", SPACE_PARAM, 0, "l"},
    {"const", SPACE_CONST, 0, "l"},
    {"v2", 0, 2, "ls"}, {"v4", 0, 4, "ls"}, {"v8", 0, 8, "lsg"},
    {"weak", 0, 0, "ls"}, {"volatile", 0, 0, "ls"}, {"nc", 0, 0, "lg"},
    {"ca", 0, 0, "l"}, {"cg", 0, 0, "ls"}, {"cs", 0, 0, "ls"}, {"lu", 0, 0, "l"}, {"cv", 0, 0, "l"},
    {"wb", 0, 0, "s"}, {"wt", 0, 0, "s"},
    {"L1::evict_normal", 0, 0, "lsg"}, {"L1::evict_unchanged", 0, 0, "lsg"}, {"L1::evict_first", 0, 0, "lsg"},
    {"L1::evict_last", 0, 0, "lsg"}, {"L1::no_allocate", 0, 0, "lsg"},
    {"L2::evict_normal", 0, 0, "lsg"}, {"L2::evict_first", 0, 0, "lsg"}, {"L2::evict_last", 0, 0, "lsg"},
    {"L2::64B", 0, 0, "lg"}, {"L2::128B", 0, 0, "lg"}, {"L2::256B", 0, 0, "lg"},
    /* clang-format on */
};

static const struct qualifier *find_qualifier(const char *name, int len)
{
    for (size_t i = 0; i < sizeof qualifiers / sizeof *qualifiers; i++)
        if (strlen(qualifiers[i].name) == (size_t)len && !memcmp(qualifiers[i].name, name, (size_t)len))
            return &qualifiers[i];
    return NULL;
}

/* Shared accesses are aligned to their size, so the smallest of an entry is a unit no access ever splits. */
static void note_granule(struct parser *p, enum space space, int bytes)
{
    if ((space == SPACE_SHARED || space == SPACE_GENERIC) && bytes < p->entry->shared_granule)
        p->entry->shared_granule = bytes;
}

void ptx_decode_load_store(struct parser *p, const struct opcode *o, struct insn *in)
{
    int load = o->segment[0][0] == 'l', global_only = 0, width, max_width = 0, min_width = 64;
    ptx_need_types(p, o, 1);
    struct type t = o->type[0];
    in->op = load ? OP_LD : OP_ST;
    in->n = 1;
    for (int i = 1; i < o->n - 1; i++) {
        const struct qualifier *q = find_qualifier(o->segment[i], o->length[i]);
        if (!q || !strchr(q->on, load ? 'l' : 's') || (q->space && in->space) || (q->n && in->n > 1))
            ptx_refuse(p, o->token, "modifier not understood");
        if (q->space)
            in->space = (uint8_t)q->space;
        if (q->n)
            in->n = (uint8_t)q->n;
        global_only |= strchr(q->on, 'g') != NULL;
    }
    struct type last;
    if (!ptx_find_type(o->segment[o->n - 1], o->length[o->n - 1], &last) || t.kind == 'p')
        ptx_refuse(p, o->token, "type not understood");
    in->size = (uint8_t)(t.bits / 8);
    int bytes = in->size * in->n;
    if (bytes > 32 || (bytes == 32 && (in->space != SPACE_GLOBAL || p->m->target < 100)) ||
        (global_only && in->space != SPACE_GLOBAL) || (in->n == 8 && t.bits != 32))
        ptx_refuse(p, o->token, "vector or hint that this space or target does not have");
    in->is_signed = t.kind == 's';
    note_granule(p, (enum space)in->space, bytes);
    for (int i = 0; i < in->n && load; i++) {
        uint64_t element = (((uint64_t)1 << in->size) - 1) << i * in->size;
        in->unused |= (uint32_t)((p->unused_bytes & element) == element) << i;
    }
    p->unused_bytes = load ? 0 : p->unused_bytes;
    if (!load) {
        ptx_add_source(p, in, ptx_parse_address(p, (enum space)in->space, &in->offset, &in->address_mask));
        ptx_expect(p, ',');
    }
    if (in->n > 1)
        ptx_expect(p, '{');
    for (int i = 0; i < in->n; i++) {
        if (i)
            ptx_expect(p, ',');
        if (load) {
            ptx_add_destination(in, ptx_parse_destination(p, t.bits, t.kind != 'f', &width));
            if (in->dst[i] != NO_SLOT) {
                max_width = width > max_width ? width : max_width;
                min_width = width < min_width ? width : min_width;
            }
        } else {
            ptx_add_source(p, in, ptx_parse_source(p, t.bits, t.kind != 'f'));
        }
    }
    if (in->n > 1)
        ptx_expect(p, '}');
    /* One mask serves the whole vector. */
    if (load && max_width && max_width != min_width)
        ptx_refuse(p, o->token, "vector of registers of different widths");
    ptx_set_width(in, t.bits, max_width ? max_width : 64);
    if (load) {
        ptx_expect(p, ',');
        ptx_add_source(p, in, ptx_parse_address(p, (enum space)in->space, &in->offset, &in->address_mask));
    }
}

void ptx_decode_cp(struct parser *p, const struct opcode *o, struct insn *in)
{
    static const char *const hints[] = {"", ".L2::64B", ".L2::128B", ".L2::256B"};
    static const char *const copies[] = {"cp.async.ca.shared", "cp.async.cg.shared",
                                         "cp.async.ca.shared::cta", "cp.async.cg.shared::cta"};
    ptx_need_types(p, o, 0);
    if (!strcmp(o->key, "cp.async.commit_group")) {
        in->op = OP_CP_COMMIT;
        return;
    }
    if (!strcmp(o->key, "cp.async.wait_all") || !strcmp(o->key, "cp.async.wait_group")) {
        in->op = OP_CP_WAIT;
        in->uniform = !strcmp(o->key, "cp.async.wait_all");
        in->target = in->uniform ? 0 : (int)ptx_number(p, 16);
        return;
    }
    int known = 0, level2_only = 0;
    for (size_t c = 0; c < sizeof copies / sizeof *copies; c++)
        for (size_t h = 0; h < sizeof hints / sizeof *hints; h++) {
            char key[MAX_KEY];
            snprintf(key, sizeof key, "%s.global%s", copies[c], hints[h]);
            if (!strcmp(key, o->key))
                known = 1, level2_only = c & 1;
        }
    if (!known)
        ptx_refuse(p, o->token, "instruction not understood");
    uint64_t mask;
    in->op = OP_CP_ASYNC;
    in->n = 1;
    ptx_add_source(p, in, ptx_parse_address(p, SPACE_SHARED, &in->offset, &in->address_mask));
    ptx_expect(p, ',');
    ptx_add_source(p, in, ptx_parse_address(p, SPACE_GLOBAL, &in->offset2, &mask));
    ptx_expect(p, ',');
    const struct token *t = ptx_peek(p);
    in->size = (uint8_t)ptx_number(p, 8);
    if (in->size != 16 && (level2_only || (in->size != 4 && in->size != 8)))
        ptx_refuse(p, t, "size of a copy");
    if (ptx_accept(p, ','))
        ptx_add_source(p, in, ptx_parse_source(p, 32, 0));
    note_granule(p, SPACE_SHARED, in->size);
}
