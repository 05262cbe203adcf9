/* cubin.c: see cubin.h. A cubin is an ELF file: .nv.info has numbers an entry, .text.<entry> instructions of
 * 16 bytes, whose low 12 bits are the opcode. */
#include "cuda/cubin.h"

#include <elf.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { INFO_FRAME_SIZE = 0x11, INFO_REGISTERS = 0x2f, INFO_HAS_BYTES = 4 };

struct image {
    const unsigned char *p;
    size_t n;
    Elf64_Ehdr h;
};

static bool section_at(const struct image *m, int i, Elf64_Shdr *s)
{
    size_t at = m->h.e_shoff + (size_t)i * sizeof *s;
    if (i >= m->h.e_shnum || at > m->n || m->n - at < sizeof *s)
        return false;
    memcpy(s, m->p + at, sizeof *s);
    return s->sh_type == SHT_NOBITS || (s->sh_offset <= m->n && m->n - s->sh_offset >= s->sh_size);
}

static const char *text_at(const struct image *m, const Elf64_Shdr *strings, size_t at)
{
    const char *s = (const char *)m->p + strings->sh_offset;
    return at < strings->sh_size && memchr(s + at, 0, strings->sh_size - at) ? s + at : "";
}

/* Its number, or -1. */
static int find_section(const struct image *m, const char *name, Elf64_Shdr *out)
{
    Elf64_Shdr names;
    if (!section_at(m, m->h.e_shstrndx, &names))
        return -1;
    for (int i = 1; i < m->h.e_shnum; i++)
        if (section_at(m, i, out) && !strcmp(text_at(m, &names, out->sh_name), name))
            return i;
    return -1;
}

/* The number of the entry's symbol, which .nv.info names; -1: none. */
static int64_t find_symbol(const struct image *m, const char *entry)
{
    Elf64_Shdr table, strings;
    if (find_section(m, ".symtab", &table) < 0 || !section_at(m, (int)table.sh_link, &strings))
        return -1;
    for (size_t i = 0; i < table.sh_size / sizeof(Elf64_Sym); i++) {
        Elf64_Sym s;
        memcpy(&s, m->p + table.sh_offset + i * sizeof s, sizeof s);
        if (ELF64_ST_TYPE(s.st_info) == STT_FUNC && !strcmp(text_at(m, &strings, s.st_name), entry))
            return (int64_t)i;
    }
    return -1;
}

/* Items of 4 bytes: format, attribute, and a 16-bit value or the number of bytes that follow. */
static bool read_info(const struct image *m, int64_t symbol, struct xti_cubin_entry *out)
{
    Elf64_Shdr s;
    bool found = false;
    if (find_section(m, ".nv.info", &s) < 0)
        return false;
    for (size_t at = 0; at + 4 <= s.sh_size;) {
        const unsigned char *item = m->p + s.sh_offset + at;
        uint16_t bytes = 0;
        uint32_t pair[2];
        memcpy(&bytes, item + 2, 2);
        bytes = item[0] == INFO_HAS_BYTES ? bytes : 0;
        at += 4u + bytes;
        if (bytes < sizeof pair || at > s.sh_size)
            continue;
        memcpy(pair, item + 4, sizeof pair);
        if (pair[0] != symbol)
            continue;
        if (item[1] == INFO_REGISTERS) {
            out->registers = (int)pair[1];
            found = true;
        } else if (item[1] == INFO_FRAME_SIZE) {
            out->local_bytes = (int)pair[1];
        }
    }
    return found;
}

enum kind { OTHER, LOAD, STORE, BREAK };

/* Predicate 7 is "always"; its fourth bit negates. */
static enum kind kind_of(uint64_t low)
{
    bool always = (low >> 12 & 15) == 7;
    switch (low & 0xfff) {
    case 0x381:
    case 0x981:
        return LOAD; /* LDG */
    case 0x386:
    case 0x986:
        return STORE; /* STG */
    case 0xb1d:
        return BREAK; /* BAR */
    case 0x947:
    case 0x94d:
        return always ? BREAK : OTHER; /* BRA, EXIT */
    default:
        return OTHER;
    }
}

/* Bits 73 to 75: u8, s8, u16, s16, 32, 64, 128; wider ones are not known by these bits and count as 128. */
static int width_of(uint64_t high)
{
    static const int bytes[] = {1, 1, 2, 2, 4, 8, 16, 16};
    return bytes[high >> 9 & 7];
}

static void read_code(const struct image *m, const Elf64_Shdr *s, struct xti_cubin_entry *out)
{
    int widest[BREAK + 1] = {0};
    bool stored = false;
    for (int pass = 0; pass < 2; pass++)
        for (size_t at = 0; at + 16 <= s->sh_size; at += 16) {
            uint64_t word[2];
            memcpy(word, m->p + s->sh_offset + at, sizeof word);
            enum kind k = kind_of(word[0]);
            int width = width_of(word[1]);
            if (k == BREAK)
                stored = false;
            if (k != LOAD && k != STORE)
                continue;
            if (pass == 0) {
                widest[k] = width > widest[k] ? width : widest[k];
                *(k == LOAD ? &out->loads : &out->stores) += 1;
            } else if (width == widest[k]) {
                stored = stored || k == STORE;
                out->store_before_load = out->store_before_load || (stored && k == LOAD);
            }
        }
}

bool xti_cubin_read(const void *cubin, size_t bytes, const char *entry, struct xti_cubin_entry *out)
{
    struct image m = {.p = cubin, .n = bytes};
    Elf64_Shdr s;
    char name[256];
    memset(out, 0, sizeof *out);
    if (!cubin || bytes < sizeof m.h)
        return false;
    memcpy(&m.h, cubin, sizeof m.h);
    if (memcmp(m.h.e_ident, ELFMAG, SELFMAG) || m.h.e_shentsize != sizeof(Elf64_Shdr))
        return false;
    int64_t symbol = find_symbol(&m, entry);
    snprintf(name, sizeof name, ".text.%s", entry);
    if (symbol < 0 || find_section(&m, name, &s) < 0)
        return false;
    out->code_bytes = s.sh_size;
    read_code(&m, &s, out);
    snprintf(name, sizeof name, ".nv.shared.%s", entry);
    if (find_section(&m, name, &s) >= 0)
        out->shared_bytes = s.sh_size;
    return read_info(&m, symbol, out);
}

/* What a processor holds: CUDA C++ programming guide, table of compute capabilities. */
static const struct limit {
    int sm, threads, blocks, shared_kb;
} limits[] = {{120, 1536, 24, 100}, {100, 2048, 32, 228}, {90, 2048, 32, 228}, {89, 1536, 24, 100},
              {87, 1536, 16, 164},  {86, 1536, 16, 100},  {80, 2048, 32, 164}, {0, 1024, 16, 64}};

static const struct limit *limit_of(int sm)
{
    const struct limit *l = limits;
    while (sm < l->sm)
        l++;
    return l;
}

int64_t xti_cubin_shared_of(int sm)
{
    int kb = limit_of(sm)->shared_kb;
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        if (limits[i].sm / 10 == sm / 10 && limits[i].shared_kb < kb)
            kb = limits[i].shared_kb;
    return (int64_t)kb << 10;
}

/* Registers are given to a warp by 256. */
int xti_cubin_resident(const struct xti_cubin_entry *e, int sm, int threads)
{
    const struct limit *l = limit_of(sm);
    int warps = (threads + 31) / 32, warp_registers = (e->registers * 32 + 255) / 256 * 256;
    int blocks = l->threads / (warps * 32);
    if (warp_registers && 65536 / warp_registers / warps < blocks)
        blocks = 65536 / warp_registers / warps;
    if (e->shared_bytes && (size_t)l->shared_kb * 1024 / e->shared_bytes < (size_t)blocks)
        blocks = (int)((size_t)l->shared_kb * 1024 / e->shared_bytes);
    return blocks < l->blocks ? blocks : l->blocks;
}
